//! The gateway's side of a message is made here as well, so that it can be made wrong in one place at a time.

use super::*;
use crate::gateway::twoc2p::maintenance::samples::{self, gateway, merchant, sample};
use aws_lc_rs::aead::{AES_128_GCM, Algorithm};
use aws_lc_rs::rsa::{OAEP_SHA256_MGF1SHA256, OaepAlgorithm};
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RSA_PSS_SHA384, RsaEncoding};
use proptest::prelude::*;
use std::sync::LazyLock;

static MERCHANT: LazyLock<MaintenanceKeys> = LazyLock::new(merchant);
static GATEWAY: LazyLock<MaintenanceKeys> = LazyLock::new(gateway);

const ANSWER: &str = "<PaymentProcessResponse><respCode>00</respCode></PaymentProcessResponse>";

/// A JWE to the merchant as it should be, but for what a test changes.
struct Encrypted {
    header: &'static str,
    wrap: &'static OaepAlgorithm,
    cipher: &'static Algorithm,
    key: Vec<u8>,
}

impl Default for Encrypted {
    fn default() -> Self {
        Self {
            header: r#"{"alg":"RSA-OAEP","enc":"A256GCM"}"#,
            wrap: &OAEP_SHA1_MGF1SHA1,
            cipher: &AES_256_GCM,
            key: vec![7; 32],
        }
    }
}

impl Encrypted {
    fn token(&self) -> String {
        let header = URL_SAFE_NO_PAD.encode(self.header);
        let to = GATEWAY.encrypting();
        let mut wrapped = vec![0; to.ciphertext_size()];
        let wrapped = to.encrypt(self.wrap, &self.key, &mut wrapped, None).unwrap();
        let key = &self.key[..self.cipher.key_len().min(self.key.len())];
        let mut padded = key.to_vec();
        padded.resize(self.cipher.key_len(), 0);
        let cipher = LessSafeKey::new(UnboundKey::new(self.cipher, &padded).unwrap());
        let mut text = ANSWER.as_bytes().to_vec();
        let nonce = Nonce::assume_unique_for_key([3; NONCE_LEN]);
        let tag = cipher
            .seal_in_place_separate_tag(nonce, Aad::from(&header), &mut text)
            .unwrap();
        join(&[header.as_bytes(), wrapped, &[3; NONCE_LEN], &text, tag.as_ref()])
    }
}

/// The first part as it is, the others encoded.
fn join(parts: &[&[u8]]) -> String {
    let mut token = String::from_utf8(parts[0].to_vec()).unwrap();
    for part in &parts[1..] {
        token = format!("{token}.{}", URL_SAFE_NO_PAD.encode(part));
    }
    token
}

fn signed_by(keys: &MaintenanceKeys, how: &'static dyn RsaEncoding, header: &str, payload: &str) -> String {
    let signed = join(&[URL_SAFE_NO_PAD.encode(header).as_bytes(), payload.as_bytes()]);
    let key = &keys.own().signing;
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(how, &SystemRandom::new(), signed.as_bytes(), &mut signature)
        .unwrap();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// Signed as 2C2P signs.
fn signed(payload: &str) -> String {
    signed_by(&GATEWAY, &RSA_PSS_SHA256, r#"{"alg":"PS256","typ":"JWT"}"#, payload)
}

#[track_caller]
fn check_refused(what: &str, token: impl AsRef<[u8]>) {
    assert_eq!(MERCHANT.open(token.as_ref()), Err(Rejected), "{what}");
}

#[test]
fn opens_what_the_samples_hold() {
    for (token, plaintext) in [
        (sample!("R-response.token.txt"), sample!("R-response.xml")),
        (sample!("R-response-kid.token.txt"), sample!("R-response.xml")),
        (
            sample!("R-response-51.token.txt"),
            sample!("R-response-51.constructed.xml"),
        ),
    ] {
        let opened = String::from_utf8(MERCHANT.open(token.as_bytes()).unwrap()).unwrap();
        assert_eq!(opened.trim(), plaintext.trim());
    }
    let request = GATEWAY.open(sample!("R-request.token.txt").as_bytes()).unwrap();
    let expected = sample!("R-request-idempotent.constructed.xml");
    assert_eq!(String::from_utf8(request).unwrap().trim(), expected.trim());
    let notice = sample!("notify.form.txt")
        .trim()
        .strip_prefix("notifyResponse=")
        .unwrap();
    assert!(MERCHANT.open(notice.as_bytes()).is_ok());
}

#[test]
fn the_bad_samples_are_refused_alike() {
    for token in [
        sample!("bad-R-response-stranger-signature.token.txt"),
        sample!("bad-R-response-jwe-only.token.txt"),
        sample!("bad-R-response-oaep256.token.txt"),
        sample!("doc-request-token.prefix.txt"),
        // Sealed to 2C2P by us: neither signed by 2C2P nor encrypted to us.
        sample!("R-request.token.txt"),
    ] {
        check_refused(token, token);
    }
}

#[test]
fn c43_only_the_documented_algorithms_are_opened() {
    let keys = MaintenanceKeys::new(
        sample!("jose_test_merchant_private.pem"),
        sample!("jose_test_provider_public.pem"),
    )
    .unwrap();
    let good = keys.open(sample!("jose_01_refund_ok.txt").as_bytes()).unwrap();
    let good = String::from_utf8(good).unwrap();
    for part in ["<respCode>00<", "<status>RF<", "<amount>25.00<"] {
        assert!(good.contains(part), "{good}");
    }
    assert_eq!(keys.open(sample!("jose_03_oaep256.txt").as_bytes()), Err(Rejected));
    assert_eq!(keys.open(sample!("jose_04_rsa1_5.txt").as_bytes()), Err(Rejected));
}

#[test]
fn headers_are_as_the_documented_samples_print_them() {
    let token = MERCHANT.seal(b"<a/>").unwrap();
    assert!(sample!("doc-request-token.prefix.txt").starts_with(&format!("{SIGNED}.")));
    let [outer, payload, _] = segments(token.as_bytes()).unwrap();
    assert_eq!(decode(outer).unwrap(), br#"{"alg":"PS256","typ":"JWT"}"#);
    let payload = decode(payload).unwrap();
    let [inner, wrapped, nonce, text, tag] = segments(&payload).unwrap();
    assert_eq!(decode(inner).unwrap(), br#"{"alg":"RSA-OAEP","enc":"A256GCM"}"#);
    let lengths = [wrapped, nonce, text, tag].map(|part| decode(part).unwrap().len());
    assert_eq!(lengths, [256, 12, 4, 16]);
}

#[test]
fn both_sides_open_what_the_other_sealed_whatever_its_size() {
    for plaintext in [&b""[..], ANSWER.as_bytes(), &[0xff; 256 * 1024]] {
        let request = MERCHANT.seal(plaintext).unwrap();
        assert_eq!(GATEWAY.open(request.as_bytes()).unwrap(), plaintext);
        check_refused("our own message", &request);
        let answer = format!("\r\n {} \t\n", GATEWAY.seal(plaintext).unwrap());
        assert_eq!(MERCHANT.open(answer.as_bytes()).unwrap(), plaintext);
    }
}

#[test]
fn no_two_messages_are_alike() {
    let (one, other) = (MERCHANT.seal(b"<a/>").unwrap(), MERCHANT.seal(b"<a/>").unwrap());
    let parts = |token: &str| {
        let payload = decode(token.split('.').nth(1).unwrap().as_bytes()).unwrap();
        segments::<5>(&payload).unwrap().map(<[u8]>::to_vec)
    };
    let (one, other) = (parts(&one), parts(&other));
    assert_eq!(one[0], other[0]);
    for part in 1..5 {
        assert_ne!(one[part], other[part], "{part}");
    }
}

#[test]
fn what_is_too_long_is_not_even_split() {
    let mut token = signed(&Encrypted::default().token());
    token.push_str(&" ".repeat(LONGEST_TOKEN - token.len()));
    assert!(MERCHANT.open(token.as_bytes()).is_ok());
    token.push(' ');
    check_refused("one byte more", token);
}

#[test]
fn other_signatures_are_refused() {
    let jwe = Encrypted::default().token();
    assert_eq!(MERCHANT.open(signed(&jwe).as_bytes()).unwrap(), ANSWER.as_bytes());
    for header in [
        r#"{"alg":"none"}"#,
        r#"{"alg":"ps256"}"#,
        r#"{"alg":"RS256"}"#,
        r#"{"alg":"HS256"}"#,
        r#"{"alg":["PS256"]}"#,
        r#"{"alg":"PS256","alg":"PS256"}"#,
        r#"{"alg":"PS256","crit":["b64"],"b64":false}"#,
        r#"{"alg":"PS256","crit":null}"#,
        r#"{"typ":"JWT"}"#,
        "PS256",
        "",
    ] {
        // Good signatures, all of them.
        check_refused(header, signed_by(&GATEWAY, &RSA_PSS_SHA256, header, &jwe));
    }
    let (rs256, ps384) = (r#"{"alg":"RS256"}"#, r#"{"alg":"PS384"}"#);
    check_refused(rs256, signed_by(&GATEWAY, &RSA_PKCS1_SHA256, rs256, &jwe));
    check_refused(ps384, signed_by(&GATEWAY, &RSA_PSS_SHA384, ps384, &jwe));
    let ps256 = r#"{"alg":"PS256"}"#;
    check_refused("RS256 as PS256", signed_by(&GATEWAY, &RSA_PKCS1_SHA256, ps256, &jwe));
    check_refused("PS384 as PS256", signed_by(&GATEWAY, &RSA_PSS_SHA384, ps256, &jwe));
    check_refused("our own key", signed_by(&MERCHANT, &RSA_PSS_SHA256, ps256, &jwe));
    let unsigned = URL_SAFE_NO_PAD.encode(&jwe);
    check_refused(
        "none",
        format!("{}.{unsigned}.", URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#)),
    );
    check_refused("no signature", format!("{SIGNED}.{unsigned}."));
}

#[test]
fn other_encryptions_are_refused_though_signed() {
    let changed = |change: fn(&mut Encrypted)| {
        let mut encrypted = Encrypted::default();
        change(&mut encrypted);
        signed(&encrypted.token())
    };
    for header in [
        r#"{"alg":"RSA1_5","enc":"A256GCM"}"#,
        r#"{"alg":"RSA-OAEP-256","enc":"A256GCM"}"#,
        r#"{"alg":"RSA-OAEP","enc":"A128GCM"}"#,
        r#"{"alg":"RSA-OAEP","enc":"A256CBC-HS512"}"#,
        r#"{"alg":"dir","enc":"A256GCM"}"#,
        r#"{"alg":"RSA-OAEP","enc":"A256GCM","zip":"DEF"}"#,
        r#"{"alg":"RSA-OAEP","enc":"A256GCM","zip":null}"#,
        r#"{"alg":"RSA-OAEP","enc":"A256GCM","crit":["exp"],"exp":1}"#,
        r#"{"alg":"RSA-OAEP"}"#,
        "[]",
    ] {
        let encrypted = Encrypted {
            header,
            ..Encrypted::default()
        };
        check_refused(header, signed(&encrypted.token()));
    }
    check_refused("OAEP with SHA-256", changed(|it| it.wrap = &OAEP_SHA256_MGF1SHA256));
    check_refused("A128GCM", changed(|it| it.cipher = &AES_128_GCM));
    check_refused("a key of 16 bytes", changed(|it| it.key.truncate(16)));
    check_refused("a key of 33 bytes", changed(|it| it.key.push(0)));
    // Further members change nothing.
    let header = r#"{"kid":"1","typ":"JWE","cty":"xml","enc":"A256GCM","alg":"RSA-OAEP"}"#;
    let encrypted = Encrypted {
        header,
        ..Encrypted::default()
    };
    assert!(MERCHANT.open(signed(&encrypted.token()).as_bytes()).is_ok());
}

#[test]
fn other_nestings_are_refused() {
    let jwe = Encrypted::default().token();
    check_refused("a bare JWE", &jwe);
    check_refused("a signed text", signed(ANSWER));
    check_refused("signed twice", signed(&signed(&jwe)));
    // Signed first and encrypted after.
    let swapped = GATEWAY.encrypt(signed(ANSWER).as_bytes()).unwrap();
    check_refused("swapped", &swapped);
    let good = signed(&jwe);
    for (what, token) in [
        ("nothing", String::new()),
        ("dots", "..".into()),
        ("five dots", "....".into()),
        ("two segments", good.rsplit_once('.').unwrap().0.into()),
        ("four segments", format!("{good}.")),
        ("twice", format!("{good}.{good}")),
        ("padded", format!("{good}=")),
        ("cut", good[..good.len() - 1].into()),
        ("white space inside", good.replacen('.', ". ", 1)),
        ("JSON", format!(r#"{{"payload":"{good}"}}"#)),
        ("XML", ANSWER.into()),
    ] {
        check_refused(what, token);
    }
    for broken in [
        jwe.replacen('.', "..", 1),
        format!("{jwe}."),
        jwe.replacen('.', "", 1),
        String::new(),
    ] {
        check_refused(&broken, signed(&broken));
    }
}

#[test]
fn what_is_meant_for_another_merchant_is_refused() {
    let other = MaintenanceKeys::new(samples::GATEWAY_PRIVATE, samples::STRANGER_CERTIFICATE).unwrap();
    check_refused("encrypted to another", other.seal(ANSWER.as_bytes()).unwrap());
    let stranger = MaintenanceKeys::new(samples::STRANGER_PRIVATE, samples::MERCHANT_CERTIFICATE).unwrap();
    check_refused("signed by a stranger", stranger.seal(ANSWER.as_bytes()).unwrap());
}

#[test]
fn while_keys_change_both_are_believed_and_requests_go_to_the_first() {
    let stranger = MaintenanceKeys::new(samples::STRANGER_PRIVATE, samples::MERCHANT_CERTIFICATE).unwrap();
    let keys = merchant().and_verify_with(samples::STRANGER_CERTIFICATE).unwrap();
    for sender in [&*GATEWAY, &stranger] {
        let answer = sender.seal(ANSWER.as_bytes()).unwrap();
        assert_eq!(keys.open(answer.as_bytes()).unwrap(), ANSWER.as_bytes());
    }
    let request = keys.seal(b"<a/>").unwrap();
    assert!(GATEWAY.open(request.as_bytes()).is_ok());
    assert!(stranger.open(request.as_bytes()).is_err());
}

/// Flipped under a signature that is good, so that it is the encryption that has to notice.
#[test]
fn every_flipped_bit_of_the_encryption_gives_the_same_refusal() {
    let jwe = Encrypted::default().token();
    let parts: [&[u8]; 5] = segments(jwe.as_bytes()).unwrap();
    for (number, part) in parts.iter().enumerate() {
        let bytes = decode(part).unwrap();
        for at in [0, bytes.len() / 2, bytes.len() - 1] {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                let flipped = URL_SAFE_NO_PAD.encode(flipped);
                let mut parts = parts.map(|part| std::str::from_utf8(part).unwrap());
                parts[number] = &flipped;
                check_refused(&format!("{number} {at} {bit}"), signed(&parts.join(".")));
            }
        }
    }
    // Parts of another length, and none.
    for number in 0..5 {
        for change in ["", "AAAA"] {
            let mut parts = parts.map(|part| std::str::from_utf8(part).unwrap());
            let longer = if change.is_empty() {
                String::new()
            } else {
                format!("{change}{}", parts[number])
            };
            parts[number] = &longer;
            check_refused(&format!("{number}"), signed(&parts.join(".")));
        }
    }
}

/// Whoever knew the key that is used in place of one that cannot be had could seal without knowing any.
#[test]
fn what_stands_in_for_a_content_key_is_not_known() {
    for byte in [0, 0xff] {
        let encrypted = Encrypted {
            key: vec![byte; 32],
            ..Encrypted::default()
        };
        let jwe = encrypted.token();
        assert!(MERCHANT.open(signed(&jwe).as_bytes()).is_ok());
        let mut parts: Vec<&str> = jwe.split('.').collect();
        let noise = URL_SAFE_NO_PAD.encode([1; 256]);
        parts[1] = &noise;
        check_refused("noise", signed(&parts.join(".")));
    }
    let wrapped = [1; 256];
    let drawn = [(); 2].map(|()| MERCHANT.unwrap_key(&wrapped).unwrap());
    assert_ne!(drawn[0], drawn[1]);
}

#[test]
fn the_refusal_has_one_text_and_prints_nothing_of_the_token() {
    assert_eq!(
        format!("{Rejected} {Rejected:?}"),
        "not a message that 2C2P signed and encrypted for this merchant Rejected"
    );
    assert_eq!(size_of::<Rejected>(), 0);
}

static SEALED: LazyLock<String> = LazyLock::new(|| GATEWAY.seal(ANSWER.as_bytes()).unwrap());

proptest! {
    #[test]
    fn no_bytes_are_accepted_or_make_it_panic(bytes: Vec<u8>, text in "[.A-Za-z0-9_-]{0,200}") {
        prop_assert!(MERCHANT.open(&bytes).is_err());
        prop_assert!(MERCHANT.open(text.as_bytes()).is_err());
    }

    #[test]
    fn no_signed_bytes_are_accepted_or_make_it_panic(bytes: Vec<u8>, text in "[.A-Za-z0-9_-]{0,200}") {
        prop_assert!(MERCHANT.decrypt(&bytes).is_err());
        prop_assert!(MERCHANT.decrypt(text.as_bytes()).is_err());
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"RSA-OAEP","enc":"A256GCM"}"#);
        let token = format!("{header}.{text}");
        prop_assert!(MERCHANT.decrypt(token.as_bytes()).is_err());
    }

    #[test]
    fn every_flipped_bit_is_noticed(at: prop::sample::Index, bit in 0_u8..8) {
        let mut token = SEALED.clone().into_bytes();
        let at = at.index(token.len());
        token[at] ^= 1 << bit;
        prop_assert_eq!(MERCHANT.open(&token), Err(Rejected));
    }

    #[test]
    fn every_plaintext_comes_back(plaintext: Vec<u8>) {
        let token = GATEWAY.seal(&plaintext).unwrap();
        prop_assert_eq!(MERCHANT.open(token.as_bytes()), Ok(plaintext));
    }
}
