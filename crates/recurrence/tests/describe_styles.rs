//! Descriptions with a style, a zone and bounds.

mod common;

use common::instant;
use recurrence::{Bounds, Schedule, Style, Zone};

fn describe(text: &str, style: Style, zone: Option<&str>, bounds: Bounds) -> String {
    let zone = zone.map(|name| Zone::parse(name).unwrap());
    Schedule::parse(text)
        .unwrap()
        .describe_as(style, zone, &bounds)
}

#[test]
fn twelve_hours() {
    for (text, expected) in [
        ("0 9 * * MON-FRI", "Every weekday at 9:00 AM"),
        ("30 0 * * *", "Every day at 12:30 AM"),
        ("0 12 * * SUN", "Every Sunday at 12:00 PM"),
        (
            "0 9,17 * * MON,WED-FRI",
            "Every Monday and Wednesday through Friday at 9:00 AM and 5:00 PM",
        ),
        ("0 9 1 * *", "At 9:00 AM, on day 1 of the month"),
        ("15 30 23 * * *", "At 11:30:15 PM"),
        (
            "*/10 9-17 * * *",
            "Every 10 minutes, between 9:00 AM and 5:59 PM",
        ),
        ("90m", "Every 90 minutes"),
        (
            r#"{"every":1,"unit":"hour","between_hours":[22,6]}"#,
            "Every hour, between 10:00 PM and 6:00 AM",
        ),
        (
            "RRULE:FREQ=DAILY;BYHOUR=9,14;BYMINUTE=30",
            "Every day at 9:30 AM and 2:30 PM",
        ),
        (
            "at 2027-01-31T09:00:00",
            "Once, on 31 January 2027 at 9:00 AM",
        ),
    ] {
        let found = describe(text, Style::Hours12, None, Bounds::default());
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn zones() {
    let zone = |style, name| describe("0 9 * * *", style, Some(name), Bounds::default());
    for (name, expected) in [
        ("America/New_York", "New York time"),
        ("America/Argentina/Buenos_Aires", "Buenos Aires time"),
        ("UTC", "UTC"),
        ("Etc/GMT+5", "Etc/GMT+5"),
    ] {
        assert_eq!(
            zone(Style::Hours12, name),
            format!("Every day at 9:00 AM, {expected}")
        );
        assert_eq!(zone(Style::Hours24, name), format!("at 09:00, {name}"));
    }
    let instant = "at 2027-01-31T09:00:00Z";
    assert_eq!(
        describe(
            instant,
            Style::Hours24,
            Some("Asia/Tokyo"),
            Bounds::default()
        ),
        "once, on 31 January 2027 at 09:00 UTC"
    );
}

#[test]
fn bounds() {
    let bounds = |starts_at: Option<&str>, ends_at: Option<&str>, max_runs| Bounds {
        starts_at: starts_at.map(instant),
        ends_at: ends_at.map(instant),
        max_runs,
    };
    // 01:30 on the next day in Tokyo.
    let start = Some("2026-02-09T16:30:00Z");
    for (text, bounds, expected) in [
        (
            "0 9 * * *",
            bounds(start, None, Some(12)),
            "at 09:00, Asia/Tokyo, starting Feb 10, 2026, 12 times",
        ),
        (
            "0 9 * * *",
            bounds(None, Some("2026-12-30T15:00:00Z"), Some(1)),
            "at 09:00, Asia/Tokyo, until Dec 31, 2026, once",
        ),
        (
            "1d",
            bounds(start, None, None),
            "every day at 01:30, Asia/Tokyo, starting Feb 10, 2026",
        ),
        (
            r#"{"every":2,"unit":"week","days_of_week":["tue","thu"],"week_parity":"odd"}"#,
            bounds(start, None, Some(12)),
            "every 2 weeks on Tuesday and Thursday, in odd ISO weeks, at 01:30, Asia/Tokyo, \
             starting Feb 10, 2026, 12 times",
        ),
        (
            "90m",
            bounds(start, None, None),
            "every 90 minutes, Asia/Tokyo, starting Feb 10, 2026",
        ),
        (
            "RRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=0",
            bounds(start, None, None),
            "every day at 09:00, Asia/Tokyo, starting Feb 10, 2026",
        ),
        (
            "at 2027-01-31T09:00:00",
            bounds(start, None, Some(1)),
            "once, on 31 January 2027 at 09:00, Asia/Tokyo",
        ),
    ] {
        let found = describe(text, Style::Hours24, Some("Asia/Tokyo"), bounds);
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn names_of_styles() {
    assert_eq!("24h".parse(), Ok(Style::Hours24));
    assert_eq!("12h".parse(), Ok(Style::Hours12));
    assert_eq!(
        "am".parse::<Style>().unwrap_err().to_string(),
        "style \"am\" is unknown, expected 24h or 12h"
    );
}
