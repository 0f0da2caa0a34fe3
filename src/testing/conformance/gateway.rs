//! The contract of [`Gateway`], against whatever stands behind it: a fake, a peer, a sandbox.

use crate::clock::{Clock, SystemClock};
use crate::failure::{Failure, FailureKind};
use crate::gateway::{Gateway, Inquiry, RawNotification};
use crate::operation::{Namespace, Operation, OperationKind};
use crate::outcome::Outcome;
use crate::record::{Instruction, Record};
use crate::retry::SameKey;
use crate::testing::{Bank, reserved};
use std::collections::HashSet;

/// Checks `gateway` with charges that succeed, at once or on the payer's page, one way or the other.
///
/// `charge` makes the charge for a reference; each must move money behind `gateway`, and `bank` must count it. At
/// least three are made, so the references differ from run to run only if `prefix` does. `secrets` are texts that
/// must not be printed: keys of the merchant, and whatever else the gateway was built with.
///
/// # Panics
/// Where the contract is broken: that is how a test hears of it.
pub async fn gateway(
    gateway: &dyn Gateway,
    bank: &Bank,
    prefix: &str,
    charge: impl Fn(&str) -> Operation + Send + Sync,
    secrets: &[&str],
) {
    let subject = Subject {
        gateway,
        bank,
        namespace: Namespace::new("conformance/test").unwrap(),
    };
    let operation = |number: u32| charge(&format!("{prefix}{number}"));
    subject.prepares_purely(&operation(1), &operation(2));
    subject.does_not_know_what_was_not_sent(&operation(1)).await;
    subject.sends_once(&operation(2)).await;
    subject.survives_a_crowd(&operation(3)).await;
    subject.refuses_notifications_that_are_none();
    let printed = format!("{gateway:?}");
    for secret in secrets {
        assert!(!printed.contains(secret), "Debug of the gateway prints a secret");
    }
}

struct Subject<'a> {
    gateway: &'a dyn Gateway,
    bank: &'a Bank,
    namespace: Namespace,
}

impl Subject<'_> {
    fn reserve(&self, operation: &Operation) -> (Record, Instruction) {
        reserved(self.gateway, &self.namespace, operation, SystemClock.now()).unwrap()
    }

    fn charged(&self, operation: &Operation) -> usize {
        self.bank.charged(&operation.key(&self.namespace).to_string())
    }

    /// Same input, same identity; other operation, other identity; and a promise that does not change its mind.
    fn prepares_purely(&self, one: &Operation, other: &Operation) {
        let identity = |operation: &Operation, attempt: u32| {
            let attempt = std::num::NonZeroU32::new(attempt).unwrap();
            let operation = operation.clone().attempt(attempt);
            let prepared = self.gateway.prepare(operation.key(&self.namespace), &operation);
            prepared.unwrap().wire_identity
        };
        assert_eq!(
            identity(one, 1),
            identity(one, 1),
            "an identity is a function of the operation"
        );
        let identities: HashSet<_> = [
            identity(one, 1),
            identity(one, 2),
            identity(other, 1),
            identity(other, 2),
        ]
        .into();
        assert_eq!(
            identities.len(),
            4,
            "operations and attempts have identities of their own"
        );
        assert_eq!(self.gateway.name(), self.gateway.name());
        let promise = self.gateway.promise(OperationKind::Charge);
        assert_eq!(promise, self.gateway.promise(OperationKind::Charge));
    }

    /// An inquiry about what was never sent finds nothing, and causes nothing.
    async fn does_not_know_what_was_not_sent(&self, operation: &Operation) {
        let (record, _) = self.reserve(operation);
        for _ in 0..2 {
            match self.gateway.inquire(&record).await {
                Ok(Inquiry::Absent { .. }) => {}
                Ok(Inquiry::Found(outcome) | Inquiry::Similar(outcome)) => {
                    panic!("found what was never sent: {outcome:?}")
                }
                Err(failure) => panic!("the inquiry failed: {failure:?}"),
            }
        }
        assert_eq!(self.charged(operation), 0, "an inquiry caused an effect");
    }

    /// A second send with the same key has no second effect, and an inquiry finds the first.
    async fn sends_once(&self, operation: &Operation) {
        let (record, instruction) = self.reserve(operation);
        let first = self.gateway.send(&instruction).await.unwrap();
        assert!(
            matches!(first, Outcome::Succeeded(_) | Outcome::Pending(_)),
            "{first:?}"
        );
        if !matches!(self.gateway.promise(operation.kind()).same_key, SameKey::Executes) {
            self.check_repeat(self.gateway.send(&instruction).await, &first);
        }
        let Ok(Inquiry::Found(found)) = self.gateway.inquire(&record).await else {
            panic!("the inquiry does not find what was sent");
        };
        let Outcome::Succeeded(succeeded) = &found else {
            panic!("{found:?}")
        };
        assert_eq!(succeeded.amount, operation.amount());
        assert_eq!(self.charged(operation), 1, "the bank counts");
    }

    fn check_repeat(&self, repeat: Result<Outcome, Failure>, first: &Outcome) {
        match repeat {
            Ok(outcome) => assert_eq!(
                outcome.as_str(),
                first.as_str(),
                "a repeat has the outcome of the first"
            ),
            Err(failure) => {
                assert!(failure.may_have_executed(), "the first was executed: {failure:?}");
                let kind = failure.kind();
                let known = matches!(kind, FailureKind::Duplicate | FailureKind::StillRunning);
                assert!(
                    known,
                    "{}: a repeat is told apart from a new request: {failure:?}",
                    self.gateway.name()
                );
            }
        }
    }

    /// The same instruction from several callers at once.
    async fn survives_a_crowd(&self, operation: &Operation) {
        if matches!(self.gateway.promise(operation.kind()).same_key, SameKey::Executes) {
            return;
        }
        let (_, instruction) = self.reserve(operation);
        let send = || self.gateway.send(&instruction);
        let (one, two, three) = tokio::join!(send(), send(), send());
        assert!([one, two, three].iter().any(Result::is_ok), "one of them is answered");
        assert_eq!(self.charged(operation), 1, "the bank counts");
    }

    fn refuses_notifications_that_are_none(&self) {
        let bodies: [&[u8]; 6] = [
            b"",
            b"{}",
            b"null",
            b"\xff\xfe",
            b"{\"payload\":\"a.b.c\"}",
            &[b'['; 10_000],
        ];
        for body in bodies {
            let raw = RawNotification::new(Vec::new(), body.to_vec(), SystemClock.now());
            assert!(
                self.gateway.read_notification(&raw).is_err(),
                "{} bytes were accepted",
                body.len()
            );
        }
    }
}
