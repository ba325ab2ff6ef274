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
//! - Times are local to the zone of the action; times with a `Z` are instants. `TZID=` is refused,
//!   because an action has one zone.
//! - DTSTART is refused. The anchor of [`RuleSet::compile`], an action's `starts_at`, replaces it. An
//!   anchor that the rule does not match is no occurrence.
//! - `UNTIL` with a bare date includes the whole of that day.
//! - EXDATE removes times of the rule and of RDATE. COUNT and UNTIL end the rule, not RDATE.
//! - Names and values may be in any case; the canonical form has capitals.
//! - The calendar ends with the year 9999, the last that RFC 5545 can write.

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
/// The most times that EXDATE and RDATE may have each.
pub const MAX_DATES: usize = 500;
/// The largest COUNT. Every compile finds the last occurrence by counting from the anchor.
pub const MAX_COUNT: u32 = 10_000;

/// A validated rule with the times that EXDATE removes and RDATE adds.
///
/// # Examples
/// ```
/// use recurrence::civil::{Civil, Date};
/// use recurrence::rrule::{Freq, RuleSet};
///
/// let rules = RuleSet::parse("RRULE:freq=monthly;byday=-1fr\nEXDATE:20270129T090000")?;
/// assert_eq!(
///     rules.to_string(),
///     "RRULE:FREQ=MONTHLY;BYDAY=-1FR\nEXDATE:20270129T090000"
/// );
/// assert_eq!(rules.rule().freq, Freq::Monthly);
///
/// let start = Civil::new(Date::new(2027, 1, 1).days(), 9 * 3600);
/// let in_utc = |instant: i64| Civil(instant);
/// let first = rules.compile(start, in_utc)?.next_at_or_after(start);
/// assert_eq!(first.map(Civil::date), Some(Date::new(2027, 2, 26)));
/// # Ok::<(), recurrence::rrule::RuleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuleSet {
    rule: Rule,
    /// EXDATE, sorted.
    excluded: Vec<Stamp>,
    /// RDATE, sorted.
    added: Vec<Stamp>,
}

impl RuleSet {
    /// Parses an `RRULE:` line with the `EXDATE:` and `RDATE:` lines below it.
    ///
    /// # Errors
    /// When the text is not such a rule, with the part that is wrong.
    pub fn parse(text: &str) -> Result<RuleSet, RuleError> {
        parse::rule_set(text)
    }

    /// The rule itself.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// EXDATE: the times removed, sorted.
    pub fn excluded(&self) -> &[Stamp] {
        &self.excluded
    }

    /// RDATE: the times added, sorted.
    pub fn added(&self) -> &[Stamp] {
        &self.added
    }

    /// UNTIL in Unix seconds, where it is an instant.
    ///
    /// A compiled rule ends at what the clock shows at that instant. In a repeated hour the clock shows
    /// it twice, so the caller must also drop the instants after this one.
    pub fn until_utc(&self) -> Option<i64> {
        match self.rule.end {
            End::Until(Stamp::Utc(instant)) => Some(instant),
            _ => None,
        }
    }

    /// Compiles the rule for its anchor. `local` returns what the clock of the action's zone shows at an
    /// instant in Unix seconds; it is called only for an UNTIL in UTC. Times of EXDATE and RDATE in UTC
    /// are left out: they are instants, not wall-clock readings.
    ///
    /// # Errors
    /// [`RuleError::CountOutOfReach`] when the rule is so sparse that the last occurrence of its COUNT
    /// can't be found within the step limit.
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
