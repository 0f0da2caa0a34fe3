//! The maintenance envelope beside the bare RSA and AES operations of the same library on the same keys (2048 bit): a
//! refund built, encrypted and signed, and an answer verified, decrypted and read. At most 1.2 times.
//! `cargo bench --bench envelope`.

#![allow(
    clippy::unwrap_used,
    clippy::float_arithmetic,
    clippy::print_stdout,
    reason = "a measurement stops at whatever is unexpected, and prints figures"
)]

use async_trait::async_trait;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{
    KeyPair, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, PrivateDecryptingKey,
    PublicEncryptingKey,
};
use aws_lc_rs::signature::{ParsedPublicKey, RSA_PSS_2048_8192_SHA256, RSA_PSS_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use payonce::clock::{Clock as _, SystemClock};
use payonce::failure::{Failure, FailureKind};
use payonce::gateway::twoc2p::{ActionOptions, MaintenanceKeys, TwoC2p};
use payonce::gateway::{Gateway, RawNotification};
use payonce::money::{Currency, Money};
use payonce::operation::{GatewayRef, Namespace, Operation, Target};
use payonce::testing::reserved;
use payonce::transport::{Request, Response, Transport};
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const MERCHANT_KEY: &str = include_str!("../tests/fixtures/twoc2p/maintenance/TEST-ONLY-merchant.key.pem");
const GATEWAY_CERTIFICATE: &str = include_str!("../tests/fixtures/twoc2p/maintenance/TEST-ONLY-gateway.cert.pem");
const GATEWAY_PUBLIC: &str = include_str!("../tests/fixtures/twoc2p/maintenance/TEST-ONLY-gateway.pub.pem");
/// A notice of a refund: the token of an answer, in a form.
const NOTICE: &[u8] = include_bytes!("../tests/fixtures/twoc2p/maintenance/notify.form.txt");

/// The length of the XML that is measured, and of the JWE that is signed for it.
const XML: usize = 600;
const JWE: usize = 1300;

/// The wire ends here: what would have left is kept, and nothing comes back.
#[derive(Debug, Default)]
struct Nowhere(Mutex<Vec<u8>>);

#[async_trait]
impl Transport for Nowhere {
    async fn exchange(&self, request: Request) -> Result<Response, Failure> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = request.body;
        Err(Failure::not_executed(FailureKind::Connect, "nowhere to go"))
    }
}

/// The bare operations, on keys that are ready.
struct Bare {
    signing: KeyPair,
    decrypting: OaepPrivateDecryptingKey,
    encrypting: OaepPublicEncryptingKey,
    verifying: ParsedPublicKey,
    cipher: LessSafeKey,
    text: Vec<u8>,
    message: Vec<u8>,
    signature: Vec<u8>,
    wrapped: Vec<u8>,
}

impl Bare {
    fn new() -> Self {
        let own = der(MERCHANT_KEY);
        let signing = KeyPair::from_pkcs8(&own).unwrap();
        let message = vec![b'x'; JWE];
        let mut signature = vec![0; signing.public_modulus_len()];
        signing
            .sign(&RSA_PSS_SHA256, &SystemRandom::new(), &message, &mut signature)
            .unwrap();
        // Its own signature and its own secret: the cost is that of 2C2P's.
        let private = PrivateDecryptingKey::from_pkcs8(&own).unwrap();
        let public = private.public_key();
        let spki: Vec<u8> = public.as_der().unwrap().as_ref().to_vec();
        let to_itself = OaepPublicEncryptingKey::new(public).unwrap();
        let mut wrapped = vec![0; to_itself.ciphertext_size()];
        to_itself
            .encrypt(&OAEP_SHA1_MGF1SHA1, &[7; 32], &mut wrapped, None)
            .unwrap();
        let theirs = PublicEncryptingKey::from_der(&der(GATEWAY_PUBLIC)).unwrap();
        Self {
            signing,
            decrypting: OaepPrivateDecryptingKey::new(private).unwrap(),
            encrypting: OaepPublicEncryptingKey::new(theirs).unwrap(),
            verifying: ParsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, spki).unwrap(),
            cipher: LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[7; 32]).unwrap()),
            text: vec![b'x'; XML],
            message,
            signature,
            wrapped,
        }
    }

    /// RSA-OAEP, AES-GCM, RSA-PSS.
    fn seal(&self) {
        let mut wrapped = vec![0; self.encrypting.ciphertext_size()];
        self.encrypting
            .encrypt(&OAEP_SHA1_MGF1SHA1, &[7; 32], &mut wrapped, None)
            .unwrap();
        let mut text = self.text.clone();
        let nonce = Nonce::assume_unique_for_key([7; 12]);
        self.cipher
            .seal_in_place_append_tag(nonce, Aad::from(b"header"), &mut text)
            .unwrap();
        let mut signature = vec![0; self.signing.public_modulus_len()];
        self.signing
            .sign(&RSA_PSS_SHA256, &SystemRandom::new(), &self.message, &mut signature)
            .unwrap();
        black_box((wrapped, text, signature));
    }

    /// The same the other way round.
    fn open(&self) {
        self.verifying.verify_sig(&self.message, &self.signature).unwrap();
        let mut key = vec![0; self.decrypting.min_output_size()];
        black_box(
            self.decrypting
                .decrypt(&OAEP_SHA1_MGF1SHA1, &self.wrapped, &mut key, None)
                .unwrap(),
        );
        // Sealing costs what opening does.
        let mut text = self.text.clone();
        let nonce = Nonce::assume_unique_for_key([7; 12]);
        self.cipher
            .seal_in_place_append_tag(nonce, Aad::from(b"header"), &mut text)
            .unwrap();
        black_box(text);
    }
}

fn main() {
    let nowhere = Arc::new(Nowhere::default());
    let keys = MaintenanceKeys::new(MERCHANT_KEY, GATEWAY_CERTIFICATE).unwrap();
    let account = TwoC2p::builder("JT07", "TESTONLY")
        .maintenance_keys(keys)
        .transport(Arc::<Nowhere>::clone(&nowhere))
        .build()
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let amount = Money::parse("105.00", Currency::THB).unwrap();
    let void = Operation::void("void-1042", Target::Gateway(GatewayRef::new("250221094450")))
        .unwrap()
        .description("The customer changed their mind on the evening before the show")
        .with(ActionOptions::new().payment_amount(amount))
        .metadata("cashier", "0042 at the counter of the main hall, evening shift")
        .metadata("terminal", "bkk-07-main-hall-left-of-the-entrance");
    let namespace = Namespace::new("shop-th/live").unwrap();
    let (_, instruction) = reserved(&account, &namespace, &void, SystemClock.now()).unwrap();
    let notice = RawNotification::new(
        Vec::new(),
        NOTICE.trim_ascii().to_vec(),
        payonce::clock::Timestamp::from_unix_seconds(0),
    );
    let bare = Bare::new();

    compare(
        "a request built, encrypted and signed",
        || assert!(runtime.block_on(account.send(&instruction)).is_err()),
        || bare.seal(),
    );
    let sent = nowhere.0.lock().unwrap_or_else(PoisonError::into_inner).len();
    println!("  ({sent} bytes of token)");
    compare(
        "an answer verified, decrypted and read",
        || {
            black_box(account.read_notification(&notice).unwrap());
        },
        || bare.open(),
    );
}

/// The best of many short runs of both, in turn.
fn compare(what: &str, mut ours: impl FnMut(), mut bare: impl FnMut()) {
    const BATCH: u32 = 20;
    let (mut best_ours, mut best_bare) = (Duration::MAX, Duration::MAX);
    for _ in 0..100 {
        best_ours = best_ours.min(time(BATCH, &mut ours));
        best_bare = best_bare.min(time(BATCH, &mut bare));
    }
    let micros = |duration: Duration| duration.as_secs_f64() * 1e6 / f64::from(BATCH);
    let (ours, bare) = (micros(best_ours), micros(best_bare));
    println!(
        "{what}: {ours:.1} us, bare {bare:.1} us, {:.3} times (at most 1.2)",
        ours / bare
    );
}

fn time(batch: u32, run: &mut impl FnMut()) -> Duration {
    let started = Instant::now();
    for _ in 0..batch {
        run();
    }
    started.elapsed()
}

/// What is in a PEM file.
fn der(pem: &str) -> Vec<u8> {
    let lines = pem.lines().filter(|line| !line.starts_with("-----"));
    STANDARD.decode(lines.collect::<String>()).unwrap()
}
