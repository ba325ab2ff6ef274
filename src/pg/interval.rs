//! Intervals as arguments.

use super::error::SqlError;
use super::time;
use chrono::{DateTime, Utc};
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::{FromDatum, IntoDatum, direct_function_call, pg_sys};
use recur_core::action::Interval as Span;

/// The three parts of an interval.
pub fn parts(interval: &Interval) -> Span {
    Span {
        months: interval.months(),
        days: interval.days(),
        micros: interval.micros(),
    }
}

/// An interval of these parts. `Interval::new` refuses parts of different signs, which the server allows.
pub fn from_parts(parts: Span) -> Interval {
    let interval = pg_sys::Interval {
        time: parts.micros,
        day: parts.days,
        month: parts.months,
    };
    let datum = pg_sys::Datum::from(&raw const interval);
    // SAFETY: the datum points to an interval, which is copied.
    let copy = unsafe { Interval::from_datum(datum, false) };
    copy.unwrap_or_else(|| pgrx::error!("pg_recur: {parts} is no interval"))
}

/// As the server prints it.
pub fn text(interval: Interval) -> String {
    // SAFETY: interval_out takes an interval and returns a text that ends with a zero byte.
    let text: Option<&std::ffi::CStr> =
        unsafe { direct_function_call(pg_sys::interval_out, &[interval.into_datum()]) };
    text.map(|text| text.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// The instant an interval later, in the time zone of the session; the end of the calendar if that lies behind it. The
/// interval has been checked: the server's addition would raise an error for one that is too long.
pub fn after(instant: DateTime<Utc>, interval: Interval) -> DateTime<Utc> {
    let arguments = [
        time::timestamptz(instant).into_datum(),
        interval.into_datum(),
    ];
    // SAFETY: timestamptz_pl_interval takes a timestamptz and an interval, and returns a timestamptz.
    let sum: Option<TimestampWithTimeZone> =
        unsafe { direct_function_call(pg_sys::timestamptz_pl_interval, &arguments) };
    sum.and_then(|sum| time::from_micros(sum.into()))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// A pause before something happens must not be negative, and must end before the calendar does.
pub fn check_pause(argument: &str, pause: &Interval) -> Result<(), SqlError> {
    Ok(parts(pause).check(argument, true)?)
}

/// The lease that a consumer asks for must be positive, and end before the calendar does.
pub fn check_lease(lease: &Interval, hint: &str) -> Result<(), SqlError> {
    let parts = parts(lease);
    parts
        .check("lease", false)
        .map_err(|error| SqlError::from(error).with_hint(hint))
}
