//! Expected results, computed in the simplest way with chrono and chrono-tz alone.

use chrono::{DateTime, Datelike, Duration, LocalResult, NaiveDate, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;
use proptest::prelude::Strategy;
use proptest::sample::select;
use recurrence::{OnFold, OnGap};

/// The instants of a wall-clock time under a policy.
pub fn resolve(tz: Tz, local: NaiveDateTime, gap: OnGap, fold: OnFold) -> Vec<DateTime<Utc>> {
    match tz.from_local_datetime(&local) {
        LocalResult::Single(at) => vec![at.to_utc()],
        LocalResult::Ambiguous(first, second) => match fold {
            OnFold::First => vec![first.to_utc()],
            OnFold::Second => vec![second.to_utc()],
            OnFold::Both => vec![first.to_utc(), second.to_utc()],
        },
        LocalResult::None if gap == OnGap::Skip => vec![],
        LocalResult::None => vec![end_of_gap(tz, local)],
    }
}

/// The first instant after the gap around a missing wall-clock time.
fn end_of_gap(tz: Tz, missing: NaiveDateTime) -> DateTime<Utc> {
    let mut local = missing;
    // All gaps end on a whole minute, except a few before standard time.
    while local.and_utc().timestamp() % 60 != 0 {
        local += Duration::seconds(1);
        if let Some(at) = tz.from_local_datetime(&local).earliest() {
            return at.to_utc();
        }
    }
    loop {
        local += Duration::minutes(1);
        if let Some(at) = tz.from_local_datetime(&local).earliest() {
            return at.to_utc();
        }
    }
}

pub fn month_length(date: NaiveDate) -> u32 {
    let next = match date.month() {
        12 => NaiveDate::from_ymd_opt(date.year() + 1, 1, 1),
        month => NaiveDate::from_ymd_opt(date.year(), month + 1, 1),
    };
    next.and_then(|next| next.pred_opt())
        .expect("a month has a last day")
        .day()
}

pub fn policies() -> impl Strategy<Value = (OnGap, OnFold)> {
    (
        select(vec![OnGap::RollForward, OnGap::Skip]),
        select(vec![OnFold::First, OnFold::Second, OnFold::Both]),
    )
}
