//! The envelope of the maintenance API (page `reference-jwt-with-key`): encrypted as a compact JWE (RSA-OAEP with SHA-1,
//! A256GCM) to the receiver, and the JWE signed as a compact JWS (PS256) by the sender. Whatever bytes: the XML of the
//! payment actions, and the JSON of the customer token API.

use super::keys::MaintenanceKeys;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::{self, SystemRandom};
use aws_lc_rs::rsa::OAEP_SHA1_MGF1SHA1;
use aws_lc_rs::signature::RSA_PSS_SHA256;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::zeroize::Zeroizing;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

/// `{"alg":"PS256","typ":"JWT"}`, as 2C2P prints it.
const SIGNED: &str = "eyJhbGciOiJQUzI1NiIsInR5cCI6IkpXVCJ9";

/// `{"alg":"RSA-OAEP","enc":"A256GCM"}`, as 2C2P prints it.
const ENCRYPTED: &str = "eyJhbGciOiJSU0EtT0FFUCIsImVuYyI6IkEyNTZHQ00ifQ";

const CONTENT_KEY_LEN: usize = 32;
const TAG_LEN: usize = 16;

/// No token is read that is longer, in bytes. Twice encoded, it has room for 256 KiB and more.
const LONGEST_TOKEN: usize = 512 * 1024;

/// A message could not be made: the system gave no random bytes. Nothing was sent.
#[derive(Debug, thiserror::Error)]
#[error("the message could not be encrypted and signed")]
pub(in crate::gateway::twoc2p) struct SealError;

/// A token was not accepted.
///
/// There is one form of it, whatever was wrong: who could tell a bad signature from a bad padding from a bad tag could
/// ask the private key questions (RFC 7516, 11.5). That holds for the log of the program as well.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a message that 2C2P signed and encrypted for this merchant")]
pub(in crate::gateway::twoc2p) struct Rejected;

impl From<Unspecified> for SealError {
    fn from(_: Unspecified) -> Self {
        Self
    }
}

impl From<Unspecified> for Rejected {
    fn from(_: Unspecified) -> Self {
        Self
    }
}

impl MaintenanceKeys {
    /// `plaintext`, encrypted to 2C2P and signed by the merchant.
    pub(in crate::gateway::twoc2p) fn seal(&self, plaintext: &[u8]) -> Result<String, SealError> {
        let mut signed = format!("{SIGNED}.");
        URL_SAFE_NO_PAD.encode_string(self.encrypt(plaintext)?, &mut signed);
        let own = &self.own().signing;
        let mut signature = vec![0; own.public_modulus_len()];
        own.sign(&RSA_PSS_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)?;
        signed.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut signed);
        Ok(signed)
    }

    /// What 2C2P has sealed in `token`. White space around it is ignored.
    ///
    /// Verified first, decrypted after; the headers are read to refuse other algorithms, never to choose one.
    pub(in crate::gateway::twoc2p) fn open(&self, token: &[u8]) -> Result<Vec<u8>, Rejected> {
        if token.len() > LONGEST_TOKEN {
            return Err(Rejected);
        }
        let token = token.trim_ascii();
        let [header, payload, signature] = segments(token).ok_or(Rejected)?;
        let outer: SignedHeader = read_header(header)?;
        if outer.alg != "PS256" || outer.crit.0 {
            return Err(Rejected);
        }
        let signature = decode(signature)?;
        let signed = &token[..header.len() + 1 + payload.len()];
        if !self
            .verifying()
            .iter()
            .any(|key| key.verify_sig(signed, &signature).is_ok())
        {
            return Err(Rejected);
        }
        self.decrypt(&decode(payload)?)
    }

    fn encrypt(&self, plaintext: &[u8]) -> Result<String, SealError> {
        let mut content_key = Zeroizing::new([0; CONTENT_KEY_LEN]);
        rand::fill(&mut content_key[..])?;
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce)?;
        let key = self.encrypting();
        let mut wrapped = vec![0; key.ciphertext_size()];
        let wrapped = key.encrypt(&OAEP_SHA1_MGF1SHA1, &content_key[..], &mut wrapped, None)?;
        let mut text = plaintext.to_vec();
        let tag = content_cipher(&content_key)?.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(ENCRYPTED),
            &mut text,
        )?;
        let mut token = ENCRYPTED.to_owned();
        for part in [&*wrapped, &nonce, &text, tag.as_ref()] {
            token.push('.');
            URL_SAFE_NO_PAD.encode_string(part, &mut token);
        }
        Ok(token)
    }

    /// The plaintext of a JWE that 2C2P has signed.
    fn decrypt(&self, token: &[u8]) -> Result<Vec<u8>, Rejected> {
        let [header, wrapped, nonce, text, tag] = segments(token).ok_or(Rejected)?;
        let inner: EncryptedHeader = read_header(header)?;
        if inner.alg != "RSA-OAEP" || inner.enc != "A256GCM" || inner.zip.0 || inner.crit.0 {
            return Err(Rejected);
        }
        let nonce: [u8; NONCE_LEN] = decode(nonce)?.try_into().map_err(|_| Rejected)?;
        let (mut text, tag, wrapped) = (decode(text)?, decode(tag)?, decode(wrapped)?);
        if tag.len() != TAG_LEN {
            return Err(Rejected);
        }
        text.extend_from_slice(&tag);
        let content_key = self.unwrap_key(&wrapped)?;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let length = content_cipher(&content_key)?
            .open_in_place(nonce, Aad::from(header), &mut text)?
            .len();
        text.truncate(length);
        Ok(text)
    }

    /// The content key; a random one where it cannot be had, so that what fails is the tag, as with every other change.
    fn unwrap_key(&self, wrapped: &[u8]) -> Result<Zeroizing<[u8; CONTENT_KEY_LEN]>, Rejected> {
        let mut content_key = Zeroizing::new([0; CONTENT_KEY_LEN]);
        rand::fill(&mut content_key[..])?;
        let own = &self.own().decrypting;
        let mut out = Zeroizing::new(vec![0; own.min_output_size()]);
        if let Ok(unwrapped) = own.decrypt(&OAEP_SHA1_MGF1SHA1, wrapped, &mut out, None)
            && unwrapped.len() == CONTENT_KEY_LEN
        {
            content_key.copy_from_slice(unwrapped);
        }
        Ok(content_key)
    }
}

fn content_cipher(key: &[u8; CONTENT_KEY_LEN]) -> Result<LessSafeKey, Unspecified> {
    UnboundKey::new(&AES_256_GCM, key).map(LessSafeKey::new)
}

/// The segments of a compact token, when there are exactly so many.
fn segments<const N: usize>(token: &[u8]) -> Option<[&[u8]; N]> {
    let mut parts = token.split(|byte| *byte == b'.');
    let mut segments = [&[][..]; N];
    for segment in &mut segments {
        *segment = parts.next()?;
    }
    parts.next().is_none().then_some(segments)
}

fn decode(segment: &[u8]) -> Result<Vec<u8>, Rejected> {
    URL_SAFE_NO_PAD.decode(segment).map_err(|_| Rejected)
}

fn read_header<T: for<'a> Deserialize<'a>>(segment: &[u8]) -> Result<T, Rejected> {
    serde_json::from_slice(&decode(segment)?).map_err(|_| Rejected)
}

/// Further members, such as `typ` and `kid`, are none of our business; a `crit` that is not understood is, by RFC 7515.
#[derive(Deserialize)]
struct SignedHeader {
    alg: String,
    #[serde(default)]
    crit: Present,
}

#[derive(Deserialize)]
struct EncryptedHeader {
    alg: String,
    enc: String,
    /// What is compressed grows without bounds when it is opened. 2C2P compresses nothing.
    #[serde(default)]
    zip: Present,
    #[serde(default)]
    crit: Present,
}

/// Whether a member is there, whatever it says; `Option` would take a null for absence.
#[derive(Default)]
struct Present(bool);

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self(true))
    }
}

#[cfg(test)]
mod tests;
