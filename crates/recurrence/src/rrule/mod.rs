//! Recurrence rules of RFC 5545, evaluated on wall-clock time.
//!
//! The text is an `RRULE:` line, and below it any number of `EXDATE:` and `RDATE:` lines:
//!
//! ```text
//! RRULE:FREQ=MONTHLY;BYDAY=-1FR
//! EXDATE:20271231T090000,20281229T090000
//! RDATE:20280103T090000
//! ```
//!
//! - Times in it are local to the zone of the action; with a `Z` they are instants. A `TZID=` is
//!   refused: an action has one zone.
//! - There is no DTSTART in it. The anchor that [`RuleSet::compile`] takes (an action's `starts_at`) has
//!   its place. An anchor that the rule does not match is only an anchor, not an occurrence.
//! - `UNTIL` with a bare date takes in the whole of that day.
//! - EXDATE takes away from the rule and from RDATE alike. COUNT and UNTIL end the rule, not RDATE.
//! - Names and values are read in any case and stored in capitals.
//! - The calendar ends with the year 9999, as RFC 5545's dates do.

#[cfg(test)]
mod bounded_tests;
mod cadence;
mod compiled;
mod count;
mod days;
mod error;
mod parse;
mod rule;
mod search;
mod stamp;
mod times;
mod values;

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

pub use compiled::CompiledRuleSet;
pub use error::RuleError;
pub use rule::{End, Freq, NthWeekday, Rule};
pub use stamp::Stamp;

use crate::civil::Civil;

/// The longest text that is read, in bytes.
pub const MAX_TEXT: usize = 20_000;
/// The most times that EXDATE and RDATE may each hold.
pub const MAX_DATES: usize = 500;
/// The largest COUNT. The last occurrence is found by counting out from the anchor, at every compile.
pub const MAX_COUNT: u32 = 10_000;

/// A validated rule with the times taken out of it and added to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuleSet {
    rule: Rule,
    /// EXDATE, sorted.
    excluded: Vec<Stamp>,
    /// RDATE, sorted.
    added: Vec<Stamp>,
}

impl RuleSet {
    pub fn parse(text: &str) -> Result<RuleSet, RuleError> {
        parse::rule_set(text)
    }

    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// EXDATE: the times taken out.
    pub fn excluded(&self) -> &[Stamp] {
        &self.excluded
    }

    /// RDATE: the times added.
    pub fn added(&self) -> &[Stamp] {
        &self.added
    }

    /// UNTIL where it is given as an instant, in seconds since 1970-01-01T00:00:00Z.
    ///
    /// A compiled rule already ends at what the clock shows then. In a repeated hour the clock shows
    /// that twice: whoever turns wall-clock times into instants has the last word there.
    pub fn until_utc(&self) -> Option<i64> {
        match self.rule.end {
            End::Until(Stamp::Utc(instant)) => Some(instant),
            _ => None,
        }
    }

    /// Ties the rule to its anchor. `local` tells what the clock of the action's zone shows at an instant
    /// given in seconds since 1970-01-01T00:00:00Z; it is asked only for an UNTIL written in UTC. Times
    /// of EXDATE and RDATE that are written in UTC are left out: they are instants, not readings.
    ///
    /// # Errors
    /// [`RuleError::CountOutOfReach`] when the rule is so sparse that its COUNT can't be counted out.
    pub fn compile(
        &self,
        anchor: Civil,
        local: impl Fn(i64) -> Civil,
    ) -> Result<CompiledRuleSet, RuleError> {
        CompiledRuleSet::new(self, anchor, local)
    }
}

impl FromStr for RuleSet {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<RuleSet, RuleError> {
        RuleSet::parse(text)
    }
}

impl Display for RuleSet {
    /// The canonical form: one line each for the rule, EXDATE and RDATE.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "RRULE:{}", self.rule)?;
        for (name, stamps) in [("EXDATE", &self.excluded), ("RDATE", &self.added)] {
            for (i, stamp) in stamps.iter().enumerate() {
                match i {
                    0 => write!(f, "\n{name}:{stamp}")?,
                    _ => write!(f, ",{stamp}")?,
                }
            }
        }
        Ok(())
    }
}
