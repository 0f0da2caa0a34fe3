//! Fakes for tests of code that takes payments, at two heights.
//!
//! * In process: [`MockGateway`], scripted in one line a behaviour, with a [`ManualClock`].
//! * On 127.0.0.1: [`FakeStripe`](server::FakeStripe) and [`FakeTwoC2p`](server::FakeTwoC2p), which keep state and
//!   check what they are sent as the gateways do, and [`ScriptedServer`](server::ScriptedServer), which says exactly
//!   what a test wrote down. All can break off at any point of an exchange: see [`Fault`] and [`FaultPlan`].
//!
//! Behind all of them stands a [`Bank`] that only counts how often money really moved. Judge by the bank.
//!
//! The feature `testing` is for dev-dependencies: nothing outside of tests, examples and benches may use it.

mod bank;
mod clock;
pub mod conformance;
mod fault;
mod gateway;
mod reserved;
pub mod server;

pub use bank::{Bank, Movement};
pub use clock::ManualClock;
pub use fault::{Fault, FaultPlan};
pub use gateway::{Asked, MockGateway, Release};
pub use reserved::reserved;
