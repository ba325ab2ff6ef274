//! Cron expressions in English, in the words of cronstrue.
//!
//! cronstrue's sentences are widely known, so these follow its 24-hour form ("at 09:00, Monday
//! through Friday"), with a lower-case start. They differ where cronstrue leaves open how the two day
//! fields combine: for its "on day 15 of the month, Monday through Friday", which is an OR, this
//! module writes "and Monday through Friday". Lists have canonical order.

use super::Style;
use super::words::{self, list, list_of_times, month, ordinal, weekday};
use crate::cron::{CronSpec, Field, FieldKind, Item};

pub(super) fn describe(cron: &CronSpec, style: Style) -> String {
    if style == Style::Hours12
        && let Some(text) = plain(cron, style)
    {
        return text;
    }
    let clauses = [
        days_of_month(cron),
        days_of_week(cron),
        months(&simplified(cron, FieldKind::Month)),
        years(&simplified(cron, FieldKind::Year)),
    ];
    let mut text = time_of_day(cron, style);
    for clause in clauses.iter().filter(|clause| !clause.is_empty()) {
        text += ", ";
        text += clause;
    }
    text
}

/// A field in its simplest form. A step of one is a range. A step as long as the field is its only
/// value: "every 60 minutes" would be false for `*/60`, which is minute 0.
fn simplified(cron: &CronSpec, kind: FieldKind) -> Field {
    let (min, values) = (kind.range().0, kind.size());
    cron.field(kind).map(|item| match item {
        Item::AnyStep { step } if step == values => Item::Value(min),
        Item::RangeStep { first, step, .. } if step == values => Item::Value(first),
        Item::RangeStep {
            first,
            last,
            step: 1,
        } => Item::Range { first, last },
        item => item,
    })
}

/// The phrases for the items of a field.
struct Wording<'w> {
    /// One value, as an element of a list.
    name: &'w dyn Fn(u16) -> String,
    /// The last value of a range.
    last_name: &'w dyn Fn(u16) -> String,
    /// A value or a list of values.
    values: &'w dyn Fn(&str) -> String,
    /// From one value to another.
    range: &'w dyn Fn(&str, &str) -> String,
    step: &'w dyn Fn(u16) -> String,
}

impl Wording<'_> {
    fn field(&self, field: &Field) -> String {
        self.items(&in_reading_order(field))
    }

    fn items(&self, items: &[Item]) -> String {
        match items {
            [item] => self.alone(*item),
            // A step needs a clause of its own, and then so does every other item.
            items if items.iter().any(is_step) => {
                let clauses: Vec<String> = items.iter().map(|item| self.alone(*item)).collect();
                list(&clauses)
            }
            items => {
                let names: Vec<String> = items.iter().map(|item| self.in_list(*item)).collect();
                (self.values)(&list(&names))
            }
        }
    }

    fn alone(&self, item: Item) -> String {
        match item {
            Item::AnyStep { step } => (self.step)(step),
            Item::Range { first, last } => {
                (self.range)(&(self.name)(first), &(self.last_name)(last))
            }
            Item::RangeStep { first, last, step } => format!(
                "{}, {}",
                (self.step)(step),
                (self.range)(&(self.name)(first), &(self.last_name)(last))
            ),
            item => (self.values)(&self.in_list(item)),
        }
    }

    fn in_list(&self, item: Item) -> String {
        match item {
            Item::Value(value) => (self.name)(value),
            Item::Range { first, last } => {
                format!("{} through {}", (self.name)(first), (self.last_name)(last))
            }
            Item::NearestWeekday(1) => "the first weekday".to_owned(),
            Item::NearestWeekday(day) => format!("the weekday nearest day {day}"),
            Item::LastDay => "the last day".to_owned(),
            Item::LastWeekday => "the last weekday".to_owned(),
            // Such a list has no `*` and no steps, and `numbered_weekdays` writes numbered ones.
            Item::Any
            | Item::AnyStep { .. }
            | Item::RangeStep { .. }
            | Item::Nth { .. }
            | Item::Last { .. } => String::new(),
        }
    }
}

/// The items by first value, with Sunday at the end of the week, and `L` and `LW` last.
fn in_reading_order(field: &Field) -> Vec<Item> {
    let mut items = field.items().to_vec();
    items.sort_by_key(|item| match *item {
        Item::Any | Item::AnyStep { .. } => 0,
        Item::Value(0) if field.kind() == FieldKind::DayOfWeek => 7,
        Item::Value(value) | Item::NearestWeekday(value) => value,
        Item::Range { first, .. }
        | Item::RangeStep { first, .. }
        | Item::Nth { first, .. }
        | Item::Last { first, .. } => first,
        Item::LastDay | Item::LastWeekday => u16::MAX,
    });
    items
}

/// The value of a field that names just one.
fn only_value(field: &Field) -> Option<u16> {
    match field.items() {
        [Item::Value(value)] => Some(*value),
        _ => None,
    }
}

fn is_step(item: &Item) -> bool {
    matches!(item, Item::AnyStep { .. } | Item::RangeStep { .. })
}

/// Every value: `*`, or a step of one through all of them.
fn is_every(field: &Field) -> bool {
    matches!(field.items(), [Item::Any] | [Item::AnyStep { step: 1 }])
}

fn clock(style: Style, hour: u16, minute: u16) -> String {
    words::time_of_day(style, i64::from(hour) * 3_600 + i64::from(minute) * 60)
}

/// `every weekday at 9:00 AM`: the shortest sentence for fixed times of day on days of the week.
fn plain(cron: &CronSpec, style: Style) -> Option<String> {
    let is_any = |kind| cron.field(kind).is_any();
    let every_date =
        is_any(FieldKind::DayOfMonth) && is_any(FieldKind::Month) && is_any(FieldKind::Year);
    if !every_date || only_value(cron.field(FieldKind::Second)) != Some(0) {
        return None;
    }
    let minute = only_value(cron.field(FieldKind::Minute))?;
    let hours = in_reading_order(cron.field(FieldKind::Hour));
    let times: Option<Vec<String>> = hours
        .iter()
        .map(|item| match item {
            Item::Value(hour) => Some(clock(style, *hour, minute)),
            _ => None,
        })
        .collect();
    let days = match in_reading_order(cron.field(FieldKind::DayOfWeek)).as_slice() {
        [Item::Any] => "day".to_owned(),
        [Item::Range { first: 1, last: 5 }] => "weekday".to_owned(),
        items => {
            let names: Option<Vec<String>> = items
                .iter()
                .map(|item| match *item {
                    Item::Value(day) => Some(weekday(day).to_owned()),
                    Item::Range { first, last } => {
                        Some(format!("{} through {}", weekday(first), weekday(last)))
                    }
                    _ => None,
                })
                .collect();
            list(&names?)
        }
    };
    Some(format!("every {days} at {}", list_of_times(&times?)))
}

fn time_of_day(cron: &CronSpec, style: Style) -> String {
    let [second, minute, hour] =
        &[FieldKind::Second, FieldKind::Minute, FieldKind::Hour].map(|kind| simplified(cron, kind));
    let on_the_minute = only_value(second) == Some(0);
    match (only_value(second), only_value(minute), only_value(hour)) {
        (Some(second), Some(minute), Some(hour)) => {
            let time = i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second);
            return format!("at {}", words::time_of_day(style, time));
        }
        (Some(0), None, Some(hour)) => {
            if let [Item::Range { first, last }] = minute.items() {
                let (first, last) = (clock(style, hour, *first), clock(style, hour, *last));
                return format!("every minute between {first} and {last}");
            }
        }
        (Some(0), Some(minute), None) => {
            let times: Option<Vec<String>> = hour
                .items()
                .iter()
                .map(|item| match item {
                    Item::Value(hour) => Some(clock(style, *hour, minute)),
                    _ => None,
                })
                .collect();
            if let Some(times) = times {
                return format!("at {}", list_of_times(&times));
            }
        }
        _ => {}
    }
    let mut clauses = Vec::new();
    if !on_the_minute {
        clauses.push(seconds(second));
    }
    // "Every minute" and "every hour" are left out, except where no other clause remains.
    if !is_every(minute) || clauses.is_empty() {
        clauses.push(minutes(minute, hour, on_the_minute));
    }
    if !is_every(hour) {
        clauses.push(hours(second, minute, hour, style));
    }
    clauses.join(", ")
}

fn seconds(field: &Field) -> String {
    if is_every(field) {
        return "every second".to_owned();
    }
    within(field, "second", "minute")
}

fn minutes(field: &Field, hour: &Field, on_the_minute: bool) -> String {
    match only_value(field) {
        _ if is_every(field) => "every minute".to_owned(),
        Some(0) if on_the_minute && (is_every(hour) || !hour.items().iter().any(is_step)) => {
            "every hour".to_owned()
        }
        Some(0) => "on the hour".to_owned(),
        _ => within(field, "minute", "hour"),
    }
}

/// Seconds of a minute, minutes of an hour.
fn within(field: &Field, unit: &str, whole: &str) -> String {
    let name = |value: u16| value.to_string();
    let wording = Wording {
        name: &name,
        last_name: &name,
        values: &|values| {
            let plural = if values == "1" { "" } else { "s" };
            format!("at {values} {unit}{plural} past the {whole}")
        },
        range: &|first, last| format!("{unit}s {first} through {last} past the {whole}"),
        step: &|step| steps(step, unit),
    };
    wording.field(field)
}

fn hours(second: &Field, minute: &Field, hour: &Field, style: Style) -> String {
    // The last hour ends at its 59th minute, unless only its first minute matches.
    let last_minute = if only_value(minute) == Some(0) { 0 } else { 59 };
    let between = |first: &str, last: &str| format!("between {first} and {last}");
    if let Some(hour) = only_value(hour)
        && (second.is_stepping() || minute.is_stepping())
    {
        return between(&clock(style, hour, 0), &clock(style, hour, last_minute));
    }
    let wording = Wording {
        name: &|hour| clock(style, hour, 0),
        last_name: &|hour| clock(style, hour, last_minute),
        values: &|values| format!("at {values}"),
        range: &between,
        step: &|step| steps(step, "hour"),
    };
    wording.field(hour)
}

fn steps(step: u16, unit: &str) -> String {
    match step {
        1 => format!("every {unit}"),
        _ => format!("every {step} {unit}s"),
    }
}

fn days_of_month(cron: &CronSpec) -> String {
    let field = &simplified(cron, FieldKind::DayOfMonth);
    // `*/1` is every day as well, but unlike `*` it combines with the day of week by OR.
    if field.is_any() || (is_every(field) && cron.field(FieldKind::DayOfWeek).is_any()) {
        return String::new();
    }
    let name = |value: u16| value.to_string();
    let wording = Wording {
        name: &name,
        last_name: &name,
        values: &|values| match values.strip_prefix("the ") {
            Some(_) => format!("on {values} of the month"),
            None => format!("on day {values} of the month"),
        },
        range: &|first, last| format!("between day {first} and {last} of the month"),
        step: &|step| match step {
            1 => "every day of the month".to_owned(),
            _ => format!("every {step} days in a month"),
        },
    };
    wording.field(field)
}

/// How the day of week combines with the day of month.
#[derive(Clone, Copy, PartialEq)]
enum Relation {
    /// Only the day of week restricts.
    Alone,
    /// One of the two must match.
    Or,
    /// Both must match.
    And,
}

fn days_of_week(cron: &CronSpec) -> String {
    let field = &simplified(cron, FieldKind::DayOfWeek);
    let relation = match cron.field(FieldKind::DayOfMonth).is_any() {
        true => Relation::Alone,
        false if cron.requires_both_days() => Relation::And,
        false => Relation::Or,
    };
    // `*/1` is every day, and with OR it makes every day match, so it can't be left out.
    if field.is_any() || (is_every(field) && relation != Relation::Or) {
        return String::new();
    }
    let name = |value: u16| weekday(value).to_owned();
    let wording = Wording {
        name: &name,
        last_name: &name,
        values: &|values| match relation {
            Relation::Alone => format!("only on {values}"),
            Relation::Or => format!("on {values}"),
            Relation::And => values.to_owned(),
        },
        range: &|first, last| format!("{first} through {last}"),
        step: &|step| match step {
            1 => "every day of the week".to_owned(),
            _ => format!("every {step} days of the week"),
        },
    };
    let (numbered, plain) = numbered_weekdays(field);
    let days = match (numbered.as_str(), plain.as_slice()) {
        ("", plain) => wording.items(plain),
        (numbered, []) if relation == Relation::And => format!("the {numbered} of the month"),
        (numbered, []) => format!("on the {numbered} of the month"),
        (numbered, plain) => {
            format!(
                "{} and on the {numbered} of the month",
                wording.items(plain)
            )
        }
    };
    match relation {
        Relation::Alone => days,
        Relation::Or => format!("and {days}"),
        Relation::And => format!("only if it is {days}"),
    }
}

/// The numbered weekdays of a field (`third Monday and last Friday`), and its other items.
fn numbered_weekdays(field: &Field) -> (String, Vec<Item>) {
    let mut names = Vec::new();
    let mut plain = Vec::new();
    for item in in_reading_order(field) {
        let (nth, first, last) = match item {
            Item::Nth { first, last, nth } => (i16::from(nth), first, last),
            Item::Last { first, last } => (-1, first, last),
            item => {
                plain.push(item);
                continue;
            }
        };
        names.extend((first..=last).map(|day| format!("{} {}", ordinal(nth), weekday(day))));
    }
    (list(&names), plain)
}

fn months(field: &Field) -> String {
    if is_every(field) {
        return String::new();
    }
    let name = |value: u16| month(value).to_owned();
    names_in_time(field, "month", &name)
}

fn years(field: &Field) -> String {
    if is_every(field) {
        return String::new();
    }
    names_in_time(field, "year", &|year: u16| year.to_string())
}

fn names_in_time(field: &Field, unit: &str, name: &dyn Fn(u16) -> String) -> String {
    let wording = Wording {
        name,
        last_name: name,
        values: &|values| format!("only in {values}"),
        range: &|first, last| format!("{first} through {last}"),
        step: &|step| steps(step, unit),
    };
    wording.field(field)
}
