//! One instant that a schedule yields, and what a clock change did to it.

use chrono::{DateTime, NaiveDateTime, Utc};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Occurrence {
    pub at: DateTime<Utc>,
    /// What the clock in the schedule's zone shows at that instant.
    pub local: NaiveDateTime,
    pub shift: Shift,
}

/// How a clock change touched an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shift {
    None,
    /// The wanted local time does not exist on that day.
    MovedOutOfGap {
        wanted: NaiveDateTime,
    },
    /// The local time exists twice, and this is the earlier one.
    FirstOfFold,
    /// The local time exists twice, and this is the later one.
    SecondOfFold,
}

impl Shift {
    /// One line for people; nothing where nothing happened.
    pub fn note(&self) -> Option<String> {
        match self {
            Shift::None => None,
            Shift::MovedOutOfGap { wanted } => Some(format!(
                "{} does not exist here (clocks go forward): moved to the first instant after the gap",
                wanted.format("%Y-%m-%d %H:%M:%S")
            )),
            Shift::FirstOfFold => {
                Some("local time occurs twice (clocks go back): the first of the two".to_owned())
            }
            Shift::SecondOfFold => {
                Some("local time occurs twice (clocks go back): the second of the two".to_owned())
            }
        }
    }
}
