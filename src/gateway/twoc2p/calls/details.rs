//! One group of ways to pay, in full: its channels, and what each wants to know.

use super::super::TwoC2p;
use super::super::json::Members;
use super::super::result::money;
use super::channels::PaymentConfiguration;
use super::nested::{count, flag, json, object, objects, text_map, texts};
use super::prints_only;
use super::token::{PaymentToken, Viewer};
use crate::failure::Failure;
use crate::money::Money;
use std::collections::BTreeMap;

impl TwoC2p {
    /// Lists the channels of one group (page `api-payment-option-details`): `category_code` and `group_code` are those
    /// of [`payment_options`](Self::payment_options), `GCARD` and `CC` for cards.
    ///
    /// Neither question nor answer is signed.
    ///
    /// # Errors
    /// A [`Failure`]: no answer, or none with code 0000; [`Failure::code`] has 2C2P's. Nothing was changed.
    pub async fn payment_option_details(
        &self,
        token: &PaymentToken,
        category_code: &str,
        group_code: &str,
        viewer: &Viewer,
    ) -> Result<PaymentOptionDetails, Failure> {
        let mut body = viewer.body(token);
        body.text("categoryCode", category_code).text("groupCode", group_code);
        let members = self.ask("paymentOptionDetails", body.finish()).await?.good()?;
        Ok(PaymentOptionDetails::read(&members))
    }
}

/// The channels of one group (page `api-payment-option-details-response-parameter`). Not signed: good for a form on a
/// screen alone.
#[derive(Clone)]
#[non_exhaustive]
pub struct PaymentOptionDetails {
    /// `name` of the group, for the payer.
    pub name: Option<String>,
    /// `categoryCode`.
    pub category_code: Option<String>,
    /// `groupCode`.
    pub group_code: Option<String>,
    /// `iconUrl`.
    pub icon_url: Option<String>,
    /// `totalChannel`.
    pub total_channels: Option<u32>,
    /// `validation.cardNo`: the card numbers that are taken.
    pub card_number: Option<CardRule>,
    /// `validation.cardTypes`: the brands of cards.
    pub card_types: Vec<CardType>,
    /// `channels`.
    pub channels: Vec<PaymentChannel>,
    /// `configuration`: what the page may offer besides.
    pub configuration: Option<PaymentConfiguration>,
}

/// What a card number must begin with.
#[derive(Clone)]
#[non_exhaustive]
pub struct CardRule {
    /// `prefixes`.
    pub prefixes: Vec<String>,
    /// `regex`, of 2C2P's making: bound the time that it may take, as with every pattern from outside.
    pub regex: Option<String>,
}

/// A brand of cards.
#[derive(Clone)]
#[non_exhaustive]
pub struct CardType {
    /// `sequenceNo`: the place in a list on screen.
    pub sequence_no: Option<u32>,
    /// `name`: `VISA`.
    pub name: Option<String>,
    /// `iconUrl` (`iconURL` in 2C2P's table).
    pub icon_url: Option<String>,
    /// `prefixes` and `regex` of its numbers.
    pub rule: CardRule,
}

/// A channel: a bank, a wallet, a brand of cards.
#[derive(Clone)]
#[non_exhaustive]
pub struct PaymentChannel {
    /// `sequenceNo`: the place in a list on screen.
    pub sequence_no: Option<u32>,
    /// `name`, for the payer.
    pub name: Option<String>,
    /// `bankShortName`.
    pub bank_short_name: Option<String>,
    /// `currencyCodes`.
    pub currency_codes: Vec<String>,
    /// `iconUrl`.
    pub icon_url: Option<String>,
    /// `logoUrl`.
    pub logo_url: Option<String>,
    /// `isDown`: whether it is out of order now.
    pub is_down: Option<bool>,
    /// `payment.code.channelCode`: for a direct payment by this channel, as the two after it.
    pub channel_code: Option<String>,
    /// `payment.code.agentCode`.
    pub agent_code: Option<String>,
    /// `payment.code.agentChannelCode`.
    pub agent_channel_code: Option<String>,
    /// `payment.input`: the members of a direct payment that the channel looks at, by 2C2P's names, and how: `M` wants
    /// it, `O` takes it. Other letters occur.
    pub inputs: BTreeMap<String, String>,
    /// `payment.validation`: rules for the inputs, as the JSON text that came; the page gives them no form.
    pub validation: Option<String>,
    /// `payment.info.terms`: to be shown to the payer; may be markup.
    pub terms: Option<String>,
    /// `payment.info.plans`.
    pub plans: Vec<InstallmentPlan>,
}

/// A plan for payment in instalments.
#[derive(Clone)]
#[non_exhaustive]
pub struct InstallmentPlan {
    /// `sequenceNo`: the place in a list on screen.
    pub sequence_no: Option<u32>,
    /// `period`, months.
    pub period: Option<u32>,
    /// `payLaterPeriod`, months.
    pub pay_later_period: Option<u32>,
    /// `interestType`.
    pub interest_type: Option<String>,
    /// `interestRate`, per cent, the digits as they came.
    pub interest_rate: Option<String>,
    /// `monthlyAmount` in `currencyCode`; `None` when either cannot be read exactly.
    pub monthly_amount: Option<Money>,
    /// `monthlyAmount` as it came.
    pub monthly_amount_text: Option<String>,
    /// `monthlyInterest` as it came.
    pub monthly_interest: Option<String>,
    /// `currencyCode`.
    pub currency_code: Option<String>,
    /// `label`, for the payer.
    pub label: Option<String>,
    /// `terms`: to be shown to the payer; may be markup.
    pub terms: Option<String>,
}

impl PaymentOptionDetails {
    fn read(members: &Members) -> Self {
        let text = |name| members.text(name);
        let validation = object(members, "validation");
        let rule = validation.as_ref().and_then(|members| object(members, "cardNo"));
        let types = validation
            .as_ref()
            .map(|members| objects(members, "cardTypes", CardType::read));
        Self {
            name: text("name"),
            category_code: text("categoryCode"),
            group_code: text("groupCode"),
            icon_url: text("iconUrl"),
            total_channels: count(members, "totalChannel"),
            card_number: rule.as_ref().map(CardRule::read),
            card_types: types.unwrap_or_default(),
            channels: objects(members, "channels", PaymentChannel::read),
            configuration: PaymentConfiguration::within(members),
        }
    }
}

impl CardRule {
    fn read(members: &Members) -> Self {
        Self {
            prefixes: texts(members, "prefixes"),
            regex: members.text("regex"),
        }
    }
}

impl CardType {
    fn read(members: &Members) -> Self {
        Self {
            sequence_no: count(members, "sequenceNo"),
            name: members.text("name"),
            icon_url: members.text("iconUrl").or(members.text("iconURL")),
            rule: CardRule::read(members),
        }
    }
}

impl PaymentChannel {
    fn read(members: &Members) -> Self {
        let text = |name| members.text(name);
        let payment = object(members, "payment");
        let part = |name| object(payment.as_ref()?, name);
        let (code, info) = (part("code"), part("info"));
        let in_code = |name| code.as_ref()?.text(name);
        let plans = info.as_ref().map(|info| objects(info, "plans", InstallmentPlan::read));
        Self {
            sequence_no: count(members, "sequenceNo"),
            name: text("name"),
            bank_short_name: text("bankShortName"),
            currency_codes: texts(members, "currencyCodes"),
            icon_url: text("iconUrl"),
            logo_url: text("logoUrl"),
            is_down: flag(members, "isDown"),
            channel_code: in_code("channelCode"),
            agent_code: in_code("agentCode"),
            agent_channel_code: in_code("agentChannelCode"),
            inputs: payment
                .as_ref()
                .map(|payment| text_map(payment, "input"))
                .unwrap_or_default(),
            validation: payment.as_ref().and_then(|payment| json(payment, "validation")),
            terms: info.as_ref().and_then(|info| info.text("terms")),
            plans: plans.unwrap_or_default(),
        }
    }
}

impl InstallmentPlan {
    fn read(members: &Members) -> Self {
        let text = |name| members.text(name);
        let currency_code = text("currencyCode");
        Self {
            sequence_no: count(members, "sequenceNo"),
            period: count(members, "period"),
            pay_later_period: count(members, "payLaterPeriod"),
            interest_type: text("interestType"),
            interest_rate: text("interestRate"),
            monthly_amount: money(members.raw("monthlyAmount"), currency_code.as_deref()),
            monthly_amount_text: text("monthlyAmount"),
            monthly_interest: text("monthlyInterest"),
            currency_code,
            label: text("label"),
            terms: text("terms"),
        }
    }
}

prints_only!(PaymentOptionDetails: total_channels, channels);
prints_only!(PaymentChannel: sequence_no, is_down, plans);
prints_only!(InstallmentPlan: sequence_no, period, monthly_amount);
prints_only!(CardType: sequence_no);

impl std::fmt::Debug for CardRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CardRule").finish_non_exhaustive()
    }
}
