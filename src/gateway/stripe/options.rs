//! What an operation can ask of Stripe beyond amount, reference and metadata.

use crate::operation::{Canonical, GatewayOptions, Invalid, OperationKind};
use crate::secret::Secret;

/// Options of one operation for Stripe. They enter its fingerprint: a retry with other options is refused.
///
/// How a charge or authorization is paid is chosen by the constructor; without options it is
/// [`StripeOptions::client_side`].
///
/// ```
/// use payonce::gateway::stripe::StripeOptions;
/// use payonce::money::{Currency, Money};
/// use payonce::operation::Operation;
///
/// let order = Operation::charge("order-1042", Money::parse("19.99", Currency::USD)?)?
///     .with(StripeOptions::hosted_page("https://shop.example/thanks").cancel_url("https://shop.example/cart"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StripeOptions {
    pub(super) payment: Payment,
    pub(super) customer: Option<String>,
    pub(super) payment_method_types: Vec<String>,
    pub(super) redirects: Option<bool>,
    pub(super) return_url: Option<String>,
    pub(super) off_session: bool,
    pub(super) error_on_requires_action: bool,
    pub(super) setup_future_usage: Option<String>,
    pub(super) statement_descriptor: Option<String>,
    pub(super) statement_descriptor_suffix: Option<String>,
    pub(super) cancel_url: Option<String>,
    pub(super) product_name: Option<String>,
    pub(super) refund_reason: Option<String>,
    pub(super) cancellation_reason: Option<String>,
    pub(super) unmarked_capture: bool,
}

/// Where the payment method comes from.
#[derive(Clone, Debug)]
pub(super) enum Payment {
    /// With the request, which also confirms.
    Given { payment_method: Secret },
    /// From the payer, on Stripe's page.
    Page { success_url: String },
    /// From the payer, in the merchant's page or app by Stripe's own library.
    Client,
}

/// How the payer takes part, which decides what an unconfirmed payment means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// Not at all, authentication aside: the request itself confirms.
    AtOnce,
    /// On Stripe's hosted page.
    Page,
    /// With a client secret.
    Client,
}

impl StripeOptions {
    fn new(payment: Payment) -> Self {
        Self {
            payment,
            customer: None,
            payment_method_types: Vec::new(),
            redirects: None,
            return_url: None,
            off_session: false,
            error_on_requires_action: false,
            setup_future_usage: None,
            statement_descriptor: None,
            statement_descriptor_suffix: None,
            cancel_url: None,
            product_name: None,
            refund_reason: None,
            cancellation_reason: None,
            unmarked_capture: false,
        }
    }

    /// Pays at once with this payment method (`pm_...`): one request creates and confirms the PaymentIntent.
    ///
    /// Unless [types](Self::payment_method_types), [redirects](Self::redirects) or a [return URL](Self::return_url)
    /// are given too, only cards are accepted: Stripe would otherwise insist on a return URL for the redirecting
    /// methods that the account has switched on (docs/payments/payment-intents).
    ///
    /// The payer may be asked to authenticate (3-D Secure). A client that got a client secret for that must not
    /// confirm again with another method after a refusal: that is a new attempt.
    pub fn payment_method(id: impl Into<Secret>) -> Self {
        Self::new(Payment::Given {
            payment_method: id.into(),
        })
    }

    /// Sends the payer to Stripe's hosted page (a Checkout Session), which returns to `success_url` after payment.
    /// The page closes when [`Operation::expires_at`](crate::operation::Operation::expires_at) says, at least 30
    /// minutes and at most 24 hours after the first send (api/checkout/sessions/create); without it 10 minutes short
    /// of 24 hours.
    pub fn hosted_page(success_url: impl Into<String>) -> Self {
        Self::new(Payment::Page {
            success_url: success_url.into(),
        })
    }

    /// Creates an unconfirmed PaymentIntent, which the payer's browser or app confirms with the client secret and
    /// Stripe's own library. It stays payable until it is cancelled: void it to be sure.
    #[must_use]
    pub fn client_side() -> Self {
        Self::new(Payment::Client)
    }

    /// Options for captures, voids and refunds, which have no payer.
    #[must_use]
    pub fn follow_up() -> Self {
        Self::client_side()
    }

    /// The Customer (`cus_...`) who pays.
    #[must_use]
    pub fn customer(mut self, id: impl Into<String>) -> Self {
        self.customer = Some(id.into());
        self
    }

    /// Accepts these methods only, such as `card` and `promptpay`; without it those that the account has switched on.
    #[must_use]
    pub fn payment_method_types<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.payment_method_types = types.into_iter().map(Into::into).collect();
        self
    }

    /// Accepts the methods that the account has switched on, with (`true`) or without (`false`) those that redirect
    /// the payer.
    #[must_use]
    pub fn redirects(mut self, allowed: bool) -> Self {
        self.redirects = Some(allowed);
        self
    }

    /// Where a redirecting method sends the payer back to, when the request itself confirms.
    #[must_use]
    pub fn return_url(mut self, url: impl Into<String>) -> Self {
        self.return_url = Some(url.into());
        self
    }

    /// The payer is not present and cannot authenticate; only with [`Self::payment_method`].
    #[must_use]
    pub fn off_session(mut self) -> Self {
        self.off_session = true;
        self
    }

    /// Fails the payment instead of asking the payer to authenticate; only with [`Self::payment_method`].
    #[must_use]
    pub fn error_on_requires_action(mut self) -> Self {
        self.error_on_requires_action = true;
        self
    }

    /// Keeps the payment method with the Customer for later: `on_session` or `off_session`.
    #[must_use]
    pub fn setup_future_usage(mut self, usage: impl Into<String>) -> Self {
        self.setup_future_usage = Some(usage.into());
        self
    }

    /// What stands on the payer's statement, for methods other than cards: 5 to 22 Latin characters.
    #[must_use]
    pub fn statement_descriptor(mut self, text: impl Into<String>) -> Self {
        self.statement_descriptor = Some(text.into());
        self
    }

    /// What is appended to the account's own descriptor on card statements: at most 22 Latin characters together.
    #[must_use]
    pub fn statement_descriptor_suffix(mut self, text: impl Into<String>) -> Self {
        self.statement_descriptor_suffix = Some(text.into());
        self
    }

    /// Where the hosted page sends a payer who turns back.
    #[must_use]
    pub fn cancel_url(mut self, url: impl Into<String>) -> Self {
        self.cancel_url = Some(url.into());
        self
    }

    /// What the hosted page says is paid for; without it the description, or else the reference.
    #[must_use]
    pub fn product_name(mut self, name: impl Into<String>) -> Self {
        self.product_name = Some(name.into());
        self
    }

    /// Why a refund is made: `duplicate`, `fraudulent` or `requested_by_customer`.
    #[must_use]
    pub fn refund_reason(mut self, reason: impl Into<String>) -> Self {
        self.refund_reason = Some(reason.into());
        self
    }

    /// Why a payment is voided: `abandoned`, `duplicate`, `fraudulent` or `requested_by_customer`.
    #[must_use]
    pub fn cancellation_reason(mut self, reason: impl Into<String>) -> Self {
        self.cancellation_reason = Some(reason.into());
        self
    }

    /// Sends a capture without metadata, for stand-ins of Stripe that take none with it. Whether a capture that was
    /// found is this operation's own can then be told by its event alone.
    #[must_use]
    pub fn unmarked_capture(mut self) -> Self {
        self.unmarked_capture = true;
        self
    }

    pub(super) fn flow(&self) -> Flow {
        match self.payment {
            Payment::Given { .. } => Flow::AtOnce,
            Payment::Page { .. } => Flow::Page,
            Payment::Client => Flow::Client,
        }
    }

    /// Refuses what has no meaning for the operation, so that nothing that was asked for is dropped in silence, and
    /// what Stripe's documented rules refuse.
    pub(super) fn check(&self, kind: OperationKind) -> Result<(), Invalid> {
        self.check_place(kind)?;
        if let Payment::Given { payment_method } = &self.payment {
            check_id("payment_method", payment_method.expose())?;
        }
        if let Some(id) = &self.customer {
            check_id("customer", id)?;
        }
        if let Payment::Page { success_url } = &self.payment {
            check_url("success_url", success_url)?;
        }
        for (name, url) in [("cancel_url", &self.cancel_url), ("return_url", &self.return_url)] {
            url.as_deref().map_or(Ok(()), |url| check_url(name, url))?;
        }
        for kind in &self.payment_method_types {
            check_id("payment_method_types", kind)?;
        }
        if self.redirects.is_some() && !self.payment_method_types.is_empty() {
            let reason = "either the methods are named or the account's own are taken, not both";
            return Err(Invalid::new("payment_method_types", reason));
        }
        one_of(
            "setup_future_usage",
            self.setup_future_usage.as_deref(),
            &["on_session", "off_session"],
        )?;
        let reasons = ["duplicate", "fraudulent", "requested_by_customer", "abandoned"];
        one_of("refund_reason", self.refund_reason.as_deref(), &reasons[..3])?;
        one_of("cancellation_reason", self.cancellation_reason.as_deref(), &reasons)?;
        if let Some(text) = &self.statement_descriptor {
            check_descriptor("statement_descriptor", text, 5)?;
        }
        if let Some(text) = &self.statement_descriptor_suffix {
            check_descriptor("statement_descriptor_suffix", text, 1)?;
        }
        Ok(())
    }

    fn check_place(&self, kind: OperationKind) -> Result<(), Invalid> {
        let creates = matches!(kind, OperationKind::Charge | OperationKind::Authorize);
        let capture = kind == OperationKind::Capture;
        let flow = creates.then(|| self.flow());
        let paid = creates || matches!(self.payment, Payment::Client);
        for (name, given, fits) in [
            ("payment", true, paid),
            ("customer", self.customer.is_some(), creates),
            ("payment_method_types", !self.payment_method_types.is_empty(), creates),
            (
                "redirects",
                self.redirects.is_some(),
                creates && flow != Some(Flow::Page),
            ),
            ("return_url", self.return_url.is_some(), flow == Some(Flow::AtOnce)),
            ("off_session", self.off_session, flow == Some(Flow::AtOnce)),
            (
                "error_on_requires_action",
                self.error_on_requires_action,
                flow == Some(Flow::AtOnce),
            ),
            ("setup_future_usage", self.setup_future_usage.is_some(), creates),
            (
                "statement_descriptor",
                self.statement_descriptor.is_some(),
                creates || capture,
            ),
            (
                "statement_descriptor_suffix",
                self.statement_descriptor_suffix.is_some(),
                creates || capture,
            ),
            ("cancel_url", self.cancel_url.is_some(), flow == Some(Flow::Page)),
            ("product_name", self.product_name.is_some(), flow == Some(Flow::Page)),
            (
                "refund_reason",
                self.refund_reason.is_some(),
                kind == OperationKind::Refund,
            ),
            (
                "cancellation_reason",
                self.cancellation_reason.is_some(),
                kind == OperationKind::Void,
            ),
            ("unmarked_capture", self.unmarked_capture, capture),
        ] {
            if given && !fits {
                return Err(Invalid::new(
                    name,
                    format!("has no meaning for this kind of {kind} at Stripe"),
                ));
            }
        }
        Ok(())
    }
}

impl GatewayOptions for StripeOptions {
    fn gateway(&self) -> &'static str {
        super::NAME
    }

    fn canonical(&self, out: &mut Canonical) {
        match &self.payment {
            Payment::Given { payment_method } => out.put("payment_method", payment_method.expose()),
            Payment::Page { success_url } => out.put("success_url", success_url),
            Payment::Client => {}
        }
        out.optional("customer", self.customer.as_deref());
        for kind in &self.payment_method_types {
            out.put("payment_method_types", kind);
        }
        out.optional("return_url", self.return_url.as_deref());
        out.optional("setup_future_usage", self.setup_future_usage.as_deref());
        out.optional("statement_descriptor", self.statement_descriptor.as_deref());
        out.optional(
            "statement_descriptor_suffix",
            self.statement_descriptor_suffix.as_deref(),
        );
        out.optional("cancel_url", self.cancel_url.as_deref());
        out.optional("product_name", self.product_name.as_deref());
        out.optional("refund_reason", self.refund_reason.as_deref());
        out.optional("cancellation_reason", self.cancellation_reason.as_deref());
        let redirects = self.redirects.map(|allowed| if allowed { "always" } else { "never" });
        out.optional("redirects", redirects);
        for (name, set) in [
            ("off_session", self.off_session),
            ("error_on_requires_action", self.error_on_requires_action),
            ("unmarked_capture", self.unmarked_capture),
        ] {
            out.optional(name, set.then_some("true"));
        }
    }
}

/// Ids and names of methods: what may stand in a path or a header without being escaped.
pub(super) fn is_id(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn check_id(field: &'static str, text: &str) -> Result<(), Invalid> {
    if is_id(text) {
        return Ok(());
    }
    Err(Invalid::new(field, "must be 1 to 255 letters, digits and underscores"))
}

fn check_url(field: &'static str, text: &str) -> Result<(), Invalid> {
    let absolute = url::Url::parse(text).is_ok();
    if absolute && text.len() <= 5000 {
        return Ok(());
    }
    Err(Invalid::new(field, "must be an absolute URL of at most 5000 bytes"))
}

fn one_of(field: &'static str, given: Option<&str>, allowed: &[&str]) -> Result<(), Invalid> {
    match given {
        Some(text) if !allowed.contains(&text) => {
            Err(Invalid::new(field, format!("must be one of {}", allowed.join(", "))))
        }
        _ => Ok(()),
    }
}

/// Latin characters, at least one letter, none of the characters that are reserved (docs/get-started/account/
/// statement-descriptors).
fn check_descriptor(field: &'static str, text: &str, shortest: usize) -> Result<(), Invalid> {
    let latin = text.chars().all(|c| c.is_ascii() && !c.is_ascii_control());
    let length = (shortest..=22).contains(&text.len());
    let letter = text.contains(|c: char| c.is_ascii_alphabetic());
    let reserved = text.contains(['<', '>', '\\', '\'', '"', '*']);
    if latin && length && letter && !reserved {
        return Ok(());
    }
    let reason = format!("must be {shortest} to 22 Latin characters with a letter and without < > \\ ' \" *");
    Err(Invalid::new(field, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::{Currency, Money};
    use crate::operation::Operation;

    #[track_caller]
    fn refused(options: &StripeOptions, kind: OperationKind) -> &'static str {
        options.check(kind).unwrap_err().field()
    }

    #[test]
    fn what_has_no_meaning_for_the_operation_is_refused_by_name() {
        use OperationKind::{Authorize, Capture, Charge, Refund, Void};
        let client = StripeOptions::client_side;
        let card = || StripeOptions::payment_method("pm_1");
        let page = || StripeOptions::hosted_page("https://shop.example/ok");
        for (options, kind, field) in [
            (client().refund_reason("duplicate"), Charge, "refund_reason"),
            (client().refund_reason("because"), Refund, "refund_reason"),
            (client().cancellation_reason("expired"), Void, "cancellation_reason"),
            (client().return_url("https://shop.example"), Charge, "return_url"),
            (client().off_session(), Charge, "off_session"),
            (card(), Refund, "payment"),
            (card().cancel_url("https://shop.example"), Charge, "cancel_url"),
            (card().return_url("shop.example"), Charge, "return_url"),
            (card().customer("cus_1/../x"), Authorize, "customer"),
            (
                card().payment_method_types(["card"]).redirects(false),
                Charge,
                "payment_method_types",
            ),
            (StripeOptions::payment_method(""), Charge, "payment_method"),
            (StripeOptions::hosted_page("/thanks"), Charge, "success_url"),
            (page().redirects(true), Charge, "redirects"),
            (page().setup_future_usage("always"), Charge, "setup_future_usage"),
            (page().unmarked_capture(), Charge, "unmarked_capture"),
            (client().statement_descriptor("SHOP"), Charge, "statement_descriptor"),
            (
                client().statement_descriptor_suffix("12345"),
                Capture,
                "statement_descriptor_suffix",
            ),
            (
                client().statement_descriptor_suffix("A*1"),
                Capture,
                "statement_descriptor_suffix",
            ),
        ] {
            assert_eq!(refused(&options, kind), field, "{options:?}");
        }
        for (options, kind) in [
            (
                card()
                    .return_url("https://shop.example/?a=b")
                    .off_session()
                    .customer("cus_1"),
                Charge,
            ),
            (
                page().cancel_url("https://shop.example").product_name("Two tickets"),
                Authorize,
            ),
            (StripeOptions::follow_up().refund_reason("fraudulent"), Refund),
            (StripeOptions::follow_up().cancellation_reason("abandoned"), Void),
            (
                StripeOptions::follow_up()
                    .statement_descriptor_suffix("ORDER 1")
                    .unmarked_capture(),
                Capture,
            ),
        ] {
            assert_eq!(options.check(kind), Ok(()), "{options:?}");
        }
    }

    #[test]
    fn every_option_changes_the_fingerprint() {
        let base = StripeOptions::client_side;
        let all = [
            base(),
            StripeOptions::payment_method("pm_1"),
            StripeOptions::payment_method("pm_2"),
            StripeOptions::hosted_page("pm_1"),
            base().customer("a"),
            base().payment_method_types(["a"]),
            base().payment_method_types(["a", "b"]),
            base().redirects(true),
            base().redirects(false),
            base().return_url("a"),
            base().off_session(),
            base().error_on_requires_action(),
            base().setup_future_usage("a"),
            base().statement_descriptor("a"),
            base().statement_descriptor_suffix("a"),
            base().cancel_url("a"),
            base().product_name("a"),
            base().refund_reason("a"),
            base().cancellation_reason("a"),
            base().unmarked_capture(),
        ];
        let prints: Vec<_> = all
            .into_iter()
            .map(|options| {
                let amount = Money::from_minor(2000, Currency::USD);
                Operation::charge("order-1", amount)
                    .unwrap()
                    .with(options)
                    .fingerprint()
            })
            .collect();
        for (index, print) in prints.iter().enumerate() {
            assert!(!prints[index + 1..].contains(print), "option number {index}");
        }
    }

    #[test]
    fn a_payment_method_is_not_printed() {
        assert!(!format!("{:?}", StripeOptions::payment_method("pm_canary")).contains("canary"));
    }
}
