//! The integration tests: one binary, so that they link once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::print_stdout,
    reason = "in a test a panic is how a failure is reported, and a child process speaks to its parent"
)]

mod architecture;
mod attempts;
mod cancel;
mod cases;
mod concurrent;
mod crash;
mod documents;
mod execute;
mod fakes;
mod gateway_contract;
mod gateway_stripe;
mod hostile;
mod jose_peer;
mod journal_memory;
mod journal_sqlite;
mod localstripe;
mod prune;
mod puppet;
mod reconcile;
mod redaction;
mod scripted;
mod shop;
mod similar;
mod stores;
mod transport;
mod twoc2p_updates;
mod unknown;
mod weight;
mod wired;
