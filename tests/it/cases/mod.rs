//! The field cases, by number.

mod amounts;
mod two_workers;
mod twoc2p;
