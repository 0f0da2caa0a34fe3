//! Fakes for tests.

mod bank;
mod clock;
pub mod conformance;
mod fault;
mod gateway;
pub mod server;

pub use bank::{Bank, Movement};
pub use clock::ManualClock;
pub use fault::{Fault, FaultPlan};
pub use gateway::{Asked, MockGateway, Release};
