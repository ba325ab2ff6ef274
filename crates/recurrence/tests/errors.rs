//! The errors for texts that are no schedule, word for word.

use std::sync::Arc;

use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};

const NOTATIONS: &str = "Write a cron expression (0 9 * * MON-FRI), an interval (90m, P1M), \
     a JSON rule ({\"every\":2,\"unit\":\"week\"}), an RRULE, or \"at\" and a time.";
const FIELDS: &str = "The fields are [second] minute hour day-of-month month day-of-week [year].";
const NICKNAMES: &str = "Use @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually.";
const SHORTHAND: &str =
    "Write one number and one unit, such as 90m or 6mo, or an ISO 8601 duration.";

const SIXTY: &str = "0-59";
const DAY_OF_MONTH: &str = "1-31, L, LW or a day with W";
const DAY_OF_WEEK: &str = "0-7 or SUN-SAT, with #1 to #5, #L or L";
const UNIT: &str = "s, m (minutes), h, d, w or mo (months)";
const DURATION: &str = "a form such as P1D, P2W, P6M, PT15M or P1DT12H";
const PRESET: &str = "every-N- and seconds, minutes, hours, days, weeks, months or years";
const TIMESTAMP: &str = "a form such as at 2027-01-31T09:00:00 or at 2027-01-31T09:00:00+01:00";
const RULE_UNIT: &str = r#""minute", "hour", "day", "week", "month" or "year""#;
const RULE_KEYS: &str =
    "every, unit, days_of_week, week_parity, between_hours, day_of_month or nth_weekday";
const WORDS: &str = "numbers and seconds, minutes, hours, days, weeks, months or years";
const IN_WORDS: &str = "Such as 30 seconds, every 2 days, or every hour. For days of the week write a cron expression.";
const WEEKDAYS: &str = r#"a list of weekdays: "mon" to "sun", or 1 (Monday) to 7 (Sunday)"#;

/// Text, problem, what is expected (empty where the message has no such part), hint.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
);

#[rustfmt::skip]
const CRON: &[Case] = &[
    ("0 0 * * * * * *", r#"cron expression "0 0 * * * * * *" has 8 fields"#, "5, 6 or 7", Some(FIELDS)),
    ("61 * * * *", r#"cron minute "61" is out of range"#, SIXTY, None),
    ("0 9 * * MON-XYZ", r#"cron day of week "MON-XYZ" is not a value of this field"#, DAY_OF_WEEK, None),
    ("0 0 30 2 *", r#"cron expression "0 0 30 2 *" names no date that exists"#, "", None),
    (", * * * *", "cron minute has an empty list item", SIXTY, None),
    ("0 MON * * *", r#"cron hour "MON" is not a value of this field"#, "0-23", None),
    ("0 0 1MON * *", r#"cron day of month "1MON" is not a value of this field"#, DAY_OF_MONTH, None),
    ("0 0 * * L", r#"cron day of week "L" names no weekday"#, DAY_OF_WEEK, None),
    ("0 0 * * 5#6", r#"cron day of week "5#6" has no such occurrence in a month"#, DAY_OF_WEEK, None),
    ("0 0 * * FRI-MON", r#"cron day of week "FRI-MON" runs backward"#, DAY_OF_WEEK, None),
    ("30/10 * * * *", r#"cron minute "30/10" steps from a single value"#, SIXTY, Some("Write a range: 30-59/10.")),
    ("*/0 * * * *", r#"cron minute "*/0" has step "0""#, "a whole number above 0", None),
    ("*/ * * * *", r#"cron minute "*/" has step """#, "a whole number above 0", None),
    ("*/100 * * * *", r#"cron minute "*/100" has step "100""#, "at most 60",
     Some("A step begins anew with every hour; the interval 100m goes on.")),
    ("*/100 * * * * *", r#"cron second "*/100" has step "100""#, "at most 60",
     Some("A step begins anew with every minute; the interval 100s goes on.")),
    ("0 */25 * * *", r#"cron hour "*/25" has step "25""#, "at most 24",
     Some("A step begins anew with every day; the interval 25h goes on.")),
    ("0-30/61 * * * *", r#"cron minute "0-30/61" has step "61""#, "at most 60", None),
    ("0 0 * * */8", r#"cron day of week "*/8" has step "8""#, "at most 7",
     Some("A step begins anew with every week; the interval 8d goes on.")),
    ("$ * * * *", r#"cron minute "$" is not a value of this field"#, SIXTY, None),
    ("?,5 * * * *", r#"cron minute "?" is not a value of this field"#, SIXTY, None),
    ("? * * * *", r#"cron minute "?" is not a value of this field"#, SIXTY, None),
    ("0 0 15W5 * *", r#"cron day of month "15W5" is not a value of this field"#, DAY_OF_MONTH, None),
    ("0 0 L-1 * *", r#"cron day of month "L-1" is not a value of this field"#, DAY_OF_MONTH, None),
    ("0 0 0 1 1 * 1969", r#"cron year "1969" is out of range"#, "1970-9999", None),
    ("@reboot", r#"nickname "@reboot" is not a time"#, "", Some(NICKNAMES)),
    ("@wekly", r#"nickname "@wekly" is unknown"#, "", Some(NICKNAMES)),
    ("0 0 * * * 2030-2025 *", r#"cron day of week "2030-2025" is out of range"#, DAY_OF_WEEK, None),
    ("0 0 0 1 1 * 2030-2025", r#"cron year "2030-2025" runs backward"#, "1970-9999", None),
    ("TZ=UTC 0 0 * * *", r#"cron second "TZ=UTC" is not a value of this field"#, SIXTY, None),
    ("٥ * * * *", r#"cron minute "٥" is not a value of this field"#, SIXTY, None),
];

const INTERVALS: &[Case] = &[
    (
        "0 0",
        r#"interval "0 0" has unit " 0""#,
        UNIT,
        Some(SHORTHAND),
    ),
    ("6M", r#"interval "6M" has unit "M""#, UNIT, Some(SHORTHAND)),
    ("0d", r#"interval "0d" is zero"#, "a positive length", None),
    (
        "6 m",
        r#"interval "6 m" has unit " m""#,
        UNIT,
        Some(SHORTHAND),
    ),
    (
        "1h30m",
        r#"interval "1h30m" has unit "h30m""#,
        UNIT,
        Some(SHORTHAND),
    ),
    (
        "99999999999d",
        r#"interval "99999999999d" holds a number that is too large"#,
        "",
        None,
    ),
    (
        "9999999999d",
        r#"interval "9999999999d" is too long"#,
        "at most 12000 months, 366000 days or 4294967295 seconds",
        None,
    ),
    (
        "every-0-minutes",
        r#"interval "every-0-minutes" is zero"#,
        "a positive length",
        None,
    ),
    (
        "every-minutes",
        r#"preset "every-minutes" is unknown"#,
        PRESET,
        Some("Such as every-30-minutes."),
    ),
    (
        "every-3-fortnights",
        r#"preset "every-3-fortnights" is unknown"#,
        PRESET,
        Some("Such as every-30-minutes."),
    ),
    (
        "every monday",
        r#"interval "every monday" is not understood"#,
        WORDS,
        Some(IN_WORDS),
    ),
    (
        "every days",
        r#"interval "every days" is not understood"#,
        WORDS,
        Some(IN_WORDS),
    ),
    (
        "1 day 2",
        r#"interval "1 day 2" is not understood"#,
        WORDS,
        Some(IN_WORDS),
    ),
    (
        "0 days",
        r#"interval "0 days" is zero"#,
        "a positive length",
        None,
    ),
    (
        "P1",
        r#"ISO 8601 duration "P1" lacks a unit"#,
        DURATION,
        None,
    ),
    (
        "PT",
        r#"ISO 8601 duration "PT" has a T without a time"#,
        DURATION,
        None,
    ),
    ("P", r#"ISO 8601 duration "P" is empty"#, DURATION, None),
    (
        "P1M15D",
        r#"interval "P1M15D" mixes months with days or time"#,
        "one or the other",
        Some("A month has no fixed length; use a JSON rule or an RRULE to name days."),
    ),
    (
        "-P1D",
        r#"ISO 8601 duration "-P1D" is negative"#,
        DURATION,
        None,
    ),
    (
        "P1.5D",
        r#"ISO 8601 duration "P1.5D" has a fraction that is no whole number of seconds"#,
        DURATION,
        None,
    ),
    (
        "PT0.1S",
        r#"ISO 8601 duration "PT0.1S" has a fraction that is no whole number of seconds"#,
        DURATION,
        None,
    ),
    (
        "P1D1M",
        r#"ISO 8601 duration "P1D1M" repeats a unit or has units out of order"#,
        DURATION,
        None,
    ),
    (
        "P1DT",
        r#"ISO 8601 duration "P1DT" has a T without a time"#,
        DURATION,
        None,
    ),
    (
        "1d ",
        r#"interval "1d " has unit "d ""#,
        UNIT,
        Some(SHORTHAND),
    ),
];

const RULES: &[Case] = &[
    ("{}", "rule has no unit", RULE_UNIT, None),
    (
        "{",
        "rule is not valid JSON: EOF while parsing an object at line 1 column 1",
        "",
        None,
    ),
    (r#"{"every":1}"#, "rule has no unit", RULE_UNIT, None),
    (
        r#"{"every":0,"unit":"day"}"#,
        "rule has every 0",
        "a whole number from 1 to 366000",
        None,
    ),
    (
        r#"{"every":1,"unit":"decade"}"#,
        r#"rule has unit "decade""#,
        RULE_UNIT,
        None,
    ),
    (
        r#"{"every":1001,"unit":"year"}"#,
        "rule has every 1001",
        "a whole number from 1 to 1000",
        None,
    ),
    (
        r#"{"every":1,"unit":"day","on":1}"#,
        r#"rule has unknown key "on""#,
        RULE_KEYS,
        None,
    ),
    (
        r#"{"every":1,"unit":"day","day_of_weeks":[1]}"#,
        r#"rule has unknown key "day_of_weeks""#,
        RULE_KEYS,
        Some("Did you mean \"days_of_week\"?"),
    ),
    (
        r#"{"every":1,"unit":"day","startAt":"2027-01-01T00:00:00Z"}"#,
        r#"rule has unknown key "startAt""#,
        RULE_KEYS,
        Some("Bounds are no part of a schedule: give starts_at as an argument of its own."),
    ),
    (
        r#"{"every":{"interval":2}}"#,
        r#"rule has every {"interval":2}"#,
        r#"a whole number, or {"interval":2,"unit":"week"}"#,
        None,
    ),
    (
        r#"{"every":{"interval":2,"unit":"week"},"unit":"day"}"#,
        "rule has both unit and every.unit",
        "one of them",
        None,
    ),
    (
        r#"{"every":1,"unit":"week","daysOfWeek":[1],"days_of_week":[2]}"#,
        "rule has both days_of_week and daysOfWeek",
        "one of them",
        None,
    ),
    (
        r#"{"every":1,"unit":"hour","betweenHoursEnd":6}"#,
        "rule has betweenHoursEnd without betweenHoursStart",
        "both or neither",
        None,
    ),
    (
        r#"{"every":1,"unit":"day","days_of_week":[]}"#,
        "rule has days_of_week []",
        WEEKDAYS,
        None,
    ),
    (
        r#"{"every":1,"unit":"day","days_of_week":["fry"]}"#,
        r#"rule has days_of_week ["fry"]"#,
        WEEKDAYS,
        None,
    ),
    (
        r#"{"every":1,"unit":"day","week_parity":"both"}"#,
        r#"rule has week_parity "both""#,
        r#""odd" or "even""#,
        None,
    ),
    (
        r#"{"every":1,"unit":"hour","between_hours":[9,25]}"#,
        "rule has between_hours [9,25]",
        "[start, end] in whole hours, start 0 to 23 and end 0 to 24",
        None,
    ),
    (
        r#"{"every":1,"unit":"day","day_of_month":3}"#,
        r#"rule has day_of_month or nth_weekday with unit "day""#,
        r#"unit "month" or "year""#,
        None,
    ),
    (
        r#"{"every":1,"unit":"month","day_of_month":0}"#,
        "rule has day_of_month 0",
        "1 to 31, or -1 for the last day",
        None,
    ),
    (
        r#"{"every":1,"unit":"month","nth_weekday":{"nth":6,"day":"mon"}}"#,
        r#"rule has nth_weekday {"day":"mon","nth":6}"#,
        r#"{"nth":1,"day":"mon"} with nth 1 to 5, or -1 for the last"#,
        None,
    ),
    (
        r#"{"every":1,"unit":"month","day_of_month":1,"nth_weekday":{"nth":1,"day":"mon"}}"#,
        "rule has both day_of_month and nth_weekday",
        "one of them",
        None,
    ),
    (
        r#"{"every":1,"unit":"month","days_of_week":["tue"],"nth_weekday":{"nth":1,"day":"mon"}}"#,
        "rule never occurs: days_of_week does not hold the day of nth_weekday",
        "",
        None,
    ),
];

#[rustfmt::skip]
const TEXTS: &[Case] = &[
    ("", "schedule is empty", "", Some(NOTATIONS)),
    ("pt5m", r#"schedule "pt5m" is in no known notation"#, "", Some(NOTATIONS)),
    ("sometimes", r#"schedule "sometimes" is in no known notation"#, "", Some(NOTATIONS)),
    ("at", r#"schedule "at" is in no known notation"#, "", Some(NOTATIONS)),
    ("at noon", r#"time "at noon" is not a timestamp"#, TIMESTAMP, None),
    ("at 27-01-31T09:00:00", r#"time "at 27-01-31T09:00:00" is not a timestamp"#, TIMESTAMP, None),
    ("at 2027-02-30T09:00:00", r#"time "at 2027-02-30T09:00:00" is not a timestamp"#, TIMESTAMP, None),
    ("at 2027-01-31T09:00:60", r#"time "at 2027-01-31T09:00:60" is not a timestamp"#, TIMESTAMP, None),
    ("at 2027-01-31T09:00:00+25", r#"time "at 2027-01-31T09:00:00+25" is not a timestamp"#, TIMESTAMP, None),
    ("[1]", r#"schedule "[1]" is in no known notation"#, "", Some(NOTATIONS)),
    ("at 2027-1-31T09:00:00.5", r#"time "at 2027-1-31T09:00:00.5" is not a timestamp"#, TIMESTAMP, None),
    ("at 2027-01-31T9:00:00.25", r#"time "at 2027-01-31T9:00:00.25" is not a timestamp"#, TIMESTAMP, None),
    ("at 2027-01-31T09:00:5", r#"time "at 2027-01-31T09:00:5" is not a timestamp"#, TIMESTAMP, None),
    ("at 2027-01-31T09:00:00Z00", r#"time "at 2027-01-31T09:00:00Z00" is not a timestamp"#, TIMESTAMP, None),
    ("at 2027-01-31T09:00:00+01:", r#"time "at 2027-01-31T09:00:00+01:" is not a timestamp"#, TIMESTAMP, None),
    ("at 0001-01-01T01:00:00+14", r#"time "at 0001-01-01T01:00:00+14" is not a timestamp"#, TIMESTAMP, None),
    ("at 9999-12-31T23:00:00-02:00", r#"time "at 9999-12-31T23:00:00-02:00" is not a timestamp"#, TIMESTAMP, None),
    ("at 2027-01-31", r#"time "at 2027-01-31" is not a timestamp"#, TIMESTAMP, None),
];

fn check(cases: &[Case]) {
    for (text, problem, expected, hint) in cases {
        let message = match expected.is_empty() {
            true => (*problem).to_owned(),
            false => format!("{problem}, expected {expected}"),
        };
        let error = Schedule::parse(text).expect_err(text);
        assert_eq!(error.to_string(), message, "{text}");
        assert_eq!(error.hint(), *hint, "{text}");
        assert_eq!(Schedule::admit(text), Err(error), "{text}");
    }
}

#[test]
fn cron_expressions() {
    check(CRON);
}

#[test]
fn intervals() {
    check(INTERVALS);
}

#[test]
fn structured_rules() {
    check(RULES);
}

#[test]
fn other_texts() {
    check(TEXTS);
}

#[test]
fn long_texts_are_refused_and_shortened_in_messages() {
    let error = Schedule::parse(&"x".repeat(500)).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("schedule \"{}…\" is in no known notation", "x".repeat(60))
    );
    let error = Schedule::parse(&"x".repeat(5000)).unwrap_err().to_string();
    assert_eq!(error, "schedule has 5000 bytes, expected at most 1000");
}

fn refusal(text: &str, starts_at: Option<&str>) -> String {
    let schedule = Arc::new(Schedule::parse(text).unwrap());
    let bounds = Bounds {
        starts_at: starts_at.map(|at| at.parse().unwrap()),
        ..Bounds::default()
    };
    Recurrence::new(
        schedule,
        Zone::UTC,
        bounds,
        OnGap::RollForward,
        OnFold::First,
    )
    .expect_err(text)
    .to_string()
}

#[test]
fn schedules_that_can_not_recur() {
    assert_eq!(
        refusal("90m", None),
        "schedule \"90m\" counts from starts_at, and starts_at is missing"
    );
    // The start is at 17:00, where the window has ended.
    assert_eq!(
        refusal(
            r#"{"every":1,"unit":"day","between_hours":[9,17]}"#,
            Some("2024-06-14T17:00:00Z")
        ),
        r#"schedule "{"every":1,"unit":"day","between_hours":[9,17]}" never occurs from starts_at on"#
    );
}

#[test]
fn policy_names() {
    assert_eq!(
        "forward".parse::<OnGap>().unwrap_err().to_string(),
        "on_dst_gap \"forward\" is unknown, expected roll_forward or skip"
    );
    assert_eq!(
        "last".parse::<OnFold>().unwrap_err().to_string(),
        "on_dst_fold \"last\" is unknown, expected first, second or both"
    );
    for policy in ["roll_forward", "skip"] {
        assert_eq!(policy.parse::<OnGap>().unwrap().to_string(), policy);
    }
    for policy in ["first", "second", "both"] {
        assert_eq!(policy.parse::<OnFold>().unwrap().to_string(), policy);
    }
}
