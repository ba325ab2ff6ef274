//! RRULE vectors of other implementations, at the level of wall-clock time.

use chrono::{DateTime, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;
use recurrence::civil::Civil;
use recurrence::rrule::RuleSet;
use serde_json::Value;

/// Left out, each with its reason.
const LEFT_OUT: [(&str, &str); 1] = [(
    "rrule-0048",
    "its third run is in 2197: chrono-tz has no clock rules after 2099, so New York has no summer time there",
)];

fn civil(text: &str) -> Civil {
    Civil(
        NaiveDateTime::parse_from_str(text, "%Y%m%dT%H%M%S")
            .unwrap()
            .and_utc()
            .timestamp(),
    )
}

/// The product's policy: the first instant after a gap, the earlier of two in a fold.
fn instant(zone: Tz, at: Civil) -> DateTime<Utc> {
    let mut local = DateTime::from_timestamp(at.0, 0).unwrap().naive_utc();
    loop {
        match zone.from_local_datetime(&local).earliest() {
            Some(instant) => return instant.to_utc(),
            None => local += chrono::TimeDelta::seconds(1),
        }
    }
}

fn lines(name: &str, case: &Value) -> String {
    let times: Vec<&str> = case[name.to_lowercase().as_str()]
        .as_array()
        .map(|times| times.iter().map(|time| time.as_str().unwrap()).collect())
        .unwrap_or_default();
    if times.is_empty() {
        String::new()
    } else {
        format!("\n{name}:{}", times.join(","))
    }
}

#[test]
fn vectors() {
    let mut checked = 0;
    for line in include_str!("vectors/rrule.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap();
        if LEFT_OUT.iter().any(|(left_out, _)| *left_out == id) {
            continue;
        }
        let zone: Tz = case["tz"].as_str().unwrap().parse().unwrap();
        let local = |instant: i64| {
            let at = DateTime::from_timestamp(instant, 0).unwrap();
            Civil(at.with_timezone(&zone).naive_local().and_utc().timestamp())
        };
        let text = format!(
            "RRULE:{}{}{}",
            case["rrule"].as_str().unwrap(),
            lines("EXDATE", &case),
            lines("RDATE", &case)
        );
        let rule = RuleSet::parse(&text).unwrap_or_else(|error| panic!("{id} {text}: {error}"));
        let compiled = rule
            .compile(civil(case["dtstart"].as_str().unwrap()), local)
            .unwrap();
        let after: DateTime<Utc> = case["after"].as_str().unwrap().parse().unwrap();
        let mut found = Vec::new();
        let mut at = local(after.timestamp() - 86_400);
        while let Some(next) = compiled.next_at_or_after(at) {
            at = Civil(next.0 + 1);
            let next = instant(zone, next);
            if next > after {
                found.push(next.format("%Y-%m-%dT%H:%M:%SZ").to_string());
            }
            if found.len() as u64 == case["n"].as_u64().unwrap() {
                break;
            }
        }
        // `expect_alt` is the product's policy for times in a gap.
        let expected = if case["expect_alt"].is_array() {
            &case["expect_alt"]
        } else {
            &case["expect"]
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
    assert_eq!(checked, 85);
}
