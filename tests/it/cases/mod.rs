//! The field cases, by number.
