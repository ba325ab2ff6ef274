//! Random cron expressions, compared with a brute-force walk through the calendar.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, Datelike, Duration, NaiveDate, TimeZone, Timelike, Utc, Weekday};
use chrono_tz::Tz;
use proptest::prelude::*;
use proptest::sample::select;
use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};

use common::CHANGES;
use common::oracle::{month_length, policies, resolve};

/// Part of a field: its text and its values.
#[derive(Clone, Debug)]
struct Part {
    text: String,
    values: BTreeSet<u32>,
    steps: bool,
}

fn part(min: u32, max: u32) -> impl Strategy<Value = Part> {
    let value = (min..=max).prop_map(|v| Part {
        text: v.to_string(),
        values: BTreeSet::from([v]),
        steps: false,
    });
    let range = (min..=max, min..=max).prop_map(|(a, b)| {
        let (a, b) = (a.min(b), a.max(b));
        Part {
            text: format!("{a}-{b}"),
            values: (a..=b).collect(),
            steps: false,
        }
    });
    // A step is at most as long as the field. Sunday, 0 and 7, counts once.
    let values = if (min, max) == (0, 7) {
        7
    } else {
        max - min + 1
    };
    let stepped = (min..=max, min..=max, 1u32..=values).prop_map(|(a, b, step)| {
        let (a, b) = (a.min(b), a.max(b));
        Part {
            text: format!("{a}-{b}/{step}"),
            values: (a..=b).step_by(step as usize).collect(),
            steps: true,
        }
    });
    let any_step = (1u32..=values).prop_map(move |step| Part {
        text: format!("*/{step}"),
        values: (min..=max).step_by(step as usize).collect(),
        steps: true,
    });
    prop_oneof![3 => value, 1 => range, 1 => stepped, 1 => any_step]
}

/// A whole field: `*`, or a list of parts.
fn field(min: u32, max: u32) -> impl Strategy<Value = Part> {
    let any = Just(Part {
        text: "*".to_owned(),
        values: (min..=max).collect(),
        steps: true,
    });
    let list = prop::collection::vec(part(min, max), 1..4).prop_map(|parts| Part {
        text: parts
            .iter()
            .map(|p| p.text.clone())
            .collect::<Vec<_>>()
            .join(","),
        values: parts.iter().flat_map(|p| p.values.clone()).collect(),
        steps: parts.iter().any(|p| p.steps),
    });
    prop_oneof![2 => any, 3 => list]
}

fn recurrence(text: &str, zone: &str, gap: OnGap, fold: OnFold) -> Recurrence {
    let schedule = Schedule::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let zone = Zone::parse(zone).unwrap();
    Recurrence::new(Arc::new(schedule), zone, Bounds::default(), gap, fold).unwrap()
}

/// The occurrences in (from, until], found forward, backward and by counting.
fn engine(
    recurrence: &Recurrence,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> BTreeSet<DateTime<Utc>> {
    let forward: Vec<DateTime<Utc>> = recurrence
        .occurrences_after(from)
        .map(|occurrence| occurrence.at)
        .take_while(|at| *at <= until)
        .collect();
    assert!(
        forward.windows(2).all(|pair| pair[0] < pair[1]),
        "not increasing"
    );
    let mut backward = Vec::new();
    let mut before = until;
    while let Some(occurrence) = recurrence.previous_or_at(before).filter(|o| o.at > from) {
        backward.push(occurrence.at);
        before = occurrence.at - Duration::nanoseconds(1);
        let again = recurrence.next_after(before);
        assert_eq!(again, Some(occurrence), "both directions agree");
    }
    backward.reverse();
    assert_eq!(forward, backward);
    assert_eq!(
        recurrence.count_between(from, until, u64::MAX),
        forward.len() as u64
    );
    forward.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// No occurrence is missing and none is added around clock changes, minute by minute.
    #[test]
    fn times_of_day_around_clock_changes(
        minute in field(0, 59),
        hour in field(0, 23),
        (zone, change) in select(CHANGES.to_vec()),
        offset in prop_oneof![-2 * 1440i64..1440, -150i64..150],
        (gap, fold) in policies(),
    ) {
        let text = format!("{} {} * * *", minute.text, hour.text);
        let tz: Tz = zone.parse().unwrap();
        let from = common::instant(change) + Duration::minutes(offset);
        let until = from + Duration::days(3);
        let matches = |h: u32, m: u32| hour.values.contains(&h) && minute.values.contains(&m);
        let mut expected = BTreeSet::new();
        if minute.steps || hour.steps {
            let mut at = from + Duration::minutes(1);
            while at <= until {
                let local = tz.from_utc_datetime(&at.naive_utc());
                if matches(local.hour(), local.minute()) {
                    expected.insert(at);
                }
                at += Duration::minutes(1);
            }
        } else {
            let mut local = from.naive_utc() - Duration::days(3);
            while local <= until.naive_utc() + Duration::days(3) {
                if matches(local.hour(), local.minute()) {
                    expected.extend(resolve(tz, local, gap, fold));
                }
                local += Duration::minutes(1);
            }
            expected.retain(|at| *at > from && *at <= until);
        }
        prop_assert_eq!(engine(&recurrence(&text, zone, gap, fold), from, until), expected, "{}", text);
    }

    /// The same, second by second, over the hours around the change.
    #[test]
    fn seconds_around_clock_changes(
        second in field(0, 59),
        minute in part(0, 59),
        (zone, change) in select(CHANGES.to_vec()),
        offset in -4 * 3600i64..3600,
    ) {
        let text = format!("{} {} * * * *", second.text, minute.text);
        let tz: Tz = zone.parse().unwrap();
        let from = common::instant(change) + Duration::seconds(offset);
        let until = from + Duration::hours(3);
        let mut expected = BTreeSet::new();
        let mut at = from + Duration::seconds(1);
        while at <= until {
            let local = tz.from_utc_datetime(&at.naive_utc());
            if minute.values.contains(&local.minute()) && second.values.contains(&local.second()) {
                expected.insert(at);
            }
            at += Duration::seconds(1);
        }
        let recurrence = recurrence(&text, zone, OnGap::RollForward, OnFold::First);
        prop_assert_eq!(engine(&recurrence, from, until), expected, "{}", text);
    }

    /// Days of months and weeks, day by day over six years.
    #[test]
    fn days_of_six_years(
        day in day_of_month(),
        month in field(1, 12),
        weekday in day_of_week(),
        both in any::<bool>(),
        start in 0i64..40_000,
    ) {
        let plus = if both { "+" } else { "" };
        let text = format!("0 12 {} {} {plus}{}", day.text, month.text, weekday.text);
        let first = NaiveDate::from_ymd_opt(1990, 1, 1).unwrap() + Duration::days(start);
        let expected: BTreeSet<NaiveDate> = first
            .iter_days()
            .take(6 * 366)
            .filter(|date| {
                let by_day = (day.matches)(*date);
                let by_weekday = (weekday.matches)(*date);
                month.values.contains(&date.month())
                    && match (day.text == "*", weekday.text == "*") {
                        (true, true) => true,
                        (true, false) => by_weekday,
                        (false, true) => by_day,
                        (false, false) if both => by_day && by_weekday,
                        (false, false) => by_day || by_weekday,
                    }
            })
            .collect();
        let Ok(schedule) = Schedule::parse(&text) else {
            // Refused because no such date exists, so the six years have none.
            prop_assert!(expected.is_empty(), "{} is refused", text);
            return Ok(());
        };
        let canonical = Schedule::parse(&schedule.to_string()).unwrap();
        prop_assert_eq!(&canonical, &schedule);
        let recurrence = recurrence(&text, "UTC", OnGap::RollForward, OnFold::First);
        let from = first.and_hms_opt(0, 0, 0).unwrap().and_utc();
        let until = from + Duration::days(6 * 366);
        let found: BTreeSet<NaiveDate> = engine(&recurrence, from, until)
            .into_iter()
            .map(|at| at.date_naive())
            .collect();
        prop_assert_eq!(found, expected, "{}", text);
    }

    /// croner finds the same occurrences where no clock changes.
    #[test]
    fn croner_agrees_in_utc(
        second in field(0, 59),
        minute in field(0, 59),
        hour in field(0, 23),
        day in day_of_month(),
        month in field(1, 12),
        weekday in day_of_week(),
        start in 0i64..2_000_000_000,
    ) {
        let text = format!(
            "{} {} {} {} {} {}",
            second.text, minute.text, hour.text, day.text, month.text, weekday.text
        );
        // croner never matches the last Sunday as 7L, refuses 1-5L, and takes L,LW for LW.
        let is_misread = weekday.text.contains('L') || day.text.contains("LW");
        prop_assume!(!is_misread);
        if let Ok(schedule) = Schedule::parse(&text) {
            let cron: croner::Cron = text.parse().unwrap();
            let bounds = Bounds::default();
            let recurrence =
                Recurrence::new(Arc::new(schedule), Zone::UTC, bounds, OnGap::Skip, OnFold::First)
                    .unwrap();
            let from = DateTime::from_timestamp(start, 0).unwrap();
            let found: Vec<_> = recurrence.occurrences_after(from).take(4).map(|o| o.at).collect();
            let expected: Vec<_> = cron.iter_after(from).take(4).collect();
            prop_assert_eq!(found, expected, "{}", text);
        }
    }

    /// Every valid expression is admitted: croner agrees, or a known error of croner explains it.
    #[test]
    fn valid_expressions_are_admitted(
        second in field(0, 59),
        minute in field(0, 59),
        hour in field(0, 23),
        day in day_of_month(),
        month in field(1, 12),
        weekday in day_of_week(),
        plus in select(vec!["", "+"]),
        // croner's years end in 5000.
        year in prop_oneof![field(1970, 2199), field(4_990, 5_010), field(1970, 9999)],
    ) {
        let text = format!(
            "{} {} {} {} {} {plus}{} {}",
            second.text, minute.text, hour.text, day.text, month.text, weekday.text, year.text
        );
        prop_assert_eq!(Schedule::admit(&text), Schedule::parse(&text));
    }

    /// The canonical text of any expression parses back to the same schedule.
    #[test]
    fn canonical_text_parses_back(
        second in field(0, 59),
        minute in field(0, 59),
        hour in field(0, 23),
        month in field(1, 12),
        weekday in day_of_week(),
        year in field(1970, 2199),
    ) {
        let text = format!(
            "{} {} {} * {} {} {}",
            second.text, minute.text, hour.text, month.text, weekday.text, year.text
        );
        if let Ok(schedule) = Schedule::parse(&text) {
            let canonical = schedule.to_string();
            let again = Schedule::parse(&canonical).unwrap();
            prop_assert_eq!(&again, &schedule);
            prop_assert_eq!(again.to_string(), canonical);
        }
    }
}

/// A day field: its text, and a brute-force test of a date.
#[derive(Clone)]
struct DayField {
    text: String,
    matches: Arc<dyn Fn(NaiveDate) -> bool>,
}

impl std::fmt::Debug for DayField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

fn day_field(text: impl Into<String>, matches: impl Fn(NaiveDate) -> bool + 'static) -> DayField {
    DayField {
        text: text.into(),
        matches: Arc::new(matches),
    }
}

fn list_of(part: impl Strategy<Value = DayField> + 'static) -> BoxedStrategy<DayField> {
    prop_oneof![
        1 => Just(()).prop_map(|()| day_field("*", |_| true)),
        4 => prop::collection::vec(part, 1..4).prop_map(|parts| {
            let text = parts.iter().map(|p| p.text.clone()).collect::<Vec<_>>().join(",");
            day_field(text, move |date| parts.iter().any(|p| (p.matches)(date)))
        }),
    ]
    .boxed()
}

fn is_workday(date: NaiveDate) -> bool {
    !matches!(date.weekday(), Weekday::Sat | Weekday::Sun)
}

/// Whether a date is the workday nearest to a day of its month.
fn is_nearest_workday(date: NaiveDate, day: u32) -> bool {
    let Some(wanted) = date.with_day(day) else {
        return false;
    };
    // The day itself, then the nearest days, the earlier before the later.
    [0, -1, 1, -2, 2]
        .into_iter()
        .map(|distance| wanted + Duration::days(distance))
        .find(|near| near.month() == wanted.month() && is_workday(*near))
        == Some(date)
}

fn day_of_month() -> BoxedStrategy<DayField> {
    list_of(prop_oneof![
        4 => part(1, 31).prop_map(|p| day_field(p.text, move |d| p.values.contains(&d.day()))),
        1 => Just(()).prop_map(|()| day_field("L", |d| d.day() == month_length(d))),
        1 => Just(()).prop_map(|()| day_field("LW", |d| {
            is_workday(d) && (d.day() + 1..=month_length(d)).all(|later| {
                !is_workday(d.with_day(later).unwrap())
            })
        })),
        1 => (1u32..=31).prop_map(|day| day_field(format!("{day}W"), move |d| is_nearest_workday(d, day))),
    ])
}

fn day_of_week() -> BoxedStrategy<DayField> {
    let number = |d: NaiveDate| d.weekday().num_days_from_sunday();
    list_of(prop_oneof![
        3 => part(0, 7).prop_map(move |p| {
            day_field(p.text, move |d| p.values.iter().any(|v| v % 7 == number(d)))
        }),
        1 => (0u32..=7, 1u32..=5).prop_map(move |(day, nth)| {
            day_field(format!("{day}#{nth}"), move |d| number(d) == day % 7 && (d.day() - 1) / 7 + 1 == nth)
        }),
        1 => (0u32..=7, any::<bool>()).prop_map(move |(day, hash)| {
            let text = if hash { format!("{day}#L") } else { format!("{day}L") };
            day_field(text, move |d| number(d) == day % 7 && d.day() + 7 > month_length(d))
        }),
        1 => (0u32..=6, 1u32..=7, any::<bool>()).prop_map(move |(first, more, hash)| {
            let last = (first + more).min(7);
            let sign = if hash { "#" } else { "" };
            day_field(format!("{first}-{last}{sign}L"), move |d| {
                (first..=last).any(|day| day % 7 == number(d)) && d.day() + 7 > month_length(d)
            })
        }),
    ])
}
