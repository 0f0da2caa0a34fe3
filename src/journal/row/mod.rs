//! The stored form of a record: its own types with a version, so that the domain types can change.

mod state;

use crate::clock::Timestamp;
use crate::error::JournalError;
use crate::money::{Currency, Money};
use crate::operation::{Fingerprint, GatewayRef, OperationKey, OperationKind, Reference};
use crate::record::{Absences, HistoryLine, Lease, PaymentTarget, Record, Source};
use serde::{Deserialize, Serialize};
use state::StoredState;

/// The version of the form that this crate writes. It reads this one and all before it.
const FORM: u32 = 1;

/// A record as text: JSON, with nothing secret in it but the link to a hosted page while that can still be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// The document.
    pub json: String,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    form: u32,
    key: String,
    namespace: String,
    kind: String,
    reference: String,
    attempt: u32,
    gateway: String,
    wire_identity: String,
    fingerprint: String,
    amount: Option<StoredMoney>,
    target_ref: Option<String>,
    target_identity: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target_amount: Option<StoredMoney>,
    state: StoredState,
    gateway_ref: Option<String>,
    sends: u32,
    maybe_executed: bool,
    first_sent_at: i64,
    last_sent_at: i64,
    payable_until: Option<i64>,
    absences: u32,
    last_absence_at: Option<i64>,
    looks: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    failed_looks: u32,
    due_at: Option<i64>,
    lease_owner: Option<String>,
    lease_until: Option<i64>,
    created_at: i64,
    updated_at: i64,
    version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredMoney {
    minor: i64,
    currency: String,
}

impl StoredMoney {
    fn new(money: Money) -> Self {
        Self {
            minor: money.minor(),
            currency: money.currency().code().to_owned(),
        }
    }

    fn read(&self) -> Result<Money, JournalError> {
        let currency = Currency::parse(&self.currency).map_err(|_| unreadable("currency"))?;
        Ok(Money::from_minor(self.minor, currency))
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn unreadable(field: &'static str) -> JournalError {
    JournalError::permanent(format!("a stored operation has an unreadable {field}"))
}

impl Row {
    /// A row read from storage.
    pub fn new(json: impl Into<String>) -> Self {
        Self { json: json.into() }
    }

    /// The row to store for `record`.
    ///
    /// # Errors
    /// [`JournalError`] when the record cannot be written as JSON, which no record of this crate should cause.
    pub fn write(record: &Record) -> Result<Self, JournalError> {
        let stored = Stored {
            form: FORM,
            key: record.key.to_string(),
            namespace: record.namespace.to_string(),
            kind: record.kind.as_str().to_owned(),
            reference: record.reference.as_str().to_owned(),
            attempt: record.attempt,
            gateway: record.gateway.to_string(),
            wire_identity: record.wire_identity.to_string(),
            fingerprint: record.fingerprint.to_string(),
            amount: record.amount.map(StoredMoney::new),
            target_ref: record
                .target
                .as_ref()
                .and_then(|target| text(target.gateway_ref.as_ref())),
            target_identity: record
                .target
                .as_ref()
                .and_then(|target| target.wire_identity.as_deref())
                .map(str::to_owned),
            target_amount: record
                .target
                .as_ref()
                .and_then(|target| target.amount)
                .map(StoredMoney::new),
            state: StoredState::new(&record.state),
            gateway_ref: text(record.gateway_ref.as_ref()),
            sends: record.sends,
            maybe_executed: record.maybe_executed,
            first_sent_at: record.first_sent_at.unix_millis(),
            last_sent_at: record.last_sent_at.unix_millis(),
            payable_until: record.payable_until.map(Timestamp::unix_millis),
            absences: record.absences.count,
            last_absence_at: record.absences.last.map(Timestamp::unix_millis),
            looks: record.looks,
            failed_looks: record.failed_looks,
            due_at: record.due_at.map(Timestamp::unix_millis),
            lease_owner: record.lease.as_ref().map(|lease| lease.owner.to_string()),
            lease_until: record.lease.as_ref().map(|lease| lease.until.unix_millis()),
            created_at: record.created_at.unix_millis(),
            updated_at: record.updated_at.unix_millis(),
            version: record.version,
        };
        let json = serde_json::to_string(&stored)
            .map_err(|error| JournalError::permanent("an operation could not be written").with_source(error))?;
        Ok(Self { json })
    }

    /// The record that was stored.
    ///
    /// # Errors
    /// A permanent [`JournalError`] for a form newer than this crate's, or a damaged row.
    pub fn read(&self) -> Result<Record, JournalError> {
        let stored: Stored = serde_json::from_str(&self.json)
            .map_err(|error| JournalError::permanent("a stored operation is damaged").with_source(error))?;
        if stored.form > FORM {
            return Err(JournalError::permanent(
                "a stored operation was written by a newer version of this crate",
            ));
        }
        let target = PaymentTarget {
            gateway_ref: stored.target_ref.map(GatewayRef::new),
            wire_identity: stored.target_identity.map(Into::into),
            amount: stored.target_amount.map(|money| money.read()).transpose()?,
        };
        let has_target = target.gateway_ref.is_some() || target.wire_identity.is_some();
        let lease = stored
            .lease_owner
            .zip(stored.lease_until)
            .map(|(owner, until)| Lease::new(owner, Timestamp::from_unix_millis(until)));
        Ok(Record {
            key: OperationKey::parse(&stored.key).ok_or_else(|| unreadable("key"))?,
            namespace: stored.namespace.into(),
            kind: OperationKind::parse(&stored.kind).ok_or_else(|| unreadable("kind"))?,
            reference: Reference::new(stored.reference).map_err(|_| unreadable("reference"))?,
            attempt: stored.attempt,
            gateway: stored.gateway.into(),
            wire_identity: stored.wire_identity.into(),
            fingerprint: Fingerprint::parse(&stored.fingerprint).ok_or_else(|| unreadable("fingerprint"))?,
            amount: stored.amount.map(|money| money.read()).transpose()?,
            target: has_target.then_some(target),
            state: stored.state.read()?,
            gateway_ref: stored.gateway_ref.map(GatewayRef::new),
            sends: stored.sends,
            maybe_executed: stored.maybe_executed,
            first_sent_at: Timestamp::from_unix_millis(stored.first_sent_at),
            last_sent_at: Timestamp::from_unix_millis(stored.last_sent_at),
            payable_until: stored.payable_until.map(Timestamp::from_unix_millis),
            absences: Absences {
                count: stored.absences,
                last: stored.last_absence_at.map(Timestamp::from_unix_millis),
            },
            looks: stored.looks,
            failed_looks: stored.failed_looks,
            due_at: stored.due_at.map(Timestamp::from_unix_millis),
            lease,
            created_at: Timestamp::from_unix_millis(stored.created_at),
            updated_at: Timestamp::from_unix_millis(stored.updated_at),
            version: stored.version,
        })
    }

    /// What [`Self::read`] gives back for `record` once it has been written: all but what is secret. For journals that
    /// keep records as they are.
    #[must_use]
    pub fn kept(record: Record) -> Record {
        let mut record = record;
        record.state = state::kept(record.state);
        record
    }

    /// The text to store for a line of history.
    ///
    /// # Errors
    /// As [`Row::write`].
    pub fn write_line(line: &HistoryLine) -> Result<String, JournalError> {
        let stored = StoredLine {
            at: line.at.unix_millis(),
            source: line.source.as_str().to_owned(),
            sends: line.sends,
            from: line.from.to_string(),
            to: line.to.to_string(),
            http_status: line.http_status,
            code: line.code.clone(),
            request_id: line.request_id.clone(),
            replayed: line.replayed,
            note: line.note.to_string(),
        };
        serde_json::to_string(&stored)
            .map_err(|error| JournalError::permanent("a history line could not be written").with_source(error))
    }

    /// The line of history that was stored.
    ///
    /// # Errors
    /// A permanent [`JournalError`] for a damaged line.
    pub fn read_line(json: &str) -> Result<HistoryLine, JournalError> {
        let stored: StoredLine = serde_json::from_str(json)
            .map_err(|error| JournalError::permanent("a stored history line is damaged").with_source(error))?;
        let source = Source::parse(&stored.source).ok_or_else(|| unreadable("source"))?;
        let mut line = HistoryLine::new(Timestamp::from_unix_millis(stored.at), source, stored.from, stored.to);
        line.sends = stored.sends;
        line.http_status = stored.http_status;
        line.code = stored.code;
        line.request_id = stored.request_id;
        line.replayed = stored.replayed;
        line.note = stored.note.into();
        Ok(line)
    }
}

#[derive(Serialize, Deserialize)]
struct StoredLine {
    at: i64,
    source: String,
    sends: u32,
    from: String,
    to: String,
    http_status: Option<u16>,
    code: Option<String>,
    request_id: Option<String>,
    replayed: bool,
    note: String,
}

fn text(id: Option<&GatewayRef>) -> Option<String> {
    id.map(|id| id.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Failed, FailureCategory, Outcome};
    use crate::record::State;
    use crate::testing::conformance::sample::{Sample, answered, lost, outcomes, released};
    use proptest::prelude::*;

    /// What version 1 of the form looks like. It has to be read for ever.
    const FORM_1: &str = r#"{"form":1,"key":"e130cebe37775561a1877ef4bbf5840b","namespace":"shop-th/live","kind":"refund","reference":"refund-1","attempt":1,"gateway":"2c2p","wire_identity":"INV1","fingerprint":"0000000000000000000000000000000000000000000000000000000000000001","amount":{"minor":2000,"currency":"THB"},"target_ref":"pi_1","target_identity":null,"state":{"is":"pending","gateway_ref":"re_1","page_url":"https://pay.example/1","expires_at":5,"evidence":{"http_status":200,"code":"0001","message":null,"request_id":null,"replayed":false,"details":{"a":"b"}},"at":4},"gateway_ref":"re_1","sends":2,"maybe_executed":true,"first_sent_at":1,"last_sent_at":2,"payable_until":null,"absences":1,"last_absence_at":3,"looks":4,"due_at":9,"lease_owner":"one","lease_until":8,"created_at":1,"updated_at":4,"version":7}"#;

    fn records() -> Vec<Record> {
        let first = Sample::refund("shop", "refund-1").record();
        let mut records = vec![first.clone(), released(&first).0, lost(&first).0];
        records.extend(outcomes().into_iter().map(|outcome| answered(&first, outcome).0));
        records
    }

    #[test]
    fn c54_the_first_form_is_read_and_written_as_it_was() {
        let record = Row::new(FORM_1).read().unwrap();
        assert_eq!((record.state_word(), record.version, record.sends), ("pending", 7, 2));
        assert_eq!(record.lease, Some(Lease::new("one", Timestamp::from_unix_millis(8))));
        assert_eq!(Row::write(&record).unwrap().json, FORM_1);
    }

    #[test]
    fn what_was_added_later_is_kept_and_missing_where_nobody_knew_it() {
        let old = Row::new(FORM_1).read().unwrap();
        assert_eq!(old.target.as_ref().unwrap().amount, None);
        let amount = Money::from_minor(2000, Currency::THB);
        let mut record = old;
        record.target.as_mut().unwrap().amount = Some(amount);
        let mut failed = Failed::new(FailureCategory::Settled);
        failed.settled = Some(amount);
        record.state = State::Known(Outcome::Failed(failed));
        let read = Row::write(&record).unwrap().read().unwrap();
        assert_eq!(read.target, record.target);
        let State::Known(Outcome::Failed(failed)) = read.state else {
            panic!("{:?}", read.state)
        };
        assert_eq!(
            (failed.category, failed.settled),
            (FailureCategory::Settled, Some(amount))
        );
    }

    #[test]
    fn a_newer_form_is_refused_and_a_damaged_row_is_no_panic() {
        let newer = FORM_1.replacen("\"form\":1", "\"form\":2", 1);
        let error = Row::new(newer).read().unwrap_err();
        assert!(
            !error.is_transient() && error.to_string().contains("newer version"),
            "{error}"
        );
        for (from, to) in [
            ("e130", "E130"),
            ("\"refund\"", "\"gift\""),
            ("THB", "XXX"),
            ("refund-1", "me@example.com"),
            ("\"pending\"", "\"paid\""),
            ("0001\",\"amount", "000\",\"amount"),
            ("\"sends\":2", "\"sends\":-2"),
        ] {
            let damaged = FORM_1.replacen(from, to, 1);
            assert_ne!(damaged, FORM_1);
            let error = Row::new(damaged).read().unwrap_err();
            assert!(!error.is_transient());
            assert!(!error.to_string().contains("example.com"));
        }
    }

    /// A later version of the same form may add fields; this one does not trip over them.
    #[test]
    fn fields_that_are_not_known_are_passed_over() {
        let more = FORM_1.replacen("{\"form\":1", "{\"new\":{\"a\":[1]},\"form\":1", 1);
        assert_eq!(Row::write(&Row::new(more).read().unwrap()).unwrap().json, FORM_1);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,200}", cut in 0..FORM_1.len()) {
            let _ = Row::new(text.clone()).read();
            let _ = Row::read_line(&text);
            let _ = Row::new(&FORM_1[..cut]).read().unwrap_err();
            let _ = Row::new(format!("{}{text}{}", &FORM_1[..cut], &FORM_1[cut..])).read();
        }

        #[test]
        fn one_changed_byte_is_read_or_refused(index in 0..8_usize, at in 0..600_usize, byte in 0x20_u8..0x7f) {
            let mut json = Row::write(&records()[index]).unwrap().json.into_bytes();
            let at = at % json.len();
            json[at] = byte;
            if let Ok(text) = String::from_utf8(json) {
                let _ = Row::new(text).read();
            }
        }
    }
}
