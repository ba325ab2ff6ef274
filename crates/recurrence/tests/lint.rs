//! What is valid and probably not meant: the findings, word for word.

mod common;

use std::sync::Arc;

use common::instant;
use recurrence::{
    Bounds, Finding, FindingCode, OnFold, OnGap, Recurrence, Schedule, Zone, lint, tzdata_version,
};

const NOW: &str = "2026-02-01T12:00:00Z";

fn findings(text: &str, zone: &str, starts_at: Option<&str>) -> Vec<Finding> {
    let schedule = Schedule::admit(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let zone = Zone::parse(zone).unwrap();
    lint(&schedule, zone, starts_at.map(instant), instant(NOW))
}

/// Codes and findings, without the remedies, which are never empty.
fn says(text: &str, zone: &str, starts_at: Option<&str>) -> Vec<(&'static str, String)> {
    findings(text, zone, starts_at)
        .into_iter()
        .map(|finding| {
            assert!(finding.remedy.ends_with('.'), "{finding:?}");
            (finding.code.name(), finding.finding)
        })
        .collect()
}

fn finds(text: &str, zone: &str, starts_at: Option<&str>, code: &str, expected: &str) {
    let found = says(text, zone, starts_at);
    let is_expected = |(name, said): &(&str, String)| *name == code && said == expected;
    assert!(found.iter().any(is_expected), "{text}: {found:#?}");
}

#[test]
fn schedules_without_a_surprise() {
    for text in [
        "0 9 * * MON-FRI",
        "*/15 * * * *",
        "0 */6 * * *",
        "0 9 L * *",
        "0 9 28 * *",
        "0 9 1 */3 *",
        "0 9 1-7 * +MON",
        "@yearly",
        "90m",
        "1d",
        "1mo",
        "24mo",
        r#"{"every":3,"unit":"year"}"#,
        r#"{"every":1,"unit":"month","day_of_month":-1}"#,
        r#"{"every":1,"unit":"week","days_of_week":["tue"],"week_parity":"odd"}"#,
        "RRULE:FREQ=YEARLY;INTERVAL=3;BYMONTH=3;BYMONTHDAY=1",
        "RRULE:FREQ=MONTHLY;BYMONTHDAY=-1",
        "at 2026-03-01T09:00:00",
    ] {
        assert_eq!(findings(text, "America/Chicago", None), [], "{text}");
    }
}

#[test]
fn a_parity_that_falls_silent() {
    let text = r#"{"every":2,"unit":"week","days_of_week":["tue","thu"],"week_parity":"odd"}"#;
    let start = Some("2026-02-10T15:00:00Z");
    let found = findings(text, "America/Chicago", start);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].code, FindingCode::LongSilence);
    assert_eq!(
        found[0].finding,
        "after 2026-12-31 there is no run until 2033-01-04"
    );
    assert_eq!(
        found[0].remedy,
        "A year of 53 ISO weeks changes the parity of every second week: drop week_parity, or write \
         \"every\":1 with it."
    );
}

/// The grid finds a silence wherever it lies: the occurrences themselves are the oracle.
#[test]
fn silences_are_found_wherever_they_begin() {
    let text = r#"{"every":2,"unit":"week","days_of_week":["tue","thu"],"week_parity":"odd"}"#;
    let start = instant("2026-02-10T15:00:00Z");
    let bounds = Bounds {
        starts_at: Some(start),
        ..Bounds::default()
    };
    let recurrence = Recurrence::new(
        Arc::new(Schedule::parse(text).unwrap()),
        Zone::UTC,
        bounds,
        OnGap::RollForward,
        OnFold::First,
    )
    .unwrap();
    let occurrences: Vec<_> = recurrence.occurrences_after(start).take(500).collect();
    let oracle: Vec<_> = occurrences
        .windows(2)
        .filter(|pair| pair[1].at - pair[0].at > chrono::Duration::days(366))
        .collect();
    assert!(oracle.len() > 1);
    for day in 0..6_000 {
        let from = start + chrono::Duration::days(day);
        let found = recurrence.first_silence(from);
        let expected = oracle.iter().find(|pair| pair[0].at >= from);
        // A silence that begins within ten years is found.
        let within = |pair: &&&[recurrence::Occurrence]| {
            pair[0].at - from < chrono::Duration::days(19 * 183)
        };
        if let Some(pair) = expected.filter(within) {
            let found = found.unwrap_or_else(|| panic!("nothing from {from}"));
            assert_eq!((found.last, found.next), (pair[0], pair[1]), "{from}");
        }
    }
}

#[test]
fn rare_dates() {
    let zone = "UTC";
    finds(
        "0 0 29 2 *",
        zone,
        None,
        "far_first_run",
        "the first run is more than a year away, on 2028-02-29",
    );
    finds(
        "0 0 29 2 *",
        zone,
        Some("2028-01-01T00:00:00Z"),
        "long_silence",
        "after 2028-02-29 there is no run until 2032-02-29",
    );
    finds(
        "0 0 29 2 *",
        zone,
        None,
        "short_months",
        "day 29 does not exist in most Februaries: no run then",
    );
    finds(
        "1mo",
        zone,
        Some("2029-01-01T00:00:00Z"),
        "far_first_run",
        "the first run is more than a year away, on 2029-01-01",
    );
    let never = r#"{"every":24,"unit":"hour","between_hours":[3,4]}"#;
    assert_eq!(
        findings(never, zone, None)[0].code,
        FindingCode::NeverOccurs
    );
    finds(
        "at 2020-01-01T00:00:00",
        zone,
        None,
        "never_occurs",
        "it has no occurrence from now on",
    );
}

#[test]
fn days_that_not_every_month_has() {
    let skipped = "day 31 does not exist in shorter months: no run then";
    let end = Some("2026-03-31T09:00:00Z");
    finds("0 9 31 * *", "UTC", None, "short_months", skipped);
    finds(
        "RRULE:FREQ=MONTHLY;BYMONTHDAY=31",
        "UTC",
        None,
        "short_months",
        skipped,
    );
    finds("RRULE:FREQ=MONTHLY", "UTC", end, "short_months", skipped);
    finds(
        "0 9 30 * *",
        "UTC",
        None,
        "short_months",
        "day 30 does not exist in February: no run then",
    );
    let clamped = "months without a day 31 have their run on the last day";
    finds("1mo", "UTC", end, "short_months", clamped);
    finds(
        r#"{"every":1,"unit":"month"}"#,
        "UTC",
        end,
        "short_months",
        clamped,
    );
    // All the months that it comes to have the day.
    assert_eq!(findings("0 9 31 1,3,5,7,8,10,12 *", "UTC", None), []);
    assert_eq!(findings("12mo", "UTC", end), []);
    assert_eq!(findings("RRULE:FREQ=YEARLY", "UTC", end), []);
}

#[test]
fn steps_and_days_of_cron() {
    let zone = "UTC";
    let uneven = |text, expected| finds(text, zone, None, "uneven_step", expected);
    uneven(
        "*/7 * * * *",
        "minute */7 does not divide 60: the last step of each hour is 4 minutes",
    );
    uneven(
        "*/45 * * * * *",
        "second */45 does not divide 60: the last step of each minute is 15 seconds",
    );
    uneven(
        "0 */5 * * *",
        "hour */5 does not divide 24: the last step of each day is 4 hours",
    );
    uneven(
        "0 0 */2 * *",
        "day of month */2 begins anew with every month: the last step of a month is another",
    );
    uneven(
        "0 0 * * */2",
        "day of week */2 does not divide 7: the last step of each week is 1 day",
    );
    let found = findings("*/7 * * * *", zone, None);
    assert_eq!(
        found[0].remedy,
        "Write the interval 7m, which counts from starts_at."
    );
    let found = findings("0 9 13 * FRI", zone, None);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].code.name(), "either_day");
    assert_eq!(
        found[0].finding,
        "it runs on days that match day of month 13 or day of week FRI, not only on those that match both"
    );
    assert_eq!(
        found[0].remedy,
        "Write +FRI as the day of week for days that match both."
    );
}

#[test]
fn local_times_across_a_clock_change() {
    assert!(tzdata_version() >= "2024a");
    let chicago = "America/Chicago";
    let moved =
        "02:30 does not exist on 2026-03-08, when the clocks go forward: the run is at 03:00";
    finds("30 2 * * *", chicago, None, "clock_change", moved);
    finds(
        "30 1 * * *",
        chicago,
        None,
        "clock_change",
        "01:30 occurs twice on 2026-11-01, when the clocks go back: the run is at the first of the two",
    );
    let start = Some("2026-02-10T08:30:00Z");
    finds("daily", chicago, start, "clock_change", moved);
    // Not on Mondays, not without clock changes, and not where it steps through the hour.
    for (text, zone) in [
        ("30 2 * * MON", chicago),
        ("30 2 * * *", "Asia/Tokyo"),
        ("*/30 * * * *", chicago),
        ("30m", chicago),
    ] {
        assert_eq!(findings(text, zone, None), [], "{text}");
    }
    finds(
        "24h",
        chicago,
        None,
        "clock_change",
        "24h is elapsed time: from 2026-03-08 on, when the clocks are set, the local time is another",
    );
    assert_eq!(findings("24h", "UTC", None), []);
}

/// The schedules of the vectors are among the strangest there are.
#[test]
fn every_schedule_can_be_linted() {
    let mut linted = 0;
    for file in ["cron", "dst", "rrule"] {
        for case in common::vectors(file) {
            let text = case["expr"].as_str().or(case["rrule"].as_str());
            let Some(Ok(schedule)) = text.map(Schedule::parse) else {
                continue;
            };
            let zone = Zone::parse(case["tz"].as_str().unwrap()).unwrap();
            for finding in lint(&schedule, zone, None, instant(NOW)) {
                assert!(!finding.finding.is_empty() && !finding.remedy.is_empty());
            }
            linted += 1;
        }
    }
    assert!(linted > 500, "{linted}");
}
