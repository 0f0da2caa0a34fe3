//! The field cases, by number.

mod amounts;
mod journal;
mod processes;
mod two_workers;
mod twoc2p;
