//! Names, numbers and lists in English.

use super::Style;
use crate::civil::Civil;

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Sunday first: both 0 and 7 are an index of it, modulo 7.
const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// Sunday is 0 or 7, Monday 1.
pub(super) fn weekday(number: u16) -> &'static str {
    WEEKDAYS[usize::from(number) % 7]
}

/// January is 1.
pub(super) fn month(number: u16) -> &'static str {
    MONTHS[usize::from(number - 1) % 12]
}

/// `a`, `a and b`, `a, b, and c`.
pub(super) fn list<T: AsRef<str>>(items: &[T]) -> String {
    match items {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [one, two] => format!("{} and {}", one.as_ref(), two.as_ref()),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{}, and {}", first.join(", "), last.as_ref())
        }
    }
}

/// A list of times of day, which reads better without the last comma: `06:30, 14:30 and 16:30`.
pub(super) fn list_of_times(times: &[String]) -> String {
    match times {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => times.concat(),
    }
}

/// `every day`, `every 2 days`.
pub(super) fn every(count: u32, unit: &str) -> String {
    match count {
        1 => format!("every {unit}"),
        _ => format!("every {count} {unit}s"),
    }
}

/// `1 day`, `2 days`.
pub(super) fn count_of(count: u32, unit: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

/// `first`, `21st`; for negative numbers `last`, `second to last`.
pub(super) fn ordinal(number: i16) -> String {
    let count = number.unsigned_abs();
    let from_start = match (count, count % 10, count % 100) {
        (1, ..) => "first".to_owned(),
        (2, ..) => "second".to_owned(),
        (3, ..) => "third".to_owned(),
        (4, ..) => "fourth".to_owned(),
        (5, ..) => "fifth".to_owned(),
        (_, _, 11..=13) => format!("{count}th"),
        (_, 1, _) => format!("{count}st"),
        (_, 2, _) => format!("{count}nd"),
        (_, 3, _) => format!("{count}rd"),
        _ => format!("{count}th"),
    };
    match number {
        -1 => "last".to_owned(),
        ..-1 => format!("{from_start} to last"),
        _ => from_start,
    }
}

/// A list of numbers with runs of three and more as ranges: `9 through 17`.
pub(super) fn runs(numbers: &[u16], name: impl Fn(u16) -> String) -> Vec<String> {
    let mut items = Vec::new();
    for run in numbers.chunk_by(|a, b| a + 1 == *b) {
        match run {
            [first, _, .., last] => items.push(format!("{} through {}", name(*first), name(*last))),
            _ => items.extend(run.iter().map(|number| name(*number))),
        }
    }
    items
}

/// `09:30`, and `09:30:15` where there are seconds; `9:30 AM` in the style of twelve hours.
pub(super) fn time_of_day(style: Style, second_of_day: i64) -> String {
    let (hour, minute, second) = (
        second_of_day / 3_600,
        second_of_day / 60 % 60,
        second_of_day % 60,
    );
    let seconds = match second {
        0 => String::new(),
        _ => format!(":{second:02}"),
    };
    match style {
        Style::Hours24 => format!("{hour:02}:{minute:02}{seconds}"),
        Style::Hours12 => {
            let half = if hour < 12 { "AM" } else { "PM" };
            format!("{}:{minute:02}{seconds} {half}", (hour + 11) % 12 + 1)
        }
    }
}

/// `31 January 2027`.
pub(super) fn date(civil: Civil) -> String {
    let date = civil.date();
    format!("{} {} {}", date.day, month(date.month.into()), date.year)
}

/// `31 January 2027 at 09:00`.
pub(super) fn date_and_time(style: Style, civil: Civil) -> String {
    let time = time_of_day(style, civil.second_of_day());
    format!("{} at {time}", date(civil))
}

/// `Jan 31, 2027`.
pub(super) fn short_date(civil: Civil) -> String {
    let date = civil.date();
    let month = &month(date.month.into())[..3];
    format!("{month} {}, {}", date.day, date.year)
}

/// The text with its first letter in upper case.
pub(super) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
