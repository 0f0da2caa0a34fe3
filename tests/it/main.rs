//! The integration tests: one binary, so that they link once.

mod attempts;
mod cases;
mod concurrent;
mod execute;
mod puppet;
mod reconcile;
mod shop;
mod unknown;
