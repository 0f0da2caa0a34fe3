//! Fakes for tests.
