//! Vectors from other implementations, in `tests/vectors/*.jsonl`.
//!
//! Contested cases follow the rules of this crate: lists and ranges of hours and minutes are fixed
//! times, `W`, `L` and ranges combine in lists, nicknames ignore case.

mod common;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use recurrence::interval::Interval;
use recurrence::{Bounds, Kind, OnFold, OnGap, Recurrence, Schedule, Zone};
use serde_json::Value;

use common::{instant, vectors};

/// Compares the first `n` occurrences after `after` with `expect`.
fn check(case: &Value, schedule: &str, bounds: Bounds) -> Result<(), String> {
    let expect: Vec<DateTime<Utc>> = case["expect"]
        .as_array()
        .expect("expect")
        .iter()
        .map(|at| instant(at.as_str().expect("instant")))
        .collect();
    let parsed = match Schedule::admit(schedule) {
        Ok(parsed) => parsed,
        // A schedule that nothing satisfies is refused.
        Err(_) if expect.is_empty() => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    let zone = Zone::parse(case["tz"].as_str().expect("tz")).map_err(|e| e.to_string())?;
    let recurrence = match Recurrence::new(
        Arc::new(parsed),
        zone,
        bounds,
        OnGap::RollForward,
        OnFold::First,
    ) {
        Ok(recurrence) => recurrence,
        Err(_) if expect.is_empty() => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    let count = case["n"].as_u64().expect("n") as usize;
    let after = instant(case["after"].as_str().expect("after"));
    let found: Vec<DateTime<Utc>> = recurrence
        .occurrences_after(after)
        .take(count)
        .map(|occurrence| occurrence.at)
        .collect();
    if found != expect {
        return Err(format!("expected {expect:?}, found {found:?}"));
    }
    check_backward(&recurrence, after, &found)
}

/// Every occurrence is also found backward and counted.
fn check_backward(
    recurrence: &Recurrence,
    after: DateTime<Utc>,
    found: &[DateTime<Utc>],
) -> Result<(), String> {
    let second = chrono::Duration::seconds(1);
    for (index, at) in found.iter().enumerate() {
        for asked in [*at, *at + second / 2] {
            let previous = recurrence.previous_or_at(asked).map(|o| o.at);
            if previous != Some(*at) {
                return Err(format!("previous_or_at({asked}) is {previous:?}"));
            }
        }
        let count = recurrence.count_between(after, *at, u64::MAX);
        if count != index as u64 + 1 {
            return Err(format!("count_between({after}, {at}) is {count}"));
        }
    }
    Ok(())
}

fn run(file: &str, check: impl Fn(&Value) -> Result<(), String>) {
    let failures: Vec<String> = vectors(file)
        .iter()
        .filter_map(|case| {
            let error = check(case).err()?;
            Some(format!("{}: {} -> {error}", case["id"], case["expr"]))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn cron_vectors() {
    run("cron", |case| {
        check(case, case["expr"].as_str().unwrap(), Bounds::default())
    });
}

#[test]
fn dst_vectors() {
    run("dst", |case| {
        check(case, case["expr"].as_str().unwrap(), Bounds::default())
    });
}

/// Cases that are not run, with the reason.
const LEFT_OUT: [(&str, &str); 3] = [
    (
        "every-0169",
        "a window with minutes: windows are whole hours",
    ),
    (
        "every-0172",
        "a window with minutes: windows are whole hours",
    ),
    (
        "every-0205",
        "a window with minutes: windows are whole hours",
    ),
];

fn is_left_out(case: &Value) -> bool {
    LEFT_OUT.iter().any(|(id, _)| case["id"] == *id)
}

/// The JSON rule of a vector.
fn rule(case: &Value) -> String {
    let mut rule = serde_json::Map::new();
    for key in [
        "every",
        "unit",
        "days_of_week",
        "week_parity",
        "between_hours",
    ] {
        if let Some(value) = case.get(key) {
            rule.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(rule).to_string()
}

#[test]
fn every_vectors() {
    run("every", |case| {
        if is_left_out(case) {
            return Ok(());
        }
        let bound = |key: &str| case[key].as_str().map(instant);
        let bounds = Bounds {
            starts_at: bound("start_at"),
            ends_at: bound("end_at"),
            max_runs: case["count"].as_u64().map(|count| count as u32),
        };
        check(case, &rule(case), bounds)
    });
}

#[test]
fn duration_vectors() {
    run("duration", |case| {
        let text = case["expr"].as_str().unwrap();
        let part = |key: &str| case["expect"][key].as_u64().unwrap() as u32;
        let expect = match (part("months"), part("days"), part("seconds")) {
            (months, 0, 0) => Some(Interval::Months(months)),
            (0, 0, seconds) => Some(Interval::Seconds(seconds)),
            (0, days, seconds) => Some(Interval::Days { days, seconds }),
            // A duration, but no schedule.
            _ => None,
        };
        let found = match Schedule::parse(text) {
            Ok(schedule) => match schedule.kind() {
                Kind::Interval(interval) => Some(*interval),
                other => return Err(format!("parsed as {other:?}")),
            },
            Err(_) => None,
        };
        match found == expect {
            true => Ok(()),
            false => Err(format!("expected {expect:?}, found {found:?}")),
        }
    });
}

#[test]
fn invalid_vectors() {
    run("invalid", |case| {
        let text = case["expr"].as_str().unwrap();
        let accepted = match case["what"].as_str().unwrap() {
            "timezone" => Zone::parse(text).map(|zone| zone.to_string()).ok(),
            "rrule" if text.starts_with("RRULE:") => {
                Schedule::parse(text).map(|s| s.to_string()).ok()
            }
            "rrule" => Schedule::parse(&format!("RRULE:{text}"))
                .map(|s| s.to_string())
                .ok(),
            _ => Schedule::parse(text).map(|s| s.to_string()).ok(),
        };
        match accepted {
            None => Ok(()),
            Some(meaning) => Err(format!("accepted as {meaning}")),
        }
    });
}
