//! A validated recurrence rule, as values.

use std::fmt::{self, Display, Formatter};

use super::stamp::Stamp;

/// `FREQ`: the period that the rule counts in, longest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Freq {
    Yearly,
    Monthly,
    Weekly,
    Daily,
    Hourly,
    Minutely,
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

/// Where the rule stops by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    Never,
    /// After this many occurrences, counted from the anchor.
    Count(u32),
    /// At or before this time.
    Until(Stamp),
}

/// An RFC 5545 `RECUR` value. Every list is sorted and free of duplicates, and holds values of its
/// range only; an empty list means that the part was not given. So equal rules are equal values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    pub freq: Freq,
    pub interval: u32,
    pub end: End,
    /// `WKST`: ISO weekday on which weeks begin.
    pub week_start: u8,
    pub months: Vec<i16>,
    pub week_numbers: Vec<i16>,
    pub year_days: Vec<i16>,
    pub month_days: Vec<i16>,
    pub weekdays: Vec<NthWeekday>,
    pub hours: Vec<i16>,
    pub minutes: Vec<i16>,
    pub seconds: Vec<i16>,
    pub set_positions: Vec<i16>,
}

/// Counted from the start first, then counted from the end: the order in which people read them.
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
