//! Every notation in English, word for word.

use recurrence::{Schedule, Zone};

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let schedule = Schedule::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(schedule.describe(), *expected, "{text}");
        // The canonical text has the same description.
        let canonical = Schedule::parse(&schedule.to_string()).unwrap();
        assert_eq!(canonical.describe(), *expected, "{schedule}");
    }
}

#[test]
fn intervals() {
    check(&[
        ("10s", "every 10 seconds"),
        ("1s", "every second"),
        ("90s", "every 90 seconds"),
        ("90m", "every 90 minutes"),
        ("60m", "every hour"),
        ("36h", "every 36 hours"),
        ("1d", "every day"),
        ("14d", "every 2 weeks"),
        ("6mo", "every 6 months"),
        ("P1Y", "every year"),
        ("P1DT12H30M", "every 1 day, 12 hours, and 30 minutes"),
        ("P2DT1S", "every 2 days and 1 second"),
        ("every-30-minutes", "every 30 minutes"),
    ]);
}

#[test]
fn presets() {
    check(&[
        ("@hourly", "every hour"),
        ("@daily", "at 00:00"),
        ("@weekly", "at 00:00, only on Sunday"),
        ("hourly", "every hour"),
        ("daily", "every day"),
        ("weekly", "every week"),
        (r#"{"every":2,"unit":"year"}"#, "every 2 years"),
        (
            "@yearly",
            "at 00:00, on day 1 of the month, only in January",
        ),
    ]);
}

#[test]
fn structured_rules() {
    check(&[
        (
            r#"{"every":2,"unit":"week","days_of_week":["tue","thu"],"week_parity":"odd","between_hours":[22,6]}"#,
            "every 2 weeks on Tuesday and Thursday, in odd ISO weeks, between 22:00 and 06:00",
        ),
        (r#"{"every":1,"unit":"week"}"#, "every week"),
        (
            r#"{"every":15,"unit":"minute","days_of_week":[1,2,3,4,5,7],"between_hours":[9,17]}"#,
            "every 15 minutes, only on Monday through Friday and Sunday, between 09:00 and 17:00",
        ),
        (
            r#"{"every":3,"unit":"day","week_parity":"even"}"#,
            "every 3 days, in even ISO weeks",
        ),
        (
            r#"{"every":1,"unit":"month","day_of_month":15}"#,
            "every month on day 15",
        ),
        (
            r#"{"every":6,"unit":"month","day_of_month":31}"#,
            "every 6 months on day 31 or the last day of a shorter month",
        ),
        (
            r#"{"every":1,"unit":"month","nth_weekday":{"nth":2,"day":"tue"}}"#,
            "every month on the second Tuesday",
        ),
        (
            r#"{"every":3,"unit":"month","nth_weekday":{"nth":-1,"day":"fri"}}"#,
            "every 3 months on the last Friday",
        ),
    ]);
}

#[test]
fn one_time() {
    check(&[
        (
            "at 2027-01-31T09:00:00",
            "once, on 31 January 2027 at 09:00",
        ),
        (
            "at 2027-01-31T09:00:07",
            "once, on 31 January 2027 at 09:00:07",
        ),
        (
            "at 2027-01-31T09:00:00.250",
            "once, on 31 January 2027 at 09:00:00.25",
        ),
        (
            "at 2027-01-31T09:00:00+01:00",
            "once, on 31 January 2027 at 08:00 UTC",
        ),
    ]);
}

#[test]
fn recurrence_rules_by_day() {
    check(&[
        ("RRULE:FREQ=YEARLY", "every year"),
        ("RRULE:FREQ=DAILY;INTERVAL=10", "every 10 days"),
        (
            "RRULE:FREQ=YEARLY;INTERVAL=2;BYMONTH=1,2,3",
            "every 2 years in January through March",
        ),
        (
            "RRULE:FREQ=YEARLY;BYDAY=20MO",
            "every year on the 20th Monday of the year",
        ),
        (
            "RRULE:FREQ=YEARLY;BYDAY=11MO,21TU,22WE,33TH,-13FR",
            "every year on the 11th Monday, the 21st Tuesday, the 22nd Wednesday, the 33rd Thursday, \
             and the 13th to last Friday of the year",
        ),
        (
            "RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=1TU",
            "every year in November on the first Tuesday of the month",
        ),
        (
            "RRULE:FREQ=YEARLY;BYWEEKNO=20,-1;BYDAY=MO",
            "every year in week 20 and the last week of the year on Monday",
        ),
        (
            "RRULE:FREQ=YEARLY;BYYEARDAY=1,100,-1",
            "every year on day 1, 100, and the last day of the year",
        ),
        (
            "RRULE:FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9;BYMINUTE=0",
            "every month on the last Friday at 09:00",
        ),
        (
            "RRULE:FREQ=MONTHLY;BYMONTHDAY=10,11,12,-1,-2",
            "every month on day 10 through 12, the second to last day, and the last day",
        ),
        (
            "RRULE:FREQ=MONTHLY;BYMONTH=3;BYDAY=FR;BYMONTHDAY=13",
            "every month, only in March on day 13, only if it is Friday",
        ),
        (
            "RRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH",
            "every 2 weeks on Tuesday and Thursday, with weeks that begin on Sunday, 8 times",
        ),
        (
            "RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
            "every month on Monday through Friday, only the last of these in each month",
        ),
        (
            "RRULE:FREQ=MONTHLY;BYDAY=MO,1FR,-1FR;BYSETPOS=1,-2",
            "every month on Monday, the first Friday, and the last Friday, only the first and second \
             to last of these in each month",
        ),
        (
            "RRULE:FREQ=HOURLY;BYMONTHDAY=1;BYDAY=MO",
            "every hour, only on day 1 of the month, only if it is Monday",
        ),
    ]);
}

#[test]
fn recurrence_rules_by_time() {
    check(&[
        (
            "RRULE:FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,16;BYMINUTE=30;BYSECOND=0",
            "every day, only on Monday through Friday at 09:30 and 16:30",
        ),
        (
            "RRULE:FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40",
            "every day at 0, 20, and 40 minutes past the hour, in hour 9 through 16 of the day",
        ),
        (
            "RRULE:FREQ=DAILY;BYHOUR=6,18;BYSECOND=6,18",
            "every day at 6 and 18 seconds past the minute, in hour 6 and 18 of the day, at the minute \
             of the start",
        ),
        (
            "RRULE:FREQ=DAILY;BYMINUTE=1",
            "every day at 1 minute past the hour, in the hour of the start",
        ),
        (
            "RRULE:FREQ=HOURLY;BYHOUR=6,18;BYMINUTE=6,18;BYSECOND=6,18",
            "every hour at 6 and 18 seconds past the minute, at 6 and 18 minutes past the hour, only \
             in hour 6 and 18 of the day",
        ),
        (
            "RRULE:FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11",
            "every 20 minutes, only in hour 9 through 11 of the day",
        ),
        (
            "RRULE:FREQ=SECONDLY;BYMINUTE=1;BYSECOND=0;COUNT=1",
            "every second, only at 0 seconds past the minute, only at 1 minute past the hour, once",
        ),
    ]);
}

#[test]
fn recurrence_rules_with_an_end_and_dates() {
    check(&[
        (
            "RRULE:FREQ=DAILY;UNTIL=20000131T140000Z",
            "every day, until 31 January 2000 at 14:00 UTC",
        ),
        (
            "RRULE:FREQ=DAILY;UNTIL=20000131T140030",
            "every day, until 31 January 2000 at 14:00:30",
        ),
        (
            "RRULE:FREQ=DAILY;UNTIL=20270131\nEXDATE:20270102T090000,20270103T090000\n\
             RDATE:20270205T120000Z",
            "every day, until the end of 31 January 2027, except on 2 January 2027 at 09:00 and 3 \
             January 2027 at 09:00, and also on 5 February 2027 at 12:00 UTC",
        ),
        (
            "RRULE:FREQ=DAILY\nEXDATE:20270102T090000,20270103T090000,20270104T090000,20270105T090000",
            "every day, except 4 listed times",
        ),
    ]);
}

#[test]
fn the_zone_comes_last() {
    let new_york = Zone::parse("america/new_york").unwrap();
    let cases = [
        (
            "0 9 * * MON-FRI",
            "at 09:00, Monday through Friday, America/New_York",
        ),
        ("90m", "every 90 minutes, America/New_York"),
        (
            "at 2027-01-31T09:00",
            "once, on 31 January 2027 at 09:00, America/New_York",
        ),
        // An instant is the same everywhere.
        (
            "at 2027-01-31T09:00Z",
            "once, on 31 January 2027 at 09:00 UTC",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(
            Schedule::parse(text).unwrap().describe_in(new_york),
            expected
        );
    }
}
