//! 2C2P's maintenance API: what can be done with a payment after it was made. XML, encrypted and signed with RSA keys.

mod der;
mod envelope;
mod keys;
mod passphrase;
mod xml;

#[cfg(test)]
mod samples;

pub use keys::{KeyError, KeyFault, MaintenanceKeys};
