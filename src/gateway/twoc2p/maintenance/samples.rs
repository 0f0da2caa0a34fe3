//! Keys and messages for the tests. The keys were made for them and never protected anything.

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/fixtures/twoc2p/maintenance/",
            $name
        ))
    };
}
pub(super) use sample;

use super::MaintenanceKeys;

pub(super) const GATEWAY_PRIVATE: &str = sample!("TEST-ONLY-gateway.key.pem");
pub(super) const GATEWAY_PUBLIC: &str = sample!("TEST-ONLY-gateway.pub.pem");
pub(super) const GATEWAY_CERTIFICATE: &str = sample!("TEST-ONLY-gateway.cert.pem");
pub(super) const GATEWAY_CERTIFICATE_V1: &str = sample!("TEST-ONLY-gateway.v1.cert.pem");
pub(super) const MERCHANT_PRIVATE: &str = sample!("TEST-ONLY-merchant.key.pem");
pub(super) const MERCHANT_PKCS1: &str = sample!("TEST-ONLY-merchant.pkcs1.pem");
pub(super) const MERCHANT_PUBLIC: &str = sample!("TEST-ONLY-merchant.pub.pem");
pub(super) const MERCHANT_CERTIFICATE: &str = sample!("TEST-ONLY-merchant.cert.pem");
pub(super) const STRANGER_PRIVATE: &str = sample!("TEST-ONLY-stranger.key.pem");
pub(super) const STRANGER_CERTIFICATE: &str = sample!("TEST-ONLY-stranger.cert.pem");

pub(super) fn merchant() -> MaintenanceKeys {
    MaintenanceKeys::new(MERCHANT_PRIVATE, GATEWAY_CERTIFICATE).unwrap()
}

/// The same envelope from 2C2P's side.
pub(super) fn gateway() -> MaintenanceKeys {
    MaintenanceKeys::new(GATEWAY_PRIVATE, MERCHANT_CERTIFICATE).unwrap()
}
