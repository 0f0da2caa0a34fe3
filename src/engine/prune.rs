//! Forgetting what was settled long ago.

use super::Inner;
use crate::error::Error;
use crate::journal::Pruned;
use crate::operation::OperationKind;
use crate::retry::SameKey;
use std::time::Duration;

/// How many operations go in one step: few enough that no writer waits long.
const BATCH: usize = 500;

/// However short gateways remember: an operation of yesterday may be asked about by people.
const YOUNGEST: Duration = Duration::from_secs(24 * 3600);

const KINDS: [OperationKind; 6] = [
    OperationKind::Charge,
    OperationKind::Authorize,
    OperationKind::Capture,
    OperationKind::Void,
    OperationKind::Refund,
    OperationKind::Update,
];

pub(super) async fn prune(inner: &Inner, older_than: Duration) -> Result<Pruned, Error> {
    let before = inner.clock.now().before(older_than.max(remembered(inner)));
    let mut total = Pruned::default();
    loop {
        let namespace = inner.namespace.as_str();
        let batch = inner.journal.prune(namespace, before, BATCH).await?;
        total.operations += batch.operations;
        total.events += batch.events;
        if batch == Pruned::default() {
            return Ok(total);
        }
    }
}

/// The longest that a gateway of this shop remembers a key.
fn remembered(inner: &Inner) -> Duration {
    let gateways = inner.gateways.iter();
    let promises = gateways.flat_map(|gateway| KINDS.map(|kind| gateway.promise(kind).same_key));
    let windows = promises.filter_map(|same_key| match same_key {
        SameKey::Replays { within } | SameKey::ReplaysSuccesses { within } | SameKey::LatestState { within } => {
            Some(within)
        }
        SameKey::Refuses | SameKey::Executes => None,
    });
    windows.fold(YOUNGEST, Duration::max)
}
