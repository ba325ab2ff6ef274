//! Canonical texts: what a schedule is stored as, whatever it was written as.

use recurrence::Schedule;

fn canonical(text: &str) -> String {
    let schedule = Schedule::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let canonical = schedule.to_string();
    assert_eq!(
        Schedule::parse(&canonical).as_ref(),
        Ok(&schedule),
        "{text}"
    );
    canonical
}

/// (A schedule as it is written, and its canonical text.)
const CANONICAL: &[(&str, &str)] = &[
    ("  0   9 * * mon-fri ", "0 9 * * MON-FRI"),
    ("00 09 * JAN 1-5", "0 9 * 1 MON-FRI"),
    ("0 0 9 ? * 7", "0 9 * * SUN"),
    ("0 0 9 ? * 5-7 *", "0 9 * * FRI-SUN"),
    ("*/10 * * * * *", "*/10 * * * * *"),
    ("0 0 0 1 1 * 2030", "0 0 0 1 1 * 2030"),
    ("0 12 * * 5#2,FRIL,1-5#L", "0 12 * * FRI#2,MON-FRI#L,FRI#L"),
    ("0 0 2,1,1 * +mon", "0 0 1,2 * +MON"),
    ("0 0 1 * +*", "0 0 1 * *"),
    ("0 0 * * 0-0/2", "0 0 * * SUN"),
    ("0 0 * * SUN-SUN", "0 0 * * SUN-SUN"),
    ("0 0 L,15W,LW * ?", "0 0 15W,L,LW * *"),
    ("@Midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * SUN"),
    ("@hourly", "0 * * * *"),
    ("hourly", "1h"),
    (" daily ", "1d"),
    (" Daily\t", "1d"),
    ("weekly", "1w"),
    ("monthly", "1mo"),
    ("yearly", "12mo"),
    ("30 seconds", "30s"),
    ("1 day", "1d"),
    ("every 30 seconds", "30s"),
    ("Every 2 Days", "2d"),
    ("every hour", "1h"),
    ("every 1 hour 30 minutes", "90m"),
    ("1 day 12 hours", "P1DT12H"),
    ("2 years", "24mo"),
    ("5 min", "5m"),
    // pg_cron's last day of the month, and a list with everything in it.
    ("0 9 $ * *", "0 9 L * *"),
    ("0 9 1,$ * *", "0 9 1,L * *"),
    ("*,5 * * * *", "* * * * *"),
    ("5,* 9 * * *", "* 9 * * *"),
    ("0 9 *,5 * MON", "0 9 * * MON"),
    ("0 9 5,* * MON", "0 9 */1 * MON"),
    ("FREQ=DAILY", "RRULE:FREQ=DAILY"),
    ("freq=weekly;byday=mo", "RRULE:FREQ=WEEKLY;BYDAY=MO"),
    ("every-30-minutes", "30m"),
    ("every-1-day", "1d"),
    ("90m", "90m"),
    ("120m", "2h"),
    ("P1Y6M", "18mo"),
    ("PT36H", "36h"),
    ("PT1.5H", "90m"),
    ("P1W", "1w"),
    ("P1DT12H", "P1DT12H"),
    ("P1DT1S", "P1DT1S"),
    ("at 2027-01-31 09:00", "at 2027-01-31T09:00:00"),
    ("AT 2027-01-31T09:00:00+01:30", "at 2027-01-31T07:30:00Z"),
    ("at 2027-01-31t09:00:00.25z", "at 2027-01-31T09:00:00.250Z"),
    (
        r#" { "unit": "week", "every": 2, "days_of_week": ["Thursday", 2, "tue"] } "#,
        r#"{"every":2,"unit":"week","days_of_week":["tue","thu"]}"#,
    ),
    (
        r#"{"every":2,"unit":"week","days_of_week":["tue","thu"],"week_parity":"odd","between_hours":[22,6]}"#,
        r#"{"every":2,"unit":"week","days_of_week":["tue","thu"],"week_parity":"odd","between_hours":[22,6]}"#,
    ),
    (
        r#"{"every":1,"unit":"hour","between_hours":[9,24],"days_of_week":[1,2,3,4,5,6,7]}"#,
        r#"{"every":1,"unit":"hour","between_hours":[9,0]}"#,
    ),
    (
        r#"{"every":1,"unit":"month","nth_weekday":{"day":"fri","nth":-1}}"#,
        r#"{"every":1,"unit":"month","nth_weekday":{"nth":-1,"day":"fri"}}"#,
    ),
    (
        r#"{"every":1,"unit":"month","day_of_month":-1}"#,
        r#"{"every":1,"unit":"month","day_of_month":31}"#,
    ),
    (
        r#"{"every":{"interval":2,"unit":"week"},"daysOfWeek":["tue","thu"],"weekParity":"odd",
            "betweenHoursStart":22,"betweenHoursEnd":6}"#,
        r#"{"every":2,"unit":"week","days_of_week":["tue","thu"],"week_parity":"odd","between_hours":[22,6]}"#,
    ),
    (
        r#"{"everyInterval":3,"everyUnit":"days","daysOfWeek":null,"weekParity":"any"}"#,
        r#"{"every":3,"unit":"day"}"#,
    ),
    (
        r#"{"every":1,"unit":"year","nthWeekday":{"nth":4,"day":"thu"}}"#,
        r#"{"every":1,"unit":"year","nth_weekday":{"nth":4,"day":"thu"}}"#,
    ),
    ("rrule:freq=daily", "RRULE:FREQ=DAILY"),
];

#[test]
fn canonical_texts() {
    for (text, expected) in CANONICAL {
        assert_eq!(canonical(text), *expected, "{text}");
    }
}
