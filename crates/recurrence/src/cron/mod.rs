//! Cron expressions, as the Open Cron Pattern Specification defines them.
//!
//! Day of month and day of week combine with OR; `+` before the day of week combines them with AND.
//! Only a bare `*` or `?` leaves a day field unrestricted. Year steps count from 1970.

mod days;
mod field;
mod search;
pub(crate) mod second_reader;

use std::fmt;

use crate::civil::{Civil, Date};
use crate::error::ScheduleError;
use crate::search::CivilSet;
use crate::text::excerpt;
use days::DayRule;
pub use field::{Field, FieldKind, Item};

/// A validated cron expression, compiled to bit sets.
///
/// # Examples
/// ```
/// use recurrence::cron::{CronSpec, FieldKind, Item};
///
/// let cron = CronSpec::parse("0 9 15W * +mon-fri")?;
/// assert_eq!(cron.to_string(), "0 9 15W * +MON-FRI");
/// assert_eq!(cron.field(FieldKind::DayOfMonth).items(), [Item::NearestWeekday(15)]);
/// assert!(cron.requires_both_days());
/// assert!(!cron.is_stepping());
/// # Ok::<(), recurrence::ScheduleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CronSpec {
    /// In the order of [`FieldKind`].
    fields: [Field; 7],
    /// `+`: a day must match both day fields.
    both_days: bool,
    sets: Sets,
}

/// The fields as bit sets, for the search.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sets {
    seconds: u64,
    minutes: u64,
    hours: u32,
    /// Bit `m - 1` is month `m`.
    months: u16,
    days: DayRule,
    /// Nothing restricts the date, so the search need not compute it.
    every_day: bool,
    /// Bit `y - 1970` is year `y`; `None` is any year, also before 1970.
    years: Option<Box<[u64]>>,
}

const NICKNAMES: [(&str, &str); 7] = [
    ("@YEARLY", "0 0 1 1 *"),
    ("@ANNUALLY", "0 0 1 1 *"),
    ("@MONTHLY", "0 0 1 * *"),
    ("@WEEKLY", "0 0 * * 0"),
    ("@DAILY", "0 0 * * *"),
    ("@MIDNIGHT", "0 0 * * *"),
    ("@HOURLY", "0 * * * *"),
];

impl CronSpec {
    /// Parses an expression of 5, 6 (seconds first) or 7 (year last) fields, or a nickname.
    ///
    /// # Errors
    /// When a field is malformed or out of range, and when no date matches, such as 30 February.
    pub fn parse(text: &str) -> Result<CronSpec, ScheduleError> {
        let upper = text.trim_ascii().to_ascii_uppercase();
        let expression = match upper.starts_with('@') {
            true => expand_nickname(&upper)?,
            false => &upper,
        };
        let texts: Vec<&str> = expression.split_ascii_whitespace().collect();
        let (second, rest, year) = match texts.as_slice() {
            rest @ [_, _, _, _, _] => ("0", rest, "*"),
            [second, rest @ ..] if rest.len() == 5 => (*second, rest, "*"),
            [second, rest @ .., year] if rest.len() == 5 => (*second, rest, *year),
            _ => {
                return Err(ScheduleError::new(format!(
                    "cron expression \"{}\" has {} fields, expected 5, 6 or 7",
                    excerpt(text.trim_ascii()),
                    texts.len()
                ))
                .with_hint(
                    "The fields are [second] minute hour day-of-month month day-of-week [year].",
                ));
            }
        };
        let (both_days, day_of_week) = match rest[4].strip_prefix('+') {
            Some(days) => (true, days),
            None => (false, rest[4]),
        };
        let fields = [
            Field::parse(FieldKind::Second, second)?,
            Field::parse(FieldKind::Minute, rest[0])?,
            Field::parse(FieldKind::Hour, rest[1])?,
            Field::parse(FieldKind::DayOfMonth, rest[2])?,
            Field::parse(FieldKind::Month, rest[3])?,
            Field::parse(FieldKind::DayOfWeek, day_of_week)?,
            Field::parse(FieldKind::Year, year)?,
        ];
        let spec = CronSpec::compile(fields, both_days);
        match spec.never_matches() {
            true => Err(ScheduleError::new(format!(
                "cron expression \"{}\" names no date that exists",
                excerpt(&spec.to_string())
            ))),
            false => Ok(spec),
        }
    }

    fn compile(fields: [Field; 7], both_days: bool) -> CronSpec {
        let [second, minute, hour, day_of_month, month, day_of_week, year] = &fields;
        // `+` has a meaning only where both day fields restrict.
        let both_days = both_days && !day_of_month.is_any() && !day_of_week.is_any();
        let every_day = [day_of_month, month, day_of_week, year]
            .into_iter()
            .all(Field::is_any);
        let sets = Sets {
            every_day,
            seconds: bits(second),
            minutes: bits(minute),
            hours: bits(hour) as u32,
            months: (bits(month) >> 1) as u16,
            days: DayRule::new(day_of_month, day_of_week, both_days),
            years: year_bits(year),
        };
        CronSpec {
            fields,
            both_days,
            sets,
        }
    }

    /// The expression with every item of every field replaced; `*` where a field has none left.
    fn rewrite(&self, replace: impl Fn(&Field, Item) -> Vec<Item>) -> CronSpec {
        let fields = self.fields.each_ref().map(|field| {
            field
                .rewrite(|item| replace(field, item))
                .unwrap_or_else(|| Field::any(field.kind()))
        });
        CronSpec::compile(fields, self.both_days)
    }

    /// Whether no date matches. The calendar repeats every 400 years.
    fn never_matches(&self) -> bool {
        let (first, last) = match &self.sets.years {
            None => (2000, 2399),
            Some(_) => (1970, 9999),
        };
        search::next_day(&self.sets, Date::new(first, 1, 1), last).is_none()
    }

    /// One of the seven fields. A field that is not written is `0` for seconds and `*` for years.
    pub fn field(&self, kind: FieldKind) -> &Field {
        &self.fields[kind as usize]
    }

    /// Whether a day must match both day fields (`+`), not just one of them.
    pub fn requires_both_days(&self) -> bool {
        self.both_days
    }

    /// Whether the expression steps through the day with `*` or `/`. Then it keeps its real-time
    /// cadence across clock changes; otherwise it names fixed times of day.
    pub fn is_stepping(&self) -> bool {
        [FieldKind::Second, FieldKind::Minute, FieldKind::Hour]
            .into_iter()
            .any(|kind| self.field(kind).is_stepping())
    }

    /// The matching seconds, minutes and hours, as bits.
    pub(crate) fn times_of_day(&self) -> [u64; 3] {
        let Sets {
            seconds,
            minutes,
            hours,
            ..
        } = self.sets;
        [seconds, minutes, u64::from(hours)]
    }

    /// The fewest days between two matching dates; `None` if there is only one.
    pub(crate) fn fewest_days_between(&self) -> Option<i64> {
        search::fewest_days_between(&self.sets)
    }
}

fn expand_nickname(upper: &str) -> Result<&'static str, ScheduleError> {
    if let Some((_, expression)) = NICKNAMES.iter().find(|(name, _)| *name == upper) {
        return Ok(expression);
    }
    let written = excerpt(&upper.to_ascii_lowercase());
    let error = ScheduleError::new(match upper {
        "@REBOOT" => format!("nickname \"{written}\" is not a time"),
        _ => format!("nickname \"{written}\" is unknown"),
    });
    Err(error.with_hint("Use @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually."))
}

fn bits(field: &Field) -> u64 {
    field
        .items()
        .iter()
        .fold(0, |bits, item| bits | days::values(field.kind(), *item))
}

fn year_bits(field: &Field) -> Option<Box<[u64]>> {
    if field.is_any() {
        return None;
    }
    let (min, max) = field.kind().range();
    let mut words = vec![0u64; usize::from(max - min) / 64 + 1];
    for item in field.items() {
        let (first, last, step) = match *item {
            Item::AnyStep { step } => (min, max, step),
            Item::Value(value) => (value, value, 1),
            Item::Range { first, last } => (first, last, 1),
            Item::RangeStep { first, last, step } => (first, last, step),
            _ => continue,
        };
        for year in (first..=last).step_by(usize::from(step)) {
            let index = usize::from(year - min);
            words[index / 64] |= 1 << (index % 64);
        }
    }
    Some(words.into())
}

impl fmt::Display for CronSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [second, minute, hour, day_of_month, month, day_of_week, year] = &self.fields;
        let has_year = !year.is_any();
        let has_second = has_year || second.items() != [Item::Value(0)];
        if has_second {
            write!(f, "{second} ")?;
        }
        let plus = if self.both_days { "+" } else { "" };
        write!(
            f,
            "{minute} {hour} {day_of_month} {month} {plus}{day_of_week}"
        )?;
        if has_year {
            write!(f, " {year}")?;
        }
        Ok(())
    }
}

impl CivilSet for CronSpec {
    fn at_or_after(&self, civil: Civil) -> Option<Civil> {
        search::at_or_after(&self.sets, civil)
    }

    fn at_or_before(&self, civil: Civil) -> Option<Civil> {
        search::at_or_before(&self.sets, civil)
    }

    fn count(&self, first: Civil, last: Civil, cap: u64) -> u64 {
        search::count(&self.sets, first, last, cap)
    }
}
