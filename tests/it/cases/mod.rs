//! The field cases, by number.

mod amounts;
mod journal;
mod processes;
mod stripe;
mod two_workers;
mod twoc2p;
mod wire_amounts;
