//! Stripe's error codes and decline codes: how each is read, what it advises, and the page that lists it.
//!
//! What is not listed is read by HTTP status and `error.type`; the lists at Stripe grow. Class and advice are our
//! reading of the pages; an `advice_code` that Stripe sends goes before ours.

use Class::{Authenticate, Credentials, Declined, Duplicate, Expired, Invalid, NotFound, StillRunning, Throttled};

/// What a code says about the request that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// The payment was refused: definitive for this attempt.
    Declined,
    /// Refused until the payer authenticates: definitive for this attempt.
    Authenticate,
    /// What was to be used has run out.
    Expired,
    /// The request is against the rules: definitive, nothing was executed.
    Invalid,
    /// What the request names does not exist in this account and mode.
    NotFound,
    /// The key, its permissions or the account's state: nothing was executed, and no other request would be.
    Credentials,
    /// A limiter turned the request away.
    Throttled,
    /// Another request holds the key or the object.
    StillRunning,
    /// The effect may be there already: to be reconciled, never to be repeated under another key.
    Duplicate,
}

/// One code.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) code: &'static str,
    pub(super) class: Class,
    /// In Stripe's own words where it has one (`advice_code`), else ours.
    pub(super) advice: Option<&'static str>,
    /// The page under docs.stripe.com.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for the reader, and for the test that each row has one")
    )]
    pub(super) source: &'static str,
}

/// Looks up `error.code`.
pub(super) fn error_code(code: &str) -> Option<&'static Row> {
    find(ERROR_CODES, code)
}

/// Looks up `error.decline_code`.
pub(super) fn decline_code(code: &str) -> Option<&'static Row> {
    find(DECLINE_CODES, code)
}

/// The tables are sorted, which a test holds them to.
fn find(table: &'static [Row], code: &str) -> Option<&'static Row> {
    let index = table.binary_search_by(|row| row.code.cmp(code)).ok()?;
    table.get(index)
}

const fn row(code: &'static str, class: Class, advice: Option<&'static str>, source: &'static str) -> Row {
    Row {
        code,
        class,
        advice,
        source,
    }
}

const NONE: Option<&str> = None;
const NEW_METHOD: Option<&str> = Some("new_method");
const AUTHENTICATE: Option<&str> = Some("authenticate");
const CHECK_FIRST: Option<&str> = Some("check_first");
// The three that Stripe itself sends as `advice_code` (docs/declines/codes).
const FIX: Option<&str> = Some("confirm_card_data");
const LATER: Option<&str> = Some("try_again_later");
const NEVER: Option<&str> = Some("do_not_try_again");

const ERRORS: &str = "docs/error-codes";
const LIMITS: &str = "docs/rate-limits";
const CURRENCIES: &str = "docs/currencies";
const DECLINES: &str = "docs/declines/codes";

/// Values of `error.code`.
const ERROR_CODES: &[Row] = &[
    row("account_invalid", Credentials, NONE, ERRORS),
    row("amount_too_large", Invalid, NONE, ERRORS),
    row("amount_too_small", Invalid, NONE, ERRORS),
    row("api_key_expired", Credentials, NONE, ERRORS),
    row("authentication_required", Authenticate, AUTHENTICATE, ERRORS),
    row("balance_insufficient", Invalid, NONE, ERRORS),
    row("capture_charge_authorization_expired", Expired, NONE, ERRORS),
    row("capture_unauthorized_payment", Invalid, NONE, ERRORS),
    row("card_decline_rate_limit_exceeded", Declined, LATER, ERRORS),
    row("card_declined", Declined, NONE, ERRORS),
    row("charge_already_captured", Duplicate, NONE, ERRORS),
    row("charge_already_refunded", Duplicate, NONE, ERRORS),
    row("charge_disputed", Invalid, NONE, ERRORS),
    row("charge_exceeds_source_limit", Declined, NONE, ERRORS),
    row("charge_exceeds_transaction_limit", Declined, NONE, ERRORS),
    row("charge_expired_for_capture", Expired, NONE, ERRORS),
    row("charge_invalid_parameter", Invalid, NONE, ERRORS),
    row("charge_not_refundable", Invalid, NONE, ERRORS),
    row("debit_not_authorized", Declined, NEW_METHOD, ERRORS),
    row("expired_card", Declined, NEW_METHOD, ERRORS),
    row("idempotency_key_in_use", StillRunning, NONE, ERRORS),
    row("incorrect_address", Declined, FIX, ERRORS),
    row("incorrect_cvc", Declined, FIX, ERRORS),
    row("incorrect_number", Declined, FIX, ERRORS),
    row("incorrect_zip", Declined, FIX, ERRORS),
    row("insufficient_funds", Declined, NEW_METHOD, ERRORS),
    row("intent_invalid_state", Duplicate, NONE, ERRORS),
    row("invalid_card_type", Declined, NEW_METHOD, ERRORS),
    row("invalid_characters", Invalid, NONE, ERRORS),
    row("invalid_charge_amount", Invalid, NONE, ERRORS),
    row("invalid_charge_amount_no_decimal_compatible", Invalid, NONE, CURRENCIES),
    row("invalid_cvc", Declined, FIX, ERRORS),
    row("invalid_expiry_month", Declined, FIX, ERRORS),
    row("invalid_expiry_year", Declined, FIX, ERRORS),
    row("invalid_number", Declined, FIX, ERRORS),
    row("livemode_mismatch", Invalid, NONE, ERRORS),
    row("lock_timeout", StillRunning, NONE, LIMITS),
    row("missing", Invalid, NONE, ERRORS),
    row("parameter_invalid_empty", Invalid, NONE, ERRORS),
    row("parameter_invalid_integer", Invalid, NONE, ERRORS),
    row("parameter_invalid_string_blank", Invalid, NONE, ERRORS),
    row("parameter_invalid_string_empty", Invalid, NONE, ERRORS),
    row("parameter_missing", Invalid, NONE, ERRORS),
    row("parameter_unknown", Invalid, NONE, ERRORS),
    row("parameters_exclusive", Invalid, NONE, ERRORS),
    row("payment_intent_action_required", Authenticate, AUTHENTICATE, ERRORS),
    row("payment_intent_authentication_failure", Declined, NEW_METHOD, ERRORS),
    row("payment_intent_incompatible_payment_method", Invalid, NONE, ERRORS),
    row("payment_intent_invalid_parameter", Invalid, NONE, ERRORS),
    row("payment_intent_mandate_invalid", Invalid, NONE, ERRORS),
    row("payment_intent_payment_attempt_expired", Expired, NONE, ERRORS),
    row("payment_intent_payment_attempt_failed", Declined, NONE, ERRORS),
    row("payment_intent_rate_limit_exceeded", Throttled, NONE, ERRORS),
    row("payment_intent_unexpected_state", Duplicate, NONE, ERRORS),
    row("payment_method_currency_mismatch", Invalid, NONE, ERRORS),
    row("payment_method_customer_decline", Declined, NEW_METHOD, ERRORS),
    row("payment_method_invalid_parameter", Invalid, NONE, ERRORS),
    row("payment_method_not_available", Declined, LATER, ERRORS),
    row("payment_method_provider_decline", Declined, NEW_METHOD, ERRORS),
    row("payment_method_provider_timeout", Declined, LATER, ERRORS),
    row("payment_method_unactivated", Invalid, NONE, ERRORS),
    row("payment_method_unexpected_state", Invalid, NONE, ERRORS),
    row("payment_method_unsupported_type", Invalid, NONE, ERRORS),
    row("platform_account_required", Credentials, NONE, ERRORS),
    row("platform_api_key_expired", Credentials, NONE, ERRORS),
    row("processing_error", Declined, LATER, ERRORS),
    row("rate_limit", Throttled, NONE, LIMITS),
    row("refer_to_customer", Declined, NEW_METHOD, ERRORS),
    row("refund_disputed_payment", Invalid, NONE, ERRORS),
    row("request_blocked", Declined, NONE, ERRORS),
    row("resource_already_exists", Duplicate, NONE, ERRORS),
    row("resource_missing", NotFound, NONE, ERRORS),
    row("return_intent_already_processed", Duplicate, NONE, ERRORS),
    row("secret_key_required", Credentials, NONE, ERRORS),
    row("setup_attempt_failed", Declined, NEW_METHOD, ERRORS),
    row("setup_intent_authentication_failure", Declined, NEW_METHOD, ERRORS),
    row("setup_intent_invalid_parameter", Invalid, NONE, ERRORS),
    row("setup_intent_setup_attempt_expired", Expired, NONE, ERRORS),
    row("setup_intent_unexpected_state", Duplicate, NONE, ERRORS),
    row("status_transition_invalid", Duplicate, NONE, ERRORS),
    row("testmode_charges_only", Credentials, NONE, ERRORS),
    row("tls_version_unsupported", Credentials, NONE, ERRORS),
    row("token_already_used", Duplicate, NONE, ERRORS),
    row("token_in_use", StillRunning, NONE, ERRORS),
];

/// Values of `error.decline_code`: the issuer's or the method provider's reason.
const DECLINE_CODES: &[Row] = &[
    row("approve_with_id", Declined, LATER, DECLINES),
    row("authentication_not_handled", Authenticate, AUTHENTICATE, DECLINES),
    row("authentication_required", Authenticate, AUTHENTICATE, DECLINES),
    row("call_issuer", Declined, NEW_METHOD, DECLINES),
    row("card_not_supported", Declined, NEW_METHOD, DECLINES),
    row("card_velocity_exceeded", Declined, NEW_METHOD, DECLINES),
    row("currency_not_supported", Declined, NEW_METHOD, DECLINES),
    row("do_not_honor", Declined, NEW_METHOD, DECLINES),
    row("do_not_try_again", Declined, NEVER, DECLINES),
    row("duplicate_transaction", Declined, CHECK_FIRST, DECLINES),
    row("expired_card", Declined, NEW_METHOD, DECLINES),
    row("fraudulent", Declined, NEVER, DECLINES),
    row("generic_decline", Declined, NEW_METHOD, DECLINES),
    row("incorrect_address", Declined, FIX, DECLINES),
    row("incorrect_cvc", Declined, FIX, DECLINES),
    row("incorrect_number", Declined, FIX, DECLINES),
    row("incorrect_pin", Declined, FIX, DECLINES),
    row("incorrect_zip", Declined, FIX, DECLINES),
    row("insufficient_funds", Declined, NEW_METHOD, DECLINES),
    row("invalid_account", Declined, NEW_METHOD, DECLINES),
    row("invalid_amount", Declined, FIX, DECLINES),
    row("invalid_customer_account", Declined, NEW_METHOD, DECLINES),
    row("invalid_cvc", Declined, FIX, DECLINES),
    row("invalid_expiry_month", Declined, FIX, DECLINES),
    row("invalid_expiry_year", Declined, FIX, DECLINES),
    row("invalid_number", Declined, FIX, DECLINES),
    row("invalid_pin", Declined, FIX, DECLINES),
    row("issuer_not_available", Declined, LATER, DECLINES),
    row("lost_card", Declined, NEVER, DECLINES),
    row("merchant_blacklist", Declined, NEVER, DECLINES),
    row(
        "mobile_device_authentication_required",
        Authenticate,
        AUTHENTICATE,
        DECLINES,
    ),
    row("new_account_information_available", Declined, NEW_METHOD, DECLINES),
    row("no_action_taken", Declined, NEW_METHOD, DECLINES),
    row("not_permitted", Declined, NEW_METHOD, DECLINES),
    row("offline_pin_required", Declined, FIX, DECLINES),
    row("online_or_offline_pin_required", Declined, FIX, DECLINES),
    row("partner_generic_decline", Declined, NEW_METHOD, DECLINES),
    row("payment_limit_exceeded", Declined, NEW_METHOD, DECLINES),
    row("pickup_card", Declined, NEVER, DECLINES),
    row("pin_try_exceeded", Declined, NEW_METHOD, DECLINES),
    row("processing_error", Declined, LATER, DECLINES),
    row("reenter_transaction", Declined, LATER, DECLINES),
    row("restricted_card", Declined, NEVER, DECLINES),
    row("revocation_of_all_authorizations", Declined, NEVER, DECLINES),
    row("revocation_of_authorization", Declined, NEVER, DECLINES),
    row("security_violation", Declined, NEW_METHOD, DECLINES),
    row("service_not_allowed", Declined, NEW_METHOD, DECLINES),
    row("stolen_card", Declined, NEVER, DECLINES),
    row("stop_payment_order", Declined, NEVER, DECLINES),
    row("testmode_decline", Declined, NEW_METHOD, DECLINES),
    row("transaction_not_allowed", Declined, NEW_METHOD, DECLINES),
    row("try_again_later", Declined, LATER, DECLINES),
    row("withdrawal_count_limit_exceeded", Declined, NEW_METHOD, DECLINES),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted_and_each_row_names_its_page() {
        for table in [ERROR_CODES, DECLINE_CODES] {
            assert!(table.is_sorted_by(|a, b| a.code < b.code));
            assert!(table.iter().all(|row| row.source.starts_with("docs/")));
            for row in table {
                assert_eq!(find(table, row.code).unwrap().code, row.code);
            }
        }
        assert_eq!(ERROR_CODES.len(), 84);
        assert_eq!(DECLINE_CODES.len(), 53);
    }

    #[test]
    fn an_issuers_duplicate_transaction_is_a_decline_and_no_duplicate_of_ours() {
        assert_eq!(decline_code("duplicate_transaction").unwrap().class, Declined);
        assert_eq!(error_code("payment_intent_unexpected_state").unwrap().class, Duplicate);
        assert_eq!(error_code("lock_timeout").unwrap().class, StillRunning);
        assert!(error_code("a_code_of_next_year").is_none());
    }
}
