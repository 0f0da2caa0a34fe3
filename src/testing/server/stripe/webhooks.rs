//! The signature of a webhook delivery: HMAC-SHA256 over the time stamp, a point and the raw body, by the whole secret
//! as text.

use crate::clock::Timestamp;
use aws_lc_rs::hmac;

/// The value of `Stripe-Signature`. The `v0` beside it is no signature; receivers must not look at it.
pub(super) fn signature(body: &[u8], secret: &str, now: Timestamp) -> String {
    let seconds = now.unix_seconds();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let mut context = hmac::Context::with_key(&key);
    context.update(format!("{seconds}.").as_bytes());
    context.update(body);
    let mut hex = String::new();
    for byte in context.sign().as_ref() {
        hex.push_str(&format!("{byte:02x}"));
    }
    format!("t={seconds},v1={hex},v0={}", "0".repeat(64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_as_the_official_libraries_verify() {
        // Computed with Python's hmac and hashlib.
        let signature = signature(
            b"{\"id\":\"evt_1\"}",
            "whsec_TESTONLY",
            Timestamp::from_unix_seconds(1_767_225_600),
        );
        assert!(
            signature
                .starts_with("t=1767225600,v1=92e6657bad06eb3b79063bfd8444fa05b30856a852f2f127c1e206791f66b1ca,v0="),
            "{signature}"
        );
    }
}
