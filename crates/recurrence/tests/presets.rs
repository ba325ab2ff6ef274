//! Schedules that take their time of day from the start: presets, and rules by the year.

mod common;

use std::sync::Arc;

use common::instant;
use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};

/// The first local times of a schedule from a start on.
fn first_times(text: &str, zone: &str, start: &str, count: usize) -> Vec<String> {
    let bounds = Bounds {
        starts_at: Some(instant(start)),
        ..Bounds::default()
    };
    let schedule = Arc::new(Schedule::admit(text).unwrap());
    let zone = Zone::parse(zone).unwrap();
    let recurrence =
        Recurrence::new(schedule, zone, bounds, OnGap::RollForward, OnFold::First).unwrap();
    recurrence
        .occurrences_after(instant(start) - chrono::Duration::seconds(1))
        .take(count)
        .map(|occurrence| occurrence.local.format("%Y-%m-%d %H:%M").to_string())
        .collect()
}

#[test]
fn presets_keep_the_time_of_their_start() {
    let berlin = "Europe/Berlin";
    // 15:30 in Berlin, on a Saturday; the clocks go forward on the next day.
    let start = "2027-03-27T14:30:00Z";
    let daily = ["2027-03-27 15:30", "2027-03-28 15:30", "2027-03-29 15:30"];
    assert_eq!(first_times("daily", berlin, start, 3), daily);
    let hourly = ["2027-03-27 15:30", "2027-03-27 16:30"];
    assert_eq!(first_times("hourly", berlin, start, 2), hourly);
    let weekly = ["2027-03-27 15:30", "2027-04-03 15:30"];
    assert_eq!(first_times("weekly", berlin, start, 2), weekly);
    for text in ["Daily", "DAILY"] {
        assert_eq!(first_times(text, berlin, start, 3), daily);
    }
    // The nicknames stay on the hour, at midnight and on Sunday.
    let nickname = |text| first_times(text, berlin, start, 1).concat();
    assert_eq!(nickname("@daily"), "2027-03-28 00:00");
    assert_eq!(nickname("@hourly"), "2027-03-27 16:00");
    assert_eq!(nickname("@weekly"), "2027-03-28 00:00");
}

#[test]
fn year_rules() {
    let start = "2028-02-29T09:00:00Z";
    let yearly = first_times(r#"{"every":1,"unit":"year"}"#, "UTC", start, 5);
    let expected = [
        "2028-02-29",
        "2029-02-28",
        "2030-02-28",
        "2031-02-28",
        "2032-02-29",
    ];
    assert_eq!(yearly, expected.map(|date| format!("{date} 09:00")));
    // Thanksgiving, from a start in November.
    let text = r#"{"every":1,"unit":"year","nth_weekday":{"nth":4,"day":"thu"}}"#;
    let thanksgiving = first_times(text, "America/New_York", "2027-11-01T13:00:00Z", 3);
    let expected = ["2027-11-25", "2028-11-23", "2029-11-22"];
    assert_eq!(thanksgiving, expected.map(|date| format!("{date} 09:00")));
    let text = r#"{"every":2,"unit":"year","day_of_month":-1}"#;
    let last = first_times(text, "UTC", "2027-02-01T09:00:00Z", 2);
    assert_eq!(last, ["2027-02-28 09:00", "2029-02-28 09:00"]);
}
