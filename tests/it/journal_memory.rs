//! The journal in memory keeps the contract.

use payonce::journal::{Journal, MemoryJournal};
use payonce::testing::conformance;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keeps_the_contract() {
    conformance::journal(|| async { Arc::new(MemoryJournal::new()) as Arc<dyn Journal> }).await;
}
