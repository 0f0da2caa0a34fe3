//! The calls of 2C2P's payment API besides the operations: what may be shown to a payer, and at what rate of exchange.
//!
//! All of them read. None moves money, none is written to the journal, and each may be called again at any time.
//!
//! | call | answer | signed |
//! |---|---|---|
//! | [`transaction_status`](TwoC2p::transaction_status) | [`TransactionStatus`] | no |
//! | [`payment_options`](TwoC2p::payment_options) | [`PaymentOptions`] | no |
//! | [`payment_option_details`](TwoC2p::payment_option_details) | [`PaymentOptionDetails`] | no |
//! | [`card_token_info`](TwoC2p::card_token_info) | [`CardTokenInfo`] | no |
//! | [`exchange_rates`](TwoC2p::exchange_rates) | [`ExchangeRates`] | no |
//! | [`exchange_rates_signed`](TwoC2p::exchange_rates_signed) | [`ExchangeRates`] | yes |
//! | [`payment_instruction`](TwoC2p::payment_instruction) | [`PaymentInstruction`] | yes |
//!
//! An answer that is not signed is anybody's who sits between 2C2P and you, or has your DNS: good enough for a screen,
//! never for a decision about money or goods. Whether a payment was made is said by
//! [`payment_inquiry`](TwoC2p::payment_inquiry) alone.
//!
//! Texts are kept as they came; null, the empty string and an absent member are `None`, what has another form than
//! expected is `None` as well, and members that are not listed are passed over. Amounts are read exactly or not at
//! all; the text stands beside them. Escape what you put into a page: 2C2P's icons and terms are addresses and markup.
//!
//! ```no_run
//! use payonce::gateway::twoc2p::TwoC2p;
//! use payonce::gateway::twoc2p::calls::{PaymentToken, Viewer};
//! use payonce::secret::Secret;
//!
//! # async fn screen(twoc2p: TwoC2p, page: Secret) -> Result<(), Box<dyn std::error::Error>> {
//! let token = PaymentToken::from_page_url(&page).ok_or("no address of 2C2P's page")?;
//! let status = twoc2p.transaction_status(&token, &Viewer::new().locale("th")).await?;
//! if status.flow_is_over() {
//!     // Paid or not: `Payments::resolve` asks 2C2P and records the answer.
//! }
//! # Ok(())
//! # }
//! ```

mod card_tokens;
mod channels;
mod details;
mod instruction;
mod nested;
mod rates;
mod status;
mod token;

pub use card_tokens::{CardToken, CardTokenInfo};
pub use channels::{
    Channel, ChannelCategory, FxOffer, MerchantDetails, PaymentConfiguration, PaymentOptions, Recurring,
    TransactionDetails,
};
pub use details::{CardRule, CardType, InstallmentPlan, PaymentChannel, PaymentOptionDetails};
pub use instruction::{InstructionSteps, PaymentInstruction};
pub use rates::{ExchangeRates, FxRate};
pub use status::{StatusResult, StatusTransaction, TransactionStatus};
pub use token::{PaymentToken, Viewer};

use super::TwoC2p;
use super::codes::{Api, Class, class};
use super::json::Members;
use super::response::{Reply, doubtful, open, signed_answer};
use super::result::code;
use crate::failure::{Failure, FailureKind};

/// The `Debug` of an answer: the fields named and nothing else, since the others are the payer's, or may be anything.
macro_rules! prints_only {
    ($type:ident: $($field:ident),+) => {
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type))
                    $(.field(stringify!($field), &self.$field))+
                    .finish_non_exhaustive()
            }
        }
    };
}
use prints_only;

/// An answer that has a code, signed or not.
struct Answer {
    members: Members,
    code: String,
    http_status: u16,
}

impl Answer {
    fn new(members: Members, http_status: u16) -> Result<Self, Failure> {
        match code(&members) {
            Some(code) => Ok(Self {
                members,
                code,
                http_status,
            }),
            None => Err(doubtful(FailureKind::Unreadable, Api::Payment, None, http_status)),
        }
    }

    /// The members of an answer with code 0000; every other code stands for "there is no answer".
    fn good(self) -> Result<Members, Failure> {
        if self.code == "0000" {
            return Ok(self.members);
        }
        let kind = match class(Api::Payment, &self.code) {
            Class::Auth => FailureKind::Credentials,
            Class::Duplicate => FailureKind::Duplicate,
            Class::InvalidRequest | Class::NotFound | Class::Expired => FailureKind::Unsupported,
            Class::Success
            | Class::Pending
            | Class::InProgress
            | Class::Declined
            | Class::Cancelled
            | Class::GatewayError
            | Class::Unknown => FailureKind::ServerFault,
        };
        Err(doubtful(kind, Api::Payment, Some(&self.code), self.http_status))
    }
}

impl TwoC2p {
    /// A call whose answer need not be signed.
    async fn ask(&self, path: &str, body: String) -> Result<Answer, Failure> {
        let response = self.post(path, body, None).await?;
        let (Reply::Signed(members) | Reply::Plain(members)) = open(&response, &self.signer)?;
        Answer::new(members, response.status)
    }

    /// A signed call, whose answer must be signed too, be good, and name this merchant.
    async fn ask_signed(&self, path: &str, claims: &str) -> Result<Members, Failure> {
        let response = self.post(path, self.signed(claims), None).await?;
        let members = Answer::new(signed_answer(&response, &self.signer)?, response.status)?.good()?;
        // Without this, any other signed message with the same code could be played back in its place.
        match members.text("merchantID") {
            Some(merchant) if merchant == self.merchant_id => Ok(members),
            _ => Err(foreign("another merchant")),
        }
    }
}

/// A signed answer to another question.
fn foreign(whose: &str) -> Failure {
    let detail = format!("2C2P's answer is about {whose}");
    Failure::maybe_executed(FailureKind::Unreadable, detail).with_http_status(200)
}
