//! What 2C2P takes with a void, a settlement or a refund besides amount and payment.

use crate::gateway::twoc2p::NAME;
use crate::gateway::twoc2p::options::is_web_address;
use crate::money::Money;
use crate::operation::{Canonical, GatewayOptions, Invalid};
use crate::secret::Secret;
use std::fmt;

/// Options of a capture, void or refund at 2C2P (page `payment-maintenance-refund-guide` and its request parameters).
#[derive(Clone, Default)]
pub struct ActionOptions {
    pub(super) payment_amount: Option<Money>,
    pub(super) bank_account: Option<BankAccount>,
    pub(super) sub_merchants: Vec<(String, Money)>,
    pub(super) notify_url: Option<String>,
}

/// Where a refund of a payment without a card goes.
#[derive(Clone)]
pub(super) struct BankAccount {
    pub(super) bank_code: String,
    pub(super) name: Secret,
    pub(super) number: Secret,
}

impl ActionOptions {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The amount of the payment that the operation acts on. Needed to void a payment that was not made through this
    /// journal; the journal knows those that were.
    #[must_use]
    pub fn payment_amount(mut self, amount: Money) -> Self {
        self.payment_amount = Some(amount);
        self
    }

    /// The payer's bank account, for refunds of payments without a card: bank code (at most 10 characters), name and
    /// number (50 each).
    #[must_use]
    pub fn bank_account(
        mut self,
        bank_code: impl Into<String>,
        name: impl Into<Secret>,
        number: impl Into<Secret>,
    ) -> Self {
        self.bank_account = Some(BankAccount {
            bank_code: bank_code.into(),
            name: name.into(),
            number: number.into(),
        });
        self
    }

    /// A sub-merchant's share. All shares together must be the amount of the operation.
    #[must_use]
    pub fn sub_merchant(mut self, merchant_id: impl Into<String>, amount: Money) -> Self {
        self.sub_merchants.push((merchant_id.into(), amount));
        self
    }

    /// Where 2C2P posts the final state of a refund that takes time, instead of the address in the account's set-up.
    #[must_use]
    pub fn notify_url(mut self, url: impl Into<String>) -> Self {
        self.notify_url = Some(url.into());
        self
    }

    /// Checks what can be checked without the payment.
    pub(super) fn check(&self, amount: Option<Money>) -> Result<(), Invalid> {
        let fits = |field, text: &str, most| match text.chars().count() {
            1.. if text.chars().count() <= most => Ok(()),
            _ => Err(Invalid::new(field, format!("must have 1 to {most} characters"))),
        };
        if let Some(account) = &self.bank_account {
            fits("bankCode", &account.bank_code, 10)?;
            fits("accountName", account.name.expose(), 50)?;
            fits("accountNumber", account.number.expose(), 50)?;
        }
        for (merchant_id, _) in &self.sub_merchants {
            fits("subMID", merchant_id, 25)?;
        }
        if let Some(url) = &self.notify_url {
            check_notify_url("notify_url", url)?;
        }
        let currency = amount.map(Money::currency);
        let same = |share: &Money| currency.is_none_or(|currency| share.currency() == currency);
        if !self.sub_merchants.iter().all(|(_, share)| same(share)) || !self.payment_amount.iter().all(same) {
            return Err(Invalid::new("subAmount", "is not in the currency of the operation"));
        }
        let sum = |total: i64, (_, share): &(String, Money)| total.checked_add(share.minor());
        let shares = self.sub_merchants.iter().try_fold(0, sum);
        if !self.sub_merchants.is_empty() && amount.is_some_and(|amount| shares != Some(amount.minor())) {
            return Err(Invalid::new(
                "subAmount",
                "the shares are not the amount of the operation",
            ));
        }
        Ok(())
    }
}

/// Type C 250 of the page.
pub(super) fn check_notify_url(field: &'static str, url: &str) -> Result<(), Invalid> {
    if is_web_address(url) && url.chars().count() <= 250 {
        return Ok(());
    }
    let reason = "must be an absolute http or https URL of at most 250 characters";
    Err(Invalid::new(field, reason))
}

impl GatewayOptions for ActionOptions {
    fn gateway(&self) -> &'static str {
        NAME
    }

    fn canonical(&self, out: &mut Canonical) {
        let amount = |amount: &Money| format!("{} {}", amount.minor(), amount.currency().code());
        out.optional("payment_amount", self.payment_amount.as_ref().map(amount).as_deref());
        if let Some(account) = &self.bank_account {
            out.put("bankCode", &account.bank_code);
            out.put("accountName", account.name.expose());
            out.put("accountNumber", account.number.expose());
        }
        for (merchant_id, share) in &self.sub_merchants {
            out.put("subMID", merchant_id);
            out.put("subAmount", &amount(share));
        }
        out.optional("notifyURL", self.notify_url.as_deref());
    }
}

/// Without the payer's account.
impl fmt::Debug for ActionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionOptions")
            .field("payment_amount", &self.payment_amount)
            .field("bank_account", &self.bank_account.is_some())
            .field("sub_merchants", &self.sub_merchants.len())
            .finish_non_exhaustive()
    }
}
