//! What the engine hands to a gateway, for tests of a gateway without an engine.

use crate::clock::Timestamp;
use crate::gateway::{Gateway, Refusal};
use crate::operation::{Namespace, Operation, Target};
use crate::record::{Instruction, Intent, Lease, PaymentTarget, Record};
use std::sync::Arc;
use std::time::Duration;

/// How long an exchange of a [`reserved`] instruction may take.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The record and the instruction with which the engine would send `operation` through `gateway` for the first time at
/// `now`: what tests of a [`Gateway`] of your own call `send` and `inquire` with. Nothing is stored, so each call gives
/// the same again.
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// use payonce::clock::Timestamp;
/// use payonce::gateway::Gateway;
/// use payonce::money::{Currency, Money};
/// use payonce::operation::{Namespace, Operation};
/// use payonce::outcome::Outcome;
/// use payonce::testing::{MockGateway, reserved};
///
/// let gateway = MockGateway::new();
/// gateway.succeeds("order-1042");
/// let order = Operation::charge("order-1042", Money::from_minor(2000, Currency::THB)).unwrap();
/// let shop = Namespace::new("shop-th/test").unwrap();
/// let (_record, instruction) = reserved(&gateway, &shop, &order, Timestamp::from_unix_seconds(0)).unwrap();
/// assert!(matches!(gateway.send(&instruction).await, Ok(Outcome::Succeeded(_))));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// What [`Gateway::prepare`] refuses.
pub fn reserved(
    gateway: &dyn Gateway,
    namespace: &Namespace,
    operation: &Operation,
    now: Timestamp,
) -> Result<(Record, Instruction), Refusal> {
    let key = operation.key(namespace);
    let prepared = gateway.prepare(key, operation)?;
    // A target by key is looked up in the journal by the engine; here there is none.
    let target = operation.target().map(|target| PaymentTarget {
        gateway_ref: match target {
            Target::Gateway(id) => Some(id.clone()),
            Target::Operation(_) => None,
        },
        wire_identity: None,
        amount: None,
    });
    let intent = Intent {
        key,
        namespace: namespace.as_str().into(),
        operation,
        gateway: gateway.name().into(),
        wire_identity: prepared.wire_identity.into(),
        fingerprint: operation.fingerprint(),
        target,
        payable_for: prepared.payable_for,
    };
    let record = Record::reserve(intent, now, Lease::new("testing", now.after(TIMEOUT)));
    let instruction = record.instruction(&Arc::new(operation.clone()), TIMEOUT);
    instruction
        .map(|instruction| (record, instruction))
        .ok_or_else(|| Refusal::Unsupported("a new record is always being sent".to_owned()))
}
