//! The text of recurrence rules: errors, hints, and canonical form.

use recurrence::civil::{Civil, Date};
use recurrence::rrule::{MAX_DATES, MAX_TEXT, RuleError, RuleSet};

const WHAT_FREQ: &str = "YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY, MINUTELY or SECONDLY";
const WHAT_BYDAY: &str = "weekdays MO, TU, WE, TH, FR, SA, SU, with a number from 1 to 53 or -1 to -53 \
                          in front to choose one of the period's, like 2MO or -1FR";
const WHAT_UNTIL: &str = "a time like 20270131T090000Z (UTC) or 20270131T090000 (local to the action's \
                          time zone), or a date like 20270131 (its whole day)";
const WHAT_TIMES: &str =
    "times like 20270131T090000 (local to the action's time zone) or 20270131T090000Z (UTC)";
const BETWEEN: &str = "expected NAME=value parts with one ; between them";

fn refused(text: &str) -> RuleError {
    match RuleSet::parse(text) {
        Ok(rule) => panic!("{text} was read as {rule}"),
        Err(error) => error,
    }
}

const INTERVAL: &str = "a whole number from 1 to 4294967295";
const COUNT: &str = "a whole number from 1 to 10000";
const MONTHS: &str = "months from 1 to 12";
const MONTH_DAYS: &str = "days from 1 to 31 or -1 to -31";
const HOURS: &str = "hours from 0 to 23";
const POSITIONS: &str = "positions from 1 to 366 or -1 to -366";
const WEEK_START: &str = "a weekday: MO, TU, WE, TH, FR, SA or SU";

/// Rule, part, value, what is expected.
#[rustfmt::skip]
const VALUES: &[(&str, &str, &str, &str)] = &[
    ("FREQ=FORTNIGHTLY", "FREQ", "FORTNIGHTLY", WHAT_FREQ),
    ("FREQ=DAILY,WEEKLY", "FREQ", "DAILY,WEEKLY", WHAT_FREQ),
    ("FREQ=DAILY;INTERVAL=0", "INTERVAL", "0", INTERVAL),
    ("FREQ=DAILY;INTERVAL=-1", "INTERVAL", "-1", INTERVAL),
    ("FREQ=DAILY;INTERVAL=+1", "INTERVAL", "+1", INTERVAL),
    ("FREQ=DAILY;INTERVAL=1.5", "INTERVAL", "1.5", INTERVAL),
    ("FREQ=DAILY;INTERVAL=4294967296", "INTERVAL", "4294967296", INTERVAL),
    ("FREQ=DAILY;COUNT=0", "COUNT", "0", COUNT),
    ("FREQ=DAILY;COUNT=10001", "COUNT", "10001", COUNT),
    ("FREQ=DAILY;UNTIL=2025-13-01", "UNTIL", "2025-13-01", WHAT_UNTIL),
    ("FREQ=DAILY;UNTIL=20250230", "UNTIL", "20250230", WHAT_UNTIL),
    ("FREQ=DAILY;UNTIL=20250131T240000Z", "UNTIL", "20250131T240000Z", WHAT_UNTIL),
    ("FREQ=DAILY;UNTIL=00000101T000000Z", "UNTIL", "00000101T000000Z", WHAT_UNTIL),
    ("FREQ=DAILY;UNTIL=yesterday", "UNTIL", "yesterday", WHAT_UNTIL),
    ("FREQ=WEEKLY;BYDAY=XX", "BYDAY", "XX", WHAT_BYDAY),
    ("FREQ=WEEKLY;BYDAY=MON", "BYDAY", "MON", WHAT_BYDAY),
    ("FREQ=WEEKLY;BYDAY=MO,", "BYDAY", "", WHAT_BYDAY),
    ("FREQ=WEEKLY;BYDAY=MO, TU", "BYDAY", " TU", WHAT_BYDAY),
    ("FREQ=WEEKLY;BYDAY=é", "BYDAY", "é", WHAT_BYDAY),
    ("FREQ=MONTHLY;BYDAY=0MO", "BYDAY", "0MO", WHAT_BYDAY),
    ("FREQ=YEARLY;BYDAY=54MO", "BYDAY", "54MO", WHAT_BYDAY),
    ("FREQ=YEARLY;BYDAY=--1MO", "BYDAY", "--1MO", WHAT_BYDAY),
    ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY", "0", MONTH_DAYS),
    ("FREQ=MONTHLY;BYMONTHDAY=32", "BYMONTHDAY", "32", MONTH_DAYS),
    ("FREQ=MONTHLY;BYMONTHDAY=-32", "BYMONTHDAY", "-32", MONTH_DAYS),
    ("FREQ=YEARLY;BYMONTH=13", "BYMONTH", "13", MONTHS),
    ("FREQ=YEARLY;BYMONTH=JAN", "BYMONTH", "JAN", MONTHS),
    ("FREQ=YEARLY;BYMONTH=-1", "BYMONTH", "-1", MONTHS),
    ("FREQ=YEARLY;BYYEARDAY=367", "BYYEARDAY", "367", "days from 1 to 366 or -1 to -366"),
    ("FREQ=YEARLY;BYWEEKNO=0", "BYWEEKNO", "0", "weeks from 1 to 53 or -1 to -53"),
    ("FREQ=DAILY;BYHOUR=24", "BYHOUR", "24", HOURS),
    ("FREQ=DAILY;BYHOUR=-1", "BYHOUR", "-1", HOURS),
    ("FREQ=DAILY;BYMINUTE=60", "BYMINUTE", "60", "minutes from 0 to 59"),
    ("FREQ=DAILY;BYSECOND=61", "BYSECOND", "61", "seconds from 0 to 60"),
    ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=0", "BYSETPOS", "0", POSITIONS),
    ("FREQ=DAILY;WKST=1", "WKST", "1", WEEK_START),
];

const NEEDS_YEARLY: &str = "it needs FREQ=YEARLY";
const NUMBERS_NEED: &str = "they need FREQ=MONTHLY or YEARLY";
const YEAR_DAYS_NEED: &str = "it needs FREQ=YEARLY, HOURLY, MINUTELY or SECONDLY";
const ONE_END: &str = "only one of them can end a rule";
const ANOTHER_PART: &str = "it needs another BY part to choose from";

/// Rule, part, the part that excludes it, what is allowed.
#[rustfmt::skip]
const CONFLICTS: &[(&str, &str, &str, &str)] = &[
    ("FREQ=DAILY;COUNT=3;UNTIL=20270131T090000Z", "COUNT", "UNTIL", ONE_END),
    ("FREQ=WEEKLY;BYDAY=1MO", "BYDAY with numbers", "FREQ=WEEKLY", NUMBERS_NEED),
    ("FREQ=DAILY;BYDAY=-1FR", "BYDAY with numbers", "FREQ=DAILY", NUMBERS_NEED),
    ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=1MO", "BYDAY with numbers", "BYWEEKNO", "use plain weekdays with it"),
    ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY", "FREQ=WEEKLY", "it needs any other FREQ"),
    ("FREQ=MONTHLY;BYYEARDAY=1", "BYYEARDAY", "FREQ=MONTHLY", YEAR_DAYS_NEED),
    ("FREQ=MONTHLY;BYWEEKNO=20", "BYWEEKNO", "FREQ=MONTHLY", NEEDS_YEARLY),
    ("FREQ=DAILY;BYWEEKNO=20", "BYWEEKNO", "FREQ=DAILY", NEEDS_YEARLY),
    ("FREQ=MONTHLY;BYSETPOS=1", "BYSETPOS", "FREQ=MONTHLY", ANOTHER_PART),
];

fn check_rule(rule: &str, message: &str) {
    let error = refused(&format!("RRULE:{rule}"));
    assert_eq!(error.to_string(), message, "{rule}");
}

#[test]
fn refused_values() {
    for (rule, part, value, expected) in VALUES {
        let message = format!("RRULE part {part} has \"{value}\", expected {expected}");
        check_rule(rule, &message);
    }
}

#[test]
fn refused_combinations() {
    for (rule, part, with, allowed) in CONFLICTS {
        let message = format!("RRULE part {part} can't be combined with {with}; {allowed}");
        check_rule(rule, &message);
    }
}

#[test]
fn refused_parts() {
    let no_freq = format!("RRULE has no FREQ, expected FREQ={WHAT_FREQ}");
    let no_value = |part: &str| format!("RRULE part \"{part}\" has no value, expected NAME=value");
    let empty = format!("RRULE has an empty part after \"FREQ=DAILY\", {BETWEEN}");
    check_rule("", &format!("RRULE begins with an empty part, {BETWEEN}"));
    check_rule("INTERVAL=2", &no_freq);
    check_rule("COUNT=3", &no_freq);
    check_rule("DAILY", &no_value("DAILY"));
    check_rule("FREQ=", &no_value("FREQ="));
    check_rule("FREQ=DAILY;INTERVAL=", &no_value("INTERVAL="));
    check_rule("FREQ=WEEKLY;BYDAY=", &no_value("BYDAY="));
    check_rule("FREQ=DAILY;;COUNT=2", &empty);
    check_rule("FREQ=DAILY;", &empty);
    check_rule(
        "FREQ=DAILY;FREQ=DAILY",
        "RRULE part FREQ is given twice, expected it once",
    );
    check_rule(
        "FREQ = DAILY",
        "RRULE part \"FREQ \" is unknown, expected FREQ, INTERVAL, COUNT, UNTIL, WKST, BYMONTH, \
         BYWEEKNO, BYYEARDAY, BYMONTHDAY, BYDAY, BYHOUR, BYMINUTE, BYSECOND or BYSETPOS",
    );
}

#[test]
fn refused_lines() {
    let rule = "RRULE:FREQ=DAILY";
    let cases = [
        (String::new(), "recurrence rule begins with \"\", expected RRULE:".to_owned()),
        ("FREQ=DAILY".into(), "recurrence rule begins with \"FREQ=DAILY\", expected RRULE:".into()),
        (format!("{rule}\n{rule}"), "recurrence rule has a second RRULE line, expected one".into()),
        (
            format!("DTSTART:20270101T000000\n{rule}"),
            "recurrence rule has a DTSTART line, expected none".into(),
        ),
        (
            format!("{rule}\nDTSTART;TZID=Europe/Paris:20270101T000000"),
            "recurrence rule has a DTSTART line, expected none".into(),
        ),
        (
            format!("{rule}\nEXRULE:FREQ=WEEKLY"),
            "recurrence rule has the line \"EXRULE:FREQ=WEEKLY\", expected EXDATE: or RDATE: below the \
             RRULE line"
                .into(),
        ),
        (
            format!("{rule}\n\nEXDATE:20270101T000000"),
            "recurrence rule has the line \"\", expected EXDATE: or RDATE: below the RRULE line".into(),
        ),
        (
            format!("{rule}\nexdate;tzid=Europe/Paris:20270101T000000"),
            "EXDATE has the parameter \"TZID=EUROPE/PARIS\", expected EXDATE: and times, without \
             parameters"
                .into(),
        ),
        (
            format!("{rule}\nRDATE:20270101"),
            format!("RDATE has \"20270101\", expected {WHAT_TIMES}"),
        ),
        (format!("{rule}\nEXDATE:"), format!("EXDATE has \"\", expected {WHAT_TIMES}")),
        (
            format!("{rule};BYHOUR={}", "9".repeat(MAX_TEXT)),
            "recurrence rule has 20024 bytes, expected at most 20000".into(),
        ),
        (
            format!("{rule}\nRDATE:{}", vec!["20270101T000000"; MAX_DATES + 1].join(",")),
            "RDATE has 501 times, expected at most 500".into(),
        ),
        (
            format!("{rule};BYHOUR={}", "1".repeat(1_000)),
            format!(
                "RRULE part BYHOUR has \"{}…\", expected hours from 0 to 23",
                "1".repeat(60)
            ),
        ),
    ];
    for (text, message) in cases {
        assert_eq!(refused(&text).to_string(), message);
    }
}

#[test]
fn hints_name_the_remedy() {
    let cases = [
        (
            "FREQ=DAILY",
            "Write the rule as RRULE:FREQ=WEEKLY;BYDAY=TU,TH.",
        ),
        (
            "RRULE:FREQ=DAILY\nDTSTART:20270101T000000",
            "Give the start as starts_at; it anchors the rule as DTSTART does.",
        ),
        (
            "RRULE:FREQ=DAILY\nRRULE:FREQ=WEEKLY",
            "Use one action per rule, or add single times with an RDATE: line.",
        ),
        (
            "RRULE:FREQ=DAILY\nEXDATE;TZID=Europe/Paris:20270101T000000",
            "Times are local to the time zone of the action; write instants in UTC with a Z at the end.",
        ),
        (
            "RRULE:FREQ=DAILY;COUNT=20000",
            "To limit the number of runs, set max_runs; it has no such limit.",
        ),
        (
            "RRULE:FREQ=DAILY;COUNT=2;UNTIL=20270101",
            "Keep one of the two.",
        ),
    ];
    for (text, hint) in cases {
        assert_eq!(refused(text).hint(), Some(hint));
    }
    assert_eq!(refused("RRULE:FREQ=HOURLY;BYHOUR=99").hint(), None);
}

#[test]
fn canonical_form() {
    let cases = [
        ("rrule:freq=daily;interval=1", "RRULE:FREQ=DAILY"),
        (
            "RRULE:BYDAY=fr,+1MO,-1mo,MO;FREQ=MONTHLY",
            "RRULE:FREQ=MONTHLY;BYDAY=MO,1MO,-1MO,FR",
        ),
        (
            "RRULE:BYMONTHDAY=-1,15,01,15;WKST=MO;FREQ=MONTHLY;COUNT=007",
            "RRULE:FREQ=MONTHLY;COUNT=7;BYMONTHDAY=1,15,-1",
        ),
        (
            "RRULE:FREQ=WEEKLY;WKST=SU;INTERVAL=2",
            "RRULE:FREQ=WEEKLY;INTERVAL=2;WKST=SU",
        ),
        (
            "RRULE:FREQ=DAILY;UNTIL=20270131",
            "RRULE:FREQ=DAILY;UNTIL=20270131T235959",
        ),
        (
            "RRULE:FREQ=DAILY;UNTIL=20270131t090060z",
            "RRULE:FREQ=DAILY;UNTIL=20270131T090059Z",
        ),
        (
            "RRULE:FREQ=MINUTELY;BYSECOND=60,59,0",
            "RRULE:FREQ=MINUTELY;BYSECOND=0,59",
        ),
        (
            "RRULE:FREQ=DAILY\r\nRDATE:20270103T090000\r\nEXDATE:20270102T090000Z\r\n\
             EXDATE:20270101T090000,20270101T090000\r\n",
            "RRULE:FREQ=DAILY\nEXDATE:20270101T090000,20270102T090000Z\nRDATE:20270103T090000",
        ),
    ];
    for (text, canonical) in cases {
        let rule = RuleSet::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(rule.to_string(), canonical);
        assert_eq!(canonical.parse(), Ok(rule));
    }
}

fn at(year: i32, month: u8, day: u8, hour: i64) -> Civil {
    Civil::new(Date::new(year, month, day).days(), hour * 3_600)
}

fn occurrences(text: &str, anchor: Civil) -> Vec<Civil> {
    // A zone an hour ahead of UTC.
    let rule = RuleSet::parse(text).unwrap();
    let compiled = rule
        .compile(anchor, |instant| Civil(instant + 3_600))
        .unwrap();
    let next = |at: &Civil| compiled.next_at_or_after(Civil(at.0 + 1));
    std::iter::successors(compiled.next_at_or_after(anchor), next)
        .take(10)
        .collect()
}

#[test]
fn exdate_and_rdate() {
    let text = "RRULE:FREQ=DAILY;COUNT=4\n\
                EXDATE:20270102T090000,20270105T120000\n\
                RDATE:20270101T090000,20270105T120000,20270107T120000,20261231T120000";
    // COUNT includes what EXDATE removes. RDATE is not counted, adds a time once, and adds none before
    // the anchor.
    let expected = [
        at(2027, 1, 1, 9),
        at(2027, 1, 3, 9),
        at(2027, 1, 4, 9),
        at(2027, 1, 7, 12),
    ];
    assert_eq!(occurrences(text, at(2027, 1, 1, 9)), expected);
}

#[test]
fn until_in_utc_is_read_on_the_local_clock() {
    let text = "RRULE:FREQ=DAILY;UNTIL=20270103T080000Z";
    let expected = [at(2027, 1, 1, 9), at(2027, 1, 2, 9), at(2027, 1, 3, 9)];
    assert_eq!(occurrences(text, at(2027, 1, 1, 9)), expected);
    assert_eq!(
        RuleSet::parse(text).unwrap().until_utc(),
        Some(at(2027, 1, 3, 8).0)
    );
}

#[test]
fn until_is_inclusive_and_a_date_includes_the_whole_day() {
    let anchor = at(2027, 1, 1, 9);
    for (until, days) in [
        ("20270103", 3),
        ("20270103T090000", 3),
        ("20270103T085959", 2),
        ("20261231", 0),
    ] {
        assert_eq!(
            occurrences(&format!("RRULE:FREQ=DAILY;UNTIL={until}"), anchor).len(),
            days
        );
    }
}

#[test]
fn numbered_and_plain_weekdays_combine_with_or() {
    let text = "RRULE:FREQ=MONTHLY;COUNT=6;BYDAY=1MO,-1MO,FR";
    let expected = [1, 4, 8, 15, 22, 25].map(|day| at(2027, 1, day, 9));
    assert_eq!(occurrences(text, at(2027, 1, 1, 9)), expected);
}

#[test]
fn the_first_period_is_a_whole_set() {
    // The second of Tuesday and Thursday is Thursday, also where the anchor is a Wednesday.
    let text = "RRULE:FREQ=WEEKLY;COUNT=2;BYDAY=TU,TH;BYSETPOS=2";
    let expected = [at(2027, 1, 7, 9), at(2027, 1, 14, 9)];
    assert_eq!(occurrences(text, at(2027, 1, 6, 9)), expected);
}
