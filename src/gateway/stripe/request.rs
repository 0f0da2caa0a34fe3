//! What is sent: path and form body, a function of the instruction alone.
//!
//! Nothing optional is sent that was not asked for; a test holds the bytes to that.

use super::amount;
use super::form::Form;
use super::object::{CAPTURE_KEY_MARK, CAPTURE_REFERENCE_MARK, KEY_MARK, REFERENCE_MARK, View};
use super::options::{Flow, Payment, StripeOptions, is_id};
use crate::failure::{Failure, FailureKind};
use crate::gateway::Refusal;
use crate::money::Money;
use crate::operation::{Invalid, Operation, OperationKey, OperationKind, Target};
use crate::record::Instruction;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a hosted page stays open unless the operation says otherwise: a little less than the 24 hours that Stripe
/// allows from the creation of the session, since its clock and ours differ.
const PAGE_OPEN: Duration = Duration::from_secs(24 * 60 * 60 - 10 * 60);

/// docs/metadata, api/metadata.
const METADATA_PAIRS: usize = 50;
const METADATA_NAME: usize = 40;
const METADATA_VALUE: usize = 500;
/// api/payment_intents/create.
const DESCRIPTION: usize = 1000;

/// One POST.
#[derive(Debug)]
pub(super) struct Call {
    /// Under the base URL, with the leading slash.
    pub(super) path: String,
    pub(super) form: Form,
}

/// The options given, or the default ones.
pub(super) fn options(operation: &Operation) -> Cow<'_, StripeOptions> {
    match operation.options::<StripeOptions>() {
        Some(options) => Cow::Borrowed(options),
        None => Cow::Owned(StripeOptions::client_side()),
    }
}

/// Checks that the operation can be sent, and says how long the payer can act on it.
pub(super) fn prepare(operation: &Operation) -> Result<Option<Duration>, Refusal> {
    let kind = operation.kind();
    if kind == OperationKind::Update {
        return Err(Refusal::Unsupported("an update at Stripe".to_owned()));
    }
    let options = options(operation);
    options.check(kind)?;
    operation.amount().map(amount::to_wire).transpose()?;
    check_metadata(operation)?;
    check_description(operation)?;
    if let Some(Target::Gateway(id)) = operation.target() {
        check_target(kind, id.as_str())?;
    }
    let creates = matches!(kind, OperationKind::Charge | OperationKind::Authorize);
    let flow = creates.then(|| options.flow());
    if operation.expiry().is_some() && flow != Some(Flow::Page) {
        return Err(Invalid::new("expires_at", "only a hosted page can be closed at a time at Stripe").into());
    }
    Ok(match flow {
        Some(Flow::Page) => Some(PAGE_OPEN),
        Some(Flow::Client) => Some(Duration::MAX),
        Some(Flow::AtOnce) | None => None,
    })
}

/// For whom the answer is read.
pub(super) fn view(instruction: &Instruction) -> View<'_> {
    let operation = instruction.operation();
    View {
        kind: operation.kind(),
        flow: Some(options(operation).flow()),
        key: Some(instruction.key()),
        target: target(instruction),
    }
}

/// The request for `instruction`.
pub(super) fn call(instruction: &Instruction) -> Result<Call, Failure> {
    let operation = instruction.operation();
    let options = options(operation);
    let amount = operation.amount();
    let target = || {
        let id = target(instruction).ok_or_else(|| unsendable("the target has no known payment at Stripe"))?;
        check_target(operation.kind(), id).map_err(|invalid| unsendable(invalid.reason()))?;
        Ok(id)
    };
    match operation.kind() {
        OperationKind::Charge | OperationKind::Authorize => create(instruction, &options, required(amount)?),
        OperationKind::Capture => capture(instruction, &options, required(amount)?, target()?),
        OperationKind::Void => Ok(void(&options, target()?)),
        OperationKind::Refund => refund(instruction, &options, required(amount)?, target()?),
        OperationKind::Update => Err(unsendable("this adapter sends no updates to Stripe")),
    }
}

fn create(instruction: &Instruction, options: &StripeOptions, amount: Money) -> Result<Call, Failure> {
    let operation = instruction.operation();
    let units = amount::to_wire(amount).map_err(|invalid| unsendable(invalid.reason()))?;
    let manual = (operation.kind() == OperationKind::Authorize).then_some("manual");
    let marks = marks(operation, instruction.key(), KEY_MARK, REFERENCE_MARK);
    // The part that a PaymentIntent and the `payment_intent_data` of a Checkout Session have in common.
    let common = Form::new()
        .put("capture_method", manual)
        .put("description", operation.description_text())
        .put("setup_future_usage", options.setup_future_usage.as_deref())
        .put("statement_descriptor", options.statement_descriptor.as_deref())
        .put(
            "statement_descriptor_suffix",
            options.statement_descriptor_suffix.as_deref(),
        )
        .put("metadata", marks.clone());
    let types = options.payment_method_types.clone();
    let currency = amount::currency(amount);
    match &options.payment {
        Payment::Page { success_url } => {
            let name = options.product_name.as_deref().or(operation.description_text());
            let price = Form::new().put("currency", currency).put("unit_amount", units).put(
                "product_data",
                Form::new().put("name", name.unwrap_or(operation.reference().as_str())),
            );
            let closes = instruction.payable_until().map(|instant| instant.unix_seconds());
            let form = Form::new()
                .put("mode", "payment")
                .put(
                    "line_items",
                    vec![Form::new().put("price_data", price).put("quantity", 1_i64)],
                )
                .put("payment_method_types", types)
                .put("customer", options.customer.as_deref())
                .put("success_url", success_url.as_str())
                .put("cancel_url", options.cancel_url.as_deref())
                // Said explicitly: a session made by a late retry must not stay open longer than the record knows.
                .put("expires_at", closes)
                .put("payment_intent_data", common)
                .put("metadata", marks);
            Ok(post("/v1/checkout/sessions", form))
        }
        Payment::Given { .. } | Payment::Client => {
            let form = Form::new()
                .put("amount", units)
                .put("currency", currency)
                .put("customer", options.customer.as_deref())
                .append(confirmation(options))
                .append(common);
            Ok(post("/v1/payment_intents", form))
        }
    }
}

/// Which methods are accepted, and what is needed to confirm at once.
fn confirmation(options: &StripeOptions) -> Form {
    let redirects = options.redirects.map(|allowed| {
        let allowed = if allowed { "always" } else { "never" };
        Form::new().put("enabled", true).put("allow_redirects", allowed)
    });
    let mut types = options.payment_method_types.clone();
    let mut form = Form::new();
    if let Payment::Given { payment_method } = &options.payment {
        if types.is_empty() && redirects.is_none() && options.return_url.is_none() {
            types.push("card".to_owned());
        }
        form = form
            .put("payment_method", payment_method.expose())
            .put("confirm", true)
            .put("off_session", options.off_session.then_some(true))
            .put(
                "error_on_requires_action",
                options.error_on_requires_action.then_some(true),
            )
            .put("return_url", options.return_url.as_deref());
    }
    form.put("payment_method_types", types)
        .put("automatic_payment_methods", redirects)
}

fn capture(instruction: &Instruction, options: &StripeOptions, amount: Money, target: &str) -> Result<Call, Failure> {
    let units = amount::to_wire(amount).map_err(|invalid| unsendable(invalid.reason()))?;
    let operation = instruction.operation();
    let marks = marks(operation, instruction.key(), CAPTURE_KEY_MARK, CAPTURE_REFERENCE_MARK);
    let form = Form::new()
        .put("amount_to_capture", units)
        .put("statement_descriptor", options.statement_descriptor.as_deref())
        .put(
            "statement_descriptor_suffix",
            options.statement_descriptor_suffix.as_deref(),
        )
        .put("metadata", (!options.unmarked_capture).then_some(marks));
    Ok(post(format!("/v1/payment_intents/{target}/capture"), form))
}

/// Neither takes metadata (api/payment_intents/cancel, api/checkout/sessions/expire).
fn void(options: &StripeOptions, target: &str) -> Call {
    if target.starts_with("cs_") {
        return post(format!("/v1/checkout/sessions/{target}/expire"), Form::new());
    }
    let form = Form::new().put("cancellation_reason", options.cancellation_reason.as_deref());
    post(format!("/v1/payment_intents/{target}/cancel"), form)
}

fn refund(instruction: &Instruction, options: &StripeOptions, amount: Money, target: &str) -> Result<Call, Failure> {
    let units = amount::to_wire(amount).map_err(|invalid| unsendable(invalid.reason()))?;
    let form = Form::new()
        .put(refund_field(target), target)
        .put("amount", units)
        .put("reason", options.refund_reason.as_deref())
        .put(
            "metadata",
            marks(instruction.operation(), instruction.key(), KEY_MARK, REFERENCE_MARK),
        );
    Ok(post("/v1/refunds", form))
}

/// The parameter by which a refund names its payment.
pub(super) fn refund_field(target: &str) -> &'static str {
    if target.starts_with("pi_") {
        "payment_intent"
    } else {
        "charge"
    }
}

/// The caller's pairs and ours, in the order of the names' bytes.
fn marks(operation: &Operation, key: OperationKey, key_mark: &str, reference_mark: &str) -> Form {
    let mut pairs: BTreeMap<&str, String> = operation
        .metadata_pairs()
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    pairs.insert(key_mark, key.to_string());
    pairs.insert(reference_mark, operation.reference().as_str().to_owned());
    pairs
        .into_iter()
        .fold(Form::new(), |form, (name, value)| form.put(name, value))
}

fn check_metadata(operation: &Operation) -> Result<(), Invalid> {
    let refuse = |reason: &str| Err(Invalid::new("metadata", reason));
    let pairs = operation.metadata_pairs();
    let ours = match operation.kind() {
        OperationKind::Void if pairs.is_empty() => return Ok(()),
        OperationKind::Void => return refuse("Stripe takes none with a void"),
        // A capture adds its own two to those of the authorization.
        OperationKind::Authorize => 4,
        OperationKind::Charge | OperationKind::Capture | OperationKind::Refund | OperationKind::Update => 2,
    };
    if pairs.len() > METADATA_PAIRS - ours {
        return refuse("Stripe takes at most 50 pairs, up to 4 of which are this crate's own");
    }
    for (name, value) in pairs {
        let length = name.chars().count();
        if length == 0 || length > METADATA_NAME || name.contains(['[', ']']) {
            return refuse("a name must have 1 to 40 characters and no square brackets");
        }
        if name.starts_with("payonce_") {
            return refuse("names that begin with payonce_ are this crate's own");
        }
        if value.is_empty() || value.chars().count() > METADATA_VALUE {
            return refuse("a value must have 1 to 500 characters; an empty one would unset it");
        }
    }
    let options = operation.options::<StripeOptions>();
    if options.is_some_and(|options| options.unmarked_capture) && !pairs.is_empty() {
        return refuse("an unmarked capture sends none");
    }
    Ok(())
}

fn check_description(operation: &Operation) -> Result<(), Invalid> {
    let Some(text) = operation.description_text() else {
        return Ok(());
    };
    let refuse = |reason: &str| Err(Invalid::new("description", reason));
    match operation.kind() {
        OperationKind::Capture | OperationKind::Void | OperationKind::Refund => {
            refuse("Stripe takes none with captures, voids and refunds")
        }
        OperationKind::Charge | OperationKind::Authorize | OperationKind::Update
            if text.is_empty() || text.chars().count() > DESCRIPTION =>
        {
            refuse("must have 1 to 1000 characters at Stripe")
        }
        OperationKind::Charge | OperationKind::Authorize | OperationKind::Update => Ok(()),
    }
}

/// The id goes into a path, so its alphabet is checked as well.
fn check_target(kind: OperationKind, id: &str) -> Result<(), Invalid> {
    let (prefixes, reason): (&[&str], &str) = match kind {
        OperationKind::Capture => (&["pi_"], "a capture acts on a PaymentIntent (pi_...)"),
        OperationKind::Void => (
            &["pi_", "cs_"],
            "a void acts on a PaymentIntent (pi_...) or a Checkout Session (cs_...)",
        ),
        OperationKind::Refund => (
            &["pi_", "ch_", "py_"],
            "a refund acts on a PaymentIntent (pi_...) or a Charge (ch_..., py_...)",
        ),
        OperationKind::Charge | OperationKind::Authorize | OperationKind::Update => return Ok(()),
    };
    if is_id(id)
        && prefixes
            .iter()
            .any(|prefix| id.len() > prefix.len() && id.starts_with(prefix))
    {
        return Ok(());
    }
    Err(Invalid::new("target", reason))
}

fn target(instruction: &Instruction) -> Option<&str> {
    Some(instruction.target()?.gateway_ref.as_ref()?.as_str())
}

fn required(amount: Option<Money>) -> Result<Money, Failure> {
    amount.ok_or_else(|| unsendable("the operation has no amount"))
}

/// What `prepare` would have refused: it can reach a send only through a target that the journal resolved since.
fn unsendable(reason: &str) -> Failure {
    Failure::not_executed(FailureKind::Unsupported, format!("cannot be sent to Stripe: {reason}"))
}

fn post(path: impl Into<String>, form: Form) -> Call {
    Call {
        path: path.into(),
        form,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::money::Currency;
    use crate::operation::GatewayRef;

    fn usd(minor: i64) -> Money {
        Money::from_minor(minor, Currency::USD)
    }

    fn charge() -> Operation {
        Operation::charge("order-7001", usd(2000)).unwrap()
    }

    fn on(id: &str) -> Target {
        Target::Gateway(GatewayRef::new(id))
    }

    #[track_caller]
    fn refused(operation: &Operation) -> &'static str {
        let Err(Refusal::Invalid(invalid)) = prepare(operation) else {
            panic!("{operation:?}");
        };
        invalid.field()
    }

    #[test]
    fn metadata_is_held_to_the_limits_with_our_own_counted() {
        let many = |base: Operation, count: usize| (0..count).fold(base, |op, i| op.metadata(format!("k{i}"), "v"));
        assert!(prepare(&many(charge(), 48)).is_ok());
        assert_eq!(refused(&many(charge(), 49)), "metadata");
        let authorize = Operation::authorize("order-7001", usd(2000)).unwrap();
        assert!(prepare(&many(authorize.clone(), 46)).is_ok());
        assert_eq!(refused(&many(authorize, 47)), "metadata");
        for (name, value) in [
            ("", "v"),
            ("a[b", "v"),
            ("a]", "v"),
            (&"ä".repeat(41), "v"),
            ("payonce_key", "v"),
            ("k", ""),
            ("k", &"ä".repeat(501)),
        ] {
            assert_eq!(refused(&charge().metadata(name, value)), "metadata", "{name} {value}");
        }
        assert!(prepare(&charge().metadata("ä".repeat(40), "ä".repeat(500))).is_ok());
        let void = Operation::void("v-1", on("pi_1")).unwrap();
        assert_eq!(refused(&void.metadata("k", "v")), "metadata");
    }

    #[test]
    fn a_target_must_be_usable_for_the_operation() {
        let capture = |id| Operation::capture("c-1", usd(1), on(id)).unwrap();
        let void = |id| Operation::void("v-1", on(id)).unwrap();
        let refund = |id| Operation::refund("r-1", usd(1), on(id)).unwrap();
        for good in [
            capture("pi_1"),
            void("pi_1"),
            void("cs_test_1"),
            refund("pi_1"),
            refund("ch_1"),
            refund("py_1"),
        ] {
            assert_eq!(prepare(&good).unwrap(), None, "{good:?}");
        }
        for bad in [
            capture("ch_1"),
            capture("pi_"),
            capture("pi_1/../../refunds"),
            void("re_1"),
            refund("cs_1"),
            refund("pi_1?x=1"),
            refund(""),
            capture(&format!("pi_{}", "1".repeat(300))),
        ] {
            assert_eq!(refused(&bad), "target", "{bad:?}");
        }
    }

    #[test]
    fn how_long_a_payer_can_act_depends_on_the_flow() {
        assert_eq!(prepare(&charge()).unwrap(), Some(Duration::MAX));
        let card = charge().with(StripeOptions::payment_method("pm_1"));
        assert_eq!(prepare(&card).unwrap(), None);
        let page = charge().with(StripeOptions::hosted_page("https://shop.example/ok"));
        assert_eq!(prepare(&page).unwrap(), Some(PAGE_OPEN));
        let instant = Timestamp::from_unix_seconds(1_767_225_600);
        assert!(prepare(&page.expires_at(instant)).is_ok());
        assert_eq!(refused(&card.expires_at(instant)), "expires_at");
        assert_eq!(refused(&charge().expires_at(instant)), "expires_at");
    }

    #[test]
    fn texts_are_held_to_their_lengths() {
        assert!(prepare(&charge().description("d".repeat(1000))).is_ok());
        assert_eq!(refused(&charge().description("d".repeat(1001))), "description");
        let refund = Operation::refund("r-1", usd(1), on("pi_1")).unwrap();
        assert_eq!(refused(&refund.description("d")), "description");
    }
}
