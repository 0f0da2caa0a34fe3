//! Calls payment gateways so that **each business operation takes effect once**, over a network that loses answers.
//!
//! ```
//! use payonce::journal::MemoryJournal;
//! use payonce::testing::MockGateway;
//! use payonce::{Currency, Money, Operation, Outcome, Payments};
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gateway = MockGateway::new();
//! gateway.answer_lost_after_effect("order-1042"); // the money moves, and nobody tells us
//!
//! let payments = Payments::builder()
//!     .namespace("shop-th/live")
//!     .gateway(Arc::new(gateway.clone()))
//!     .journal(Arc::new(MemoryJournal::new()))
//!     .build()?;
//!
//! let order = Operation::charge("order-1042", Money::parse("20.00", Currency::THB)?)?;
//! let outcome = payments.execute(&order).await?;
//! assert!(matches!(outcome, Outcome::Succeeded(_)), "found out by asking, not by charging again");
//! assert_eq!(gateway.bank().charged("order-1042"), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # The one sentence
//!
//! **`Ok(outcome)`** is what is known about the operation, already in the journal. **`Err(error)`** means that *this
//! call* sent nothing that the gateway can have executed: fix the cause and call again with the same operation.
//!
//! Once the first byte may have left there is no `Err` any more. A lost answer, an unreadable answer, an unknown code:
//! all are [`Outcome::Unknown`], and are resolved by inquiry. Calling again with the same
//! operation, after a crash, from another process, or while the first call still runs, is always right.
//!
//! # The types
//!
//! | type | what it is |
//! |---|---|
//! | [`Operation`] | what to do: kind, reference, attempt, amount |
//! | [`OperationKey`] | the idempotency key, a pure function of the operation's identity |
//! | [`Payments`] | executes operations, asks about them, takes notifications |
//! | [`Outcome`] | what is known |
//! | [`Error`] | nothing was executed |
//! | [`Gateway`] | the port to a payment gateway: [`Stripe`](gateway::stripe::Stripe), [`TwoC2p`](gateway::twoc2p::TwoC2p), yours |
//! | [`Journal`] | the port to the durable memory: [`SqliteJournal`](journal::sqlite::SqliteJournal), [`MemoryJournal`](journal::MemoryJournal), yours |
//! | [`Reconciler`] | the worker that resolves what is unknown |
//!
//! # Features
//!
//! `stripe`, `twoc2p`, `sqlite`, `rustls` and `backoff` are on by default; `native-tls`, `bundled-roots` and `testing` are
//! not. No feature changes what a call does, and safety is behind none. The README has what each one brings.
//!
//! # What it does not do
//!
//! It does not see card numbers, convert currencies, keep a ledger, or decide for you what a conflict means.

#![cfg_attr(docsrs, feature(doc_cfg))]

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

pub use engine::Payments;
pub use error::Error;
pub use gateway::{Gateway, RawNotification};
pub use inbound::Intake;
pub use journal::Journal;
pub use money::{Currency, Money};
pub use operation::{GatewayRef, Operation, OperationKey, OperationKind, Reference, Target};
pub use outcome::{NextStep, Outcome};
pub use reconcile::Reconciler;
pub use retry::RetryPolicy;
pub use secret::Secret;

/// The code in the README, compiled and run; `tests/it/documents.rs` follows the links of all prose files.
#[cfg(doctest)]
mod prose {
    #[doc = include_str!("../README.md")]
    mod readme {}
}
