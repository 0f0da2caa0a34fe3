//! What every implementation of a port has to pass: ours do, and yours can.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a suite for tests: a panic is how a failure is reported"
)]

mod gateway;
mod journal;
pub mod sample;
mod wire;

pub use gateway::gateway;
pub use journal::journal;
pub use wire::Wire;
