use super::*;
use crate::gateway::twoc2p::maintenance::samples::{self, gateway, merchant, sample};
use proptest::prelude::*;

#[track_caller]
fn check_private(what: &str, pem: &str, expected: KeyFault) {
    let error = MaintenanceKeys::new(pem, samples::GATEWAY_CERTIFICATE).unwrap_err();
    assert_eq!(error, KeyError::MerchantPrivateKey(expected), "{what}");
}

#[track_caller]
fn check_certificate(what: &str, certificate: impl AsRef<[u8]>, expected: KeyFault) {
    let error = MaintenanceKeys::new(samples::MERCHANT_PRIVATE, &certificate).unwrap_err();
    assert_eq!(error, KeyError::GatewayCertificate(expected), "{what}");
    let error = merchant().and_verify_with(&certificate).unwrap_err();
    assert_eq!(error, KeyError::GatewayCertificate(expected), "{what}");
}

fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine as _;
    let body = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

/// `element(0x30, ..)` is a SEQUENCE. Long lengths have two bytes.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[tag, 0x82], &length[..], content].concat()
}

/// A key of so many bytes of modulus, in shape alone.
fn hollow_key(bytes: usize) -> (String, String) {
    let modulus = element(2, &vec![0xa5; bytes]);
    let number = element(2, &[1, 0, 1]);
    let rsa = [0x30, 0x0d, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
    let public = element(0x30, &[&modulus[..], &number].concat());
    let bits = element(3, &[&[0][..], &public].concat());
    let public = element(0x30, &[&rsa[..], &bits].concat());
    let private = element(0x30, &[&element(2, &[0])[..], &modulus, &number].concat());
    (pem("RSA PRIVATE KEY", &private), pem("PUBLIC KEY", &public))
}

#[test]
fn every_form_of_the_same_keys_makes_the_same_messages() {
    let private_keys = [samples::MERCHANT_PRIVATE, samples::MERCHANT_PKCS1];
    let certificates: [&[u8]; 6] = [
        samples::GATEWAY_CERTIFICATE.as_bytes(),
        samples::GATEWAY_CERTIFICATE_V1.as_bytes(),
        samples::GATEWAY_PUBLIC.as_bytes(),
        include_bytes!("../../../../../tests/fixtures/twoc2p/maintenance/TEST-ONLY-gateway.cert.der"),
        include_bytes!("../../../../../tests/fixtures/twoc2p/maintenance/TEST-ONLY-gateway.pub.der"),
        &format!(
            "\u{feff}Bag Attributes\r\n  friendlyName: 2C2P\r\n{}",
            samples::GATEWAY_CERTIFICATE
        )
        .replace('\n', "\r\n")
        .into_bytes(),
    ];
    for private_key in private_keys {
        for certificate in certificates {
            let keys = MaintenanceKeys::new(private_key, certificate).unwrap();
            let request = keys.seal(b"<a/>").unwrap();
            assert_eq!(gateway().open(request.as_bytes()).unwrap(), b"<a/>");
            let answer = gateway().seal(b"<b/>").unwrap();
            assert_eq!(keys.open(answer.as_bytes()).unwrap(), b"<b/>");
        }
    }
}

#[test]
fn a_private_key_may_lie_beside_its_certificate() {
    let both = format!("{}{}", samples::MERCHANT_CERTIFICATE, samples::MERCHANT_PRIVATE);
    assert!(MaintenanceKeys::new(both, samples::GATEWAY_CERTIFICATE).is_ok());
}

#[test]
fn says_what_is_wrong_with_the_private_key() {
    for text in [
        "",
        "merchant.pem",
        "-----BEGIN SSH KEY-----\nAAAA\n-----END SSH KEY-----",
    ] {
        check_private(text, text, KeyFault::Missing);
    }
    check_private("public", samples::MERCHANT_PUBLIC, KeyFault::Public);
    check_private("certificate", samples::MERCHANT_CERTIFICATE, KeyFault::Public);
    check_private(
        "encrypted",
        sample!("TEST-ONLY-merchant.encrypted.pem"),
        KeyFault::Encrypted,
    );
    check_private(
        "encrypted",
        sample!("TEST-ONLY-merchant.encrypted-pkcs1.pem"),
        KeyFault::Encrypted,
    );
    check_private("EC", sample!("TEST-ONLY-ec.key.pem"), KeyFault::NotRsa);
    check_private("EC", sample!("TEST-ONLY-ec.sec1.pem"), KeyFault::NotRsa);
    check_private("1024 bits", sample!("TEST-ONLY-1024.key.pem"), KeyFault::TooShort);
    check_private("2040 bits", &hollow_key(255).0, KeyFault::TooShort);
    check_private("8200 bits", &hollow_key(1025).0, KeyFault::TooLong);
    check_private("hollow", &hollow_key(256).0, KeyFault::Malformed);
    let twice = [samples::MERCHANT_PRIVATE, samples::MERCHANT_PKCS1].concat();
    check_private("twice", &twice, KeyFault::Several);
    check_private("no DER", &pem("PRIVATE KEY", b"key"), KeyFault::Malformed);
    let cut = &samples::MERCHANT_PRIVATE[..900];
    check_private("cut", cut, KeyFault::Malformed);
    let damaged = samples::MERCHANT_PRIVATE.replacen('M', "!", 1);
    check_private("damaged", &damaged, KeyFault::Malformed);
}

#[test]
fn a_passphrase_opens_what_openssl_encrypted() {
    let with =
        |pem: &str, passphrase: &str| MaintenanceKeys::with_passphrase(pem, passphrase, samples::GATEWAY_CERTIFICATE);
    for pem in [
        sample!("TEST-ONLY-merchant.encrypted.pem"),
        sample!("TEST-ONLY-merchant.encrypted-aes128-sha1.pem"),
        // Not encrypted at all.
        samples::MERCHANT_PRIVATE,
    ] {
        let keys = with(pem, "TESTONLYpassphrase").unwrap();
        let request = keys.seal(b"<a/>").unwrap();
        assert_eq!(gateway().open(request.as_bytes()).unwrap(), b"<a/>");
    }
    let encrypted = sample!("TEST-ONLY-merchant.encrypted.pem");
    let check = |what: &str, pem: &str, passphrase: &str, expected: KeyFault| {
        let error = with(pem, passphrase).unwrap_err();
        assert_eq!(error, KeyError::MerchantPrivateKey(expected), "{what}");
    };
    check("another", encrypted, "TESTONLYpassphrasf", KeyFault::Passphrase);
    check("none", encrypted, "", KeyFault::Passphrase);
    let (triple_des, old) = (
        sample!("TEST-ONLY-merchant.encrypted-3des.pem"),
        sample!("TEST-ONLY-merchant.encrypted-pkcs1.pem"),
    );
    check(
        "triple DES",
        triple_des,
        "TESTONLYpassphrase",
        KeyFault::UnknownEncryption,
    );
    check("PKCS#1", old, "TESTONLYpassphrase", KeyFault::UnknownEncryption);
    check("twice", &encrypted.repeat(2), "TESTONLYpassphrase", KeyFault::Several);
    check("cut", &encrypted[..900], "TESTONLYpassphrase", KeyFault::Malformed);
    check(
        "no DER",
        &pem("ENCRYPTED PRIVATE KEY", b"key"),
        "",
        KeyFault::UnknownEncryption,
    );
}

#[test]
fn says_what_is_wrong_with_the_certificate() {
    for text in [
        "",
        "gateway.cer",
        "<html>",
        "-----BEGIN SSH KEY-----\nAAAA\n-----END SSH KEY-----",
    ] {
        check_certificate(text, text, KeyFault::Missing);
    }
    check_certificate("private", samples::GATEWAY_PRIVATE, KeyFault::Private);
    check_certificate("our own", samples::MERCHANT_CERTIFICATE, KeyFault::Own);
    check_certificate("EC", sample!("TEST-ONLY-ec.cert.pem"), KeyFault::NotRsa);
    check_certificate("1024 bits", sample!("TEST-ONLY-1024.cert.pem"), KeyFault::TooShort);
    check_certificate("8200 bits", hollow_key(1025).1, KeyFault::TooLong);
    let both = [samples::GATEWAY_CERTIFICATE, samples::STRANGER_CERTIFICATE].concat();
    check_certificate("two", both, KeyFault::Several);
    check_certificate("no DER", pem("CERTIFICATE", b"key"), KeyFault::Malformed);
    check_certificate("cut", &samples::GATEWAY_CERTIFICATE[..900], KeyFault::Malformed);
}

#[test]
fn prints_nothing_of_a_key() {
    assert_eq!(format!("{:?}", merchant()), "MaintenanceKeys(***)");
    let damaged = samples::MERCHANT_PRIVATE.replacen('M', "!", 1);
    let error = MaintenanceKeys::new(damaged, samples::GATEWAY_CERTIFICATE).unwrap_err();
    assert_eq!(error.to_string(), "the merchant's private key cannot be used");
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.to_string(), "it cannot be read as a key");
}

#[test]
fn can_be_shared_between_threads() {
    fn check<T: Clone + Send + Sync + 'static>() {}
    check::<MaintenanceKeys>();
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>, label in "(CERTIFICATE|PUBLIC KEY|PRIVATE KEY|RSA PRIVATE KEY)") {
        let text = pem(&label, &bytes);
        let refused = |error| matches!(error, KeyFault::Missing | KeyFault::Malformed | KeyFault::Public | KeyFault::Private);
        prop_assert!(private_document(&text).map(|it| der::private_key(&it).is_none()).unwrap_or_else(refused));
        prop_assert!(public_document(&bytes).is_err_and(refused));
        prop_assert!(public_document(text.as_bytes()).map(|it| der::public_key(&it).is_none()).unwrap_or_else(refused));
    }

    #[test]
    fn no_damage_to_an_encrypted_key_makes_it_panic(at: prop::sample::Index, letter in "[A-Za-z0-9+/=\n-]") {
        let mut damaged = sample!("TEST-ONLY-merchant.encrypted.pem").to_owned();
        // Beyond the rounds, which chance could make many.
        let at = 140 + at.index(damaged.len() - 140);
        damaged.replace_range(at..=at, &letter);
        let _ = passphrase::decrypt(&damaged, &Secret::from("TESTONLYpassphrase"));
    }
}
