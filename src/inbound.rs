//! Notifications: verified first, then taken through the same write path as every other observation.

use crate::engine::{Chain, Payments};
use crate::error::JournalError;
use crate::gateway::{About, Gateway, Notification, NotificationError, RawNotification};
use crate::journal::Wanted;
use crate::operation::{Invalid, OperationKey};
use crate::outcome::Outcome;
use crate::record::{Fact, Record, Recorded, Source};
use std::sync::Arc;
use tracing::{debug, warn};

/// What a notification led to.
#[allow(clippy::large_enum_variant, reason = "made once a notification")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Intake {
    /// It is about this operation. Acknowledge it to the gateway.
    Taken {
        /// The operation.
        key: OperationKey,
        /// What is now known about it.
        outcome: Outcome,
        /// [`Recorded::First`] for at most one observer of each change: only that one acts on it.
        recorded: Recorded,
    },
    /// Authentic, and about nothing in this journal or of no known type. Acknowledge it to the gateway.
    Ignored {
        /// The gateway's name for what happened.
        name: String,
    },
}

/// Why a notification must not be acknowledged.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InboundError {
    /// No gateway of this name is configured.
    #[error("the notification cannot be taken")]
    Unconfigured(#[source] Invalid),
    /// Not authentic, or malformed. Answer 400: sending it again will not help.
    #[error("the notification was refused")]
    Refused(#[source] NotificationError),
    /// It could not be stored. Answer 503, so that the gateway sends it again.
    #[error("the notification could not be stored; let the gateway send it again")]
    TryAgain(#[source] JournalError),
}

/// The most operations that are looked at because they share an id of the gateway.
const SHARERS: usize = 32;

fn acts_on(record: &Record, about: &About) -> bool {
    let target = record.target().and_then(|target| target.gateway_ref.as_ref());
    matches!(about, About::GatewayRef(id) if target == Some(id))
}

impl Payments {
    /// Takes a notification for the gateway named `gateway`: the raw headers and body of a webhook or callback.
    ///
    /// # Errors
    /// [`InboundError`], which says what to answer the sender. Before [`InboundError::TryAgain`] a part may have been
    /// stored, with which the repeat agrees; before the others nothing was.
    pub async fn notify(&self, gateway: &str, raw: &RawNotification) -> Result<Intake, InboundError> {
        let gateway = self.inner().gateway(gateway).ok_or_else(|| {
            InboundError::Unconfigured(Invalid::new("gateway", "no gateway of this name is configured"))
        })?;
        let notification = gateway.read_notification(raw).map_err(|error| {
            warn!(gateway = gateway.name(), %error, "payonce.notification_refused");
            InboundError::Refused(error)
        })?;
        self.take(gateway, notification).await.map_err(|error| {
            warn!(gateway = gateway.name(), error = %Chain(&error), "payonce.notification_not_stored");
            InboundError::TryAgain(error)
        })
    }

    async fn take(&self, gateway: &Arc<dyn Gateway>, notification: Notification) -> Result<Intake, JournalError> {
        let (gateway, name) = (gateway.name(), notification.name);
        let Some(record) = self.subject(gateway, &notification.about).await? else {
            debug!(gateway, name, "payonce.notification_ignored");
            return Ok(Intake::Ignored { name });
        };
        let key = record.key();
        debug!(%key, gateway, name, "payonce.notified");
        let Some(said) = notification.says else {
            let asked = self.inner().resolve(Box::new(record)).await?;
            return Ok(Intake::Taken {
                key,
                outcome: asked.record.outcome(),
                recorded: asked.recorded,
            });
        };
        let event = Some(notification.event_id.as_str());
        let observed = self
            .inner()
            .observe(Box::new(record), Source::Notification, Fact::Said(said), event)
            .await?;
        let (mut record, mut recorded) = (observed.record, observed.recorded);
        if observed.contradiction {
            let asked = self.inner().ask(record).await?;
            // Who brought a change about is told so, whatever an inquiry may say of it later.
            if asked.blind && recorded == Recorded::Already {
                return Err(JournalError::transient(
                    "the gateway contradicts what is stored, and could not be asked which of the two holds",
                ));
            }
            record = asked.record;
            if asked.recorded == Recorded::First {
                recorded = Recorded::First;
            }
        }
        Ok(Intake::Taken {
            key,
            outcome: record.outcome(),
            recorded,
        })
    }

    /// The operation that a notification is about. What does not belong to the gateway is not found.
    async fn subject(&self, gateway: &str, about: &[About]) -> Result<Option<Record>, JournalError> {
        let namespace = || self.inner().namespace().as_str().to_owned();
        for about in about {
            let wanted = match about {
                About::Key(key) => {
                    let record = self.inner().journal().load(*key).await?;
                    if let Some(other) = record.as_ref().filter(|record| record.gateway() != gateway) {
                        // An operation that was released there and went through another gateway: look at both.
                        warn!(%key, gateway, recorded_at = other.gateway(), "payonce.notified_by_other_gateway");
                    }
                    let ours = record.filter(|record| {
                        record.gateway() == gateway && record.namespace() == self.inner().namespace().as_str()
                    });
                    if ours.is_some() {
                        return Ok(ours);
                    }
                    continue;
                }
                About::WireIdentity(identity) => Wanted::WireIdentity {
                    namespace: namespace(),
                    gateway: gateway.to_owned(),
                    identity: identity.clone(),
                },
                About::GatewayRef(id) => Wanted::GatewayRef {
                    namespace: namespace(),
                    gateway: gateway.to_owned(),
                    id: id.clone(),
                },
            };
            // Several operations share a payment's id. A capture or void knows no other than that of its target, and
            // what is said of the target is not said of it. Where several remain, such a hint decides nothing.
            let mut found = self.inner().journal().find(&wanted, SHARERS).await?;
            found.retain(|record| !acts_on(record, about));
            if found.len() == 1 {
                return Ok(found.pop());
            }
        }
        Ok(None)
    }
}
