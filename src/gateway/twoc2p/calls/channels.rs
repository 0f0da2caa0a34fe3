//! The ways to pay an invoice, by category and group.

use super::super::TwoC2p;
use super::super::json::Members;
use super::super::result::money;
use super::nested::{count, flag, object, objects};
use super::prints_only;
use super::token::{PaymentToken, Viewer};
use crate::failure::Failure;
use crate::money::Money;

impl TwoC2p {
    /// Lists the ways in which an invoice can be paid (page `api-payment-option`), for a payer to choose from.
    ///
    /// Neither question nor answer is signed.
    ///
    /// # Errors
    /// A [`Failure`]: no answer, or none with code 0000; [`Failure::code`] has 2C2P's. Nothing was changed.
    pub async fn payment_options(&self, token: &PaymentToken, viewer: &Viewer) -> Result<PaymentOptions, Failure> {
        let members = self.ask("paymentOption", viewer.body(token).finish()).await?.good()?;
        Ok(PaymentOptions::read(&members))
    }
}

/// The ways to pay an invoice (page `api-payment-option-response-parameter`). Not signed: good for a screen alone, the
/// amount included. The payer's addresses, which 2C2P repeats from the token request, are not read.
#[derive(Clone)]
#[non_exhaustive]
pub struct PaymentOptions {
    /// `merchantDetails`.
    pub merchant: Option<MerchantDetails>,
    /// `channelCategories`.
    pub categories: Vec<ChannelCategory>,
    /// `transactionDetails`.
    pub transaction: Option<TransactionDetails>,
    /// `configuration`: what the page may offer besides.
    pub configuration: Option<PaymentConfiguration>,
}

/// The merchant, as the payer knows it.
#[derive(Clone)]
#[non_exhaustive]
pub struct MerchantDetails {
    /// `id`.
    pub id: Option<String>,
    /// `name`.
    pub name: Option<String>,
    /// `address`.
    pub address: Option<String>,
    /// `email`.
    pub email: Option<String>,
    /// `logoUrl`.
    pub logo_url: Option<String>,
    /// `bannerUrl`.
    pub banner_url: Option<String>,
}

/// A kind of payment, such as cards, with its groups.
#[derive(Clone)]
#[non_exhaustive]
pub struct ChannelCategory {
    /// The category itself; its code is the `category_code` of
    /// [`payment_option_details`](TwoC2p::payment_option_details).
    pub channel: Channel,
    /// `groups`; the code of each is the `group_code`.
    pub groups: Vec<Channel>,
}

/// A category of payments, or a group in one.
#[derive(Clone)]
#[non_exhaustive]
pub struct Channel {
    /// `sequenceNo`: the place in a list on screen.
    pub sequence_no: Option<u32>,
    /// `name`, for the payer.
    pub name: Option<String>,
    /// `code`: `GCARD`, `CC`, `QR` and others.
    pub code: Option<String>,
    /// `iconUrl`.
    pub icon_url: Option<String>,
    /// `logoUrl`.
    pub logo_url: Option<String>,
    /// `default`: whether it is chosen beforehand.
    pub is_default: Option<bool>,
    /// `channelCode`, where the group is one channel.
    pub channel_code: Option<String>,
    /// `agentChannelCode`, where the group is one channel.
    pub agent_channel_code: Option<String>,
}

/// What is to be paid.
#[derive(Clone)]
#[non_exhaustive]
pub struct TransactionDetails {
    /// `amount` in `currencyCode`; `None` when either cannot be read exactly.
    pub amount: Option<Money>,
    /// `amount` as it came.
    pub amount_text: Option<String>,
    /// `currencyCode`.
    pub currency_code: Option<String>,
    /// `invoiceNo`.
    pub invoice_no: Option<String>,
    /// `description`: what is bought.
    pub description: Option<String>,
    /// `recurring`: the plan, where the payment begins one.
    pub recurring: Option<Recurring>,
    /// `showFxRate`: whether other currencies are on offer.
    pub show_fx_rate: Option<bool>,
}

/// A recurring payment plan.
#[derive(Clone)]
#[non_exhaustive]
pub struct Recurring {
    /// `amount` of each payment, in the currency of the first one.
    pub amount: Option<Money>,
    /// `amount` as it came.
    pub amount_text: Option<String>,
    /// `interval`, days.
    pub interval_days: Option<u32>,
    /// `count`: how many payments; 0 for no end.
    pub count: Option<u32>,
    /// `chargeNextDate`, `ddMMyyyy`.
    pub charge_next_date: Option<String>,
    /// `chargeOnDate`, `ddMM`.
    pub charge_on_date: Option<String>,
}

/// What a payment page may offer besides the channels.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PaymentConfiguration {
    /// `tokenize`: whether the payer may have the card stored.
    pub tokenize: Option<bool>,
    /// `tokenizeOnly`: whether the card is stored and not charged.
    pub tokenize_only: Option<bool>,
    /// `cardTokenOnly` (`customerTokenOnly`): whether only stored cards may pay.
    pub card_token_only: Option<bool>,
    /// `immediatePayment`: whether the payment goes through without another question.
    pub immediate_payment: Option<bool>,
    /// `fx.mcp`: a choice of currencies.
    pub mcp: Option<FxOffer>,
    /// `fx.dcc`: the currency of the payer's card.
    pub dcc: Option<FxOffer>,
}

/// Whether payment in another currency is offered, and on what terms.
#[derive(Clone)]
#[non_exhaustive]
pub struct FxOffer {
    /// `active`.
    pub active: Option<bool>,
    /// `terms`: to be shown to the payer; may be markup.
    pub terms: Option<String>,
}

impl PaymentOptions {
    fn read(members: &Members) -> Self {
        let part = |name| object(members, name);
        Self {
            merchant: part("merchantDetails").as_ref().map(MerchantDetails::read),
            categories: objects(members, "channelCategories", |members| ChannelCategory {
                channel: Channel::read(members),
                groups: objects(members, "groups", Channel::read),
            }),
            transaction: part("transactionDetails").as_ref().map(TransactionDetails::read),
            configuration: PaymentConfiguration::within(members),
        }
    }
}

impl MerchantDetails {
    pub(super) fn read(members: &Members) -> Self {
        let text = |name| members.text(name);
        Self {
            id: text("id"),
            name: text("name"),
            address: text("address"),
            email: text("email"),
            logo_url: text("logoUrl"),
            banner_url: text("bannerUrl"),
        }
    }
}

impl Channel {
    fn read(members: &Members) -> Self {
        let text = |name| members.text(name);
        Self {
            sequence_no: count(members, "sequenceNo"),
            name: text("name"),
            code: text("code"),
            icon_url: text("iconUrl"),
            logo_url: text("logoUrl"),
            is_default: flag(members, "default"),
            channel_code: text("channelCode"),
            agent_channel_code: text("agentChannelCode"),
        }
    }
}

impl TransactionDetails {
    fn read(members: &Members) -> Self {
        let text = |name| members.text(name);
        let currency_code = text("currencyCode");
        let recurring = |members: &Members| Recurring {
            amount: money(members.raw("amount"), currency_code.as_deref()),
            amount_text: members.text("amount"),
            interval_days: count(members, "interval"),
            count: count(members, "count"),
            charge_next_date: members.text("chargeNextDate"),
            charge_on_date: members.text("chargeOnDate"),
        };
        Self {
            amount: money(members.raw("amount"), currency_code.as_deref()),
            amount_text: text("amount"),
            invoice_no: text("invoiceNo"),
            description: text("description"),
            recurring: object(members, "recurring").as_ref().map(recurring),
            show_fx_rate: flag(members, "showFxRate"),
            currency_code,
        }
    }
}

impl PaymentConfiguration {
    /// Reads `configuration.payment`.
    pub(super) fn within(members: &Members) -> Option<Self> {
        let payment = object(&object(members, "configuration")?, "payment")?;
        let fx = object(&payment, "fx");
        let offer = |name| {
            let offer = object(fx.as_ref()?, name)?;
            Some(FxOffer {
                active: flag(&offer, "active"),
                terms: offer.text("terms"),
            })
        };
        Some(Self {
            tokenize: flag(&payment, "tokenize"),
            tokenize_only: flag(&payment, "tokenizeOnly"),
            card_token_only: flag(&payment, "cardTokenOnly").or(flag(&payment, "customerTokenOnly")),
            immediate_payment: flag(&payment, "immediatePayment"),
            mcp: offer("mcp"),
            dcc: offer("dcc"),
        })
    }
}

prints_only!(PaymentOptions: transaction, configuration, categories);
prints_only!(ChannelCategory: channel, groups);
prints_only!(Channel: sequence_no, is_default);
prints_only!(TransactionDetails: amount, recurring);
prints_only!(Recurring: amount, interval_days, count);
prints_only!(FxOffer: active);

impl std::fmt::Debug for MerchantDetails {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MerchantDetails").finish_non_exhaustive()
    }
}
