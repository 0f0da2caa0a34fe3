//! The contract of a journal, written as checks.

mod claim;
mod dropped;
mod find;
mod prune;
mod replace;
mod reserve;
mod rows;

use super::sample::Sample;
use crate::journal::row::Row;
use crate::journal::{Journal, Replaced, Reservation, Wanted};
use crate::operation::OperationKey;
use crate::outcome::{NextStep, Outcome};
use crate::record::{HistoryLine, Record, State};
use std::sync::Arc;

/// Checks a [`Journal`] against its contract. `make` gives an empty journal each time it is called.
///
/// ```
/// use payonce::journal::{Journal, MemoryJournal};
/// use payonce::testing::conformance;
/// use std::sync::Arc;
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(
/// conformance::journal(|| async { Arc::new(MemoryJournal::new()) as Arc<dyn Journal> })
/// # );
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// When the journal breaks the contract, with the place of the check. Needs a tokio runtime with timers; one with several threads
/// finds more.
pub async fn journal<M, F>(make: M)
where
    M: Fn() -> F + Send + Sync,
    F: Future<Output = Arc<dyn Journal>> + Send,
{
    reserve::stores_a_new_operation_and_its_first_line(make().await).await;
    reserve::returns_an_operation_that_exists(make().await).await;
    reserve::goes_by_the_attempt_and_not_by_the_key(make().await).await;
    reserve::takes_the_place_of_a_released_one(make().await).await;
    reserve::is_blocked_by_an_attempt_that_may_have_taken_money(make().await).await;
    reserve::refuses_an_identity_that_is_taken(make().await).await;
    reserve::frees_the_identity_of_a_released_one(make().await).await;
    reserve::looks_for_the_same_attempt_first_and_the_identity_last(make().await).await;
    reserve::has_one_winner(make().await).await;
    reserve::has_one_winner_among_attempts_and_identities(make().await).await;
    replace::stores_when_the_version_is_the_expected_one(make().await).await;
    replace::returns_what_is_stored_when_stale(make().await).await;
    replace::sees_an_event_once_and_in_one_step_with_the_state(make().await).await;
    replace::knows_events_by_namespace_and_gateway(make().await).await;
    replace::refuses_an_operation_that_was_never_reserved(make().await).await;
    replace::has_one_winner(make().await).await;
    replace::gives_an_event_to_one_of_many(make().await).await;
    claim::takes_what_is_due_longest_due_first(make().await).await;
    claim::takes_only_what_is_open_and_in_the_namespace(make().await).await;
    claim::fences_whoever_read_before(make().await).await;
    claim::hands_out_again_when_the_lease_has_ended(make().await).await;
    claim::hands_out_to_one_of_many(make().await).await;
    find::finds_by_gateway_ref(make().await).await;
    find::finds_by_wire_identity(make().await).await;
    find::finds_the_attempts_of_an_operation(make().await).await;
    find::finds_what_is_open(make().await).await;
    find::finds_what_waits_for_a_person(make().await).await;
    prune::forgets_what_is_over_and_old_in_small_steps(make().await).await;
    prune::keeps_what_is_open_or_waits_for_a_person(make().await).await;
    dropped::leaves_the_old_or_the_new(make().await).await;
    dropped::reserves_whole_or_not_at_all(make().await).await;
    rows::survive_unchanged_in_every_state(make().await).await;
    rows::keep_their_history_in_order(make().await).await;
    rows::hold_no_secret(make().await).await;
    rows::take_any_text(make().await).await;
}

/// The namespace of most samples.
const SHOP: &str = "shop/test";

async fn reserved(journal: &Arc<dyn Journal>, sample: &Sample) -> Record {
    let answer = journal.reserve(&sample.record(), &sample.line()).await.unwrap();
    let Reservation::New(record) = answer else {
        panic!("not reserved: {answer:?}");
    };
    record
}

async fn replaced(journal: &Arc<dyn Journal>, from: &Record, (next, line): (Record, HistoryLine)) -> Record {
    let answer = journal.replace(from.version(), &next, &line, None).await.unwrap();
    assert!(matches!(answer, Replaced::Stored), "not stored: {answer:?}");
    next
}

async fn loaded(journal: &Arc<dyn Journal>, key: OperationKey) -> Record {
    journal.load(key).await.unwrap().unwrap()
}

async fn lines(journal: &Arc<dyn Journal>, key: OperationKey) -> usize {
    journal.history(key).await.unwrap().len()
}

async fn keys(journal: &Arc<dyn Journal>, wanted: Wanted, limit: usize) -> Vec<OperationKey> {
    let found = journal.find(&wanted, limit).await.unwrap();
    found.iter().map(Record::key).collect()
}

/// Every field, and the one secret that is kept.
#[track_caller]
fn assert_same(stored: &Record, expected: &Record) {
    assert_eq!(format!("{stored:#?}"), format!("{expected:#?}"));
    assert_eq!(page(stored), page(expected));
    assert_eq!(Row::write(stored).unwrap(), Row::write(expected).unwrap());
}

fn page(record: &Record) -> Option<&str> {
    match record.state() {
        State::Known(Outcome::Pending(pending)) => match &pending.next {
            NextStep::Redirect { url } => Some(url.expose()),
            NextStep::Wait
            | NextStep::Confirm { .. }
            | NextStep::QrCode { .. }
            | NextStep::PaySlip { .. }
            | NextStep::OpenApp { .. } => None,
        },
        State::Sending
        | State::Released
        | State::Known(Outcome::Succeeded(_) | Outcome::Failed(_) | Outcome::Unknown(_) | Outcome::Conflict(_)) => None,
    }
}
