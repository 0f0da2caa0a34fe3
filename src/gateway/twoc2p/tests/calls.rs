//! The calls besides the operations: what is sent, what is read, and that nothing of it is believed or printed. The
//! answers in `calls/` are made up after the samples of 2C2P's pages and its interface description; those of the
//! transaction status were seen in the field.

use super::*;
use crate::gateway::twoc2p::calls::{PaymentToken, TransactionStatus, Viewer};
use codes::Class;
use proptest::prelude::*;

const TOKEN: &str = "TESTONLYtoken+ab/cd==";

fn token() -> PaymentToken {
    PaymentToken::new(TOKEN)
}

fn sample(path: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/twoc2p");
    std::fs::read_to_string(folder.join(path)).unwrap()
}

async fn status(answer: Result<Response, Failure>) -> Result<TransactionStatus, Failure> {
    account([answer]).0.transaction_status(&token(), &Viewer::new()).await
}

/// Asks for `path`'s own answer seven times, once by each call; the answer is what the network says each time.
async fn every_call(answer: impl Fn() -> Result<Response, Failure>) -> [Result<String, Failure>; 7] {
    let (gateway, _) = account((0..7).map(|_| answer()));
    let (token, viewer) = (token(), Viewer::new());
    [
        gateway.transaction_status(&token, &viewer).await.map(debug),
        gateway.payment_options(&token, &viewer).await.map(debug),
        gateway
            .payment_option_details(&token, "GCARD", "CC", &viewer)
            .await
            .map(debug),
        gateway.card_token_info(&token, &viewer).await.map(debug),
        gateway.exchange_rates(&token, None, &viewer).await.map(debug),
        gateway
            .exchange_rates_signed("SCB", Currency::parse("SGD").unwrap())
            .await
            .map(debug),
        gateway.payment_instruction("THSCB", "BANKCOUNTER").await.map(debug),
    ]
}

#[allow(clippy::needless_pass_by_value, reason = "a function for map")]
fn debug(answer: impl fmt::Debug) -> String {
    format!("{answer:?}")
}

/// Remembers whole addresses, and answers nothing.
#[derive(Debug, Default)]
struct Addresses(Mutex<Vec<String>>);

#[async_trait]
impl Transport for Addresses {
    async fn exchange(&self, request: Request) -> Result<Response, Failure> {
        assert_eq!(request.method, Method::Post);
        self.0.lock().unwrap().push(request.url);
        lost()
    }
}

#[tokio::test]
async fn every_call_has_its_own_address_and_a_lost_answer_is_a_failure() {
    let network = Arc::new(Addresses::default());
    let shared: Arc<dyn Transport> = Arc::<Addresses>::clone(&network);
    let gateway = TwoC2p::builder("TESTM01", SECRET)
        .sandbox()
        .transport(shared)
        .build()
        .unwrap();
    let (token, viewer) = (token(), Viewer::new());
    assert!(gateway.transaction_status(&token, &viewer).await.is_err());
    assert!(gateway.payment_options(&token, &viewer).await.is_err());
    assert!(
        gateway
            .payment_option_details(&token, "GCARD", "CC", &viewer)
            .await
            .is_err()
    );
    assert!(gateway.card_token_info(&token, &viewer).await.is_err());
    assert!(gateway.exchange_rates(&token, Some("41111111"), &viewer).await.is_err());
    assert!(gateway.exchange_rates_signed("SCB", Currency::THB).await.is_err());
    assert!(gateway.payment_instruction("THSCB", "BANKCOUNTER").await.is_err());
    let paths = [
        "transactionStatus",
        "paymentOption",
        "paymentOptionDetails",
        "cardtokeninfo",
        "exchangerate",
        "ExchangeRate/secure",
        "paymentInstruction",
    ];
    let expected = paths.map(|path| format!("https://sandbox-pgw.2c2p.com/payment/4.3/{path}"));
    assert_eq!(*network.0.lock().unwrap(), expected);
}

#[tokio::test]
async fn questions_by_token_are_plain_and_have_the_members_of_the_pages() {
    let (gateway, network) = account((0..4).map(|_| ok(r#"{"respCode":"0000"}"#)));
    let viewer = Viewer::new().locale("th").client_id("E380BEC2BFD727A4B6845133519F3AD7");
    gateway.transaction_status(&token(), &viewer).await.unwrap();
    gateway.payment_options(&token(), &Viewer::new()).await.unwrap();
    gateway
        .payment_option_details(&token(), "GCARD", "IPP", &Viewer::new())
        .await
        .unwrap();
    gateway
        .exchange_rates(&token(), Some("411111"), &Viewer::new())
        .await
        .unwrap();
    let expected = [
        r#"{"paymentToken":"TESTONLYtoken+ab/cd==","clientID":"E380BEC2BFD727A4B6845133519F3AD7","locale":"th","additionalInfo":true}"#,
        r#"{"paymentToken":"TESTONLYtoken+ab/cd=="}"#,
        r#"{"paymentToken":"TESTONLYtoken+ab/cd==","categoryCode":"GCARD","groupCode":"IPP"}"#,
        r#"{"paymentToken":"TESTONLYtoken+ab/cd==","bin":"411111"}"#,
    ];
    for (nth, expected) in expected.iter().enumerate() {
        assert_eq!(network.body(nth), *expected);
    }
}

#[tokio::test]
async fn questions_without_a_token_are_signed() {
    let (gateway, network) = account([
        signed(&sample("calls/exchange-rates-signed.constructed.claims.json")),
        signed(&sample("calls/payment-instruction.constructed.claims.json")),
    ]);
    gateway
        .exchange_rates_signed("SCB", Currency::parse("SGD").unwrap())
        .await
        .unwrap();
    gateway.payment_instruction("THSCB", "BANKCOUNTER").await.unwrap();
    assert_eq!(
        network.claims(0),
        r#"{"merchantID":"TESTM01","providerCode":"SCB","currencyCode":"SGD"}"#
    );
    assert_eq!(
        network.claims(1),
        r#"{"merchantID":"TESTM01","agentCode":"THSCB","agentChannelCode":"BANKCOUNTER"}"#
    );
}

#[tokio::test]
async fn the_status_of_a_good_and_of_a_failed_payment_is_over_and_no_more() {
    let good = status(ok(sample("payment/txstatus-2000-success.real.json")))
        .await
        .unwrap();
    let failed = status(ok(sample("payment/txstatus-2000-failed.real.json")))
        .await
        .unwrap();
    for status in [&good, &failed] {
        assert!(status.flow_is_over());
        assert_eq!(status.class, Class::Unknown, "2000 says nothing about money");
        assert_eq!(status.locale.as_deref(), Some("en"));
        assert_eq!(
            status.merchant.as_ref().unwrap().name.as_deref(),
            Some("Example Merchant")
        );
        let result = status.result.as_ref().unwrap();
        assert_eq!(
            (result.auto_redirect, result.auto_redirect_millis),
            (Some(false), Some(5000))
        );
        assert_eq!(
            result.frontend_return_url.as_deref(),
            Some("https://merchant.example/return")
        );
    }
    let transaction = good.transaction.as_ref().unwrap();
    assert_eq!(good.invoice_no.as_deref(), Some("1606907489"));
    assert_eq!(transaction.time.unwrap().to_string(), "2020-12-02 18:11:52");
    assert_eq!(transaction.account_no.as_deref(), Some("411111XXXXXX1111"));
    assert_eq!(transaction.amount, None, "group separators are not read");
    assert_eq!(transaction.amount_text.as_deref(), Some("122,657.00"));
    assert_eq!(good.result.unwrap().code.as_deref(), Some("00"));
    assert_eq!(failed.result.unwrap().code.as_deref(), Some("01"));
    assert_eq!(failed.transaction.unwrap().account_no, None, "an empty text is none");
}

#[tokio::test]
async fn every_code_of_a_status_is_an_answer_and_none_is_success() {
    for (json, code, class) in [
        ("\"2001\"", "2001", Class::InProgress),
        ("2002", "2002", Class::NotFound),
        ("\"2003\"", "2003", Class::Unknown),
        ("\"1005\"", "1005", Class::Pending),
        ("\"0000\"", "0000", Class::Unknown),
        ("0", "0000", Class::Unknown),
        ("\"00\"", "00", Class::Unknown),
        ("\"9040\"", "9040", Class::Unknown),
        ("\"paid\"", "paid", Class::Unknown),
    ] {
        let status = status(ok(format!("{{\"respCode\":{json}}}"))).await.unwrap();
        assert_eq!((status.code.as_str(), status.class), (code, class));
        assert!(!status.flow_is_over());
        assert!(status.transaction.is_none() && status.result.is_none() && status.merchant.is_none());
    }
    for json in ["null", "\"\"", "20000", "{}", "true"] {
        let failure = status(ok(format!("{{\"respCode\":{json}}}"))).await.unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Unreadable, "{json}");
    }
    let plain = status(ok(
        r#"{"respCode":"2000","additionalInfo":{"transactionDetails":{"amount":"1000.00","currencyCode":"SGD","data":"4111111111111111","dateTime":"311220235959"},"paymentResultDetails":{"autoRedirectTimer":1000}}}"#,
    ));
    let plain = plain.await.unwrap();
    let transaction = plain.transaction.unwrap();
    assert_eq!(transaction.amount.unwrap().to_string(), "1000.00 SGD");
    assert_eq!(transaction.account_no.as_deref(), Some("***"));
    assert_eq!(
        (transaction.time, transaction.time_text.as_deref()),
        (None, Some("311220235959"))
    );
    assert_eq!(plain.result.unwrap().auto_redirect_millis, Some(1000));
}

#[tokio::test]
async fn payment_options_are_read_by_category_and_group() {
    let (gateway, _) = account([ok(sample("calls/payment-options.constructed.json"))]);
    let options = gateway.payment_options(&token(), &Viewer::new()).await.unwrap();
    let codes: Vec<_> = options
        .categories
        .iter()
        .map(|category| category.channel.code.as_deref().unwrap())
        .collect();
    assert_eq!(codes, ["GCARD", "QR"]);
    let groups = &options.categories[0].groups;
    assert_eq!(groups.len(), 2);
    assert_eq!(
        (groups[0].code.as_deref(), groups[0].is_default),
        (Some("CC"), Some(true))
    );
    assert_eq!((groups[1].sequence_no, groups[1].icon_url.as_deref()), (Some(2), None));
    assert!(options.categories[1].groups.is_empty());
    assert_eq!(options.categories[1].channel.channel_code.as_deref(), Some("THQR"));
    let transaction = options.transaction.unwrap();
    assert_eq!(transaction.amount.unwrap().to_string(), "2000.50 THB");
    assert_eq!(transaction.show_fx_rate, Some(true));
    let recurring = transaction.recurring.unwrap();
    assert_eq!(recurring.amount.unwrap().to_string(), "150.00 THB");
    assert_eq!((recurring.interval_days, recurring.count), (Some(30), Some(0)));
    assert_eq!(recurring.charge_on_date.as_deref(), Some("0102"));
    let configuration = options.configuration.unwrap();
    assert_eq!(
        (configuration.tokenize, configuration.tokenize_only),
        (Some(true), Some(false))
    );
    assert_eq!(configuration.mcp.unwrap().terms.as_deref(), Some("<p>Terms</p>"));
    assert_eq!(configuration.dcc.unwrap().active, Some(false));
    assert_eq!(options.merchant.unwrap().banner_url, None);
}

#[tokio::test]
async fn the_details_of_a_group_are_read_with_inputs_and_plans() {
    let (gateway, _) = account([ok(sample("calls/payment-option-details.constructed.json"))]);
    let details = gateway
        .payment_option_details(&token(), "GCARD", "IPP", &Viewer::new())
        .await
        .unwrap();
    assert_eq!(
        (details.total_channels, details.group_code.as_deref()),
        (Some(2), Some("IPP"))
    );
    assert_eq!(details.card_number.unwrap().prefixes, ["4", "54", "55"]);
    assert_eq!(
        details.card_types[0].icon_url.as_deref(),
        Some("https://img.example/vi.png")
    );
    assert_eq!(details.card_types[0].rule.regex.as_deref(), Some("^4"));
    let [bank, other] = details.channels.as_slice() else {
        panic!("two channels");
    };
    assert_eq!(bank.currency_codes, ["THB", "SGD"]);
    assert_eq!(
        (bank.channel_code.as_deref(), bank.agent_code.as_deref()),
        (Some("IPP"), Some("EXB"))
    );
    assert_eq!((bank.agent_channel_code.as_deref(), bank.is_down), (None, Some(false)));
    assert_eq!(bank.inputs["cardNo"], "M");
    assert_eq!(bank.inputs.len(), 3);
    assert_eq!(bank.validation.as_deref(), Some(r#"{ "cardNo": null }"#));
    assert_eq!(bank.plans[0].monthly_amount.unwrap().to_string(), "338.70 THB");
    assert_eq!(bank.plans[0].interest_rate.as_deref(), Some("0.80000"));
    assert_eq!(
        (bank.plans[1].monthly_amount, bank.plans[1].period),
        (None, Some(10)),
        "not rounded"
    );
    assert_eq!(bank.plans[1].monthly_amount_text.as_deref(), Some("203.3333"));
    assert_eq!(
        (other.is_down, other.inputs.len(), other.plans.len()),
        (Some(true), 0, 0)
    );
    assert_eq!(details.configuration.unwrap().card_token_only, Some(true));
}

#[tokio::test]
async fn stored_cards_are_read_by_new_and_old_names() {
    let (gateway, _) = account([
        ok(sample("calls/card-tokens.constructed.json")),
        ok(sample("calls/card-tokens-4.1.constructed.json")),
        ok(r#"{"respCode":"0000","customerToken":null}"#),
    ]);
    let info = gateway.card_token_info(&token(), &Viewer::new()).await.unwrap();
    assert_eq!(info.tokens[0].token.as_ref().unwrap().expose(), "TESTONLY000000001");
    assert_eq!(info.tokens[0].account_no.as_deref(), Some("411111XXXXXX1111"));
    assert_eq!(
        (info.tokens[0].expiry.as_deref(), info.tokens[0].logo_url.as_deref()),
        (Some("2027-12-31"), None)
    );
    assert_eq!(
        info.tokens[1].account_no.as_deref(),
        Some("***"),
        "a number in the clear"
    );
    assert_eq!(
        info.tokens[1].status.as_deref(),
        Some("ZZ"),
        "a status that nobody knows"
    );
    let info = gateway.card_token_info(&token(), &Viewer::new()).await.unwrap();
    assert_eq!(info.tokens[0].token.as_ref().unwrap().expose(), "TESTONLY000000003");
    assert_eq!(info.tokens[0].name.as_deref(), Some("TESTONLY Holder"));
    assert_eq!(info.tokens[0].expiry.as_deref(), Some("11/27"));
    let info = gateway.card_token_info(&token(), &Viewer::new()).await.unwrap();
    assert!(info.tokens.is_empty());
}

#[tokio::test]
async fn rates_keep_their_digits_and_amounts_are_exact_or_none() {
    let (gateway, _) = account([
        ok(sample("calls/exchange-rates.constructed.json")),
        signed(&sample("calls/exchange-rates-signed.constructed.claims.json")),
    ]);
    let rates = gateway.exchange_rates(&token(), None, &Viewer::new()).await.unwrap();
    assert_eq!(rates.provider_code.as_deref(), Some("SCB"));
    assert_eq!(rates.expires_at, Some(Timestamp::from_unix_millis(1_767_227_400_123)));
    assert_eq!(rates.rates[0].amount.unwrap().to_string(), "2000.50 THB");
    assert_eq!(
        (rates.rates[0].rate.as_deref(), rates.rates[1].rate.as_deref()),
        (Some("1.0"), Some("4.6200000"))
    );
    assert_eq!(
        (rates.rates[1].amount, rates.rates[1].amount_text.as_deref()),
        (None, Some("9,240"))
    );
    let rates = gateway
        .exchange_rates_signed("MCP", Currency::parse("SGD").unwrap())
        .await
        .unwrap();
    assert_eq!(rates.currency_code.as_deref(), Some("SGD"));
    assert_eq!(
        (rates.expires_at, rates.expires_text.as_deref()),
        (None, Some("1767227400")),
        "of unknown unit"
    );
    assert_eq!(
        (rates.rates[0].sequence_no, rates.rates[0].rate.as_deref()),
        (Some(1), Some("24.50000"))
    );
}

#[tokio::test]
async fn a_card_number_is_not_sent_as_the_beginning_of_one() {
    for bin in ["", "41111", "411111111", "4111111111111111", "4111 11", "４１１１１１"] {
        let (gateway, network) = account([]);
        let failure = gateway
            .exchange_rates(&token(), Some(bin), &Viewer::new())
            .await
            .unwrap_err();
        assert!(!failure.may_have_executed());
        assert!(network.paths().is_empty());
        assert!(bin.is_empty() || !failure.to_string().contains(bin));
    }
}

#[tokio::test]
async fn instructions_are_read_step_by_step_in_each_language() {
    let (gateway, _) = account([signed(&sample("calls/payment-instruction.constructed.claims.json"))]);
    let instruction = gateway.payment_instruction("THSCB", "BANKCOUNTER").await.unwrap();
    assert_eq!(instruction.agent_code.as_deref(), Some("THSCB"));
    assert_eq!(instruction.instructions[0].language.as_deref(), Some("TH"));
    assert_eq!(instruction.instructions[0].steps, ["1. นำบิลไปที่ธนาคาร", "2. ชำระเงิน"]);
    assert_eq!(
        instruction.instructions[1].steps,
        ["Take the slip to the bank and pay."]
    );
}

#[tokio::test]
async fn signed_calls_believe_signed_answers_to_their_own_question_alone() {
    let rates = sample("calls/exchange-rates-signed.constructed.claims.json");
    let steps = sample("calls/payment-instruction.constructed.claims.json");
    let other = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from));
        signed(&text.replace(from, to))
    };
    let stranger = Signer::new(&Secret::from("another merchant's key")).sign(&rates);
    let answers = [
        ok(rates.clone()),
        ok(format!("{{\"payload\":\"{stranger}\"}}")),
        other(&rates, "\"TESTM01\"", "\"TESTM02\""),
        other(&rates, "\"TESTM01\"", "null"),
        other(&rates, "\"currencyCode\": \"SGD\"", "\"currencyCode\": \"USD\""),
        other(&rates, "\"fxRates\"", "\"rates\""),
        signed(&steps),
        signed(r#"{"respCode":"0000"}"#),
    ];
    for (nth, answer) in answers.into_iter().enumerate() {
        let (gateway, _) = account([answer]);
        let failure = gateway
            .exchange_rates_signed("SCB", Currency::parse("SGD").unwrap())
            .await
            .unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Unreadable, "{nth}");
    }
    let answers = [
        ok(steps.clone()),
        other(&steps, "\"THSCB\"", "\"THBBL\""),
        other(&steps, "\"BANKCOUNTER\"", "\"ATM\""),
        other(&steps, "\"TESTM01\"", "\"testm01\""),
        signed(&rates),
    ];
    for (nth, answer) in answers.into_iter().enumerate() {
        let (gateway, _) = account([answer]);
        let failure = gateway.payment_instruction("THSCB", "BANKCOUNTER").await.unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Unreadable, "{nth}");
    }
}

#[tokio::test]
async fn a_code_other_than_good_is_a_failure_with_that_code() {
    for (code, kind) in [
        ("9042", FailureKind::Credentials),
        ("9040", FailureKind::Unsupported),
        ("9041", FailureKind::Duplicate),
        ("0999", FailureKind::ServerFault),
        ("2000", FailureKind::ServerFault),
        ("4000", FailureKind::ServerFault),
        ("ZZZZ", FailureKind::ServerFault),
    ] {
        let answers = every_call(|| signed(&format!("{{\"merchantID\":\"TESTM01\",\"respCode\":\"{code}\"}}"))).await;
        assert!(answers[0].is_ok(), "a status has all codes");
        for answer in &answers[1..] {
            let failure = answer.as_ref().unwrap_err();
            assert_eq!((failure.kind(), failure.code()), (kind, Some(code)));
        }
    }
}

#[tokio::test]
async fn what_is_no_answer_of_the_gateway_is_a_failure_for_every_call() {
    let page = "<html><title>Please wait</title></html>";
    for (answer, kind) in [
        (super::status(502, "text/html", page), FailureKind::ServerFault),
        (super::status(302, "text/html", ""), FailureKind::Unreadable),
        (
            super::status(404, "application/json", r#"{"respCode":"0000"}"#),
            FailureKind::Unreadable,
        ),
        (super::status(200, "text/html", page), FailureKind::Unreadable),
        (ok(""), FailureKind::Unreadable),
        (ok("[]"), FailureKind::Unreadable),
        (ok(r#"{"payload":"TESTONLY.a.b"}"#), FailureKind::Unreadable),
        (ok("{}"), FailureKind::Unreadable),
    ] {
        let again = || match &answer {
            Ok(response) => Ok(Response::new(
                response.status,
                response.headers.clone(),
                response.body.clone(),
            )),
            Err(failure) => Err(failure.clone()),
        };
        for result in every_call(again).await {
            let failure = result.unwrap_err();
            assert_eq!(failure.kind(), kind);
            assert!(!format!("{failure} {failure:?}").contains("TESTONLY"));
        }
    }
}

#[tokio::test]
async fn answers_print_nothing_of_payer_token_or_text() {
    let canary = |sample: &str| sample.replace("Example", "TESTONLY").replace("img.", "TESTONLY.");
    for path in [
        "payment/txstatus-2000-success.real.json",
        "calls/payment-options.constructed.json",
        "calls/payment-option-details.constructed.json",
        "calls/card-tokens.constructed.json",
        "calls/card-tokens-4.1.constructed.json",
        "calls/exchange-rates.constructed.json",
    ] {
        for printed in every_call(|| ok(canary(&sample(path)))).await.into_iter().flatten() {
            for secret in ["TESTONLY", "411111", "https", "example", "INV7001", "Terms"] {
                assert!(!printed.contains(secret), "{secret} of {path} in {printed}");
            }
        }
    }
    for path in [
        "calls/exchange-rates-signed.constructed.claims.json",
        "calls/payment-instruction.constructed.claims.json",
    ] {
        let printed: Vec<_> = every_call(|| signed(&canary(&sample(path))))
            .await
            .into_iter()
            .flatten()
            .collect();
        assert!(!printed.concat().contains("THSCB") && !printed.concat().contains("ชำระ"));
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_make_a_call_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), status in any::<u16>()) {
        for result in block_on(every_call(|| super::status(status, "application/json", bytes.clone()))) {
            prop_assert!(result.is_err());
        }
    }

    #[test]
    fn no_value_of_a_member_makes_a_call_panic(
        path in prop::sample::select(vec![
            "payment/txstatus-2000-success.real.json",
            "calls/payment-options.constructed.json",
            "calls/payment-option-details.constructed.json",
            "calls/card-tokens.constructed.json",
            "calls/exchange-rates.constructed.json",
            "calls/exchange-rates-signed.constructed.claims.json",
            "calls/payment-instruction.constructed.claims.json",
        ]),
        nth in any::<prop::sample::Index>(),
        value in prop::sample::select(vec![
            "null", "\"\"", "{}", "[]", "[[]]", "[{}]", "-1", "1e999", "99999999999999999999", "true", "\"4111111111111111\"",
        ]),
    ) {
        let text = sample(path);
        let colons: Vec<_> = text.match_indices("\": ").map(|(at, _)| at).collect();
        let at = colons[nth.index(colons.len())] + 3;
        // The value takes the place of whatever stood there; what followed becomes a member that nobody knows.
        let changed = format!("{}{value},\"unknown\": {}", &text[..at], &text[at..]);
        // As an amount it is an amount.
        let is_amount = text[..at].to_lowercase().ends_with("amount\": ");
        for result in block_on(every_call(|| signed(&changed))).into_iter().flatten() {
            prop_assert!(is_amount || !result.contains("4111111111111111"));
        }
    }
}
