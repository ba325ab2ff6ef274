use super::PgCron;
use crate::{Bounds, OnFold, OnGap, Recurrence, Zone};
use chrono::{DateTime, Utc};
use proptest::prelude::*;
use std::sync::Arc;

fn here(text: &str) -> Result<String, String> {
    let read = PgCron::parse(text).map_err(|error| error.to_string())?;
    let schedule = read.to_schedule().map_err(|error| error.to_string())?;
    Ok(schedule.to_string())
}

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// The next runs there, as dates and times.
fn runs(text: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
    let zone = Zone::parse(zone).unwrap();
    let runs = PgCron::parse(text)
        .unwrap()
        .runs_after(instant(from), zone, count);
    runs.iter()
        .map(|run| run.format("%m-%d %H:%M:%S").to_string())
        .collect()
}

fn runs_here(text: &str, zone: Zone, from: DateTime<Utc>, count: usize) -> Vec<DateTime<Utc>> {
    let schedule = PgCron::parse(text).unwrap().to_schedule().unwrap();
    let bounds = Bounds::default();
    let recurrence =
        Recurrence::new(Arc::new(schedule), zone, bounds, OnGap::Skip, OnFold::Both).unwrap();
    recurrence
        .occurrences_after(from)
        .take(count)
        .map(|occurrence| occurrence.at)
        .collect()
}

#[test]
fn what_means_the_same_here() {
    for (there, expected) in [
        ("0 3 * * *", "0 3 * * *"),
        ("  0\t3 * *  *  ", "0 3 * * *"),
        ("0 3 * * 1-5", "0 3 * * MON-FRI"),
        ("0 3 * jan,Jul sun", "0 3 * 1,7 SUN"),
        ("0 3 * * 7", "0 3 * * SUN"),
        ("0 3 * * 5-7", "0 3 * * FRI-SUN"),
        ("0 3 $ * *", "0 3 L * *"),
        ("0 3 $ * 1", "0 3 L * MON"),
        ("0 3 $ * */2", "0 3 L * +*/2"),
        ("*,5 * * * *", "* * * * *"),
        ("5,* * * * *", "* * * * *"),
        // Steps that are longer than their field leave its first value.
        ("*/60 * * * *", "0 * * * *"),
        ("0 */24 * * *", "0 0 * * *"),
        ("0 0-5/99 * * *", "0 0 * * *"),
        ("0 0 */40 * *", "0 0 1 * *"),
        // What follows an item, or the fifth field, is ignored.
        ("5x,10 * * * *", "refused"),
        ("*5 * * * *", "* * * * *"),
        ("0 0 * * 1#2", "0 0 * * MON"),
        ("0 0 * * * 2027", "0 0 * * *"),
        ("@daily now", "0 0 * * *"),
        ("@weekly", "0 0 * * SUN"),
        ("@hourly", "0 * * * *"),
        // A range that runs backward has no value.
        ("0 0,9-5 * * *", "0 0 * * *"),
        ("0 0 1 * 6-0", "0 0 1 * *"),
        ("0 9-5 * * *", "never"),
        ("0 0 * * sat-sun", "never"),
        ("0 0 30 2 *", "no date"),
        ("59 seconds", "59s"),
        (" 1 Second ", "1s"),
        ("30seconds", "30s"),
        ("0 seconds", "refused"),
        ("60 seconds", "refused"),
        ("30 secs", "refused"),
        ("", "refused"),
        ("0 3 * *", "refused"),
        ("0 3 L * *", "refused"),
        ("0 3 15W * *", "refused"),
        ("0 3 15,$ * *", "refused"),
        ("5/10 * * * *", "refused"),
        ("*/0 * * * *", "refused"),
        ("60 * * * *", "refused"),
        ("0 24 * * *", "refused"),
        ("0 0 0 * *", "refused"),
        ("0 0 * 13 *", "refused"),
        ("0 0 * * 8", "refused"),
        ("1, * * * *", "refused"),
        ("0 0 * * monday", "refused"),
        ("@reboot", "no time"),
        ("@Daily", "refused"),
    ] {
        let found = here(there);
        let problem = match expected {
            "refused" => "pg_cron ",
            "never" => "pg_cron never runs",
            "no date" => "names no date that exists",
            "no time" => "is not a time",
            _ => {
                assert_eq!(found, Ok(expected.to_owned()), "{there}");
                continue;
            }
        };
        let error = found.expect_err(there);
        assert!(error.contains(problem), "{there}: {error}");
    }
}

#[test]
fn both_day_fields_where_one_begins_with_a_star() {
    for (there, expected) in [
        ("0 0 13 * 5", "0 0 13 * FRI"),
        ("0 0 */2 * 1", "0 0 */2 * +MON"),
        ("0 0 1 * */2", "0 0 1 * +*/2"),
        ("0 0 */2,5 * 1", "0 0 */2,5 * +MON"),
        ("0 0 5,*/2 * 1", "0 0 */2,5 * MON"),
        ("0 0 */1 * 1", "0 0 * * MON"),
        ("0 0 *,5 * 1", "0 0 * * MON"),
        // Every day of the month is an alternative to Mondays: every day.
        ("0 0 1-31 * 1", "0 0 * * *"),
        ("0 0 5,* * 1", "0 0 * * *"),
        ("0 0 1 * 0-6", "0 0 * * *"),
        ("0 0 1-31 * */2", "0 0 * * */2"),
    ] {
        assert_eq!(here(there), Ok(expected.to_owned()), "{there}");
    }
    let remark = |text| PgCron::parse(text).unwrap().remark();
    assert!(
        remark("0 0 */2 * 1")
            .unwrap()
            .contains("requires both day fields")
    );
    assert_eq!(remark("0 0 13 * 5"), None);
    assert_eq!(remark("0 0 */1 * 1"), None);
    assert!(
        remark("0 0 * * * 2027")
            .unwrap()
            .contains("ignores \"2027\"")
    );
}

#[test]
fn the_runs_of_pg_cron() {
    let from = "2027-01-01T00:00:00Z";
    assert_eq!(
        runs("0 0 */2 * 1", "UTC", from, 3),
        ["01-11 00:00:00", "01-25 00:00:00", "02-01 00:00:00"]
    );
    assert_eq!(
        runs("0 0 13 * 5", "UTC", from, 4),
        [
            "01-08 00:00:00",
            "01-13 00:00:00",
            "01-15 00:00:00",
            "01-22 00:00:00"
        ]
    );
    assert_eq!(
        runs("0 3 $ * *", "UTC", from, 3),
        ["01-31 03:00:00", "02-28 03:00:00", "03-31 03:00:00"]
    );
    assert_eq!(
        runs("*/20 * * * *", "UTC", "2027-01-01T00:19:59Z", 2),
        ["01-01 00:20:00", "01-01 00:40:00"]
    );
    assert_eq!(
        runs("30 seconds", "UTC", from, 2),
        ["01-01 00:00:30", "01-01 00:01:00"]
    );
    assert_eq!(runs("0 3 29 2 *", "UTC", from, 1), ["02-29 03:00:00"]);
    assert!(runs("0 0 30 2 *", "UTC", from, 3).is_empty());
    // The clocks of Berlin go forward on 28 March and back on 31 October.
    assert_eq!(
        runs("30 2 * * *", "Europe/Berlin", "2027-03-27T00:00:00Z", 2),
        ["03-27 01:30:00", "03-29 00:30:00"]
    );
    assert_eq!(
        runs("30 2 * * *", "Europe/Berlin", "2027-10-30T12:00:00Z", 2),
        ["10-31 00:30:00", "10-31 01:30:00"]
    );
}

/// Fields of all kinds that pg_cron reads; some of them have no value.
fn field(min: u16, max: u16) -> impl Strategy<Value = String> {
    let step = 1..=max + 3;
    let item = prop_oneof![
        Just("*".to_owned()),
        step.clone().prop_map(|step| format!("*/{step}")),
        (min..=max).prop_map(|value| value.to_string()),
        (min..=max, min..=max).prop_map(|(first, last)| format!("{first}-{last}")),
        (min..=max, min..=max, step)
            .prop_map(|(first, last, step)| format!("{first}-{last}/{step}")),
    ];
    prop_oneof![
        2 => Just("*".to_owned()),
        3 => prop::collection::vec(item, 1..=3).prop_map(|items| items.join(",")),
    ]
}

proptest! {
    // Most of the time goes into schedules that have no run at all.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn both_run_at_the_same_instants(
        fields in (field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 7)),
        from in 1_800_000_000_i64..2_000_000_000,
    ) {
        let (minute, hour, day, month, weekday) = fields;
        let text = format!("{minute} {hour} {day} {month} {weekday}");
        let from = DateTime::from_timestamp(from, 0).unwrap();
        let read = PgCron::parse(&text).unwrap();
        let there = read.runs_after(from, Zone::UTC, 5);
        match read.to_schedule() {
            Ok(_) => prop_assert_eq!(runs_here(&text, Zone::UTC, from, 5), there, "{}", text),
            Err(_) => prop_assert!(there.is_empty(), "{}", text),
        }
    }
}
