//! The envelope of the maintenance API: XML, encrypted for the reader (JWE), then signed by the writer (JWS).
//!
//! The JWS is compact with `PS256` and its payload is the JWE's text; the JWE is compact with `RSA-OAEP` (SHA-1, as JOSE
//! has it) and `A256GCM` (page reference-jwt-with-key).

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::{self, SystemRandom};
use aws_lc_rs::rsa::{
    KeyPair, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, PrivateDecryptingKey,
};
use aws_lc_rs::signature::{KeyPair as _, RSA_PSS_2048_8192_SHA256, RSA_PSS_SHA256, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde::Deserialize;
use std::fmt;
use std::sync::LazyLock;

/// Made for these tests alone; they have never protected anything.
pub(super) const MERCHANT_KEY: &str = include_str!("keys/TEST-ONLY-merchant.key.pem");
pub(super) const MERCHANT_CERTIFICATE: &str = include_str!("keys/TEST-ONLY-merchant.cert.pem");
const GATEWAY_KEY: &str = include_str!("keys/TEST-ONLY-gateway.key.pem");
pub(super) const GATEWAY_CERTIFICATE: &str = include_str!("keys/TEST-ONLY-gateway.cert.pem");

/// The gateway's side: opens what the merchant has sealed, and seals for the merchant.
pub(super) static GATEWAY: LazyLock<Party> = LazyLock::new(|| Party::new(GATEWAY_KEY, MERCHANT_KEY));

/// Who writes and reads: a private key of its own, and the public one of the other side.
pub(super) struct Party {
    signs: KeyPair,
    decrypts: OaepPrivateDecryptingKey,
    verifies: Vec<u8>,
    encrypts: OaepPublicEncryptingKey,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    enc: Option<String>,
    zip: Option<serde::de::IgnoredAny>,
    crit: Option<serde::de::IgnoredAny>,
}

impl Party {
    /// Both keys are those above, so that both private ones are at hand; of the other side's only the public half is
    /// used.
    #[allow(clippy::expect_used, reason = "the keys are files of this folder")]
    fn new(own: &str, other: &str) -> Self {
        let signs = signing(own).expect("a PKCS#8 key");
        let verifies = signing(other).expect("a PKCS#8 key").public_key().as_ref().to_vec();
        let decrypts = OaepPrivateDecryptingKey::new(decrypting(own).expect("a PKCS#8 key")).expect("an RSA key");
        let public = decrypting(other).expect("a PKCS#8 key").public_key();
        let encrypts = OaepPublicEncryptingKey::new(public).expect("an RSA key");
        Self {
            signs,
            decrypts,
            verifies,
            encrypts,
        }
    }

    /// What the other side has sealed; `None` when it is not verifiable or not decryptable, whatever the reason.
    pub(super) fn open(&self, body: &[u8]) -> Option<String> {
        let token = std::str::from_utf8(body).ok()?.trim();
        let [header, payload, signature] = parts(token)?;
        let outer = header_of(header).filter(|outer| outer.alg == "PS256")?;
        if outer.crit.is_some() {
            return None;
        }
        let signed = token.get(..header.len() + 1 + payload.len())?;
        UnparsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, &self.verifies)
            .verify(signed.as_bytes(), &decode(signature)?)
            .ok()?;
        self.decrypt(std::str::from_utf8(&decode(payload)?).ok()?)
    }

    /// A compact JWS around a compact JWE.
    #[allow(
        clippy::expect_used,
        reason = "RSA with good keys and AES-GCM with a key of 32 bytes do not fail"
    )]
    pub(super) fn seal(&self, text: &str) -> String {
        let jwe = self.encrypt(r#"{"alg":"RSA-OAEP","enc":"A256GCM"}"#, text);
        let jwe = jwe.expect("what is written here can be encrypted");
        self.sign(r#"{"alg":"PS256","typ":"JWT"}"#, &jwe)
            .expect("an RSA key signs")
    }

    fn sign(&self, header: &str, payload: &str) -> Result<String, Unspecified> {
        let (header, payload) = (URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
        let signed = format!("{header}.{payload}");
        let mut signature = vec![0; self.signs.public_modulus_len()];
        let random = SystemRandom::new();
        self.signs
            .sign(&RSA_PSS_SHA256, &random, signed.as_bytes(), &mut signature)?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    fn decrypt(&self, token: &str) -> Option<String> {
        let [header, key, nonce, ciphertext, tag] = parts(token)?;
        let inner = header_of(header).filter(|inner| inner.alg == "RSA-OAEP")?;
        if inner.enc.as_deref() != Some("A256GCM") || inner.zip.is_some() || inner.crit.is_some() {
            return None;
        }
        let mut buffer = vec![0; self.decrypts.min_output_size()];
        let key = self
            .decrypts
            .decrypt(&OAEP_SHA1_MGF1SHA1, &decode(key)?, &mut buffer, None)
            .ok()?;
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).ok()?);
        let nonce = Nonce::try_assume_unique_for_key(&decode(nonce)?).ok()?;
        let tag = decode(tag).filter(|tag| tag.len() == AES_256_GCM.tag_len())?;
        let mut text = decode(ciphertext)?;
        text.extend(tag);
        let length = key
            .open_in_place(nonce, Aad::from(header.as_bytes()), &mut text)
            .ok()?
            .len();
        text.truncate(length);
        String::from_utf8(text).ok()
    }

    fn encrypt(&self, header: &str, text: &str) -> Result<String, Unspecified> {
        let header = URL_SAFE_NO_PAD.encode(header);
        let mut key = [0; 32];
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut key)?;
        rand::fill(&mut nonce)?;
        let mut wrapped = vec![0; self.encrypts.ciphertext_size()];
        let wrapped = self.encrypts.encrypt(&OAEP_SHA1_MGF1SHA1, &key, &mut wrapped, None)?;
        let mut ciphertext = text.as_bytes().to_vec();
        let tag = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key)?).seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(header.as_bytes()),
            &mut ciphertext,
        )?;
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let (wrapped, nonce) = (encode(wrapped), encode(&nonce));
        Ok(format!(
            "{header}.{wrapped}.{nonce}.{}.{}",
            encode(&ciphertext),
            encode(tag.as_ref())
        ))
    }
}

impl fmt::Debug for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Party").finish_non_exhaustive()
    }
}

fn signing(pem: &str) -> Option<KeyPair> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).ok()?;
    KeyPair::from_pkcs8(der.secret_pkcs8_der()).ok()
}

fn decrypting(pem: &str) -> Option<PrivateDecryptingKey> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).ok()?;
    PrivateDecryptingKey::from_pkcs8(der.secret_pkcs8_der()).ok()
}

/// The parts of a compact token, when there are exactly so many.
fn parts<const N: usize>(token: &str) -> Option<[&str; N]> {
    token.split('.').collect::<Vec<_>>().try_into().ok()
}

fn header_of(part: &str) -> Option<Header> {
    serde_json::from_slice(&decode(part)?).ok()
}

fn decode(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn merchant() -> Party {
        Party::new(MERCHANT_KEY, GATEWAY_KEY)
    }

    #[test]
    fn each_side_opens_what_the_other_has_sealed_and_nothing_else() {
        let sealed = merchant().seal("<a>é</a>");
        assert_eq!(GATEWAY.open(sealed.as_bytes()).as_deref(), Some("<a>é</a>"));
        assert_eq!(
            merchant().open(GATEWAY.seal("<b/>").as_bytes()).as_deref(),
            Some("<b/>")
        );
        assert_eq!(merchant().open(sealed.as_bytes()), None, "one's own letter");
        let [header, payload, signature] = parts(&sealed).unwrap();
        let jwe = String::from_utf8(decode(payload).unwrap()).unwrap();
        assert_eq!(GATEWAY.open(jwe.as_bytes()), None, "not signed");
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
        for forged in [
            format!("{none}.{payload}."),
            format!("{none}.{payload}.{signature}"),
            format!("{header}.{payload}.{}", signature.replacen(&signature[4..8], "AAAA", 1)),
            format!("{header}.{}.{signature}", URL_SAFE_NO_PAD.encode("a.b.c.d.e")),
        ] {
            assert_eq!(GATEWAY.open(forged.as_bytes()), None);
        }
    }

    #[test]
    fn c43_the_algorithms_are_those_of_the_page_whatever_else_a_header_says() {
        let (outer, inner) = (r#"{"alg":"PS256"}"#, r#"{"alg":"RSA-OAEP","enc":"A256GCM"}"#);
        let opened = |outer: &str, inner: &str| {
            let jwe = merchant().encrypt(inner, "<a/>").unwrap();
            GATEWAY.open(merchant().sign(outer, &jwe).unwrap().as_bytes()).is_some()
        };
        assert!(opened(outer, inner));
        assert!(opened(
            r#"{"kid":"1","alg":"PS256"}"#,
            r#"{"alg":"RSA-OAEP","enc":"A256GCM","kid":"1"}"#
        ));
        for bad in [r#"{"alg":"RS256"}"#, r#"{"alg":"PS256","crit":["b64"]}"#, "{}", "[]"] {
            assert!(!opened(bad, inner), "{bad}");
        }
        for bad in [
            r#"{"alg":"RSA-OAEP-256","enc":"A256GCM"}"#,
            r#"{"alg":"RSA1_5","enc":"A256GCM"}"#,
            r#"{"alg":"RSA-OAEP","enc":"A128GCM"}"#,
            r#"{"alg":"RSA-OAEP"}"#,
            r#"{"alg":"RSA-OAEP","enc":"A256GCM","zip":"DEF"}"#,
        ] {
            assert!(!opened(outer, bad), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), parts in "[A-Za-z0-9_.-]{0,80}") {
            let _ = GATEWAY.open(&bytes);
            let _ = GATEWAY.open(parts.as_bytes());
            let _ = GATEWAY.decrypt(&parts);
        }
    }
}
