//! Failures seen in the field, by their numbers.

mod amounts;
