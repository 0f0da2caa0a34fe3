use super::*;
use crate::operation::Operation;

fn thb(text: &str) -> Money {
    Money::parse(text, Currency::THB).unwrap()
}

fn written(options: &TwoC2pOptions) -> Result<String, Invalid> {
    let mut out = Object::new();
    options.write_token(&mut out, Currency::THB)?;
    Ok(out.finish())
}

#[track_caller]
fn check_refused(field: &str, options: TwoC2pOptions) {
    assert_eq!(written(&options).unwrap_err().field(), field);
}

fn fingerprint(options: TwoC2pOptions) -> String {
    let operation = Operation::charge("order1", thb("20")).unwrap();
    operation.with(options).fingerprint().to_string()
}

#[test]
fn every_member_is_written_by_its_own_name_and_type() {
    let address = || Address {
        city: Some("Bangkok".into()),
        ..Address::default()
    };
    let options = TwoC2pOptions::new()
        .tokenize(true)
        .eci("05")
        .recurring_count(0)
        .recurring_amount(thb("5"))
        .original_amount(Money::parse("7.5", Currency::USD).unwrap())
        .fx_rate_id("r1")
        .installment_periods([3, 6])
        .offered_customer_tokens(["t1"])
        .interest_type(InterestType::Customer)
        .allow_3ds_upgrade(false)
        .store_credentials(StoreCredentials::Subsequent)
        .transaction_initiator(TransactionInitiator::Merchant)
        .previous_payment_id("ccpp_1")
        .sub_merchants([SubMerchant::new("S1", "I1", thb("20"), "share")])
        .payment_items([PaymentItem::new("c", "n", 2, thb("10"))])
        .payer_info(PayerInfo {
            name: Some("N".into()),
            ..PayerInfo::default()
        })
        .allow_customer_note(true)
        .customer_address(Some(address()), None)
        .json(JsonMember::AccountFunding, " {\"purpose\": \"01\"} ");
    assert_eq!(
        written(&options).unwrap(),
        concat!(
            r#"{"accountFunding":{"purpose": "01"},"allow3DSUpgrade":"N","customerAddress":{"billing":{"city":"Bangkok"}},"#,
            r#""customerToken":["t1"],"eci":"05","fxRateId":"r1","installmentPeriodFilter":[3,6],"interestType":"C","#,
            r#""originalAmount":7.50,"paymentItems":[{"code":"c","name":"n","price":10.00,"quantity":2}],"#,
            r#""previousPaymentID":"ccpp_1","recurringAmount":5.00,"recurringCount":0,"storeCredentials":"S","#,
            r#""subMerchants":[{"amount":20.00,"description":"share","invoiceNo":"I1","merchantID":"S1"}],"#,
            r#""tokenize":true,"transactionInitiator":"M","#,
            r#""uiParams":{"allowCustomerNote":true,"userInfo":{"name":"N"}}}"#,
        )
    );
}

#[test]
fn what_2c2p_has_no_room_for_is_refused_by_name() {
    let new = TwoC2pOptions::new;
    check_refused("productCode", new().product_code("x".repeat(51)));
    check_refused("locale", new().locale(""));
    check_refused("chargeNextDate", new().charge_next_date("1-1-2026"));
    check_refused("chargeOnDate", new().charge_on_date("311"));
    check_refused("eci", new().eci("5"));
    check_refused("statementDescriptor", new().statement_descriptor("SHOP"));
    check_refused("statementDescriptor", new().statement_descriptor("SHOP*TH"));
    check_refused("frontendReturnUrl", new().frontend_return_url("javascript:alert(1)"));
    check_refused("paymentChannel", new().payment_channels(["CREDITS"]));
    check_refused("paymentChannel", new().payment_channels(Vec::<String>::new()));
    check_refused("installmentPeriodFilter", new().installment_periods([100]));
    check_refused("recurringInterval", new().recurring_interval(1000));
    check_refused(
        "recurringAmount",
        new().recurring_amount(Money::from_minor(5, Currency::USD)),
    );
    check_refused("recurringAmount", new().recurring_amount(thb("0")));
    check_refused("maxAccumulateAmount", new().max_accumulate_amount(thb("9999999999999")));
    check_refused("fxRateId", new().original_amount(thb("1")));
    check_refused(
        "previousPaymentID",
        new().transaction_initiator(TransactionInitiator::Merchant),
    );
    check_refused("appBundleID", new().scheme_return_url("shop://back"));
    check_refused(
        "invoiceNo",
        new().sub_merchants([SubMerchant::new("S", "x".repeat(21), thb("1"), "d")]),
    );
    check_refused(
        "quantity",
        new().payment_items([PaymentItem::new("c", "n", 10_000, thb("1"))]),
    );
    check_refused("loyaltyPoints", new().json(JsonMember::LoyaltyPoints, "{"));
    check_refused("cavv", new().cavv("x".repeat(41)));
    for json in ["{}{}", "", "{'a':1}"] {
        check_refused("browserDetails", new().json(JsonMember::BrowserDetails, json));
    }
}

#[test]
fn every_option_changes_the_fingerprint_and_the_order_of_setting_does_not() {
    let new = TwoC2pOptions::new;
    let all = [
        new(),
        new().locale("en"),
        new().locale("th"),
        new().tokenize(true),
        new().tokenize(false),
        new().payment_channels(["CC"]),
        new().payment_channels(["CC", "QR"]),
        new().customer_token("a"),
        new().customer_token("b"),
        new().secure_pay_token("a"),
        new().offered_customer_tokens(["a"]),
        new().direct_channel("CC"),
        new().direct_return_url("https://shop.example/"),
        new().allow_customer_note(true),
        new().recurring_amount(thb("1")),
        new().payment_items([PaymentItem::new("c", "n", 1, thb("1"))]),
        new().payment_items([PaymentItem::new("c", "n", 2, thb("1"))]),
        new().json(JsonMember::LoyaltyPoints, "[]"),
    ];
    let prints: Vec<_> = all.iter().cloned().map(fingerprint).collect();
    for (i, a) in prints.iter().enumerate() {
        for (j, b) in prints.iter().enumerate() {
            assert_eq!(a == b, i == j, "{:?} {:?}", all[i], all[j]);
        }
    }
    assert_eq!(
        fingerprint(new().locale("en").eci("05")),
        fingerprint(new().eci("05").locale("en"))
    );
}

#[test]
fn prints_names_and_no_values() {
    let info = PayerInfo {
        name: Some("CANARY".into()),
        ..PayerInfo::default()
    };
    let address = Address {
        city: Some("CANARY".into()),
        ..Address::default()
    };
    let printed = format!("{info:?} {address:?}");
    let options = TwoC2pOptions::new()
        .customer_token("CANARY")
        .direct_payer("CANARY", "CANARY")
        .payer_info(info)
        .customer_address(Some(address), None);
    let printed = format!("{printed} {options:?}");
    assert!(!printed.contains("CANARY"), "{printed}");
    assert!(printed.contains("customerToken"));
}
