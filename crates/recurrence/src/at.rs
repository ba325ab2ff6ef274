//! Schedules of a single time.

use std::fmt;

use chrono::{DateTime, NaiveDateTime};

use crate::civil::{Civil, Date};
use crate::error::ScheduleError;
use crate::text::excerpt;

/// A single moment: a wall-clock reading in the schedule's zone, or an instant.
///
/// # Examples
/// ```
/// use recurrence::at::Moment;
/// use recurrence::{Kind, Schedule};
///
/// let schedule = Schedule::parse("at 2027-01-31T09:00:00.25+01:00")?;
/// assert_eq!(schedule.to_string(), "at 2027-01-31T08:00:00.250Z");
/// let Kind::At(at) = schedule.kind() else { unreachable!() };
/// assert_eq!(at.moment(), Moment::Instant(1_801_382_400));
/// assert_eq!(at.subsec_nanos(), 250_000_000);
/// # Ok::<(), recurrence::ScheduleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct At {
    moment: Moment,
    nanos: u32,
}

/// What a single time is given as, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// A wall-clock reading in the schedule's zone.
    Local(Civil),
    /// An instant, in Unix seconds.
    Instant(i64),
}

impl At {
    /// Parses `at 2027-01-31T09:00:00`, with or without an offset.
    pub(crate) fn parse(text: &str) -> Result<At, ScheduleError> {
        let refused = || {
            ScheduleError::new(format!(
                "time \"{}\" is not a timestamp, \
                 expected a form such as at 2027-01-31T09:00:00 or at 2027-01-31T09:00:00+01:00",
                excerpt(text)
            ))
        };
        let stamp = text.get(3..).map(str::trim_ascii).ok_or_else(refused)?;
        if !stamp.is_ascii() {
            return Err(refused());
        }
        let stamp = stamp.replacen(' ', "T", 1).to_ascii_uppercase();
        let (local, offset) = split_offset(&stamp);
        let offset = offset
            .map(|o| parse_offset(o).ok_or_else(refused))
            .transpose()?;
        if !has_full_width(local) {
            return Err(refused());
        }
        let naive = NaiveDateTime::parse_from_str(local, "%Y-%m-%dT%H:%M:%S%.f")
            .or_else(|_| NaiveDateTime::parse_from_str(local, "%Y-%m-%dT%H:%M"))
            .map_err(|_| refused())?;
        let utc = naive.and_utc();
        let (seconds, nanos) = (utc.timestamp(), utc.timestamp_subsec_nanos());
        // chrono reads :60 as a leap second, which no zone's clock shows.
        if nanos >= 1_000_000_000 {
            return Err(refused());
        }
        // The canonical form of an instant is in UTC, where an offset may lead into another year.
        let shown = seconds - offset.unwrap_or(0);
        if [seconds, shown]
            .iter()
            .any(|at| !(1..=9999).contains(&Civil(*at).date().year))
        {
            return Err(refused());
        }
        let moment = match offset {
            None => Moment::Local(Civil(seconds)),
            Some(_) => Moment::Instant(shown),
        };
        Ok(At { moment, nanos })
    }

    /// The moment in whole seconds.
    pub fn moment(&self) -> Moment {
        self.moment
    }

    /// The fraction of a second, in nanoseconds.
    pub fn subsec_nanos(&self) -> u32 {
        self.nanos
    }
}

/// Whether every number has all of its digits. chrono accepts fewer, and signs and blanks before them, which are typing
/// errors.
fn has_full_width(local: &str) -> bool {
    let form = "0000-00-00T00:00:00.0";
    let is_like = |(given, wanted): (u8, u8)| match wanted {
        b'0' => given.is_ascii_digit(),
        sign => given == sign,
    };
    matches!(local.len(), 16 | 19 | 21..) && local.bytes().zip(form.bytes()).all(is_like)
}

/// Splits `2027-01-31T09:00:00+01:00` into the local time and the offset.
fn split_offset(stamp: &str) -> (&str, Option<&str>) {
    let time = stamp.find('T').unwrap_or(stamp.len());
    match stamp[time..].find(['Z', '+', '-']) {
        Some(index) => {
            let (local, offset) = stamp.split_at(time + index);
            (local, Some(offset))
        }
        None => (stamp, None),
    }
}

/// `Z`, `+01`, `+0130` or `+01:30`, in seconds.
fn parse_offset(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits = match digits.split_once(':') {
        Some((hours, minutes)) if hours.len() == 2 && minutes.len() == 2 => {
            format!("{hours}{minutes}")
        }
        Some(_) => return None,
        None => digits.to_owned(),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes): (i64, i64) = match digits.len() {
        2 => (digits.parse().ok()?, 0),
        4 => (digits[..2].parse().ok()?, digits[2..].parse().ok()?),
        _ => return None,
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, suffix) = match self.moment {
            Moment::Local(civil) => (civil.0, ""),
            Moment::Instant(instant) => (instant, "Z"),
        };
        let Date { year, month, day } = Civil(seconds).date();
        let time = DateTime::from_timestamp(seconds, self.nanos).unwrap_or_default();
        write!(
            f,
            "at {year:04}-{month:02}-{day:02}T{}{suffix}",
            time.format("%H:%M:%S%.f")
        )
    }
}
