//! Field cases at 2C2P, from `execute` down to the bytes on a socket.

mod answers;
mod callbacks;
mod codes;
mod direct;
mod pages;

use crate::wired::{MERCHANT, MERCHANT_SECRET, Wired};
use payonce::engine::Builder;
use payonce::operation::Operation;
use payonce::testing::Bank;
use payonce::testing::server::{FakeTwoC2p, Reply, ScriptedServer};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

const PAYMENT: &str = "POST /payment/4.3/payment";
const MINUTE: Duration = Duration::from_secs(60);

/// A shop at the fake of 2C2P, on one clock.
struct Counter {
    twoc2p: FakeTwoC2p,
    shop: Wired,
}

impl Counter {
    fn new() -> Self {
        Self::with(|builder| builder)
    }

    fn with(change: impl FnOnce(Builder) -> Builder) -> Self {
        let twoc2p = FakeTwoC2p::start(Bank::new(), MERCHANT, MERCHANT_SECRET);
        let shop = Wired::twoc2p(twoc2p.base_url()).with(change);
        twoc2p.set_clock(Arc::clone(&shop.clock) as _);
        Self { twoc2p, shop }
    }

    fn bank(&self) -> Bank {
        self.twoc2p.bank()
    }
}

fn second(operation: &Operation) -> Operation {
    operation.clone().attempt(NonZeroU32::new(2).unwrap())
}

/// The shop of a server whose answers are written down.
fn shop_at(server: &ScriptedServer) -> Wired {
    Wired::twoc2p(format!("{}/payment/4.3", server.url()))
}

/// An answer with these claims, signed.
fn signed(claims: &str) -> Reply {
    Reply::new(200).json(super::twoc2p::envelope(&super::twoc2p::sign(claims)))
}
