use super::*;
use crate::gateway::twoc2p::maintenance::MaintenanceKeys;
use crate::gateway::twoc2p::maintenance::samples::{merchant, sample};
use proptest::prelude::*;

#[track_caller]
fn check_refused(document: impl AsRef<[u8]>, expected: XmlError) {
    let document = document.as_ref();
    let start = String::from_utf8_lossy(&document[..document.len().min(100)]);
    assert_eq!(parse(document), Err(expected), "{start}");
}

#[test]
fn writes_elements_in_the_order_of_the_calls() {
    let document = XmlWriter::new("PaymentProcessRequest")
        .element("version", "4.3")
        .optional("childMerchantID", None)
        .optional("notes", Some("late"))
        .group("subMerchantList", |list| {
            list.empty("subMerchant", &[("subMID", "JT08"), ("subAmount", "10.00")])
                .empty("subMerchant", &[("subMID", "JT09"), ("subAmount", "15.00")])
        })
        .element("idempotencyID", "")
        .finish()
        .unwrap();
    assert_eq!(
        document,
        "<PaymentProcessRequest><version>4.3</version><notes>late</notes><subMerchantList>\
         <subMerchant subMID=\"JT08\" subAmount=\"10.00\"/><subMerchant subMID=\"JT09\" subAmount=\"15.00\"/>\
         </subMerchantList><idempotencyID></idempotencyID></PaymentProcessRequest>"
    );
    let read = parse(document.as_bytes()).unwrap();
    let list = read.child("subMerchantList").unwrap();
    let amounts: Vec<_> = list
        .children("subMerchant")
        .map(|it| it.attribute("subAmount"))
        .collect();
    assert_eq!(amounts, [Some("10.00"), Some("15.00")]);
    assert_eq!(read.text_of("idempotencyID"), None);
}

#[test]
fn c44_what_is_written_is_read_back_as_it_was() {
    let (invoice, user_defined) = ("A&B<1>", "]]> \" ' é");
    let document = XmlWriter::new("PaymentProcessRequest")
        .element("invoiceNo", invoice)
        .element("userDefined1", user_defined)
        .empty("refund", &[("userDefined1", user_defined)])
        .finish()
        .unwrap();
    let read = parse(document.as_bytes()).unwrap();
    assert_eq!(read.text_of("invoiceNo").as_deref(), Some(invoice));
    assert_eq!(read.text_of("userDefined1").as_deref(), Some(user_defined));
    assert_eq!(
        read.child("refund").unwrap().attribute("userDefined1"),
        Some(user_defined)
    );
}

#[test]
fn c44_a_document_type_is_refused_though_2c2p_signed_it() {
    let keys = MaintenanceKeys::new(
        sample!("jose_test_merchant_private.pem"),
        sample!("jose_test_provider_public.pem"),
    )
    .unwrap();
    let document = keys.open(sample!("jose_13_xml_dtd.txt").as_bytes()).unwrap();
    check_refused(document, XmlError::DocumentType);
    check_refused(sample!("bad-doctype.constructed.xml"), XmlError::DocumentType);
}

#[test]
fn entities_that_multiply_are_not_even_read() {
    let mut definitions = "<!ENTITY l0 \"lol\">".to_owned();
    for level in 1..10 {
        let before = format!("&l{};", level - 1).repeat(10);
        definitions.push_str(&format!("<!ENTITY l{level} \"{before}\">"));
    }
    check_refused(
        format!("<!DOCTYPE a [{definitions}]><a>&l9;</a>"),
        XmlError::DocumentType,
    );
    check_refused("<a>&l9;</a>", XmlError::Entity);
    check_refused("<a b='&l9;'/>", XmlError::Entity);
    check_refused("<a>&nbsp;</a>", XmlError::Entity);
    check_refused("<a><!DOCTYPE b></a>", XmlError::DocumentType);
    check_refused("<a/><!DOCTYPE b>", XmlError::DocumentType);
}

#[test]
fn reads_what_2c2p_prints() {
    let keys = merchant();
    let opened = keys.open(sample!("R-response.token.txt").as_bytes()).unwrap();
    let refund = parse(&opened).unwrap();
    assert_eq!(refund.name(), "PaymentProcessResponse");
    for (name, expected) in [
        ("respCode", Some("00")),
        ("status", Some("RF")),
        ("amount", Some("25.00")),
        ("refundReferenceNo", Some("3598743")),
        ("idempotencyID", None),
    ] {
        assert_eq!(refund.text_of(name).as_deref(), expected, "{name}");
    }
    let status = parse(sample!("RS-response-two.constructed.xml").as_bytes()).unwrap();
    let rows = status.child("refundList").unwrap().children("refund");
    let numbers: Vec<_> = rows
        .map(|row| (row.attribute("referenceNo"), row.attribute("status")))
        .collect();
    assert_eq!(numbers, [(Some("3598743"), Some("RF")), (Some("3598744"), Some("RP"))]);
    let legacy = parse(sample!("legacy-securefields-success.xml").as_bytes()).unwrap();
    assert_eq!(legacy.text_of("bankName").as_deref(), Some("FIRST DATA CORPORATIONS"));
}

#[test]
fn c43_the_good_refund_reads_as_one() {
    let keys = MaintenanceKeys::new(
        sample!("jose_test_merchant_private.pem"),
        sample!("jose_test_provider_public.pem"),
    )
    .unwrap();
    let refund = parse(&keys.open(sample!("jose_01_refund_ok.txt").as_bytes()).unwrap()).unwrap();
    let found = ["respCode", "status", "amount"].map(|name| refund.text_of(name).unwrap());
    assert_eq!(found, ["00", "RF", "25.00"]);
}

#[test]
fn reads_every_way_to_write_a_text() {
    let text = |document: &str| parse(document.as_bytes()).map(|root| root.text_of("b"));
    for (document, expected) in [
        ("<a><b> x\ty </b></a>", Some("x\ty")),
        ("<a><b>&lt;&gt;&amp;&apos;&quot;&#233;&#xE9;</b></a>", Some("<>&'\"éé")),
        ("<a><b><![CDATA[<x>&amp;]]></b></a>", Some("<x>&amp;")),
        ("<a><b>x<!-- & <y> -->y<?z?>z</b></a>", Some("xyz")),
        ("<a><b> \r\n </b></a>", None),
        ("<a><b/></a>", None),
        ("<a/>", None),
        ("<a><b>1</b><b>2</b></a>", None),
        (
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-16\"?>\r\n<!-- c --><a><b>x</b></a>\n<?z?> ",
            Some("x"),
        ),
    ] {
        assert_eq!(
            text(document).map_err(|error| (document, error)).unwrap().as_deref(),
            expected,
            "{document}"
        );
    }
}

#[test]
fn what_is_not_well_formed_is_refused() {
    for document in [
        "",
        " ",
        "text",
        "{\"respCode\":\"00\"}",
        "<a>",
        "<a></b>",
        "</a>",
        "<a><b></a></b>",
        "<a/><b/>",
        "<a/>x",
        "x<a/>",
        "<a/>&#32;",
        "<a/><![CDATA[]]>",
        "<a b=1/>",
        "<a b='1' b='2'/>",
        "<a b='<'/>",
        "<></>",
        "<1/>",
        "<a<b/>",
        "<a>&</a>",
        "<a>&#0;</a>",
        "<a>&#1;</a>",
        "<a>\u{1}</a>",
        "<a b='&#1;'/>",
        "<a>\u{ffff}</a>",
        "<a>&#xD800;</a>",
        " <?xml version=\"1.0\"?><a/>",
        "<a/><?xml version=\"1.0\"?>",
        "<?xml version=\"1.1\"?><a/>",
        "<!-- <a/>",
    ] {
        check_refused(document, XmlError::Malformed);
    }
    check_refused(b"<a>\xe9</a>", XmlError::NotUtf8);
    check_refused(b"\xff\xfe<\0a\0/\0>\0", XmlError::NotUtf8);
}

#[test]
fn everything_has_a_limit() {
    let nested = |depth: usize| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    assert!(parse(nested(DEEPEST).as_bytes()).is_ok());
    check_refused(nested(DEEPEST + 1), XmlError::TooMany);
    check_refused("<a>".repeat(80_000), XmlError::TooMany);
    let many = |count: usize| format!("<a>{}</a>", "<b/>".repeat(count));
    assert!(parse(many(MOST_ELEMENTS - 1).as_bytes()).is_ok());
    check_refused(many(MOST_ELEMENTS), XmlError::TooMany);
    let attributes = |count: usize| {
        let attributes: String = (0..count).map(|number| format!(" a{number}=''")).collect();
        format!("<a{attributes}/>")
    };
    assert!(parse(attributes(MOST_ATTRIBUTES).as_bytes()).is_ok());
    check_refused(attributes(MOST_ATTRIBUTES + 1), XmlError::TooMany);
    let long = |length: usize| format!("<a>{}</a>", "x".repeat(length - 7));
    assert!(parse(long(LONGEST).as_bytes()).is_ok());
    check_refused(long(LONGEST + 1), XmlError::TooLong);
}

#[test]
fn what_xml_cannot_express_is_refused_by_name() {
    for text in ["\0", "a\u{1}", "\u{b}", "\u{ffff}", "\u{fffe}"] {
        let writer = || XmlWriter::new("a").element("ok", "ok");
        let error = writer().element("notes", text).element("later", "\0").finish();
        assert_eq!(error, Err(XmlError::Inexpressible("notes")));
        let error = writer()
            .group("list", |list| list.empty("row", &[("b", text)]))
            .finish();
        assert_eq!(error, Err(XmlError::Inexpressible("row")));
    }
    assert_eq!(
        XmlError::Inexpressible("notes").to_string(),
        "notes has a character that XML cannot express"
    );
}

fn expressible() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec![
        '&', '<', '>', '"', '\'', '\r', '\n', '\t', ' ', ']', ';', '#', 'é', '😀',
    ]);
    let character = prop_oneof![special, any::<char>().prop_filter("in XML", |it| is_character(*it))];
    prop::collection::vec(character, 0..40).prop_map(String::from_iter)
}

proptest! {
    #[test]
    fn every_text_survives_writing_and_reading(text in expressible(), value in expressible()) {
        let document = XmlWriter::new("a")
            .element("text", &text)
            .group("list", |list| list.empty("row", &[("value", &value), ("other", &text)]))
            .finish()
            .unwrap();
        let read = parse(document.as_bytes()).unwrap();
        prop_assert_eq!(&read.child("text").unwrap().text, &text);
        let row = read.child("list").unwrap().child("row").unwrap();
        prop_assert_eq!(row.attribute("value"), Some(value.as_str()));
        prop_assert_eq!(row.attribute("other"), Some(text.as_str()));
    }

    #[test]
    fn no_text_makes_a_document_that_cannot_be_read(text: String) {
        if let Ok(document) = XmlWriter::new("a").element("text", &text).finish() {
            let read = parse(document.as_bytes()).unwrap();
            prop_assert_eq!(&read.child("text").unwrap().text, &text);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>, text in "[<>/!?&;#a=\"' \\[\\]-]{0,60}") {
        let _ = parse(&bytes);
        let _ = parse(text.as_bytes());
        let _ = parse(format!("<a>{text}</a>").as_bytes());
    }
}
