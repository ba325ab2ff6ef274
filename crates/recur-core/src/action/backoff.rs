//! The pause before a retry, as an action has it: what is accepted is what a failure report can compute with.

use super::invalid::Invalid;
use crate::backoff::RetryBackoff;

/// Refuses a JSON object that is no retry_backoff.
pub(super) fn check(argument: &str, text: &str) -> Result<(), Invalid> {
    let refused = |error: crate::InvalidValue| {
        let mut invalid = Invalid::argument(argument, text, error.problem());
        if let Some(detail) = error.detail() {
            invalid = invalid.with_detail(detail);
        }
        match error.hint() {
            Some(hint) => invalid.with_hint(hint),
            None => invalid,
        }
    };
    RetryBackoff::parse(text).map(drop).map_err(refused)
}
