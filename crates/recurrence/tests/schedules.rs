//! The meaning of schedules: one-time schedules, bounds, filters and notes.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::instant;
use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Shift, Zone};

fn build(text: &str, zone: &str, bounds: Bounds, gap: OnGap, fold: OnFold) -> Recurrence {
    let schedule = Arc::new(Schedule::parse(text).unwrap());
    Recurrence::new(schedule, Zone::parse(zone).unwrap(), bounds, gap, fold).unwrap()
}

fn times(recurrence: &Recurrence, after: &str, count: usize) -> Vec<String> {
    recurrence
        .occurrences_after(instant(after))
        .take(count)
        .map(|occurrence| occurrence.at.format("%FT%T%.fZ").to_string())
        .collect()
}

fn from(start: &str) -> Bounds {
    Bounds {
        starts_at: Some(instant(start)),
        ..Bounds::default()
    }
}

#[test]
fn one_time_schedules() {
    let once = |text: &str, bounds: Bounds| {
        let recurrence = build(
            text,
            "America/New_York",
            bounds,
            OnGap::RollForward,
            OnFold::First,
        );
        times(&recurrence, "2026-01-01T00:00:00Z", 5)
    };
    let unbound = Bounds::default();
    assert_eq!(
        once("at 2027-01-31T09:00:00", unbound),
        ["2027-01-31T14:00:00Z"]
    );
    assert_eq!(
        once("at 2027-01-31T09:00:00.5", unbound),
        ["2027-01-31T14:00:00.500Z"]
    );
    assert_eq!(
        once("at 2027-01-31T09:00:00+01:00", unbound),
        ["2027-01-31T08:00:00Z"]
    );
    // A time in a gap moves to the end of the gap.
    assert_eq!(
        once("at 2027-03-14T02:30:00", unbound),
        ["2027-03-14T07:00:00Z"]
    );
    assert_eq!(once("at 2025-01-31T09:00:00", unbound), [""; 0]);
    assert_eq!(
        once("at 2027-01-31T09:00:00", from("2027-01-31T14:00:00.1Z")),
        [""; 0]
    );
}

#[test]
fn an_occurrence_moved_out_of_a_gap_has_a_note() {
    let recurrence = build(
        "30 2 * * *",
        "America/Chicago",
        Bounds::default(),
        OnGap::RollForward,
        OnFold::First,
    );
    let seen: Vec<(String, Option<String>)> = recurrence
        .occurrences_after(instant("2027-03-13T00:00:00Z"))
        .take(3)
        .map(|occurrence| (occurrence.local.to_string(), occurrence.shift.note()))
        .collect();
    let note = "2027-03-14 02:30:00 does not exist here (clocks go forward): moved to the first instant after the gap";
    assert_eq!(
        seen,
        [
            ("2027-03-13 02:30:00".to_owned(), None),
            ("2027-03-14 03:00:00".to_owned(), Some(note.to_owned())),
            ("2027-03-15 02:30:00".to_owned(), None),
        ]
    );
}

#[test]
fn both_passes_of_a_repeated_hour_are_distinguished() {
    let recurrence = build(
        "30 1 * * *",
        "America/Chicago",
        Bounds::default(),
        OnGap::RollForward,
        OnFold::Both,
    );
    let seen: Vec<Shift> = recurrence
        .occurrences_after(instant("2027-11-07T05:00:00Z"))
        .take(3)
        .map(|occurrence| occurrence.shift)
        .collect();
    assert_eq!(seen, [Shift::FirstOfFold, Shift::SecondOfFold, Shift::None]);
}

#[test]
fn the_start_is_the_first_occurrence_in_either_pass() {
    // 01:30 in New York on 2025-11-02 is 05:30Z and 06:30Z.
    for start in ["2025-11-02T05:30:00Z", "2025-11-02T06:30:00Z"] {
        for fold in [OnFold::First, OnFold::Second] {
            for text in [
                "1d",
                "1w",
                "1mo",
                "P1DT12H",
                "RRULE:FREQ=DAILY",
                r#"{"every":1,"unit":"day"}"#,
            ] {
                let recurrence = build(
                    text,
                    "America/New_York",
                    from(start),
                    OnGap::RollForward,
                    fold,
                );
                let first: Vec<String> = times(&recurrence, "2025-01-01T00:00:00Z", 2);
                assert_eq!(first[0], start, "{text} {fold}");
                assert!(
                    first[1].as_str() > "2025-11-03",
                    "{text} {fold} {}",
                    first[1]
                );
                let second = instant(&first[1]);
                let before = second - chrono::Duration::seconds(1);
                assert_eq!(
                    recurrence.previous_or_at(before).unwrap().at,
                    instant(start)
                );
                assert_eq!(
                    recurrence.count_between(instant("2025-01-01T00:00:00Z"), second, 9),
                    2
                );
            }
        }
    }
}

#[test]
fn bounds_are_inclusive_and_keep_fractions_of_seconds() {
    let bounds = Bounds {
        starts_at: Some(instant("2026-01-01T00:00:00.123456Z")),
        ends_at: Some(instant("2026-01-01T03:00:00.123456Z")),
        max_runs: None,
    };
    let recurrence = build("1h", "UTC", bounds, OnGap::RollForward, OnFold::First);
    assert_eq!(
        times(&recurrence, "2025-01-01T00:00:00Z", 9),
        [
            "2026-01-01T00:00:00.123456Z",
            "2026-01-01T01:00:00.123456Z",
            "2026-01-01T02:00:00.123456Z",
            "2026-01-01T03:00:00.123456Z",
        ]
    );
    assert_eq!(
        times(&recurrence, "2026-01-01T02:00:00.123456Z", 9).len(),
        1
    );
    assert_eq!(
        times(&recurrence, "2026-01-01T02:00:00.123455Z", 9).len(),
        2
    );

    // For a cron expression the start is only a bound, so occurrences are at whole seconds.
    let recurrence = build(
        "0 * * * *",
        "UTC",
        bounds,
        OnGap::RollForward,
        OnFold::First,
    );
    assert_eq!(
        times(&recurrence, "2025-01-01T00:00:00Z", 9),
        [
            "2026-01-01T01:00:00Z",
            "2026-01-01T02:00:00Z",
            "2026-01-01T03:00:00Z"
        ]
    );
}

#[test]
fn max_runs_without_a_start_counts_from_the_first_occurrence_after() {
    let bounds = Bounds {
        max_runs: Some(2),
        ..Bounds::default()
    };
    let recurrence = build("@daily", "UTC", bounds, OnGap::RollForward, OnFold::First);
    assert_eq!(times(&recurrence, "2026-01-01T00:00:00Z", 9).len(), 2);
    assert_eq!(times(&recurrence, "2027-01-01T00:00:00Z", 9).len(), 2);
}

#[test]
fn an_rrule_ends_at_the_instant_of_its_until() {
    // Until the first 01:30 of the two, and until the second.
    for (until, count) in [("20251102T053000Z", 2), ("20251102T063000Z", 3)] {
        let text = format!("RRULE:FREQ=DAILY;UNTIL={until}");
        let start = from("2025-11-01T05:30:00Z");
        let recurrence = build(
            &text,
            "America/New_York",
            start,
            OnGap::RollForward,
            OnFold::Both,
        );
        assert_eq!(
            times(&recurrence, "2025-01-01T00:00:00Z", 9).len(),
            count,
            "{until}"
        );
    }
}

#[test]
fn exdate_and_rdate_in_utc_are_instants() {
    let check = |lines: &str, start: &str, gap: OnGap, fold: OnFold, expected: &[&str]| {
        let text = format!("RRULE:{lines}");
        let recurrence = build(&text, "America/New_York", from(start), gap, fold);
        let found = times(&recurrence, "2024-01-01T00:00:00Z", 9);
        assert_eq!(found, expected, "{text}");
        let before = instant("2024-01-01T00:00:00Z");
        for (index, at) in expected.iter().enumerate() {
            let at = instant(at);
            assert_eq!(recurrence.previous_or_at(at).unwrap().at, at, "{text}");
            assert_eq!(recurrence.count_between(before, at, 99), index as u64 + 1);
            let last = at - chrono::Duration::seconds(1);
            let previous = index.checked_sub(1).map(|index| instant(expected[index]));
            assert_eq!(recurrence.previous_or_at(last).map(|o| o.at), previous);
        }
    };
    let forward = OnGap::RollForward;
    // Away from clock changes.
    check(
        "FREQ=DAILY;COUNT=3\nEXDATE:20250702T130000Z\nRDATE:20250709T130000Z,20250701T130000Z",
        "2025-07-01T13:00:00Z",
        forward,
        OnFold::First,
        &[
            "2025-07-01T13:00:00Z",
            "2025-07-03T13:00:00Z",
            "2025-07-09T13:00:00Z",
        ],
    );
    // 01:30 in New York on 2025-11-02 is 05:30Z and 06:30Z.
    check(
        "FREQ=DAILY;COUNT=1\nRDATE:20251102T063000Z",
        "2025-11-01T05:30:00Z",
        forward,
        OnFold::First,
        &["2025-11-01T05:30:00Z", "2025-11-02T06:30:00Z"],
    );
    check(
        "FREQ=DAILY;COUNT=2\nEXDATE:20251102T053000Z",
        "2025-11-01T05:30:00Z",
        forward,
        OnFold::Both,
        &["2025-11-01T05:30:00Z", "2025-11-02T06:30:00Z"],
    );
    // EXDATE removes the start itself, in the second pass.
    check(
        "FREQ=DAILY;COUNT=2\nEXDATE:20251102T063000Z",
        "2025-11-02T06:30:00Z",
        forward,
        OnFold::First,
        &["2025-11-03T06:30:00Z"],
    );
    // 02:30 on 2025-03-09 does not exist and moves to 07:00Z, which EXDATE removes.
    check(
        "FREQ=DAILY;COUNT=3\nEXDATE:20250309T070000Z",
        "2025-03-08T07:30:00Z",
        forward,
        OnFold::First,
        &["2025-03-08T07:30:00Z", "2025-03-10T06:30:00Z"],
    );
}

#[test]
fn searches_end_at_the_limits_of_the_calendar() {
    for text in [
        "* * * * *",
        "0 0 29 2 *",
        "1s",
        "12000mo",
        "1d",
        r#"{"every":1,"unit":"hour","between_hours":[9,17]}"#,
    ] {
        let recurrence = build(
            text,
            "America/New_York",
            from("2026-01-01T12:00:00Z"),
            OnGap::RollForward,
            OnFold::First,
        );
        assert_eq!(
            recurrence.next_after(chrono::DateTime::<chrono::Utc>::MAX_UTC),
            None
        );
        assert_eq!(
            recurrence.previous_or_at(chrono::DateTime::<chrono::Utc>::MIN_UTC),
            None
        );
        assert!(
            recurrence
                .next_after(chrono::DateTime::<chrono::Utc>::MIN_UTC)
                .is_some()
        );
        assert!(
            recurrence
                .previous_or_at(chrono::DateTime::<chrono::Utc>::MAX_UTC)
                .is_some()
        );
    }
}

#[test]
fn shortest_gap_of_every_notation() {
    const DAY: u64 = 86_400;
    for (text, seconds) in [
        ("* * * * * *", Some(1)),
        ("*/10 * * * * *", Some(10)),
        ("0,59 * * * * *", Some(1)),
        ("* * * * *", Some(60)),
        ("*/7 * * * *", Some(4 * 60)),
        ("0 9 * * MON-FRI", Some(DAY)),
        ("0 0,23 * * *", Some(3600)),
        ("0 0,23 * * MON", Some(23 * 3600)),
        ("30 59 23 L * *", Some(28 * DAY)),
        ("0 0 1,15 * *", Some(14 * DAY)),
        ("0 0 29 2 *", Some(1461 * DAY)),
        ("0 0 0 1 1 * 2030", None),
        ("0 0 0 1 1 * 2030,2032", Some(730 * DAY)),
        ("90m", Some(5400)),
        ("1d", Some(DAY)),
        ("P1DT12H", Some(DAY + DAY / 2)),
        ("1mo", Some(28 * DAY)),
        (
            r#"{"every":5,"unit":"minute","between_hours":[9,17]}"#,
            Some(300),
        ),
        (
            r#"{"every":2,"unit":"week","days_of_week":["mon","thu"]}"#,
            Some(3 * DAY),
        ),
        (
            r#"{"every":1,"unit":"week","days_of_week":["mon","sun"]}"#,
            Some(DAY),
        ),
        ("RRULE:FREQ=SECONDLY;INTERVAL=20", Some(20)),
        ("RRULE:FREQ=MINUTELY;BYSECOND=0,50", Some(10)),
        ("RRULE:FREQ=DAILY;BYHOUR=9,12;BYMINUTE=0,30", Some(1800)),
        ("RRULE:FREQ=WEEKLY", Some(7 * DAY)),
        ("RRULE:FREQ=MONTHLY;BYDAY=MO,TU", Some(DAY)),
        ("at 2027-01-31T09:00:00", None),
    ] {
        let gap = Schedule::parse(text).unwrap().shortest_gap();
        assert_eq!(gap, seconds.map(Duration::from_secs), "{text}");
    }
}

#[test]
fn filters_apply_to_the_local_time_of_the_occurrence() {
    // In Nuuk, 23:30 on Saturday 30 March 2024 does not exist: it runs on Sunday at 00:00.
    let start = from("2024-03-24T01:30:00Z");
    let run = |days: &str| {
        let text = format!(r#"{{"every":1,"unit":"day","days_of_week":["{days}"]}}"#);
        let recurrence = build(
            &text,
            "America/Nuuk",
            start,
            OnGap::RollForward,
            OnFold::First,
        );
        times(&recurrence, "2024-03-29T00:00:00Z", 2)
    };
    assert_eq!(run("sat"), ["2024-04-07T00:30:00Z", "2024-04-14T00:30:00Z"]);
    assert_eq!(run("sun"), ["2024-03-31T01:00:00Z", "2024-04-01T00:30:00Z"]);

    // 02:30 in New York, moved to 03:00 on 9 March 2025, is outside the window on that day.
    let recurrence = build(
        r#"{"every":1,"unit":"day","between_hours":[2,3]}"#,
        "America/New_York",
        from("2025-03-01T07:30:00Z"),
        OnGap::RollForward,
        OnFold::First,
    );
    assert_eq!(
        times(&recurrence, "2025-03-08T00:00:00Z", 2),
        ["2025-03-08T07:30:00Z", "2025-03-10T06:30:00Z"]
    );
    // The other way round, only moved occurrences are inside.
    let recurrence = build(
        r#"{"every":1,"unit":"day","between_hours":[3,5]}"#,
        "America/New_York",
        from("2025-03-01T07:30:00Z"),
        OnGap::RollForward,
        OnFold::First,
    );
    assert_eq!(
        times(&recurrence, "2025-01-01T00:00:00Z", 2),
        ["2025-03-09T07:00:00Z", "2026-03-08T07:00:00Z"]
    );
    let latest = recurrence.previous_or_at(instant("2026-01-01T00:00:00Z"));
    assert_eq!(latest.unwrap().at, instant("2025-03-09T07:00:00Z"));
    assert_eq!(
        recurrence.previous_or_at(instant("2025-03-09T06:59:59Z")),
        None
    );
}
