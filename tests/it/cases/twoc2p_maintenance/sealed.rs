//! A 2C2P whose answers the test writes, sealed with 2C2P's test key and signed for the merchant of the samples.

use super::{ACTION, element, thb};
use crate::fakes::sealing::Sealer;
use crate::wired::{Site, Wired};
use payonce::gateway::twoc2p::MaintenanceKeys;
use payonce::operation::{GatewayRef, Operation, Target};
use payonce::testing::server::{LoggedRequest, Reply, ScriptedServer};
use std::sync::Arc;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/twoc2p/maintenance");

pub(super) fn fixture(name: &str) -> String {
    std::fs::read_to_string(format!("{FIXTURES}/{name}")).unwrap()
}

/// The scripted 2C2P and a shop at it.
pub(super) struct Written {
    pub(super) server: ScriptedServer,
    pub(super) shop: Wired,
    pub(super) sealer: Arc<Sealer>,
}

impl Written {
    /// With the keys of these files: 2C2P's own, the merchant's own, and the public half of each.
    pub(super) fn with_keys(gateway: &str, gateway_public: &str, merchant: &str, merchant_public: &str) -> Self {
        let keys = MaintenanceKeys::new(fixture(merchant), fixture(gateway_public)).unwrap();
        let server = ScriptedServer::start();
        let shop = Wired::new(Site {
            twoc2p: Some(format!("{}/payment/4.3", server.url())),
            maintenance: Some((format!("{}/PaymentAction/2.0/action", server.url()), keys)),
            ..Site::default()
        });
        Self {
            server,
            shop,
            sealer: Arc::new(Sealer::new(&fixture(gateway), &fixture(merchant_public))),
        }
    }

    pub(super) fn new() -> Self {
        Self::with_keys(
            "TEST-ONLY-gateway.key.pem",
            "TEST-ONLY-gateway.cert.pem",
            "TEST-ONLY-merchant.key.pem",
            "TEST-ONLY-merchant.cert.pem",
        )
    }

    /// Answers every request by its process type and document.
    pub(super) fn answers(&self, answer: impl Fn(&Sealer, &str, &str) -> Reply + Send + Sync + 'static) {
        let sealer = Arc::clone(&self.sealer);
        self.server.always(ACTION, move |request: &LoggedRequest| {
            let document = sealer.open(&request.text());
            let process = element(&document, "processType").unwrap();
            answer(&sealer, &process, &document)
        });
    }

    /// The documents of the requests of one process type.
    pub(super) fn requests(&self, process: &str) -> Vec<String> {
        let documents = self
            .server
            .requests()
            .into_iter()
            .map(|request| self.sealer.open(&request.text()));
        documents
            .filter(|document| element(document, "processType").as_deref() == Some(process))
            .collect()
    }
}

/// A refund of 25.00 of this invoice, which another journal holds.
pub(super) fn refund(invoice: &str) -> Operation {
    Operation::refund("r-1", thb("25.00"), Target::Gateway(GatewayRef::new(invoice))).unwrap()
}

pub(super) fn sealed(sealer: &Sealer, document: &str) -> Reply {
    text(sealer.seal(document))
}

pub(super) fn text(body: impl Into<String>) -> Reply {
    Reply::new(200).header("Content-Type", "text/plain").body(body.into())
}

/// A payment of 100.00 that is settled: what the look before a refund finds.
pub(super) fn settled(document: &str) -> String {
    let invoice = element(document, "invoiceNo").unwrap();
    response("00", "I", &invoice, "<amount>100.00</amount><status>S</status>")
}

pub(super) fn response(code: &str, process: &str, invoice: &str, more: &str) -> String {
    format!(
        "<PaymentProcessResponse><version>4.3</version><respCode>{code}</respCode><respDesc>text</respDesc>\
         <processType>{process}</processType><invoiceNo>{invoice}</invoiceNo>{more}</PaymentProcessResponse>"
    )
}

/// The list of refunds with one row, which carries the key of the operation that asked for it.
pub(super) fn listed(invoice: &str, key: &str, amount: &str) -> String {
    response(
        "00",
        "RS",
        invoice,
        &format!(
            "<amount>100.00</amount><status>S</status><refundList><refund amount=\"{amount}\" status=\"RF\" \
             referenceNo=\"77\"><userDefined1>{key}</userDefined1></refund></refundList>"
        ),
    )
}
