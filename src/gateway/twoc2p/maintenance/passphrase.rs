//! Private keys that are encrypted with a passphrase: PKCS#8 by PBES2 (RFC 8018), as `openssl pkcs8 -topk8` and `openssl
//! genpkey -aes256` write it. aws-lc-rs has every part; RustCrypto's `pkcs8` would bring 31 crates and a second AES.

use super::der;
use super::keys::KeyFault;
use crate::secret::Secret;
use aws_lc_rs::cipher::{AES_128, AES_192, AES_256, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::pbkdf2;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::zeroize::Zeroizing;
use std::num::NonZeroU32;

const BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const END: &str = "-----END ENCRYPTED PRIVATE KEY-----";

/// Seconds of work. openssl's default is 2048, and 600,000 is what is advised for passwords.
const MOST_ROUNDS: u32 = 10_000_000;

/// Whether `pem` holds a private key that is encrypted, in whatever way.
pub(super) fn is_encrypted(pem: &str) -> bool {
    // The old form of PKCS#1 says it in a line of its own.
    pem.contains(BEGIN) || pem.contains("Proc-Type: 4,ENCRYPTED")
}

/// The one private key of `pem`, decrypted, as PKCS#8.
pub(super) fn decrypt(pem: &str, passphrase: &Secret) -> Result<Zeroizing<Vec<u8>>, KeyFault> {
    let (_, after) = pem.split_once(BEGIN).ok_or(KeyFault::UnknownEncryption)?;
    let (body, after) = after.split_once(END).ok_or(KeyFault::Malformed)?;
    if after.contains(BEGIN) {
        return Err(KeyFault::Several);
    }
    let body: String = body.split_ascii_whitespace().collect();
    let document = STANDARD.decode(body).map_err(|_| KeyFault::Malformed)?;
    let encrypted = der::encrypted_key(&document).ok_or(KeyFault::UnknownEncryption)?;
    let mut text = Zeroizing::new(encrypted.text.to_vec());
    let start: [u8; 16] = encrypted.start.try_into().map_err(|_| KeyFault::UnknownEncryption)?;
    // Bad padding, and what is no key: a wrong passphrase gives either.
    let length = cipher(&encrypted, passphrase)?
        .decrypt(&mut text, DecryptionContext::Iv128(FixedLength::from(start)))
        .map_err(|_| KeyFault::Passphrase)?
        .len();
    text.truncate(length);
    der::private_key(&text).map(|_| ()).ok_or(KeyFault::Passphrase)?;
    Ok(text)
}

fn cipher(encrypted: &der::Encrypted<'_>, passphrase: &Secret) -> Result<PaddedBlockDecryptingKey, KeyFault> {
    let (algorithm, length) = match encrypted.cipher {
        [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x02] => (&AES_128, 16),
        [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x16] => (&AES_192, 24),
        [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x2a] => (&AES_256, 32),
        _ => return Err(KeyFault::UnknownEncryption),
    };
    let hash = match encrypted.hash {
        None | Some([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x07]) => pbkdf2::PBKDF2_HMAC_SHA1,
        Some([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x09]) => pbkdf2::PBKDF2_HMAC_SHA256,
        Some([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x0a]) => pbkdf2::PBKDF2_HMAC_SHA384,
        Some([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x0b]) => pbkdf2::PBKDF2_HMAC_SHA512,
        Some(_) => return Err(KeyFault::UnknownEncryption),
    };
    let rounds = NonZeroU32::new(encrypted.rounds).filter(|rounds| rounds.get() <= MOST_ROUNDS);
    let rounds = rounds.ok_or(KeyFault::UnknownEncryption)?;
    let mut key = Zeroizing::new([0; 32]);
    let key = key.get_mut(..length).ok_or(KeyFault::UnknownEncryption)?;
    pbkdf2::derive(hash, rounds, encrypted.salt, passphrase.expose().as_bytes(), key);
    UnboundCipherKey::new(algorithm, key)
        .and_then(PaddedBlockDecryptingKey::cbc_pkcs7)
        .map_err(|_| KeyFault::UnknownEncryption)
}
