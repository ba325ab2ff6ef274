//! Instants: PostgreSQL counts microseconds from 2000-01-01, the engine has `DateTime<Utc>`.

use super::error::SqlError;
use chrono::{DateTime, NaiveDateTime, SecondsFormat, TimeDelta, Utc};
use pgrx::datum::{Timestamp, TimestampWithTimeZone};
use pgrx::{IntoDatum, direct_function_call, pg_sys};
use std::ffi::CStr;
use std::time::Duration;

/// 2000-01-01T00:00:00Z in Unix microseconds.
const POSTGRES_EPOCH: i64 = 946_684_800_000_000;

/// The wall clock, now.
pub fn now() -> DateTime<Utc> {
    from_micros(now_micros()).unwrap_or(DateTime::UNIX_EPOCH)
}

/// The wall clock, now, as the server counts.
pub fn now_micros() -> pg_sys::TimestampTz {
    // SAFETY: only reads the clock.
    unsafe { pg_sys::GetCurrentTimestamp() }
}

/// The instant a span later; the end of the calendar if that lies behind it.
pub fn after(instant: DateTime<Utc>, span: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(span)
        .ok()
        .and_then(|span| instant.checked_add_signed(span))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// None for `infinity`, `-infinity` and what chrono can't hold.
pub fn from_micros(micros: pg_sys::TimestampTz) -> Option<DateTime<Utc>> {
    if micros == pg_sys::TimestampTz::MAX || micros == pg_sys::TimestampTz::MIN {
        return None;
    }
    DateTime::from_timestamp_micros(micros.checked_add(POSTGRES_EPOCH)?)
}

pub fn to_micros(instant: DateTime<Utc>) -> pg_sys::TimestampTz {
    instant.timestamp_micros() - POSTGRES_EPOCH
}

/// An argument that must be a real instant.
pub fn instant(argument: &str, value: TimestampWithTimeZone) -> Result<DateTime<Utc>, SqlError> {
    from_micros(value.into()).ok_or_else(|| {
        SqlError::invalid_argument(argument, "infinity", "must be a finite point in time")
            .with_hint("Leave the argument out, or pass NULL, for no limit.")
    })
}

pub fn timestamptz(instant: DateTime<Utc>) -> TimestampWithTimeZone {
    // Every instant of the engine lies within PostgreSQL's range, which ends in the year 294276.
    TimestampWithTimeZone::try_from(to_micros(instant))
        .unwrap_or(TimestampWithTimeZone::positive_infinity())
}

/// An instant as the session would see it, in its time zone and style.
pub fn shown(instant: DateTime<Utc>) -> String {
    // SAFETY: timestamptz_out takes a timestamptz and returns a C string in the current memory context.
    unsafe {
        let text = direct_function_call::<&CStr>(
            pg_sys::timestamptz_out,
            &[timestamptz(instant).into_datum()],
        );
        text.map_or(String::new(), |text| text.to_string_lossy().into_owned())
    }
}

/// An instant in UTC, for messages and details.
pub fn rfc3339(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

pub fn timestamp(local: NaiveDateTime) -> Timestamp {
    Timestamp::try_from(local.and_utc().timestamp_micros() - POSTGRES_EPOCH)
        .unwrap_or(Timestamp::positive_infinity())
}

/// A timestamptz as the server stores it, `infinity` included.
pub fn raw_timestamptz(micros: pg_sys::TimestampTz) -> TimestampWithTimeZone {
    match micros {
        pg_sys::TimestampTz::MIN => TimestampWithTimeZone::negative_infinity(),
        micros => TimestampWithTimeZone::try_from(micros)
            .unwrap_or(TimestampWithTimeZone::positive_infinity()),
    }
}
