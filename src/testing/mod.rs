//! Fakes for tests.

mod bank;
mod clock;
mod gateway;

pub use bank::{Bank, Movement};
pub use clock::ManualClock;
pub use gateway::{Asked, MockGateway, Release};
