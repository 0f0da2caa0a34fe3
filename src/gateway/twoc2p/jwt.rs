//! JSON Web Tokens with HS256, and nothing else (page `json-web-tokens-jwt`).

use crate::secret::Secret;
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::fmt;

/// `{"alg":"HS256","typ":"JWT"}`, as 2C2P prints it.
const HEADER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";

/// Signs and verifies with the merchant's secret key.
pub(super) struct Signer(hmac::Key);

/// Why a token was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejected {
    /// Not three segments of unpadded base64url.
    Form,
    /// Not signed by us with HS256.
    Signature,
}

impl Signer {
    /// The key is the text of the secret, not the bytes that its hex digits would stand for.
    pub(super) fn new(secret: &Secret) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes()))
    }

    /// A token around `claims`, a JSON object.
    pub(super) fn sign(&self, claims: &str) -> String {
        let signed = format!("{HEADER}.{}", URL_SAFE_NO_PAD.encode(claims));
        let tag = hmac::sign(&self.0, signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    /// The claims of `token`, as bytes that the holder of the secret has signed.
    ///
    /// The signature is checked first, in constant time and always as HS256, whatever the header says; header and
    /// claims are read only after it.
    pub(super) fn verify(&self, token: &str) -> Result<Vec<u8>, Rejected> {
        let (signed, tag) = token.rsplit_once('.').ok_or(Rejected::Form)?;
        let (header, claims) = signed.split_once('.').ok_or(Rejected::Form)?;
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| Rejected::Form);
        // A fourth segment leaves a dot in the claims, which is not in the alphabet.
        let (tag, header, claims) = (decode(tag)?, decode(header)?, decode(claims)?);
        hmac::verify(&self.0, signed.as_bytes(), &tag).map_err(|_| Rejected::Signature)?;
        let header: Header = serde_json::from_slice(&header).map_err(|_| Rejected::Signature)?;
        if header.alg != "HS256" || header.crit.is_some() {
            return Err(Rejected::Signature);
        }
        Ok(claims)
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer(***)")
    }
}

/// Members other than these are none of our business; a `crit` that we do not understand is, by RFC 7515.
#[derive(Deserialize)]
struct Header {
    alg: String,
    crit: Option<IgnoredAny>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn signer() -> Signer {
        Signer::new(&Secret::from("TESTONLY2C2P0001"))
    }

    fn with_header(header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let tag = hmac::sign(&signer().0, signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    #[test]
    fn reads_what_it_signed_and_what_has_further_header_members() {
        assert_eq!(signer().verify(&signer().sign("{}")), Ok(b"{}".to_vec()));
        assert_eq!(
            URL_SAFE_NO_PAD.decode(HEADER).unwrap(),
            br#"{"alg":"HS256","typ":"JWT"}"#
        );
        let token = with_header(r#"{"typ":"JWT","kid":"1","alg":"HS256"}"#, "{}");
        assert_eq!(signer().verify(&token), Ok(b"{}".to_vec()));
    }

    #[test]
    fn a_good_signature_under_another_header_is_refused() {
        for header in [
            r#"{"alg":"none"}"#,
            r#"{"alg":"hs256"}"#,
            r#"{"alg":"HS384"}"#,
            r#"{"alg":"RS256"}"#,
            r#"{"alg":["HS256"]}"#,
            r#"{"alg":"HS256","alg":"none"}"#,
            r#"{"alg":"HS256","crit":["exp"]}"#,
            r#"{"typ":"JWT"}"#,
            "HS256",
            "",
        ] {
            assert_eq!(
                signer().verify(&with_header(header, "{}")),
                Err(Rejected::Signature),
                "{header}"
            );
        }
    }

    #[test]
    fn the_form_is_strict() {
        let good = signer().sign("{}");
        for token in [
            String::new(),
            ".".into(),
            "..".into(),
            "a.b".into(),
            "a.b.c.d".into(),
            format!("{good}\n"),
            format!(" {good}"),
            format!("{good}="),
            format!("{good}.{good}"),
            format!("{good}."),
            good.replace('.', ".."),
        ] {
            assert!(signer().verify(&token).is_err(), "{token}");
        }
        // The last character of a tag of 32 bytes carries two bits that decode to nothing; only one spelling is right.
        for last in ('A'..='Z').chain('a'..='z').chain('0'..='9') {
            let other = format!("{}{last}", &good[..good.len() - 1]);
            assert_eq!(signer().verify(&other).is_ok(), other == good);
        }
    }

    #[test]
    fn prints_nothing_of_the_key() {
        assert_eq!(format!("{:?}", signer()), "Signer(***)");
    }

    proptest! {
        #[test]
        fn no_text_is_accepted_or_makes_it_panic(text in ".*") {
            prop_assert!(signer().verify(&text).is_err());
        }

        #[test]
        fn one_changed_byte_is_noticed(at in 0_usize..80, byte in any::<u8>()) {
            let good = signer().sign(r#"{"a":1}"#).into_bytes();
            let mut bad = good.clone();
            let at = at % bad.len();
            bad[at] = byte;
            if let Ok(text) = String::from_utf8(bad.clone()) {
                prop_assert_eq!(signer().verify(&text).is_ok(), bad == good);
            }
        }
    }
}
