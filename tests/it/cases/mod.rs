//! The field cases, by number.

mod across_gateways;
mod amounts;
mod journal;
mod network;
mod processes;
mod secrets;
mod soak;
mod stripe;
mod sweeps;
mod two_workers;
mod twoc2p;
mod twoc2p_end_to_end;
mod twoc2p_maintenance;
mod wire_amounts;
