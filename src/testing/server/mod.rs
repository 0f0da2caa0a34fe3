//! Real HTTP servers on 127.0.0.1 that behave, and misbehave, as gateways do.

mod http;
mod route;
mod script;
mod socket;
mod stripe;
mod twoc2p;

pub use http::{Hold, LoggedRequest};
pub use route::Route;
pub use script::{Reply, ScriptedServer};
pub use stripe::FakeStripe;
pub use twoc2p::{AmountForm, DirectPayment, FakeTwoC2p, RecurringPlan, RefundRows};
