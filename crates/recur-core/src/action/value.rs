//! Values of columns: scalars, and JSON that stays as it is.

use chrono::{DateTime, Datelike, Timelike, Utc};

use super::interval::Interval;

/// A JSON value of which only the outside is known.
///
/// Payloads are never decoded: a number such as `1e400` or `12345678901234567890.123456789` has no place in a Rust
/// number and must come out as it went in. The extension implements the trait for the server's own values.
pub trait Json: Clone + PartialEq {
    /// The value of a text that is valid JSON: a default of [`columns`](super::columns).
    fn from_text(text: &str) -> Self;

    /// Is it a JSON object?
    fn is_object(&self) -> bool;

    /// The value as the server prints it.
    fn text(&self) -> String;

    /// How many bytes the value takes.
    fn size(&self) -> usize;
}

/// The value of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<J> {
    /// No value.
    Null,
    /// A text of any kind.
    Text(String),
    /// A whole number.
    Int(i64),
    /// True or false.
    Bool(bool),
    /// A point in time.
    Instant(DateTime<Utc>),
    /// A span of time.
    Interval(Interval),
    /// A JSON value.
    Json(J),
}

impl<J> Value<J> {
    /// Is there no value?
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The truth value, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The instant, if it is one.
    pub fn as_instant(&self) -> Option<DateTime<Utc>> {
        match self {
            Value::Instant(instant) => Some(*instant),
            _ => None,
        }
    }

    /// The interval, if it is one.
    pub fn as_interval(&self) -> Option<Interval> {
        match self {
            Value::Interval(interval) => Some(*interval),
            _ => None,
        }
    }

    /// The JSON, if it is some.
    pub fn as_json(&self) -> Option<&J> {
        match self {
            Value::Json(json) => Some(json),
            _ => None,
        }
    }
}

impl<J: Json> Value<J> {
    /// The value as a message shows it.
    pub fn text(&self) -> String {
        match self {
            Value::Null => "NULL".to_owned(),
            Value::Text(text) => text.clone(),
            Value::Int(number) => number.to_string(),
            Value::Bool(truth) => truth.to_string(),
            Value::Instant(instant) => instant_text(*instant),
            Value::Interval(interval) => interval.to_string(),
            Value::Json(json) => json.text(),
        }
    }
}

impl<J> From<&str> for Value<J> {
    fn from(text: &str) -> Value<J> {
        Value::Text(text.to_owned())
    }
}

impl<J> From<String> for Value<J> {
    fn from(text: String) -> Value<J> {
        Value::Text(text)
    }
}

impl<J> From<i64> for Value<J> {
    fn from(number: i64) -> Value<J> {
        Value::Int(number)
    }
}

impl<J> From<bool> for Value<J> {
    fn from(truth: bool) -> Value<J> {
        Value::Bool(truth)
    }
}

impl<J> From<DateTime<Utc>> for Value<J> {
    fn from(instant: DateTime<Utc>) -> Value<J> {
        Value::Instant(instant)
    }
}

impl<J> From<Interval> for Value<J> {
    fn from(interval: Interval) -> Value<J> {
        Value::Interval(interval)
    }
}

impl<J, T: Into<Value<J>>> From<Option<T>> for Value<J> {
    fn from(value: Option<T>) -> Value<J> {
        value.map_or(Value::Null, T::into)
    }
}

/// An instant as PostgreSQL prints it in UTC, `2027-01-31 09:00:00+00`.
pub(super) fn instant_text(instant: DateTime<Utc>) -> String {
    let (year, era) = match instant.year() {
        year @ 1.. => (year, ""),
        // There is no year 0: it is the year 1 before Christ.
        year => (1 - year, " BC"),
    };
    let mut fraction = String::new();
    if instant.timestamp_subsec_micros() > 0 {
        fraction = format!(".{:06}", instant.timestamp_subsec_micros());
        fraction.truncate(fraction.trim_end_matches('0').len());
    }
    format!(
        "{year:04}-{:02}-{:02} {:02}:{:02}:{:02}{fraction}+00{era}",
        instant.month(),
        instant.day(),
        instant.hour(),
        instant.minute(),
        instant.second(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_read_as_the_server_prints_them_in_utc() {
        for (instant, text) in [
            ("2027-01-31T09:00:00Z", "2027-01-31 09:00:00+00"),
            ("2027-01-31T09:00:00.120Z", "2027-01-31 09:00:00.12+00"),
            (
                "2027-01-31T09:00:00.000001Z",
                "2027-01-31 09:00:00.000001+00",
            ),
            ("2027-01-31T23:30:00-02:00", "2027-02-01 01:30:00+00"),
            ("0033-04-03T15:00:00Z", "0033-04-03 15:00:00+00"),
            ("+10000-01-01T00:00:00Z", "10000-01-01 00:00:00+00"),
            ("-0043-03-15T12:00:00Z", "0044-03-15 12:00:00+00 BC"),
        ] {
            assert_eq!(instant_text(instant.parse().unwrap()), text);
        }
    }
}
