//! The RSA keys of the maintenance API (page `reference-jwt-with-key`): the merchant's own pair, whose certificate is
//! uploaded to 2C2P's portal, and 2C2P's certificate, which is downloaded there.

use super::{der, passphrase};
use crate::secret::Secret;
use aws_lc_rs::rsa::{OaepPrivateDecryptingKey, OaepPublicEncryptingKey, PrivateDecryptingKey, PublicEncryptingKey};
use aws_lc_rs::signature::{ParsedPublicKey, RSA_PSS_2048_8192_SHA256, RsaKeyPair};
use rustls_pki_types::pem::{PemObject as _, SectionKind};
use secrecy::zeroize::Zeroizing;
use std::fmt;
use std::sync::Arc;

/// What aws-lc-rs takes; 2C2P asks for 2048 at least.
const SHORTEST: usize = 2048;
const LONGEST: usize = 8192;

/// The keys with which messages to 2C2P's maintenance API are signed and encrypted, and its answers verified and
/// decrypted.
///
/// Sandbox and production have keys of their own. A clone shares the keys.
#[derive(Clone)]
pub struct MaintenanceKeys {
    own: Arc<OwnKey>,
    /// 2C2P's, for what is sent.
    encrypting: Arc<OaepPublicEncryptingKey>,
    /// 2C2P's, for what comes back: the present one, and what [`MaintenanceKeys::and_verify_with`] added.
    verifying: Vec<ParsedPublicKey>,
}

/// The merchant's private key, in its two uses.
pub(super) struct OwnKey {
    pub(super) signing: RsaKeyPair,
    pub(super) decrypting: OaepPrivateDecryptingKey,
    modulus: Vec<u8>,
}

/// A key of the maintenance API cannot be used. Says which one; the source says why. Nothing of the key is repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The merchant's private key.
    #[error("the merchant's private key cannot be used")]
    MerchantPrivateKey(#[source] KeyFault),
    /// 2C2P's certificate or public key.
    #[error("2C2P's certificate cannot be used")]
    GatewayCertificate(#[source] KeyFault),
}

/// What is wrong with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFault {
    /// No `-----BEGIN ...-----` of a key or certificate (and, for a certificate, no DER either).
    #[error(
        "it holds no key: expected PEM text, such as '-----BEGIN PRIVATE KEY-----' or '-----BEGIN CERTIFICATE-----'"
    )]
    Missing,
    /// A public key or a certificate where the private key belongs.
    #[error("it is a public key or a certificate, where the private key belongs")]
    Public,
    /// A private key where a certificate or a public key belongs.
    #[error("it is a private key, where 2C2P's certificate or public key belongs")]
    Private,
    /// The key is encrypted, and no passphrase was given.
    #[error("it is encrypted and there is no passphrase")]
    Encrypted,
    /// Not by PBES2 with PBKDF2 and AES in CBC mode.
    #[error("its encryption is not known here: 'openssl pkcs8 -topk8 -in KEY.pem' writes it in the usual one")]
    UnknownEncryption,
    /// The passphrase is another one.
    #[error("the passphrase does not open it")]
    Passphrase,
    /// More than one key, or more than one certificate.
    #[error("it holds more than one key or certificate")]
    Several,
    /// Not an RSA key: elliptic curves, or RSA that is bound to PSS.
    #[error("it is not an RSA key")]
    NotRsa,
    /// An RSA key of less than 2048 bits.
    #[error("its RSA key is shorter than 2048 bits")]
    TooShort,
    /// An RSA key of more than 8192 bits.
    #[error("its RSA key is longer than 8192 bits")]
    TooLong,
    /// The merchant's own certificate where 2C2P's belongs.
    #[error("it is the certificate of the merchant's own key, where 2C2P's belongs")]
    Own,
    /// What is between the PEM lines, or the DER, is damaged.
    #[error("it cannot be read as a key")]
    Malformed,
}

impl MaintenanceKeys {
    /// Reads the merchant's private key (PEM, PKCS#8 or PKCS#1, not encrypted) and 2C2P's certificate (X.509 as PEM or
    /// DER, as the portal gives it out under "2C2P Public Keys"; a public key as PEM or DER will do as well).
    ///
    /// What stands beside a key in its PEM file is ignored, as long as it is no second key.
    ///
    /// # Errors
    /// [`KeyError`] says which of the two cannot be used, and its source why. Nothing was sent.
    ///
    /// # Examples
    /// ```
    /// use payonce::gateway::twoc2p::{KeyError, KeyFault, MaintenanceKeys};
    ///
    /// // The keys themselves are wanted, not where they lie.
    /// let refused = MaintenanceKeys::new("keys/merchant.pem", "keys/2c2p.cer").unwrap_err();
    /// assert_eq!(refused, KeyError::MerchantPrivateKey(KeyFault::Missing));
    /// ```
    pub fn new(
        merchant_private_key: impl Into<Secret>,
        gateway_certificate: impl AsRef<[u8]>,
    ) -> Result<Self, KeyError> {
        Self::of(&merchant_private_key.into(), None, gateway_certificate.as_ref())
    }

    /// As [`MaintenanceKeys::new`], with a private key that is encrypted with `passphrase`: PKCS#8 (`-----BEGIN ENCRYPTED
    /// PRIVATE KEY-----`) by PBES2 with PBKDF2 and AES in CBC mode, which is what openssl writes. A key that is not
    /// encrypted is taken as well.
    ///
    /// This takes as long as the key's rounds of PBKDF2, which can be a second.
    ///
    /// # Errors
    /// As [`MaintenanceKeys::new`]; also when the passphrase is another one.
    pub fn with_passphrase(
        merchant_private_key: impl Into<Secret>,
        passphrase: impl Into<Secret>,
        gateway_certificate: impl AsRef<[u8]>,
    ) -> Result<Self, KeyError> {
        let passphrase = passphrase.into();
        Self::of(
            &merchant_private_key.into(),
            Some(&passphrase),
            gateway_certificate.as_ref(),
        )
    }

    /// Believes what is signed with the key of `certificate` as well: for the time in which 2C2P changes its keys.
    /// Requests are encrypted to the key that was given to [`MaintenanceKeys::new`].
    ///
    /// # Errors
    /// [`KeyError::GatewayCertificate`], whose source says why.
    pub fn and_verify_with(mut self, certificate: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        let keys = gateway_key(certificate.as_ref(), &self.own).map_err(KeyError::GatewayCertificate)?;
        self.verifying.push(keys.verifying);
        Ok(self)
    }

    fn of(private: &Secret, passphrase: Option<&Secret>, certificate: &[u8]) -> Result<Self, KeyError> {
        let own = private_key(private, passphrase).map_err(KeyError::MerchantPrivateKey)?;
        let keys = gateway_key(certificate, &own).map_err(KeyError::GatewayCertificate)?;
        Ok(Self {
            own: Arc::new(own),
            encrypting: Arc::new(keys.encrypting),
            verifying: vec![keys.verifying],
        })
    }

    pub(super) fn own(&self) -> &OwnKey {
        &self.own
    }

    pub(super) fn encrypting(&self) -> &OaepPublicEncryptingKey {
        &self.encrypting
    }

    pub(super) fn verifying(&self) -> &[ParsedPublicKey] {
        &self.verifying
    }
}

impl fmt::Debug for MaintenanceKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MaintenanceKeys(***)")
    }
}

fn private_key(pem: &Secret, passphrase: Option<&Secret>) -> Result<OwnKey, KeyFault> {
    let pem = pem.expose();
    let pkcs8 = match (passphrase::is_encrypted(pem), passphrase) {
        (false, _) => private_document(pem)?,
        (true, Some(passphrase)) => passphrase::decrypt(pem, passphrase)?,
        (true, None) => return Err(KeyFault::Encrypted),
    };
    let modulus = usable(der::private_key(&pkcs8))?.to_vec();
    Ok(OwnKey {
        signing: RsaKeyPair::from_pkcs8(&pkcs8).map_err(|_| KeyFault::Malformed)?,
        decrypting: PrivateDecryptingKey::from_pkcs8(&pkcs8)
            .map_err(|_| KeyFault::Malformed)
            .and_then(|key| OaepPrivateDecryptingKey::new(key).map_err(|_| KeyFault::Malformed))?,
        modulus,
    })
}

/// The one private key of a PEM text, as PKCS#8: what aws-lc-rs decrypts with.
fn private_document(pem: &str) -> Result<Zeroizing<Vec<u8>>, KeyFault> {
    let mut found = None;
    let mut others = KeyFault::Missing;
    for section in sections(pem.as_bytes()) {
        let (kind, document) = section?;
        let document = match kind {
            SectionKind::PrivateKey => document,
            SectionKind::RsaPrivateKey => der::pkcs8_of_pkcs1(&document),
            SectionKind::EcPrivateKey => return Err(KeyFault::NotRsa),
            SectionKind::PublicKey | SectionKind::Certificate => {
                others = KeyFault::Public;
                continue;
            }
            SectionKind::Crl | SectionKind::Csr | SectionKind::EchConfigList | _ => continue,
        };
        if found.replace(document).is_some() {
            return Err(KeyFault::Several);
        }
    }
    found.ok_or(others)
}

struct GatewayKey {
    encrypting: OaepPublicEncryptingKey,
    verifying: ParsedPublicKey,
}

fn gateway_key(certificate: &[u8], own: &OwnKey) -> Result<GatewayKey, KeyFault> {
    let info = public_document(certificate)?;
    // Both lie beside each other in the portal, and what is encrypted to the wrong one cannot be read by anyone there.
    if usable(der::public_key(&info))? == own.modulus {
        return Err(KeyFault::Own);
    }
    Ok(GatewayKey {
        encrypting: PublicEncryptingKey::from_der(&info)
            .map_err(|_| KeyFault::Malformed)
            .and_then(|key| OaepPublicEncryptingKey::new(key).map_err(|_| KeyFault::Malformed))?,
        verifying: ParsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, &info).map_err(|_| KeyFault::Malformed)?,
    })
}

/// The `SubjectPublicKeyInfo` of a certificate or a public key, each as PEM or DER.
fn public_document(input: &[u8]) -> Result<Vec<u8>, KeyFault> {
    const PEM: &[u8] = b"-----BEGIN ";
    if !input.windows(PEM.len()).any(|window| window == PEM) {
        let info = der::certificate_key(input).unwrap_or(input);
        // DER that is something else is no key, and neither is a path or a text.
        return match der::public_key(info) {
            Some(_) => Ok(info.to_vec()),
            None => Err(KeyFault::Missing),
        };
    }
    let mut found = None;
    let mut others = KeyFault::Missing;
    for section in sections(input) {
        let (kind, document) = section?;
        let info = match kind {
            SectionKind::Certificate => der::certificate_key(&document).ok_or(KeyFault::Malformed)?.to_vec(),
            SectionKind::PublicKey => document.to_vec(),
            SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey => {
                others = KeyFault::Private;
                continue;
            }
            SectionKind::Crl | SectionKind::Csr | SectionKind::EchConfigList | _ => continue,
        };
        if found.replace(info).is_some() {
            return Err(KeyFault::Several);
        }
    }
    found.ok_or(others)
}

/// The sections of a PEM text, in their order; those whose label is not known are left out.
fn sections(pem: &[u8]) -> impl Iterator<Item = Result<(SectionKind, Zeroizing<Vec<u8>>), KeyFault>> {
    <(SectionKind, Vec<u8>)>::pem_slice_iter(pem).map(|section| match section {
        Ok((kind, document)) => Ok((kind, Zeroizing::new(document))),
        Err(_) => Err(KeyFault::Malformed),
    })
}

/// The modulus of an RSA key of a size that can be used.
fn usable(key: Option<der::Key<'_>>) -> Result<&[u8], KeyFault> {
    match key {
        None => Err(KeyFault::Malformed),
        Some(der::Key::Other) => Err(KeyFault::NotRsa),
        Some(der::Key::Rsa(modulus)) => match der::bits(modulus) {
            ..SHORTEST => Err(KeyFault::TooShort),
            SHORTEST..=LONGEST => Ok(modulus),
            _ => Err(KeyFault::TooLong),
        },
    }
}

#[cfg(test)]
mod tests;
