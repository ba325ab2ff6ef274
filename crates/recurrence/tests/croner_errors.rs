//! Errors of croner 4.0.2 that admission must not inherit: around clock changes, in texts that this
//! crate refuses first, and in descriptions. Those that admission has to avoid are tested beside
//! `src/cron/second_reader/known_errors.rs`.

mod common;

use std::str::FromStr;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use croner::Cron;
use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};

use common::instant;

/// The first occurrences after an instant, by this crate.
fn occurrences(text: &str, zone: &str, after: &str, count: usize) -> Vec<DateTime<Utc>> {
    let schedule = Schedule::admit(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let zone = Zone::parse(zone).unwrap();
    let recurrence = Recurrence::new(
        Arc::new(schedule),
        zone,
        Bounds::default(),
        OnGap::RollForward,
        OnFold::First,
    );
    let recurrence = recurrence.unwrap();
    let found = recurrence.occurrences_after(instant(after)).take(count);
    found.map(|occurrence| occurrence.at).collect()
}

/// The same by croner; shorter where croner's search fails.
fn croners_occurrences(text: &str, zone: &str, after: &str, count: usize) -> Vec<DateTime<Utc>> {
    let cron = Cron::from_str(text).unwrap();
    let tz = Tz::from_str(zone).unwrap();
    let mut at = instant(after).with_timezone(&tz);
    let mut found = Vec::new();
    while found.len() < count
        && let Ok(next) = cron.find_next_occurrence(&at, false)
    {
        found.push(next.to_utc());
        at = next;
    }
    found
}

fn instants(texts: &[&str]) -> Vec<DateTime<Utc>> {
    texts.iter().map(|text| instant(text)).collect()
}

#[test]
fn croner_adds_a_run_at_the_end_of_a_gap() {
    let (text, zone, after) = ("@daily", "Europe/London", "2025-03-29T12:00:00Z");
    let right = instants(&["2025-03-30T00:00:00Z", "2025-03-30T23:00:00Z"]);
    let wrong = instants(&["2025-03-30T00:00:00Z", "2025-03-30T01:00:00Z"]);
    assert_eq!(occurrences(text, zone, after, 2), right);
    assert_eq!(croners_occurrences(text, zone, after, 2), wrong);
}

#[test]
fn croner_gives_up_in_a_gap_of_more_than_two_hours() {
    // Samoa has no 30 December 2011: noon of that day rolls forward to midnight of the next.
    let (text, zone, after) = ("0 12 * * *", "Pacific/Apia", "2011-12-29T23:00:00Z");
    let right = instants(&["2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"]);
    assert_eq!(occurrences(text, zone, after, 2), right);
    assert!(croners_occurrences(text, zone, after, 2).is_empty());
}

#[test]
fn croner_takes_a_list_of_hours_for_steps() {
    // 02:00 is missing on that day: a fixed time rolls forward, a step is skipped.
    let (text, zone, after) = ("30 2,14 * * *", "America/New_York", "2025-03-09T06:00:00Z");
    let right = instants(&["2025-03-09T07:00:00Z", "2025-03-09T18:30:00Z"]);
    let wrong = instants(&["2025-03-09T18:30:00Z", "2025-03-10T06:30:00Z"]);
    assert_eq!(occurrences(text, zone, after, 2), right);
    assert_eq!(croners_occurrences(text, zone, after, 2), wrong);
}

#[test]
fn croner_reads_names_in_any_field() {
    for (text, minutes) in [
        ("SUN * * * *", vec![0]),
        ("JAN * * * *", vec![1]),
        ("1MON * * * *", vec![11]),
    ] {
        let cron = Cron::from_str(text).unwrap();
        assert_eq!(cron.pattern.minutes.values(), minutes, "{text}");
        assert!(Schedule::admit(text).is_err(), "{text}");
    }
}

#[test]
fn croner_reads_empty_list_items() {
    // Without a minute that matches, croner's search goes on for seconds.
    let cron = Cron::from_str(", * * * *").unwrap();
    assert!(cron.pattern.minutes.values().is_empty());
    let cron = Cron::from_str("1,,2 * * * *").unwrap();
    assert_eq!(cron.pattern.minutes.values(), [1, 2]);
    for text in [", * * * *", "1,,2 * * * *", "1, * * * *"] {
        let error = Schedule::admit(text).unwrap_err();
        assert!(error.to_string().contains("empty list item"), "{error}");
    }
}

#[test]
fn croner_accepts_dates_that_do_not_exist() {
    for text in ["0 0 30 2 *", "0 0 31 4 *"] {
        assert!(Cron::from_str(text).is_ok(), "{text}");
        let error = Schedule::admit(text).unwrap_err();
        assert!(
            error.to_string().ends_with("names no date that exists"),
            "{error}"
        );
    }
}

#[test]
fn croner_loses_ranges_in_its_description() {
    let text = "0 12 * * MON-FRI";
    let description = Cron::from_str(text).unwrap().describe();
    assert!(!description.contains("through"), "{description}");
    assert_eq!(
        Schedule::admit(text).unwrap().describe(),
        "at 12:00, Monday through Friday"
    );
}

#[test]
fn other_notations_are_admitted_as_they_are_parsed() {
    for text in [
        "90m",
        "P1DT12H",
        "every-30-minutes",
        "daily",
        "@midnight",
        r#"{"every":2,"unit":"week","days_of_week":["tue","thu"]}"#,
        "RRULE:FREQ=MONTHLY;BYDAY=-1FR",
        "at 2027-01-31T09:00:00",
    ] {
        assert_eq!(Schedule::admit(text), Schedule::parse(text), "{text}");
        assert!(Schedule::admit(text).is_ok(), "{text}");
    }
    for text in ["", "90x", "RRULE:FREQ=NEVER", "61 * * * *"] {
        assert_eq!(Schedule::admit(text), Schedule::parse(text), "{text}");
    }
}
