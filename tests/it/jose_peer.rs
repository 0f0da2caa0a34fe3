//! Against a maintenance endpoint whose JOSE and XML were written by others, in both directions. What it counted judges.

use crate::shop::assert_is;
use crate::wired::MERCHANT_SECRET;
use async_trait::async_trait;
use payonce::Payments;
use payonce::failure::{Failure, FailureKind};
use payonce::gateway::twoc2p::{MaintenanceKeys, TwoC2p};
use payonce::journal::MemoryJournal;
use payonce::money::{Currency, Money};
use payonce::operation::{GatewayRef, Operation, Target};
use payonce::outcome::Outcome;
use payonce::transport::{Http, Request, Response, Transport};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

const MERCHANT_KEY: &str = include_str!("../fixtures/twoc2p/maintenance/TEST-ONLY-merchant.key.pem");
const GATEWAY_CERTIFICATE: &str = include_str!("../fixtures/twoc2p/maintenance/TEST-ONLY-gateway.cert.pem");

/// Makes every exchange, and says of one that its answer was lost.
#[derive(Debug)]
struct Deaf {
    http: Http,
    /// Which one, counted down; 0 loses none.
    lost: AtomicU32,
}

#[async_trait]
impl Transport for Deaf {
    async fn exchange(&self, request: Request) -> Result<Response, Failure> {
        let response = self.http.exchange(request).await?;
        let one_less = |left: u32| left.checked_sub(1);
        match self.lost.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less) {
            Ok(1) => Err(Failure::maybe_executed(FailureKind::Broken, "the answer was lost")),
            Ok(_) | Err(_) => Ok(response),
        }
    }
}

struct Peer {
    url: String,
    transport: Arc<Deaf>,
    payments: Payments,
    invoice: String,
}

impl Peer {
    /// `None` where no peer runs.
    ///
    /// # Panics
    /// When none runs although it should.
    fn find() -> Option<Self> {
        static SHOPS: AtomicU32 = AtomicU32::new(0);
        let Ok(url) = std::env::var("PAYONCE_JOSE_PEER_URL") else {
            assert!(std::env::var_os("CI").is_none(), "PAYONCE_JOSE_PEER_URL is not set");
            return None;
        };
        let transport = Arc::new(Deaf {
            http: Http::new().unwrap(),
            lost: AtomicU32::new(0),
        });
        let account = TwoC2p::builder("JT07", MERCHANT_SECRET)
            .base_url(&url)
            .maintenance_url(&url)
            .maintenance_keys(MaintenanceKeys::new(MERCHANT_KEY, GATEWAY_CERTIFICATE).unwrap())
            .transport(Arc::<Deaf>::clone(&transport))
            .build()
            .unwrap();
        // The peer keeps what earlier runs left: each shop is a new one, and so is each invoice.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let shop = format!("{}x{}", now.as_nanos(), SHOPS.fetch_add(1, Ordering::SeqCst));
        let payments = Payments::builder()
            .namespace(format!("peer/{shop}"))
            .gateway(Arc::new(account))
            .journal(Arc::new(MemoryJournal::new()))
            .build()
            .unwrap();
        Some(Self {
            url,
            transport,
            payments,
            invoice: format!("INV{shop}"),
        })
    }

    fn refund(&self, reference: &str, amount: &str) -> Operation {
        let amount = Money::parse(amount, Currency::THB).unwrap();
        let target = Target::Gateway(GatewayRef::new(self.invoice.as_str()));
        Operation::refund(reference, amount, target).unwrap()
    }

    async fn done(&self, operation: &Operation) -> Outcome {
        self.payments.execute(operation).await.unwrap()
    }

    /// How often a refund was asked for under its id, and how often one was made.
    async fn counts(&self, operation: &Operation) -> (u64, u64) {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = client.get(format!("{}/counts", self.url)).send().await.unwrap();
        let counts: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        let key = self.payments.key(operation).to_string();
        let count = |name: &str| counts[name][&key].as_u64().unwrap_or(0);
        (count("asked"), count("made"))
    }
}

#[tokio::test]
async fn what_we_seal_others_open_and_what_they_seal_we_read() {
    let Some(peer) = Peer::find() else { return };
    let refund = peer.refund("r-1", "25.00").metadata("note", "A&B <ใบเสร็จ> ]]> \" ' é");
    let outcome = peer.done(&refund).await;
    assert_is(&outcome, "succeeded");
    assert!(outcome.gateway_ref().is_some());
    assert_eq!(peer.counts(&refund).await, (1, 1));
    assert_is(&peer.done(&refund).await, "succeeded");
    assert_eq!(peer.counts(&refund).await, (1, 1));
}

#[tokio::test]
async fn a_refund_whose_answer_is_lost_is_made_once() {
    let Some(peer) = Peer::find() else { return };
    // The look before it is the first exchange, the refund the second.
    peer.transport.lost.store(2, Ordering::SeqCst);
    let refund = peer.refund("r-2", "30.00");
    assert_is(&peer.done(&refund).await, "succeeded");
    assert_eq!(peer.counts(&refund).await, (2, 1));
}

#[tokio::test]
async fn a_refund_is_found_in_their_list() {
    let Some(peer) = Peer::find() else { return };
    let other = peer.refund("r-3", "30.00");
    assert_is(&peer.done(&other).await, "succeeded");
    let account = TwoC2p::builder("JT07", MERCHANT_SECRET)
        .base_url(&peer.url)
        .maintenance_url(&peer.url)
        .maintenance_keys(MaintenanceKeys::new(MERCHANT_KEY, GATEWAY_CERTIFICATE).unwrap())
        .build()
        .unwrap();
    let list = account.refund_status(&peer.invoice, other.amount()).await.unwrap();
    assert_eq!(list.refunds.len(), 1);
    let key = peer.payments.key(&other).to_string();
    assert_eq!(list.refunds[0].user_defined[0].as_deref(), Some(key.as_str()));
    assert_eq!(list.refunds[0].amount(Currency::THB), other.amount());
}

#[tokio::test]
async fn keys_of_a_stranger_are_not_opened_there_and_nothing_is_made() {
    let Some(peer) = Peer::find() else { return };
    const STRANGER: &str = include_str!("../fixtures/twoc2p/maintenance/TEST-ONLY-stranger.key.pem");
    let account = TwoC2p::builder("JT07", MERCHANT_SECRET)
        .base_url(&peer.url)
        .maintenance_url(&peer.url)
        .maintenance_keys(MaintenanceKeys::new(STRANGER, GATEWAY_CERTIFICATE).unwrap())
        .build()
        .unwrap();
    let failure = account.payment_status(&peer.invoice, None).await.unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Credentials, "{failure:?}");
}
