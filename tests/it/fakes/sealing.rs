//! The envelope of 2C2P's maintenance API, built in the test and not by the fake: PS256 around RSA-OAEP and A256GCM.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::rand::{self, SystemRandom};
use aws_lc_rs::rsa::{
    KeyPair, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, PrivateDecryptingKey,
    PublicEncryptingKey,
};
use aws_lc_rs::signature::{RSA_PSS_2048_8192_SHA256, RSA_PSS_SHA256, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use payonce::testing::server::FakeTwoC2p;

/// One side of the conversation: its own private key, and the public key of the other.
pub(crate) struct Sealer {
    own: Vec<u8>,
    other: Vec<u8>,
}

impl Sealer {
    /// With what the fake gives to a merchant: its private key and the gateway's certificate.
    pub(super) fn of(fake: &FakeTwoC2p) -> Self {
        Self::new(fake.merchant_private_key().expose(), &fake.gateway_certificate())
    }

    /// With a PKCS#8 private key and the other's certificate or public key, all RSA-2048 and PEM.
    pub(crate) fn new(own: &str, other: &str) -> Self {
        Self {
            own: der(own),
            other: public_key(&der(other)),
        }
    }

    pub(crate) fn seal(&self, text: &str) -> String {
        let jwe = self.encrypt(text);
        let signed = format!(
            "{}.{}",
            encode(br#"{"alg":"PS256","typ":"JWT"}"#),
            encode(jwe.as_bytes())
        );
        format!("{signed}.{}", encode(&self.sign(&signed)))
    }

    pub(crate) fn encrypt(&self, text: &str) -> String {
        let header = encode(br#"{"alg":"RSA-OAEP","enc":"A256GCM"}"#);
        let (mut key, mut nonce) = ([0; 32], [0; 12]);
        rand::fill(&mut key).unwrap();
        rand::fill(&mut nonce).unwrap();
        let public = OaepPublicEncryptingKey::new(PublicEncryptingKey::from_der(&self.other).unwrap()).unwrap();
        let mut wrapped = vec![0; public.ciphertext_size()];
        public.encrypt(&OAEP_SHA1_MGF1SHA1, &key, &mut wrapped, None).unwrap();
        let mut body = text.as_bytes().to_vec();
        let tag = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).unwrap())
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(header.as_bytes()),
                &mut body,
            )
            .unwrap();
        let rest = [&wrapped[..], &nonce, &body, tag.as_ref()].map(encode).join(".");
        format!("{header}.{rest}")
    }

    fn sign(&self, text: &str) -> Vec<u8> {
        let pair = KeyPair::from_pkcs8(&self.own).unwrap();
        let mut signature = vec![0; pair.public_modulus_len()];
        pair.sign(&RSA_PSS_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
            .unwrap();
        signature
    }

    /// The text in an answer. Fails when it is not signed by the gateway for this merchant.
    #[track_caller]
    pub(crate) fn open(&self, token: &str) -> String {
        let outer: Vec<&str> = token.split('.').collect();
        assert_eq!(outer.len(), 3, "not a compact JWS: {token}");
        assert_eq!(decode(outer[0]), br#"{"alg":"PS256","typ":"JWT"}"#);
        UnparsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, &self.other)
            .verify(format!("{}.{}", outer[0], outer[1]).as_bytes(), &decode(outer[2]))
            .unwrap();
        let jwe = String::from_utf8(decode(outer[1])).unwrap();
        let inner: Vec<&str> = jwe.split('.').collect();
        assert_eq!(inner.len(), 5);
        assert_eq!(decode(inner[0]), br#"{"alg":"RSA-OAEP","enc":"A256GCM"}"#);
        let private = OaepPrivateDecryptingKey::new(PrivateDecryptingKey::from_pkcs8(&self.own).unwrap()).unwrap();
        let mut key = vec![0; private.min_output_size()];
        let key = private
            .decrypt(&OAEP_SHA1_MGF1SHA1, &decode(inner[1]), &mut key, None)
            .unwrap();
        let mut text = [decode(inner[3]), decode(inner[4])].concat();
        let nonce = Nonce::try_assume_unique_for_key(&decode(inner[2])).unwrap();
        let text = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).unwrap())
            .open_in_place(nonce, Aad::from(inner[0].as_bytes()), &mut text)
            .unwrap();
        String::from_utf8(text.to_vec()).unwrap()
    }
}

/// The public key in an RSA-2048 certificate: the only part of one that begins so.
pub(super) fn public_key(certificate: &[u8]) -> Vec<u8> {
    const BEGINNING: &[u8] =
        b"\x30\x82\x01\x22\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00\x03\x82\x01\x0f\x00";
    let at = certificate
        .windows(BEGINNING.len())
        .position(|window| window == BEGINNING)
        .expect("an RSA-2048 key");
    certificate[at..at + 4 + 0x122].to_vec()
}

/// What is in a PEM file.
pub(super) fn der(pem: &str) -> Vec<u8> {
    let lines = pem.lines().filter(|line| !line.starts_with("-----"));
    STANDARD.decode(lines.collect::<String>()).unwrap()
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn decode(part: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(part).unwrap()
}
