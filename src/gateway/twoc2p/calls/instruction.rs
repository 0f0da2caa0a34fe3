//! How to pay at a counter or a machine.

use super::super::TwoC2p;
use super::super::json::{Members, Object};
use super::nested::{is_list, objects, texts};
use super::{foreign, prints_only};
use crate::failure::Failure;

impl TwoC2p {
    /// Asks how a payer pays with a slip at an agent (page `api-payment-instruction`), by the codes of the page
    /// `reference-payment-channels`: `THSCB`, `BANKCOUNTER`.
    ///
    /// Question and answer are signed.
    ///
    /// # Errors
    /// A [`Failure`]: no answer, or none that is signed, about this merchant and agent, and good; [`Failure::code`] has
    /// 2C2P's. Nothing was changed.
    pub async fn payment_instruction(
        &self,
        agent_code: &str,
        agent_channel_code: &str,
    ) -> Result<PaymentInstruction, Failure> {
        let mut claims = Object::new();
        claims.text("merchantID", &self.merchant_id);
        claims.text("agentCode", agent_code);
        claims.text("agentChannelCode", agent_channel_code);
        let members = self.ask_signed("paymentInstruction", &claims.finish()).await?;
        let differs = |name, ours: &str| members.text(name).is_some_and(|theirs| theirs != ours);
        let other = differs("agentCode", agent_code) || differs("agentChannelCode", agent_channel_code);
        if other || !is_list(&members, "instructions") {
            return Err(foreign("another agent or channel"));
        }
        Ok(PaymentInstruction::read(&members))
    }
}

/// How to pay at an agent (page `api-payment-instruction-response-parameter`). Signed by 2C2P.
#[derive(Clone)]
#[non_exhaustive]
pub struct PaymentInstruction {
    /// `agentCode`.
    pub agent_code: Option<String>,
    /// `agentChannelCode`.
    pub agent_channel_code: Option<String>,
    /// `instructions`, one for each language.
    pub instructions: Vec<InstructionSteps>,
}

/// The steps in one language.
#[derive(Clone)]
#[non_exhaustive]
pub struct InstructionSteps {
    /// `language`: `TH`, `EN`.
    pub language: Option<String>,
    /// `content`: one text for each step.
    pub steps: Vec<String>,
}

impl PaymentInstruction {
    fn read(members: &Members) -> Self {
        Self {
            agent_code: members.text("agentCode"),
            agent_channel_code: members.text("agentChannelCode"),
            instructions: objects(members, "instructions", |members| InstructionSteps {
                language: members.text("language"),
                steps: texts(members, "content"),
            }),
        }
    }
}

prints_only!(PaymentInstruction: instructions);

impl std::fmt::Debug for InstructionSteps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InstructionSteps")
            .field("steps", &self.steps.len())
            .finish_non_exhaustive()
    }
}
