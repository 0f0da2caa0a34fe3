//! Failures seen in the field, by their numbers.

#[cfg(feature = "twoc2p")]
mod twoc2p;
