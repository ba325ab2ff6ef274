//! One instant that a schedule yields, and how a clock change affects it.

use chrono::{DateTime, NaiveDateTime, Utc};

/// One instant that a schedule yields.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};
///
/// let recurrence = Recurrence::new(
///     Arc::new(Schedule::parse("0 9 * * MON-FRI")?),
///     Zone::parse("Europe/Berlin")?,
///     Bounds::default(),
///     OnGap::RollForward,
///     OnFold::First,
/// )?;
/// let occurrence = recurrence.next_after("2027-01-31T12:00:00Z".parse()?).unwrap();
/// assert_eq!(occurrence.at.to_rfc3339(), "2027-02-01T08:00:00+00:00");
/// assert_eq!(occurrence.local.to_string(), "2027-02-01 09:00:00");
/// assert_eq!(occurrence.shift.note(), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Occurrence {
    /// The instant.
    pub at: DateTime<Utc>,
    /// What the clock in the schedule's zone shows at that instant.
    pub local: NaiveDateTime,
    /// How a clock change affects the occurrence.
    pub shift: Shift,
}

/// How a clock change affects an occurrence.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Shift, Zone};
///
/// let recurrence = Recurrence::new(
///     Arc::new(Schedule::parse("30 1 * * *")?),
///     Zone::parse("America/Chicago")?,
///     Bounds::default(),
///     OnGap::RollForward,
///     OnFold::Both,
/// )?;
/// // Clocks go back from 02:00 to 01:00 on that day.
/// let shifts: Vec<Shift> = recurrence
///     .occurrences_after("2027-11-07T05:00:00Z".parse()?)
///     .take(3)
///     .map(|occurrence| occurrence.shift)
///     .collect();
/// assert_eq!(shifts, [Shift::FirstOfFold, Shift::SecondOfFold, Shift::None]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shift {
    /// Not at all.
    None,
    /// The scheduled local time does not exist, so the occurrence is at the first instant after the
    /// gap.
    MovedOutOfGap {
        /// The scheduled local time.
        wanted: NaiveDateTime,
    },
    /// The local time occurs twice, and this is the earlier instant.
    FirstOfFold,
    /// The local time occurs twice, and this is the later instant.
    SecondOfFold,
}

impl Shift {
    /// One line for a preview; `None` for [`Shift::None`].
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
