//! The field cases, by number.

mod amounts;
mod journal;
mod network;
mod processes;
mod secrets;
mod stripe;
mod two_workers;
mod twoc2p;
mod twoc2p_end_to_end;
mod wire_amounts;
