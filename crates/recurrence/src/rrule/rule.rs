//! A validated recurrence rule, as values.

use std::fmt::{self, Display, Formatter};

use super::stamp::Stamp;

/// `FREQ`: the period that the rule counts in, longest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Freq {
    /// Calendar years.
    Yearly,
    /// Calendar months.
    Monthly,
    /// Weeks that begin on `WKST`.
    Weekly,
    /// Calendar days.
    Daily,
    /// Hours of the wall clock.
    Hourly,
    /// Minutes of the wall clock.
    Minutely,
    /// Seconds of the wall clock.
    Secondly,
}

impl Freq {
    pub(crate) const ALL: [(Freq, &'static str); 7] = [
        (Freq::Yearly, "YEARLY"),
        (Freq::Monthly, "MONTHLY"),
        (Freq::Weekly, "WEEKLY"),
        (Freq::Daily, "DAILY"),
        (Freq::Hourly, "HOURLY"),
        (Freq::Minutely, "MINUTELY"),
        (Freq::Secondly, "SECONDLY"),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// One item of `BYDAY`: every Friday of the period, or only the `nth` one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NthWeekday {
    /// ISO weekday, 1 = Monday to 7 = Sunday.
    pub weekday: u8,
    /// 1 to 53 from the period's start, -1 to -53 from its end; `None` is every one.
    pub nth: Option<i16>,
}

/// Two-letter weekday names, Monday first.
pub(crate) const WEEKDAYS: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];

/// The rule's own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Neither COUNT nor UNTIL is given.
    Never,
    /// After this many occurrences, counted from the anchor.
    Count(u32),
    /// At or before this time.
    Until(Stamp),
}

/// An RFC 5545 `RECUR` value. Every list is sorted and without duplicates, and has values of its range
/// only; an empty list means that the part is not given. So equal rules are equal values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// `FREQ`: the period.
    pub freq: Freq,
    /// `INTERVAL`: every n-th period, from 1.
    pub interval: u32,
    /// `COUNT` or `UNTIL`.
    pub end: End,
    /// `WKST`: the ISO weekday on which weeks begin.
    pub week_start: u8,
    /// `BYMONTH`: 1 to 12.
    pub months: Vec<i16>,
    /// `BYWEEKNO`: 1 to 53, or -1 to -53 from the year's end.
    pub week_numbers: Vec<i16>,
    /// `BYYEARDAY`: 1 to 366, or -1 to -366 from the year's end.
    pub year_days: Vec<i16>,
    /// `BYMONTHDAY`: 1 to 31, or -1 to -31 from the month's end.
    pub month_days: Vec<i16>,
    /// `BYDAY`: weekdays, with or without a number.
    pub weekdays: Vec<NthWeekday>,
    /// `BYHOUR`: 0 to 23.
    pub hours: Vec<i16>,
    /// `BYMINUTE`: 0 to 59.
    pub minutes: Vec<i16>,
    /// `BYSECOND`: 0 to 59; 60 is read as 59.
    pub seconds: Vec<i16>,
    /// `BYSETPOS`: positions in the set of one period, from its start or (negative) from its end.
    pub set_positions: Vec<i16>,
}

/// A sort key: numbers counted from the start come before those counted from the end.
pub(crate) fn reading_order(value: i16) -> (bool, i16) {
    (value < 0, value)
}

impl Display for NthWeekday {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(nth) = self.nth {
            write!(f, "{nth}")?;
        }
        f.write_str(WEEKDAYS[usize::from(self.weekday) - 1])
    }
}

impl Display for Rule {
    /// The canonical form: parts in one order, defaults left out.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "FREQ={}", self.freq.name())?;
        if self.interval != 1 {
            write!(f, ";INTERVAL={}", self.interval)?;
        }
        match self.end {
            End::Never => {}
            End::Count(count) => write!(f, ";COUNT={count}")?,
            End::Until(until) => write!(f, ";UNTIL={until}")?,
        }
        if self.week_start != 1 {
            write!(f, ";WKST={}", WEEKDAYS[usize::from(self.week_start) - 1])?;
        }
        write_list(f, "BYMONTH", &self.months)?;
        write_list(f, "BYWEEKNO", &self.week_numbers)?;
        write_list(f, "BYYEARDAY", &self.year_days)?;
        write_list(f, "BYMONTHDAY", &self.month_days)?;
        write_list(f, "BYDAY", &self.weekdays)?;
        write_list(f, "BYHOUR", &self.hours)?;
        write_list(f, "BYMINUTE", &self.minutes)?;
        write_list(f, "BYSECOND", &self.seconds)?;
        write_list(f, "BYSETPOS", &self.set_positions)
    }
}

fn write_list<T: Display>(f: &mut Formatter<'_>, name: &str, items: &[T]) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        match i {
            0 => write!(f, ";{name}={item}")?,
            _ => write!(f, ",{item}")?,
        }
    }
    Ok(())
}
