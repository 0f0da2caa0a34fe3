//! What a call names: the payment, by its token, and who looks at it.

use super::super::json::Object;
use crate::secret::Secret;
use std::fmt;

/// The longest token (type C 255).
const LONGEST: usize = 255;

/// The `paymentToken` of an invoice. Whoever holds it can pay the invoice and see its details, so it is a secret.
#[derive(Clone)]
pub struct PaymentToken(Secret);

impl PaymentToken {
    /// A token as 2C2P issued it, not percent-encoded.
    #[must_use]
    pub fn new(token: impl Into<Secret>) -> Self {
        Self(token.into())
    }

    /// The token in the address of 2C2P's page, as a pending charge has it in
    /// [`NextStep::Redirect`](crate::outcome::NextStep::Redirect).
    ///
    /// The token stands percent-encoded after `/token/`, in the fragment (`/#/token/...`), in a query that a fragment
    /// was turned into (`/?%23/token/...`), or in the path. `None` for an address that has none there, or one that
    /// cannot be a token. What the page itself makes of its address is 2C2P's business; no page describes it.
    #[must_use]
    pub fn from_page_url(url: &Secret) -> Option<Self> {
        let (_, rest) = url.expose().split_once("/token/")?;
        let encoded = rest.split(['?', '#', '&']).next()?;
        let token = percent_decode(encoded)?;
        let fits = !token.is_empty() && token.len() <= LONGEST && token.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Self::new(token))
    }

    /// The token.
    #[must_use]
    pub fn secret(&self) -> &Secret {
        &self.0
    }
}

impl fmt::Debug for PaymentToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PaymentToken(***)")
    }
}

/// The person before the screen, as far as 2C2P wants to know: language and device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Viewer {
    client_id: Option<String>,
    locale: Option<String>,
}

impl Viewer {
    /// Nobody in particular: 2C2P takes the language of the payment token.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The language of the answer (`locale`): `en`, `th`, `zh-cn` and others.
    #[must_use]
    pub fn locale(mut self, locale: impl Into<String>) -> Self {
        self.locale = Some(locale.into());
        self
    }

    /// The device (`clientID`): a random UUID that you keep for it. 2C2P remembers preferences under it.
    #[must_use]
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.client_id = Some(id.into());
        self
    }

    /// The members that every call by token has.
    pub(super) fn body(&self, token: &PaymentToken) -> Object {
        let mut body = Object::new();
        body.text("paymentToken", token.0.expose());
        body.optional("clientID", self.client_id.as_deref());
        body.optional("locale", self.locale.as_deref());
        body
    }
}

/// Escapes in either case of letters; a plus sign is a plus sign. `None` for a broken escape, for what is not UTF-8,
/// and for a slash that is not escaped, which would leave it open where the token ends.
fn percent_decode(text: &str) -> Option<String> {
    if text.contains('/') {
        return None;
    }
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(part.get(2..)?.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(url: &str) -> Option<String> {
        let token = PaymentToken::from_page_url(&Secret::from(url))?;
        Some(token.secret().expose().to_owned())
    }

    #[test]
    fn the_token_is_found_in_every_form_of_the_page_s_address() {
        for url in [
            "https://sandbox-pgw-ui.2c2p.com/payment/4.3/#/token/TESTONLY%2bab%2Fcd%3d%3D",
            "https://pgw-ui.example/payment/4.1/?%23/token/TESTONLY%2bab%2fcd%3d%3d",
            "http://127.0.0.1:4711/token/TESTONLY%2Bab%2Fcd==",
            "http://127.0.0.1:4711/token/TESTONLY+ab%2Fcd==?locale=en",
            "http://127.0.0.1:4711/payment/4.3/#/token/TESTONLY+ab%2Fcd%3D=&x=1",
        ] {
            assert_eq!(found(url).as_deref(), Some("TESTONLY+ab/cd=="), "{url}");
        }
    }

    #[test]
    fn an_address_without_a_token_has_none() {
        for url in [
            "",
            "https://pgw-ui.example/payment/4.3/",
            "https://pgw-ui.example/#/token/",
            "https://pgw-ui.example/#/token/?a",
            "https://pgw-ui.example/#/token/a%2",
            "https://pgw-ui.example/#/token/a%zz",
            "https://pgw-ui.example/#/token/a%+f",
            "https://pgw-ui.example/#/token/%ff",
            "https://pgw-ui.example/#/token/a%0ab",
            "https://pgw-ui.example/#/token/a b",
            "https://pgw-ui.example/#/token/a/b",
            "https://pgw-ui.example/#/token/%ก",
        ] {
            assert_eq!(found(url), None, "{url}");
        }
        assert_eq!(found(&format!("/token/{}", "a".repeat(256))), None);
        assert!(found(&format!("/token/{}", "a".repeat(255))).is_some());
    }

    #[test]
    fn prints_nothing_of_the_token() {
        let token = PaymentToken::new("TESTONLYtoken");
        assert_eq!(format!("{token:?}"), "PaymentToken(***)");
    }

    proptest! {
        #[test]
        fn no_address_makes_it_panic(url in ".*", rest in "[a-z%0-9/?#&ก]{0,20}") {
            let _ = found(&url);
            let _ = found(&format!("https://pgw-ui.example/#/token/{rest}"));
        }

        #[test]
        fn every_token_survives_its_address(token in "[!-~]{1,255}") {
            let encoded: String = token.bytes().map(|byte| format!("%{byte:02x}")).collect();
            prop_assert_eq!(found(&format!("https://pgw-ui.example/#/token/{encoded}")), Some(token));
        }
    }
}
