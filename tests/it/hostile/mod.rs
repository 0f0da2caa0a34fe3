//! Sequences that once made the crate say what was not so, or let money move twice.

mod answers;
mod clocks;
mod failing_journal;
mod maintenance;
mod notifications;
mod pages;
