//! What comes in from a gateway by itself: raw, verified, refused.

use crate::clock::Timestamp;
use crate::operation::{GatewayRef, OperationKey};
use crate::outcome::Outcome;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of the stored form that this crate writes. It reads this one and all before it.
const FORM: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Stored {
    form: u32,
    headers: Vec<(String, String)>,
    body: String,
    received_at: i64,
}

/// A notification as it came in: headers and body, untouched. It can be stored and read again later.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawNotification {
    /// Header names in any case, values as received; repeated names stay repeated.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte as received: not parsed, not decoded, not trimmed.
    pub body: Vec<u8>,
    /// When it was received. Signatures with a time stamp are judged by this, also when it is verified again later.
    pub received_at: Timestamp,
}

impl RawNotification {
    /// A notification received at `received_at`.
    #[must_use]
    pub fn new(headers: Vec<(String, String)>, body: Vec<u8>, received_at: Timestamp) -> Self {
        Self {
            headers,
            body,
            received_at,
        }
    }

    /// The notification as text (JSON), to keep in an inbox of your own and to read again later, in another process or
    /// version. It holds headers and body as they came: nothing is scrubbed, so protect it as you would protect them.
    #[must_use]
    pub fn to_json(&self) -> String {
        let stored = Stored {
            form: FORM,
            headers: self.headers.clone(),
            body: STANDARD.encode(&self.body),
            received_at: self.received_at.unix_millis(),
        };
        // Strings and numbers cannot fail to be written.
        serde_json::to_string(&stored).unwrap_or_default()
    }

    /// The reverse of [`Self::to_json`]: the same bytes, so that signatures still verify.
    ///
    /// # Errors
    /// [`NotificationError::Malformed`] for a text that is not of this form, or of a newer one.
    pub fn from_json(json: &str) -> Result<Self, NotificationError> {
        let malformed = |what: &str| NotificationError::Malformed(what.to_owned());
        let stored: Stored = serde_json::from_str(json).map_err(|_| malformed("not a stored notification"))?;
        if stored.form > FORM {
            return Err(malformed("stored by a newer version of this crate"));
        }
        let body = STANDARD
            .decode(stored.body)
            .map_err(|_| malformed("its body is damaged"))?;
        Ok(Self::new(
            stored.headers,
            body,
            Timestamp::from_unix_millis(stored.received_at),
        ))
    }

    /// The values of a header, whatever the case of its name.
    pub fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(candidate, _)| candidate.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for RawNotification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawNotification")
            .field("bytes", &self.body.len())
            .field("received_at", &self.received_at)
            .finish_non_exhaustive()
    }
}

/// A verified notification.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Notification {
    /// What makes a delivery recognisable as a repeat.
    pub event_id: String,
    /// The gateway's name for what happened.
    pub name: String,
    /// By what the operation can be found, surest first.
    pub about: Vec<About>,
    /// What it says about the operation; `None` when it only suggests an inquiry, or is of no known type.
    pub says: Option<Outcome>,
}

impl Notification {
    /// A notification that says nothing yet.
    pub fn new(event_id: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            event_id: event_id.into(),
            name: name.into(),
            about: Vec::new(),
            says: None,
        }
    }
}

/// By what an operation can be found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum About {
    /// Its own key.
    Key(OperationKey),
    /// The identity that [`Gateway::prepare`](super::Gateway::prepare) derived.
    WireIdentity(String),
    /// The gateway's id of the payment or refund.
    GatewayRef(GatewayRef),
}

/// Why a notification was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotificationError {
    /// A header or the body does not have the gateway's form.
    #[error("malformed notification: {0}")]
    Malformed(String),
    /// No signature by a known secret over exactly these bytes. The body must be the raw one.
    #[error("no valid signature over the raw body")]
    Signature,
    /// The signature is good and its time stamp is too far from the time of receipt.
    #[error("the signature's time stamp is outside of the tolerance")]
    Stale,
    /// Authentic, but for another merchant account than this one.
    #[error("the notification is for another merchant account")]
    OtherMerchant,
}
