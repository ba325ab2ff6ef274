//! Cron expressions in English, compared with cronstrue 3.39.0's 24-hour sentences.

use recurrence::Schedule;
use serde_json::Value;

fn describe(expression: &str) -> String {
    let schedule = Schedule::parse(expression);
    schedule
        .unwrap_or_else(|error| panic!("{expression}: {error}"))
        .describe()
}

/// Every vector must match.
#[test]
fn descriptions_match_cronstrue() {
    let mut wrong = Vec::new();
    for line in include_str!("vectors/describe.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let expression = case["expr"].as_str().unwrap();
        let expected = case["expect_24h"].as_str().unwrap().to_lowercase();
        let found = describe(expression);
        if found.to_lowercase() != expected {
            wrong.push(format!(
                "{expression}\n  ours   {found}\n  theirs {expected}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where cronstrue 3.39.0 is ambiguous or wrong: (expression, ours, cronstrue's).
#[test]
fn descriptions_are_precise_where_cronstrue_is_ambiguous() {
    let cases = [
        // One of the day fields is enough; cronstrue's sentence suggests both.
        (
            "0 9 15 * 1-5",
            "at 09:00, on day 15 of the month, and Monday through Friday",
            "At 09:00, on day 15 of the month, Monday through Friday",
        ),
        (
            "0 9 15 * MON#2",
            "at 09:00, on day 15 of the month, and on the second Monday of the month",
            "At 09:00, on day 15 of the month, on the second Monday of the month",
        ),
        (
            "0 9 15 * FRIL",
            "at 09:00, on day 15 of the month, and on the last Friday of the month",
            "At 09:00, on day 15 of the month, on the last Friday of the month",
        ),
        (
            "0 9 15 * */2",
            "at 09:00, on day 15 of the month, and every 2 days of the week",
            "At 09:00, on day 15 of the month, every 2 days of the week",
        ),
        // A week ends with Sunday, in any order of the list.
        (
            "0 9 * * 0,6",
            "at 09:00, only on Saturday and Sunday",
            "At 09:00, only on Sunday and Saturday",
        ),
        // A step of one is a range.
        (
            "31-51/1 * * * *",
            "minutes 31 through 51 past the hour",
            "Every 1 minute, minutes 31 through 51 past the hour",
        ),
        // A step that is as long as its field has a single value.
        ("*/60 * * * *", "every hour", "Every 60 minutes"),
        (
            "30-59/60 9 * * *",
            "at 09:30",
            "Every 60 minutes, minutes 30 through 59 past the hour, between 09:00 and 09:59",
        ),
        (
            "0 9 */31 * *",
            "at 09:00, on day 1 of the month",
            "At 09:00, every 31 days in a month",
        ),
        // Ranges next to steps.
        (
            "0 9 * 1-3,5-10/2 *",
            "at 09:00, January through March and every 2 months, May through October",
            "At 09:00, every dayJanuary through March and every 2 months, May through October",
        ),
        (
            "1-5,*/10 * * * *",
            "every 10 minutes and minutes 1 through 5 past the hour",
            "1 through 5 and every 10 minutes",
        ),
        (
            "0 9 * * MON#3,FRI",
            "at 09:00, only on Friday and on the third Monday of the month",
            "At 09:00, on the third Monday and Friday of the month",
        ),
    ];
    for (expression, ours, theirs) in cases {
        assert_eq!(describe(expression), ours);
        assert!(
            !ours.eq_ignore_ascii_case(theirs),
            "{expression} is no difference"
        );
    }
}

/// What cronstrue does not read.
#[test]
fn descriptions_beyond_cronstrue() {
    let cases = [
        (
            "0 9 13 * +FRI",
            "at 09:00, on day 13 of the month, only if it is Friday",
        ),
        (
            "0 9 1-7 * +MON-FRI",
            "at 09:00, between day 1 and 7 of the month, only if it is Monday through Friday",
        ),
        (
            "0 9 1 * +FRI#1",
            "at 09:00, on day 1 of the month, only if it is the first Friday of the month",
        ),
        (
            "0 9 1,15W,LW * *",
            "at 09:00, on day 1, the weekday nearest day 15, and the last weekday of the month",
        ),
        (
            "0 9 * * MON-WED#2",
            "at 09:00, on the second Monday, second Tuesday, and second Wednesday of the month",
        ),
        (
            "0 9 * * 1-3,SAT#L",
            "at 09:00, Monday through Wednesday and on the last Saturday of the month",
        ),
        (
            "0 9 1 * */1",
            "at 09:00, on day 1 of the month, and every day of the week",
        ),
        ("0 9-17/1 * * *", "every hour, between 09:00 and 17:00"),
        ("0 */1 * * *", "every hour"),
        (
            "0 9 */1 * 1",
            "at 09:00, every day of the month, and on Monday",
        ),
        (
            "0 0 0 * * * 2027-2030,2040",
            "at 00:00, only in 2027 through 2030 and 2040",
        ),
    ];
    for (expression, ours) in cases {
        assert_eq!(describe(expression), ours);
    }
}
