//! Structured rules: JSON objects with a step and filters.

mod filter;
mod parse;
mod spelling;

use std::fmt;

use crate::error::ScheduleError;
pub(crate) use filter::Filter;

/// A step from the start, with filters: `{"every":2,"unit":"week","days_of_week":["tue","thu"]}`.
///
/// Minutes and hours elapse; days, weeks, months and years keep the start's time of day. All filters must
/// hold, and they apply to the local date and time of the occurrence itself.
///
/// # Examples
/// ```
/// use recurrence::rule::{Parity, Unit};
/// use recurrence::{Kind, Schedule};
///
/// let text = r#"{"every":2,"unit":"day","week_parity":"odd","between_hours":[22,6]}"#;
/// let schedule = Schedule::parse(text)?;
/// let Kind::Rule(rule) = schedule.kind() else { unreachable!() };
/// assert_eq!((rule.every(), rule.unit()), (2, Unit::Day));
/// assert_eq!(rule.week_parity(), Some(Parity::Odd));
/// assert!(rule.between_hours().is_some_and(|hours| hours.contains(23)));
/// # Ok::<(), recurrence::ScheduleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StructuredRule {
    every: u32,
    unit: Unit,
    days_of_week: Option<Weekdays>,
    week_parity: Option<Parity>,
    between_hours: Option<Hours>,
    month_day: Option<MonthDay>,
}

/// The unit of a rule's step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// 60 elapsed seconds.
    Minute,
    /// 3,600 elapsed seconds.
    Hour,
    /// A calendar day.
    Day,
    /// Seven calendar days; with `days_of_week`, an ISO week.
    Week,
    /// A calendar month.
    Month,
    /// Twelve calendar months.
    Year,
}

/// A set of weekdays, which is never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Weekdays {
    /// Bit 0 is Monday.
    bits: u8,
}

/// Whether the ISO week of a date has an odd or an even number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parity {
    /// Weeks 1, 3, 5 and so on.
    Odd,
    /// Weeks 2, 4, 6 and so on.
    Even,
}

/// Whole hours from `start` up to, not including, `end`; overnight where `start` is the larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hours {
    /// The first hour, 0 to 23.
    pub start: u8,
    /// The hour after the last, 0 to 23, and never equal to `start`.
    pub end: u8,
}

/// The day of the month that a month or year rule names. Without one, the rule runs on the start's
/// day. A year rule runs in the start's month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MonthDay {
    /// 1 to 31, or the last day of a shorter month.
    Day(u8),
    /// The n-th such weekday; months without it are skipped.
    NthWeekday {
        /// 1 to 5.
        nth: u8,
        /// The ISO weekday: 1 is Monday.
        weekday: u8,
    },
    /// The last such weekday.
    LastWeekday {
        /// The ISO weekday: 1 is Monday.
        weekday: u8,
    },
}

const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

impl StructuredRule {
    pub(crate) fn parse(text: &str) -> Result<StructuredRule, ScheduleError> {
        parse::rule(text)
    }

    /// The number of units in a step, at least 1.
    pub fn every(&self) -> u32 {
        self.every
    }

    /// The unit of a step.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// The weekdays that a week rule runs on; for the other units, a filter.
    pub fn days_of_week(&self) -> Option<Weekdays> {
        self.days_of_week
    }

    /// The parity of the ISO weeks that the rule runs in, as a filter.
    pub fn week_parity(&self) -> Option<Parity> {
        self.week_parity
    }

    /// The local hours that the rule runs in, as a filter.
    pub fn between_hours(&self) -> Option<Hours> {
        self.between_hours
    }

    /// The day of the month that a month or year rule names.
    pub fn month_day(&self) -> Option<MonthDay> {
        self.month_day
    }

    /// The filters on what the step yields.
    pub(crate) fn filter(&self) -> Filter {
        Filter {
            // The weekdays of a week rule define its step, and are no filter.
            days_of_week: self.days_of_week.filter(|_| self.unit != Unit::Week),
            week_parity: self.week_parity,
            between_hours: self.between_hours,
        }
    }
}

impl Unit {
    /// The unit's name, as the JSON object has it.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Minute => "minute",
            Unit::Hour => "hour",
            Unit::Day => "day",
            Unit::Week => "week",
            Unit::Month => "month",
            Unit::Year => "year",
        }
    }
}

impl Weekdays {
    /// Whether the set holds an ISO weekday, 1 to 7.
    pub const fn contains(self, iso_weekday: u8) -> bool {
        self.bits & (1 << (iso_weekday - 1)) != 0
    }

    /// The ISO weekdays in the set, Monday first.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (1..=7).filter(move |day| self.contains(*day))
    }
}

impl Hours {
    /// Whether an hour, 0 to 23, is among them.
    pub const fn contains(self, hour: u8) -> bool {
        if self.start < self.end {
            self.start <= hour && hour < self.end
        } else {
            hour >= self.start || hour < self.end
        }
    }
}

impl fmt::Display for Parity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Parity::Odd => "odd",
            Parity::Even => "even",
        })
    }
}

impl fmt::Display for StructuredRule {
    /// The canonical form: keys in one order, and only those with an effect.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            r#"{{"every":{},"unit":"{}""#,
            self.every,
            self.unit.name()
        )?;
        if let Some(days) = self.days_of_week {
            f.write_str(r#","days_of_week":["#)?;
            for (index, day) in days.iter().enumerate() {
                let comma = if index > 0 { "," } else { "" };
                write!(f, r#"{comma}"{}""#, WEEKDAYS[usize::from(day - 1)])?;
            }
            f.write_str("]")?;
        }
        if let Some(parity) = self.week_parity {
            write!(f, r#","week_parity":"{parity}""#)?;
        }
        if let Some(Hours { start, end }) = self.between_hours {
            write!(f, r#","between_hours":[{start},{end}]"#)?;
        }
        let name = |weekday: u8| WEEKDAYS[usize::from(weekday - 1)];
        match self.month_day {
            None => {}
            Some(MonthDay::Day(day)) => write!(f, r#","day_of_month":{day}"#)?,
            Some(MonthDay::NthWeekday { nth, weekday }) => write!(
                f,
                r#","nth_weekday":{{"nth":{nth},"day":"{}"}}"#,
                name(weekday)
            )?,
            Some(MonthDay::LastWeekday { weekday }) => write!(
                f,
                r#","nth_weekday":{{"nth":-1,"day":"{}"}}"#,
                name(weekday)
            )?,
        }
        f.write_str("}")
    }
}
