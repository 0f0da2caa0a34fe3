//! The field cases, by number.

mod two_workers;
mod twoc2p;
