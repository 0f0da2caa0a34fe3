//! What is read is what was written, and nothing more is written than may be.

use super::{SHOP, assert_same, loaded, page, replaced, reserved};
use crate::journal::row::Row;
use crate::journal::{Journal, Replaced};
use crate::outcome::{NextStep, Outcome, Pending};
use crate::record::{HistoryLine, Source, State};
use crate::testing::conformance::sample::{CANARY, NOW, Sample, answered, lost, outcomes, released, secret_steps};
use std::sync::Arc;
use std::time::Duration;

pub(super) async fn survive_unchanged_in_every_state(journal: Arc<dyn Journal>) {
    for sample in [Sample::charge(SHOP, "order"), Sample::refund(SHOP, "refund")] {
        let record = reserved(&journal, &sample).await;
        assert_same(&loaded(&journal, record.key()).await, &record);
        let record = replaced(&journal, &record, released(&record)).await;
        assert_same(&loaded(&journal, record.key()).await, &record);
    }
    for (number, outcome) in outcomes().into_iter().enumerate() {
        let record = reserved(&journal, &Sample::charge(SHOP, &format!("order-{number}"))).await;
        let (mut next, line) = answered(&record, outcome);
        // Fields that a first answer leaves empty, so that the loss of one would be seen.
        next.absences.count = 2;
        next.absences.last = Some(NOW);
        next.looks = 7;
        next.lease = record.lease.clone();
        let next = replaced(&journal, &record, (next, line)).await;
        assert_same(&loaded(&journal, next.key()).await, &next);
    }
}

pub(super) async fn keep_their_history_in_order(journal: Arc<dyn Journal>) {
    let sample = Sample::charge(SHOP, "order-1");
    let mut record = reserved(&journal, &sample).await;
    let mut expected = vec![sample.line()];
    for number in 0..12_u32 {
        let (next, _) = lost(&record);
        // All in the same instant, and the last before the first: the order is that of writing.
        let at = NOW.before(Duration::from_secs(u64::from(number / 4)));
        let mut line = HistoryLine::new(at, Source::Notification, "unknown", "\u{e2a}ถานะ");
        line.sends = number;
        line.http_status = Some(503);
        line.code = Some("4051".to_owned());
        line.request_id = Some("req_1".to_owned());
        line.replayed = number % 2 == 0;
        line.note = "a \"note\"\n".into();
        expected.push(line.clone());
        record = replaced(&journal, &record, (next, line)).await;
    }
    assert_eq!(journal.history(record.key()).await.unwrap(), expected);
}

pub(super) async fn hold_no_secret(journal: Arc<dyn Journal>) {
    for (number, step) in secret_steps().into_iter().enumerate() {
        let record = reserved(&journal, &Sample::charge(SHOP, &format!("order-{number}"))).await;
        let next = replaced(
            &journal,
            &record,
            answered(&record, Outcome::Pending(Pending::new(step))),
        )
        .await;
        assert!(!Row::write(&next).unwrap().json.contains(CANARY));
        let stored = loaded(&journal, next.key()).await;
        let State::Known(Outcome::Pending(pending)) = stored.state() else {
            panic!("{stored:?}");
        };
        assert!(matches!(pending.next, NextStep::Wait));
    }
    // The one link that is kept, since a caller needs it again after a crash.
    let record = reserved(&journal, &Sample::charge(SHOP, "order-page")).await;
    let next = replaced(&journal, &record, answered(&record, outcomes().remove(1))).await;
    let stored = loaded(&journal, next.key()).await;
    assert_eq!(page(&stored), Some("https://pay.example/page/1"));
}

pub(super) async fn take_any_text(journal: Arc<dyn Journal>) {
    for text in ["ออเดอร์-๑", "o'; DROP TABLE x; --", "%_\\\"", &"\u{1f4b8}".repeat(50)] {
        let sample = Sample::charge(text, text).gateway(text).identity(text);
        let record = reserved(&journal, &sample).await;
        assert_same(&loaded(&journal, record.key()).await, &record);
        let (next, mut line) = lost(&record);
        line.note = text.to_owned().into();
        for expected in [true, false] {
            let replaced = journal
                .replace(record.version(), &next, &line, Some(text))
                .await
                .unwrap();
            assert_eq!(matches!(replaced, Replaced::Stored), expected);
            assert_eq!(matches!(replaced, Replaced::Seen), !expected);
        }
        assert_same(&loaded(&journal, record.key()).await, &next);
        assert_eq!(journal.history(record.key()).await.unwrap()[1], line);
    }
}
