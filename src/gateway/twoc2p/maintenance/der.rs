//! As much of DER as it takes to find an RSA key: in an X.509 certificate, in a public key, in a private key, and what
//! it takes to decrypt one.
//!
//! Nothing is verified here, neither dates nor issuers nor signatures: 2C2P's certificate is trusted because the merchant
//! took it from 2C2P's portal. rustls-webpki would not read it anyway where it is of version 1, as what `openssl x509
//! -req -signkey` writes is.

use secrecy::zeroize::Zeroizing;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_ID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// The explicit tag of a certificate's version, which version 1 leaves out.
const VERSION: u8 = 0xa0;

/// `rsaEncryption`, 1.2.840.113549.1.1.1.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// `id-PBES2`, 1.2.840.113549.1.5.13.
const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0d];

/// `id-PBKDF2`, 1.2.840.113549.1.5.12.
const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0c];

/// What a PKCS#8 key begins with when it is an RSA key: version 0, `rsaEncryption`, no parameters.
const PKCS8_RSA: &[u8] = &[
    0x02, 0x01, 0x00, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
];

/// The algorithm of a key, and the size of an RSA key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key<'a> {
    /// The modulus, without leading zeros.
    Rsa(&'a [u8]),
    /// Elliptic curves, Ed25519, RSA that is bound to another use.
    Other,
}

/// A private key that is encrypted by PBES2 (RFC 8018), with a key that PBKDF2 made of a passphrase.
///
/// The names are object identifiers. What they stand for is for those who can compute it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encrypted<'a> {
    pub(super) salt: &'a [u8],
    pub(super) rounds: u32,
    /// HMAC with SHA-1, when none is named.
    pub(super) hash: Option<&'a [u8]>,
    pub(super) cipher: &'a [u8],
    pub(super) start: &'a [u8],
    pub(super) text: &'a [u8],
}

/// The `SubjectPublicKeyInfo` of a certificate, whole.
pub(super) fn certificate_key(certificate: &[u8]) -> Option<&[u8]> {
    let mut certificate = sequence(whole(certificate)?)?;
    let mut signed = sequence(certificate.next()?)?;
    signed.optional(VERSION);
    let serial = signed.next()?;
    if serial.tag != INTEGER {
        return None;
    }
    // Signature algorithm, issuer, validity, subject.
    for _ in 0..4 {
        sequence(signed.next()?)?;
    }
    let key = signed.next()?;
    (key.tag == SEQUENCE).then_some(key.whole)
}

/// What key a `SubjectPublicKeyInfo` holds.
pub(super) fn public_key(info: &[u8]) -> Option<Key<'_>> {
    let mut info = sequence(whole(info)?)?;
    let rsa = is_rsa(info.next()?)?;
    let bits = info.next().filter(|bits| bits.tag == BIT_STRING)?;
    if !rsa {
        return Some(Key::Other);
    }
    // The first byte counts the unused bits of the last; a key has none.
    let key = bits.content.strip_prefix(&[0])?;
    modulus(&mut sequence(whole(key)?)?)
}

/// What key a PKCS#8 document holds.
pub(super) fn private_key(pkcs8: &[u8]) -> Option<Key<'_>> {
    let mut document = sequence(whole(pkcs8)?)?;
    document.next().filter(|version| version.tag == INTEGER)?;
    let rsa = is_rsa(document.next()?)?;
    let key = document.next().filter(|key| key.tag == OCTET_STRING)?;
    if !rsa {
        return Some(Key::Other);
    }
    let mut key = sequence(whole(key.content)?)?;
    key.next().filter(|version| version.tag == INTEGER)?;
    modulus(&mut key)
}

/// What an encrypted PKCS#8 document says of itself; `None` for every scheme but PBES2 with PBKDF2.
pub(super) fn encrypted_key(document: &[u8]) -> Option<Encrypted<'_>> {
    let mut document = sequence(whole(document)?)?;
    let mut scheme = parameters(document.next()?, PBES2)?;
    let text = document.next().filter(|text| text.tag == OCTET_STRING)?;
    let mut derivation = parameters(scheme.next()?, PBKDF2)?;
    let salt = derivation.next().filter(|salt| salt.tag == OCTET_STRING)?;
    let rounds = derivation.next().filter(|rounds| rounds.tag == INTEGER)?;
    // The length of the key follows from the cipher.
    derivation.optional(INTEGER);
    let hash = match derivation.next() {
        None => None,
        Some(hash) => Some(object_id(&mut sequence(hash)?)?),
    };
    let mut cipher = sequence(scheme.next()?)?;
    let name = object_id(&mut cipher)?;
    let start = cipher.next().filter(|start| start.tag == OCTET_STRING)?;
    Some(Encrypted {
        salt: salt.content,
        rounds: small_number(rounds)?,
        hash,
        cipher: name,
        start: start.content,
        text: text.content,
    })
}

/// The PKCS#8 form of an RSA key in PKCS#1 form.
pub(super) fn pkcs8_of_pkcs1(pkcs1: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut body = Zeroizing::new(Vec::with_capacity(pkcs1.len() + PKCS8_RSA.len() + 5));
    body.extend_from_slice(PKCS8_RSA);
    append(&mut body, OCTET_STRING, pkcs1);
    let mut document = Zeroizing::new(Vec::with_capacity(body.len() + 5));
    append(&mut document, SEQUENCE, &body);
    document
}

/// The size of a number that has no leading zeros.
pub(super) fn bits(number: &[u8]) -> usize {
    let unused = number.first().map_or(0, |first| first.leading_zeros() as usize);
    number.len() * 8 - unused
}

fn append(out: &mut Vec<u8>, tag: u8, content: &[u8]) {
    out.push(tag);
    let length = content.len().to_be_bytes();
    let significant = length.iter().position(|byte| *byte != 0).unwrap_or(length.len() - 1);
    let length = &length[significant..];
    if let [short @ 0..=0x7f] = length {
        out.push(*short);
    } else {
        // At most eight bytes of length.
        out.push(0x80 | u8::try_from(length.len()).unwrap_or(8));
        out.extend_from_slice(length);
    }
    out.extend_from_slice(content);
}

/// Whether an `AlgorithmIdentifier` names plain RSA.
fn is_rsa(algorithm: Element<'_>) -> Option<bool> {
    object_id(&mut sequence(algorithm)?).map(|name| name == RSA)
}

/// The parameters of an `AlgorithmIdentifier` of that name.
fn parameters<'a>(algorithm: Element<'a>, name: &[u8]) -> Option<Elements<'a>> {
    let mut algorithm = sequence(algorithm)?;
    (object_id(&mut algorithm)? == name).then_some(())?;
    sequence(algorithm.next()?)
}

fn object_id<'a>(elements: &mut Elements<'a>) -> Option<&'a [u8]> {
    let name = elements.next().filter(|name| name.tag == OBJECT_ID)?;
    Some(name.content)
}

/// A number that is not negative and fits.
fn small_number(number: Element<'_>) -> Option<u32> {
    let positive = number.content.first().is_some_and(|first| first & 0x80 == 0);
    let leading = number.content.iter().take_while(|byte| **byte == 0).count();
    let number = number
        .content
        .get(leading..)
        .filter(|number| positive && number.len() <= 4)?;
    Some(number.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
}

fn modulus<'a>(key: &mut Elements<'a>) -> Option<Key<'a>> {
    let number = key.next().filter(|number| number.tag == INTEGER)?;
    let leading = number.content.iter().take_while(|byte| **byte == 0).count();
    let number = number.content.get(leading..)?;
    (!number.is_empty()).then_some(Key::Rsa(number))
}

#[derive(Clone, Copy)]
struct Element<'a> {
    tag: u8,
    /// With tag and length.
    whole: &'a [u8],
    content: &'a [u8],
}

/// What is left of the contents of a SEQUENCE.
struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    fn next(&mut self) -> Option<Element<'a>> {
        let (element, rest) = split(self.0)?;
        self.0 = rest;
        Some(element)
    }

    fn optional(&mut self, tag: u8) {
        if let Some((element, rest)) = split(self.0)
            && element.tag == tag
        {
            self.0 = rest;
        }
    }
}

fn sequence(element: Element<'_>) -> Option<Elements<'_>> {
    (element.tag == SEQUENCE).then_some(Elements(element.content))
}

/// The one element that all of `input` is.
fn whole(input: &[u8]) -> Option<Element<'_>> {
    let (element, rest) = split(input)?;
    rest.is_empty().then_some(element)
}

/// The first element of `input`, and what follows it.
fn split(input: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let [tag, first, rest @ ..] = input else { return None };
    // A tag number of more than one byte is in none of the forms read here.
    if tag & 0x1f == 0x1f {
        return None;
    }
    let (length, rest) = match *first {
        short @ 0..=0x7f => (usize::from(short), rest),
        // No key needs more than three bytes of length. None at all is the indefinite form, which DER does not have.
        long @ 0x81..=0x83 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            let length = bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
            (length, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    let whole = &input[..input.len() - rest.len()];
    Some((
        Element {
            tag: *tag,
            whole,
            content,
        },
        rest,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::twoc2p::maintenance::samples;
    use proptest::prelude::*;
    use rustls_pki_types::pem::PemObject as _;
    use rustls_pki_types::{CertificateDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};

    #[test]
    fn the_key_of_a_certificate_of_either_version_is_the_published_key() {
        let expected = SubjectPublicKeyInfoDer::from_pem_slice(samples::GATEWAY_PUBLIC.as_bytes()).unwrap();
        for pem in [samples::GATEWAY_CERTIFICATE, samples::GATEWAY_CERTIFICATE_V1] {
            let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
            assert_eq!(certificate_key(&certificate), Some(&expected[..]));
        }
        let Some(Key::Rsa(modulus)) = public_key(&expected) else {
            panic!("not read")
        };
        assert_eq!(bits(modulus), 2048);
    }

    #[test]
    fn pkcs1_is_wrapped_as_openssl_wraps_it() {
        let pkcs1 = PrivatePkcs1KeyDer::from_pem_slice(samples::MERCHANT_PKCS1.as_bytes()).unwrap();
        let pkcs8 = PrivatePkcs8KeyDer::from_pem_slice(samples::MERCHANT_PRIVATE.as_bytes()).unwrap();
        let wrapped = pkcs8_of_pkcs1(pkcs1.secret_pkcs1_der());
        assert_eq!(&wrapped[..], pkcs8.secret_pkcs8_der());
        assert!(matches!(private_key(&wrapped), Some(Key::Rsa(modulus)) if bits(modulus) == 2048));
    }

    #[test]
    fn lengths_are_written_in_their_shortest_form() {
        for (length, start) in [
            (0, &[4, 0][..]),
            (127, &[4, 127]),
            (128, &[4, 0x81, 128]),
            (255, &[4, 0x81, 255]),
            (256, &[4, 0x82, 1, 0]),
            (65_536, &[4, 0x83, 1, 0, 0]),
        ] {
            let mut out = Vec::new();
            append(&mut out, OCTET_STRING, &vec![7; length]);
            assert_eq!(&out[..start.len()], start);
            let element = whole(&out).unwrap();
            assert_eq!((element.tag, element.content.len()), (OCTET_STRING, length));
        }
    }

    #[test]
    fn the_size_of_a_number_counts_from_its_first_bit() {
        assert_eq!(bits(&[]), 0);
        assert_eq!(bits(&[1]), 1);
        assert_eq!(bits(&[0x80, 0]), 16);
        assert_eq!(bits(&[0x7f, 0]), 15);
    }

    #[test]
    fn indefinite_and_overlong_lengths_are_refused() {
        for bytes in [
            &[0x30, 0x80, 0, 0][..],
            &[0x30, 0x84, 0, 0, 0, 0],
            &[0x30, 0xff],
            &[0x30, 2, 0],
            &[0x30],
            &[0x1f, 1, 0],
        ] {
            assert!(split(bytes).is_none(), "{bytes:x?}");
        }
    }

    fn certificate() -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(samples::GATEWAY_CERTIFICATE.as_bytes()).unwrap()
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = (certificate_key(&bytes), public_key(&bytes).is_some(), private_key(&bytes).is_some(), encrypted_key(&bytes).is_some());
        }

        #[test]
        fn no_damage_makes_it_panic(at: prop::sample::Index, byte: u8, end: prop::sample::Index) {
            let mut damaged = certificate().to_vec();
            let at = at.index(damaged.len());
            damaged[at] = byte;
            if let Some(key) = certificate_key(&damaged) {
                let _ = public_key(key);
            }
            damaged.truncate(end.index(damaged.len()));
            prop_assert_eq!(certificate_key(&damaged), None);
        }
    }
}
