//! RRULE vectors from other implementations.

use std::sync::Arc;

use chrono::{DateTime, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;
use recurrence::{Bounds, OnFold, OnGap, Recurrence, RecurrenceError, Schedule, Zone};
use serde_json::Value;

/// The `EXDATE:` or `RDATE:` line of a case, where it has one.
fn dates(name: &str, case: &Value) -> String {
    match case[name.to_lowercase().as_str()].as_array() {
        None => String::new(),
        Some(times) => {
            let times: Vec<&str> = times.iter().map(|time| time.as_str().unwrap()).collect();
            format!("\n{name}:{}", times.join(","))
        }
    }
}

fn start(case: &Value) -> DateTime<Utc> {
    let zone: Tz = case["tz"].as_str().unwrap().parse().unwrap();
    let text = case["dtstart"].as_str().unwrap();
    let local = NaiveDateTime::parse_from_str(text, "%Y%m%dT%H%M%S").unwrap();
    zone.from_local_datetime(&local)
        .earliest()
        .unwrap()
        .to_utc()
}

#[test]
fn rrule_vectors() {
    let mut checked = 0;
    for line in include_str!("vectors/rrule.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap();
        let rule = case["rrule"].as_str().unwrap();
        let text = format!(
            "RRULE:{rule}{}{}",
            dates("EXDATE", &case),
            dates("RDATE", &case)
        );
        let schedule = Schedule::parse(&text).unwrap_or_else(|error| panic!("{id}: {error}"));
        let recurrence = Recurrence::new(
            Arc::new(schedule),
            Zone::parse(case["tz"].as_str().unwrap()).unwrap(),
            Bounds {
                starts_at: Some(start(&case)),
                ..Bounds::default()
            },
            OnGap::RollForward,
            OnFold::First,
        );
        let after: DateTime<Utc> = case["after"].as_str().unwrap().parse().unwrap();
        let n = case["n"].as_u64().unwrap() as usize;
        let found: Vec<String> = match &recurrence {
            // An UNTIL before the start is an error.
            Err(RecurrenceError::NeverOccurs { .. }) => Vec::new(),
            Err(error) => panic!("{id}: {error}"),
            Ok(recurrence) => recurrence
                .occurrences_after(after)
                .take(n)
                .map(|occurrence| occurrence.at.format("%Y-%m-%dT%H:%M:%SZ").to_string())
                .collect(),
        };
        // For a time in a gap, `expect_alt` has this crate's policy: the first instant after it.
        let expected = match &case["expect_alt"] {
            Value::Null => &case["expect"],
            alternative => alternative,
        };
        let expected: Vec<&str> = expected
            .as_array()
            .unwrap()
            .iter()
            .map(|time| time.as_str().unwrap())
            .collect();
        assert_eq!(found, expected, "{id} {text}");
        checked += 1;
    }
    assert_eq!(checked, 86);
}
