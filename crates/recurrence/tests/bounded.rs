//! No input takes long.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use recurrence::{Bounds, OnFold, OnGap, Recurrence, RecurrenceError, Schedule, Zone};

use common::instant;

/// Far more than any of these searches takes, even unoptimised on a busy machine, and far less than a
/// search that visits every candidate, which would run for seconds or without end.
const TIME_LIMIT: Duration = Duration::from_millis(250);

fn in_time<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = run();
    let took = start.elapsed();
    assert!(took < TIME_LIMIT, "{what} took {took:?}");
    result
}

fn build(text: &str, start: &str) -> Result<Recurrence, RecurrenceError> {
    let bounds = Bounds {
        starts_at: Some(instant(start)),
        ..Bounds::default()
    };
    let schedule = Arc::new(Schedule::parse(text).unwrap());
    let zone = Zone::parse("America/New_York").unwrap();
    Recurrence::new(schedule, zone, bounds, OnGap::RollForward, OnFold::First)
}

#[test]
fn impossible_dates_are_refused() {
    for text in [
        "0 0 30 2 *",
        "0 0 31 2,4,6,9,11 *",
        "* * 31 4 *",
        "0 0 31W 2 *",
        "0 0 0 29 2 * 2025-2027",
        "0 0 0 29 2 * 2100",
        "0 0 29 2 +MON#1",
        "0 0 1-7 * +MON#2",
        "0 0 31 * +6#1",
    ] {
        let error = in_time(text, || Schedule::parse(text).expect_err(text));
        assert!(
            error.to_string().ends_with("names no date that exists"),
            "{error}"
        );
    }
}

#[test]
fn filters_that_nothing_satisfies_are_refused() {
    for (text, start) in [
        // The start's time of day is outside the window on every day.
        (
            r#"{"every":1,"unit":"day","between_hours":[9,17]}"#,
            "2024-06-14T21:00:00Z",
        ),
        (
            r#"{"every":3,"unit":"month","between_hours":[9,17]}"#,
            "2024-06-14T21:00:00Z",
        ),
        // A step of whole weeks, or of the calendar's 400 years, stays on the start's weekday, a Friday.
        (
            r#"{"every":7,"unit":"day","days_of_week":["mon"]}"#,
            "2024-06-14T13:00:00Z",
        ),
        (
            r#"{"every":4800,"unit":"month","days_of_week":["mon"]}"#,
            "2024-06-14T13:00:00Z",
        ),
        // A week of elapsed time drifts by an hour at each clock change, which is not enough here.
        (
            r#"{"every":168,"unit":"hour","days_of_week":["mon"]}"#,
            "2024-06-14T13:00:00Z",
        ),
        (
            r#"{"every":10080,"unit":"minute","between_hours":[3,4]}"#,
            "2024-06-14T13:00:00Z",
        ),
        (
            "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
            "2024-06-14T13:00:00Z",
        ),
        (
            "RRULE:FREQ=DAILY;BYMONTH=4;BYMONTHDAY=31",
            "2024-06-14T13:00:00Z",
        ),
    ] {
        let error = in_time(text, || build(text, start).expect_err(text));
        assert!(
            matches!(error, RecurrenceError::NeverOccurs { .. }),
            "{error}"
        );
    }
}

#[test]
fn rare_occurrences_are_found() {
    for (text, start, expected) in [
        (
            "0 0 29 2 +SUN",
            "2024-06-14T13:00:00Z",
            "2032-02-29T05:00:00Z",
        ),
        (
            "0 0 0 29 2 +SUN 2033-9999",
            "2024-06-14T13:00:00Z",
            "2060-02-29T05:00:00Z",
        ),
        (
            "0 0 0 1 1 * 9998",
            "2024-06-14T13:00:00Z",
            "9998-01-01T05:00:00Z",
        ),
        (
            r#"{"every":14,"unit":"day","week_parity":"odd"}"#,
            "2024-06-14T13:00:00Z",
            "2027-01-08T14:00:00Z",
        ),
        (
            r#"{"every":12,"unit":"month","nth_weekday":{"nth":5,"day":"sun"}}"#,
            "2024-02-14T13:00:00Z",
            "2032-02-29T13:00:00Z",
        ),
        (
            r#"{"every":10079,"unit":"minute","days_of_week":["sun"],"between_hours":[3,4]}"#,
            "2024-06-14T13:00:00Z",
            "",
        ),
    ] {
        let recurrence = in_time(text, || build(text, start)).unwrap();
        let first = in_time(text, || recurrence.next_after(instant(start))).unwrap();
        if !expected.is_empty() {
            assert_eq!(first.at, instant(expected), "{text}");
        }
        let back = in_time(text, || recurrence.previous_or_at(first.at));
        assert_eq!(back, Some(first), "{text}");
    }
}

#[test]
fn counting_does_not_visit_every_occurrence() {
    let (from, until) = (
        instant("2026-01-01T00:00:00Z"),
        instant("2126-01-01T00:00:00Z"),
    );
    for (text, at_least) in [
        ("* * * * * *", 3_000_000_000),
        ("*/5 * * * *", 10_000_000),
        ("30 2 * * *", 36_000),
        ("1s", 3_000_000_000),
        ("P1DT1S", 36_000),
        ("RRULE:FREQ=SECONDLY", 3_000_000_000),
        ("RRULE:FREQ=DAILY;BYHOUR=9,17", 72_000),
        (
            r#"{"every":1,"unit":"minute","between_hours":[9,17]}"#,
            17_000_000,
        ),
        (
            r#"{"every":1,"unit":"week","days_of_week":["mon","tue"]}"#,
            10_000,
        ),
    ] {
        let recurrence = build(text, "2026-01-01T15:00:00Z").unwrap();
        let count = in_time(text, || recurrence.count_between(from, until, u64::MAX));
        assert!(count > at_least, "{text}: {count}");
        assert_eq!(recurrence.count_between(from, until, 7), 7, "{text}");
    }
}

#[test]
fn the_last_of_many_runs_is_found_in_time() {
    let bounds = Bounds {
        starts_at: Some(instant("2026-01-01T00:00:00Z")),
        ends_at: None,
        max_runs: Some(100_000_000),
    };
    let schedule = Arc::new(Schedule::parse("* * * * * *").unwrap());
    let recurrence = Recurrence::new(
        schedule,
        Zone::UTC,
        bounds,
        OnGap::RollForward,
        OnFold::First,
    )
    .unwrap();
    let far = instant("2126-01-01T00:00:00Z");
    let last = in_time("previous_or_at", || recurrence.previous_or_at(far)).unwrap();
    assert_eq!(
        last.at,
        instant("2026-01-01T00:00:00Z") + chrono::Duration::seconds(99_999_999)
    );
    assert_eq!(recurrence.next_after(last.at), None);
}

#[test]
fn long_and_nested_texts_are_parsed_in_time() {
    let long = |piece: &str| piece.repeat(100_000 / piece.len());
    for text in [
        long("*"),
        long("* "),
        long("1,"),
        format!("{} * * * *", long("0,")),
        format!("{} * * * *", "0-59/1,".repeat(120) + "1"),
        format!("0 0 {} * *", "31W,".repeat(200) + "L"),
        long("["),
        long("{\"a\":"),
        format!(
            "{{\"every\":1,\"unit\":\"day\",\"days_of_week\":{}}}",
            "[".repeat(900)
        ),
        long("9"),
        format!("P{}D", "9".repeat(900)),
        format!("at {}", "9".repeat(900)),
        format!("@{}", "x".repeat(900)),
        "\u{0}".repeat(900),
        "🕰️".repeat(100),
        format!("RRULE:{}", long("FREQ=DAILY;")),
        format!("RRULE:FREQ=DAILY\nEXDATE:{}", long("20260101T000000,")),
    ] {
        let start: String = text.chars().take(20).collect();
        let _ = in_time(&start, || Schedule::parse(&text));
    }
}

/// Under `skip`, a time that is always in the gap occurs only in years without clock changes.
#[test]
fn a_time_that_is_always_in_a_gap_is_found() {
    let schedule = Arc::new(Schedule::parse("30 2 8-14 3 +SUN").unwrap());
    let zone = Zone::parse("America/New_York").unwrap();
    let recurrence = Recurrence::new(
        schedule,
        zone,
        Bounds::default(),
        OnGap::Skip,
        OnFold::First,
    )
    .unwrap();
    let now: DateTime<Utc> = instant("2026-01-01T00:00:00Z");
    let next = in_time("forward", || recurrence.next_after(now)).unwrap();
    assert_eq!(next.local.to_string(), "2200-03-09 02:30:00");
    let previous = in_time("backward", || recurrence.previous_or_at(now)).unwrap();
    assert_eq!(previous.local.to_string(), "2006-03-12 02:30:00");
}
