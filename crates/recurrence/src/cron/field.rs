//! The fields of a cron expression, read strictly.
//!
//! Other parsers accept names in any field, empty list items, and `1MON` for 11. This one checks
//! every item against what its field allows, and its errors name the item.

use std::fmt;

use crate::error::ScheduleError;
use crate::text::excerpt;

/// The seven fields, in the order of a seven-field expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// 0 to 59.
    Second,
    /// 0 to 59.
    Minute,
    /// 0 to 23.
    Hour,
    /// 1 to 31.
    DayOfMonth,
    /// 1 to 12.
    Month,
    /// 0 to 7; both 0 and 7 are Sunday.
    DayOfWeek,
    /// 1970 to 9999.
    Year,
}

/// One element of a field's comma-separated list. Days of the week count from 0 = Sunday; 7, also
/// Sunday, occurs only as the end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Item {
    /// `*` or `?`: every value.
    Any,
    /// `*/15`: every 15th value, from the field's smallest.
    AnyStep {
        /// Above 0.
        step: u16,
    },
    /// `5`: one value.
    Value(u16),
    /// `1-5`: every value of a range.
    Range {
        /// The first value.
        first: u16,
        /// The last value, included.
        last: u16,
    },
    /// `1-30/5`: every fifth value of a range, from its first.
    RangeStep {
        /// The first value.
        first: u16,
        /// The last value, included.
        last: u16,
        /// Above 0.
        step: u16,
    },
    /// `15W`: the weekday (Monday to Friday) nearest to that day of the month.
    NearestWeekday(u16),
    /// `FRI#2` or `MON-FRI#2`: the n-th such day of the month.
    Nth {
        /// The first day of the week.
        first: u16,
        /// The last day of the week, included.
        last: u16,
        /// 1 to 5.
        nth: u8,
    },
    /// `FRIL`, `FRI#L` or `MON-FRIL`: the last such day of the month.
    Last {
        /// The first day of the week.
        first: u16,
        /// The last day of the week, included.
        last: u16,
    },
    /// `L`: the last day of the month.
    LastDay,
    /// `LW`: the last weekday (Monday to Friday) of the month.
    LastWeekday,
}

/// A validated field of a cron expression.
///
/// # Examples
/// ```
/// use recurrence::cron::{CronSpec, FieldKind, Item};
///
/// let cron = CronSpec::parse("0 17,9,9 * * *")?;
/// let hours = cron.field(FieldKind::Hour);
/// assert_eq!(hours.items(), [Item::Value(9), Item::Value(17)]);
/// assert_eq!(hours.to_string(), "9,17");
/// assert!(cron.field(FieldKind::Month).is_any());
/// # Ok::<(), recurrence::ScheduleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    kind: FieldKind,
    /// Sorted, each once.
    items: Vec<Item>,
}

const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl FieldKind {
    /// The field's name, as error messages have it.
    pub const fn name(self) -> &'static str {
        match self {
            FieldKind::Second => "second",
            FieldKind::Minute => "minute",
            FieldKind::Hour => "hour",
            FieldKind::DayOfMonth => "day of month",
            FieldKind::Month => "month",
            FieldKind::DayOfWeek => "day of week",
            FieldKind::Year => "year",
        }
    }

    /// The smallest and the largest value.
    pub const fn range(self) -> (u16, u16) {
        match self {
            FieldKind::Second | FieldKind::Minute => (0, 59),
            FieldKind::Hour => (0, 23),
            FieldKind::DayOfMonth => (1, 31),
            FieldKind::Month => (1, 12),
            FieldKind::DayOfWeek => (0, 7),
            FieldKind::Year => (1970, 9999),
        }
    }

    /// How many values the field has. Sunday, which is both 0 and 7, counts once.
    pub(crate) const fn size(self) -> u16 {
        match (self, self.range()) {
            (FieldKind::DayOfWeek, _) => 7,
            (_, (min, max)) => max - min + 1,
        }
    }

    /// What the field's values begin anew with.
    pub(crate) const fn whole(self) -> &'static str {
        match self {
            FieldKind::Second => "minute",
            FieldKind::Minute => "hour",
            FieldKind::Hour => "day",
            FieldKind::DayOfMonth => "month",
            FieldKind::Month => "year",
            FieldKind::DayOfWeek => "week",
            FieldKind::Year => "era",
        }
    }

    /// A step of the field as an interval, which does not begin anew.
    pub(crate) fn as_interval(self, step: u16) -> Option<String> {
        let unit = match self {
            FieldKind::Second => "s",
            FieldKind::Minute => "m",
            FieldKind::Hour => "h",
            FieldKind::DayOfMonth | FieldKind::DayOfWeek => "d",
            FieldKind::Month => "mo",
            FieldKind::Year => return None,
        };
        Some(format!("{step}{unit}"))
    }

    const fn names(self) -> &'static [&'static str] {
        match self {
            FieldKind::Month => &MONTHS,
            FieldKind::DayOfWeek => &WEEKDAYS,
            _ => &[],
        }
    }

    /// The field's values, as an error message lists them.
    const fn allowed(self) -> &'static str {
        match self {
            FieldKind::Second | FieldKind::Minute => "0-59",
            FieldKind::Hour => "0-23",
            FieldKind::DayOfMonth => "1-31, L, LW or a day with W",
            FieldKind::Month => "1-12 or JAN-DEC",
            FieldKind::DayOfWeek => "0-7 or SUN-SAT, with #1 to #5, #L or L",
            FieldKind::Year => "1970-9999",
        }
    }
}

impl Field {
    /// `*`
    pub(crate) fn any(kind: FieldKind) -> Field {
        Field {
            kind,
            items: vec![Item::Any],
        }
    }

    /// Parses upper-case text that holds no blanks.
    pub(crate) fn parse(kind: FieldKind, text: &str) -> Result<Field, ScheduleError> {
        let has_question_mark = matches!(kind, FieldKind::DayOfMonth | FieldKind::DayOfWeek);
        if text == "*" || (text == "?" && has_question_mark) {
            return Ok(Field::any(kind));
        }
        let items = text
            .split(',')
            .map(|item| parse_item(kind, item))
            .collect::<Result<Vec<Item>, ScheduleError>>()?;
        Ok(match items.iter().position(|item| *item == Item::Any) {
            None => Field::new(kind, items),
            // pg_cron's `*,5` is `*`. Its `5,*` is every value too, but in a day field it restricts: the
            // other day field is an alternative to it.
            Some(0) => Field::any(kind),
            Some(_) if has_question_mark => Field::new(kind, vec![Item::AnyStep { step: 1 }]),
            Some(_) => Field::any(kind),
        })
    }

    fn new(kind: FieldKind, mut items: Vec<Item>) -> Field {
        items.sort_unstable();
        items.dedup();
        Field { kind, items }
    }

    /// The field with every item replaced by any number of items; `None` where none is left.
    pub(super) fn rewrite(&self, replace: impl Fn(Item) -> Vec<Item>) -> Option<Field> {
        let items: Vec<Item> = self.items.iter().copied().flat_map(replace).collect();
        (!items.is_empty()).then(|| Field::new(self.kind, items))
    }

    /// The field with every item replaced.
    pub(crate) fn map(&self, replace: impl Fn(Item) -> Item) -> Field {
        let items = self.items.iter().copied().map(replace).collect();
        Field::new(self.kind, items)
    }

    /// Which of the seven fields it is.
    pub fn kind(&self) -> FieldKind {
        self.kind
    }

    /// The items of the field's list, sorted, each once.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Whether the field is a bare `*` or `?`, and so restricts nothing.
    pub fn is_any(&self) -> bool {
        self.items == [Item::Any]
    }

    /// Whether the field holds a `*` or a `/`.
    pub fn is_stepping(&self) -> bool {
        self.items.iter().any(|item| {
            matches!(
                item,
                Item::Any | Item::AnyStep { .. } | Item::RangeStep { .. }
            )
        })
    }
}

fn refuse(kind: FieldKind, item: &str, problem: &str) -> ScheduleError {
    ScheduleError::new(format!(
        "cron {} \"{}\" {problem}, expected {}",
        kind.name(),
        excerpt(item),
        kind.allowed()
    ))
}

fn parse_item(kind: FieldKind, item: &str) -> Result<Item, ScheduleError> {
    if item.is_empty() {
        return Err(ScheduleError::new(format!(
            "cron {} has an empty list item, expected {}",
            kind.name(),
            kind.allowed()
        )));
    }
    if item == "*" {
        return Ok(Item::Any);
    }
    if kind == FieldKind::DayOfMonth {
        match item {
            // pg_cron writes the last day as `$`.
            "L" | "$" => return Ok(Item::LastDay),
            "LW" => return Ok(Item::LastWeekday),
            _ => {}
        }
        if let Some(day) = item.strip_suffix('W') {
            return Ok(Item::NearestWeekday(parse_value(kind, item, day)?));
        }
    }
    if kind == FieldKind::DayOfWeek {
        if let Some((days, nth)) = item.split_once('#') {
            let (first, last) = parse_range(kind, item, days)?;
            return match nth {
                "L" => Ok(Item::Last { first, last }),
                "1" | "2" | "3" | "4" | "5" => Ok(Item::Nth {
                    first,
                    last,
                    nth: nth.as_bytes()[0] - b'0',
                }),
                _ => Err(refuse(kind, item, "has no such occurrence in a month")),
            };
        }
        if let Some(days) = item.strip_suffix('L') {
            if days.is_empty() {
                return Err(refuse(kind, item, "names no weekday"));
            }
            let (first, last) = parse_range(kind, item, days)?;
            return Ok(Item::Last { first, last });
        }
    }
    if let Some((range, step)) = item.split_once('/') {
        return parse_step(kind, item, range, step);
    }
    let (first, last) = parse_range(kind, item, item)?;
    Ok(match first == last {
        true => Item::Value(first),
        false => Item::Range { first, last },
    })
}

fn parse_step(kind: FieldKind, item: &str, range: &str, step: &str) -> Result<Item, ScheduleError> {
    let step = match parse_number(step) {
        Some(0) | None => {
            return Err(ScheduleError::new(format!(
                "cron {} \"{}\" has step \"{}\", expected a whole number above 0",
                kind.name(),
                excerpt(item),
                excerpt(step)
            )));
        }
        Some(step) => step,
    };
    if step > kind.size() {
        let error = ScheduleError::new(format!(
            "cron {} \"{}\" has step \"{step}\", expected at most {}",
            kind.name(),
            excerpt(item),
            kind.size()
        ));
        return Err(match (range, kind.as_interval(step)) {
            ("*", Some(interval)) => error.with_hint(format!(
                "A step begins anew with every {}; the interval {interval} goes on.",
                kind.whole()
            )),
            _ => error,
        });
    }
    if range == "*" {
        return Ok(Item::AnyStep { step });
    }
    if !range.contains('-') {
        let last = kind.range().1;
        return Err(refuse(kind, item, "steps from a single value")
            .with_hint(format!("Write a range: {}-{last}/{step}.", excerpt(range))));
    }
    let (first, last) = parse_range(kind, item, range)?;
    // "SUN-SUN" is the whole week, so a range can't stand for Sunday alone.
    Ok(match kind == FieldKind::DayOfWeek && first == last {
        true => Item::Value(first),
        false => Item::RangeStep { first, last, step },
    })
}

/// `5` or `1-5`.
fn parse_range(kind: FieldKind, item: &str, text: &str) -> Result<(u16, u16), ScheduleError> {
    let Some((first_text, last_text)) = text.split_once('-') else {
        let value = parse_value(kind, item, text)?;
        return Ok((value, value));
    };
    let first = parse_bound(kind, item, first_text)?;
    // Sunday may also end a range: SAT-SUN, 5-7, and 0-7 for the whole week.
    let last = match (kind, last_text) {
        (FieldKind::DayOfWeek, "SUN") => 7,
        _ => parse_bound(kind, item, last_text)?,
    };
    match (kind, first, last) {
        (FieldKind::DayOfWeek, 7, 7) => Ok((0, 0)),
        _ if first > last => Err(refuse(kind, item, "runs backward")),
        _ => Ok((first, last)),
    }
}

/// A single value. 7 becomes 0: Sunday has one canonical number.
fn parse_value(kind: FieldKind, item: &str, text: &str) -> Result<u16, ScheduleError> {
    match (kind, parse_bound(kind, item, text)?) {
        (FieldKind::DayOfWeek, 7) => Ok(0),
        (_, value) => Ok(value),
    }
}

fn parse_bound(kind: FieldKind, item: &str, text: &str) -> Result<u16, ScheduleError> {
    let (min, max) = kind.range();
    if let Some(index) = kind.names().iter().position(|name| *name == text) {
        return Ok(index as u16 + if kind == FieldKind::Month { 1 } else { 0 });
    }
    match parse_number(text) {
        Some(value) if (min..=max).contains(&value) => Ok(value),
        Some(_) => Err(refuse(kind, item, "is out of range")),
        None => Err(refuse(kind, item, "is not a value of this field")),
    }
}

/// ASCII digits only: no sign, no blank, no digits of another script.
fn parse_number(text: &str) -> Option<u16> {
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse().ok(),
        false => None,
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write_item(f, self.kind, *item)?;
        }
        Ok(())
    }
}

fn write_item(f: &mut fmt::Formatter<'_>, kind: FieldKind, item: Item) -> fmt::Result {
    let value = |value: u16| Value { kind, value };
    let range = |first: u16, last: u16| ValueRange { kind, first, last };
    match item {
        Item::Any => f.write_str("*"),
        Item::AnyStep { step } => write!(f, "*/{step}"),
        Item::Value(v) => write!(f, "{}", value(v)),
        Item::Range { first, last } => write!(f, "{}", range(first, last)),
        Item::RangeStep { first, last, step } => {
            write!(f, "{}-{}/{step}", value(first), value(last))
        }
        Item::NearestWeekday(day) => write!(f, "{day}W"),
        Item::Nth { first, last, nth } => write!(f, "{}#{nth}", range(first, last)),
        Item::Last { first, last } => write!(f, "{}#L", range(first, last)),
        Item::LastDay => f.write_str("L"),
        Item::LastWeekday => f.write_str("LW"),
    }
}

/// A value in canonical form: weekdays by name, because their numbers differ between cron
/// implementations, all else as a number.
struct Value {
    kind: FieldKind,
    value: u16,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FieldKind::DayOfWeek => f.write_str(WEEKDAYS[usize::from(self.value) % 7]),
            _ => write!(f, "{}", self.value),
        }
    }
}

struct ValueRange {
    kind: FieldKind,
    first: u16,
    last: u16,
}

impl fmt::Display for ValueRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind;
        let value = |value: u16| Value { kind, value };
        match self.first == self.last {
            true => write!(f, "{}", value(self.first)),
            false => write!(f, "{}-{}", value(self.first), value(self.last)),
        }
    }
}
