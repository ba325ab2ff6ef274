//! Structured rules: a JSON object that says how often, and when not.

mod filter;
mod parse;

use std::fmt;

use crate::error::ScheduleError;
pub(crate) use filter::Filter;

/// `{"every":2,"unit":"week","days_of_week":["tue","thu"]}`
///
/// Minutes and hours elapse; days, weeks and months keep the start's time of day. All filters hold
/// together, and they look at the date and time that the clock shows when it runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StructuredRule {
    every: u32,
    unit: Unit,
    days_of_week: Option<Weekdays>,
    week_parity: Option<Parity>,
    between_hours: Option<Hours>,
    month_day: Option<MonthDay>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    Minute,
    Hour,
    Day,
    Week,
    Month,
}

/// A set of weekdays that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Weekdays {
    /// Bit 0 is Monday.
    bits: u8,
}

/// Whether the ISO week of a date has an odd or an even number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parity {
    Odd,
    Even,
}

/// Whole hours from `start` up to, not including, `end`; overnight when `start` is the larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hours {
    /// 0 to 23, and not equal.
    pub start: u8,
    pub end: u8,
}

/// Which day of its months a month rule runs on; by default the start's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MonthDay {
    /// 1 to 31, or the last day of a shorter month.
    Day(u8),
    /// The n-th such weekday (1 to 5); months that lack it are skipped.
    NthWeekday {
        nth: u8,
        /// ISO: 1 is Monday.
        weekday: u8,
    },
    LastWeekday {
        weekday: u8,
    },
}

const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

impl StructuredRule {
    pub(crate) fn parse(text: &str) -> Result<StructuredRule, ScheduleError> {
        parse::rule(text)
    }

    pub fn every(&self) -> u32 {
        self.every
    }

    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// For weeks, the days it runs on; for the others, the days it may run on.
    pub fn days_of_week(&self) -> Option<Weekdays> {
        self.days_of_week
    }

    pub fn week_parity(&self) -> Option<Parity> {
        self.week_parity
    }

    pub fn between_hours(&self) -> Option<Hours> {
        self.between_hours
    }

    pub fn month_day(&self) -> Option<MonthDay> {
        self.month_day
    }

    /// What restricts the candidates that the step yields.
    pub(crate) fn filter(&self) -> Filter {
        Filter {
            // A week rule is made of its days: they are no filter.
            days_of_week: self.days_of_week.filter(|_| self.unit != Unit::Week),
            week_parity: self.week_parity,
            between_hours: self.between_hours,
        }
    }
}

impl Unit {
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Minute => "minute",
            Unit::Hour => "hour",
            Unit::Day => "day",
            Unit::Week => "week",
            Unit::Month => "month",
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
    /// The keys that say something, in the order of the documentation.
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
