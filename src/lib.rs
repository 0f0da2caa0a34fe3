//! payonce
pub mod clock;
pub mod engine;
pub mod error;
pub mod failure;
pub mod gateway;
pub mod inbound;
pub mod journal;
pub mod money;
pub mod operation;
pub mod outcome;
pub mod reconcile;
pub mod record;
pub mod retry;
pub mod secret;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transport;
