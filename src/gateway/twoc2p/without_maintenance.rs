//! What is left of the maintenance API without its feature: the account has no keys for it.

use super::TwoC2p;
use super::result::Conclusion;
use crate::failure::{Failure, FailureKind};
use crate::gateway::{Inquiry, Prepared, Refusal};
use crate::operation::{Operation, OperationKey};
use crate::outcome::Outcome;
use crate::record::{Instruction, Record};

const MISSING: &str = "needs the maintenance API, feature twoc2p-maintenance";

impl TwoC2p {
    pub(super) fn prepare_action(&self, _key: OperationKey, operation: &Operation) -> Result<Prepared, Refusal> {
        Err(Refusal::Unsupported(format!("{} at 2C2P {MISSING}", operation.kind())))
    }

    pub(super) async fn act(&self, _instruction: &Instruction) -> Result<Outcome, Failure> {
        Err(Failure::not_executed(FailureKind::Unsupported, MISSING))
    }

    pub(super) async fn look(&self, _record: &Record) -> Result<Inquiry, Failure> {
        Err(Failure::maybe_executed(FailureKind::Unsupported, MISSING))
    }

    pub(super) async fn second_opinion(
        &self,
        _record: &Record,
        first: Conclusion,
        _ours: bool,
    ) -> Result<(Conclusion, bool), Failure> {
        Ok((first, true))
    }
}
