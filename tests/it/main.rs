//! The integration tests: one binary, so that they link once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "in a test a panic is how a failure is reported"
)]

mod cases;
mod gateway_stripe;
