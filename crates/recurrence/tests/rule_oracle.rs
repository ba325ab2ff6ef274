//! Random intervals and structured rules, compared with a walk through every candidate.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{
    DateTime, Datelike, Duration, Months, NaiveDate, NaiveDateTime, TimeZone, Timelike, Utc,
};
use chrono_tz::Tz;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use recurrence::{Bounds, OnFold, OnGap, Recurrence, RecurrenceError, Schedule, Zone};

use common::oracle::{month_length, policies, resolve};

#[derive(Clone, Debug)]
struct Rule {
    every: i64,
    unit: &'static str,
    days: Option<Vec<u32>>,
    parity: Option<&'static str>,
    hours: Option<(u32, u32)>,
    month_day: Option<MonthDay>,
}

#[derive(Clone, Copy, Debug)]
enum MonthDay {
    Day(u32),
    Nth(i32, u32),
}

impl Rule {
    fn json(&self) -> String {
        let mut json = format!(r#"{{"every":{},"unit":"{}""#, self.every, self.unit);
        if let Some(days) = &self.days {
            json += &format!(r#","days_of_week":{days:?}"#);
        }
        if let Some(parity) = self.parity {
            json += &format!(r#","week_parity":"{parity}""#);
        }
        if let Some((start, end)) = self.hours {
            json += &format!(r#","between_hours":[{start},{end}]"#);
        }
        match self.month_day {
            Some(MonthDay::Day(day)) => json += &format!(r#","day_of_month":{day}"#),
            Some(MonthDay::Nth(nth, day)) => {
                json += &format!(r#","nth_weekday":{{"nth":{nth},"day":{day}}}"#);
            }
            None => {}
        }
        json + "}"
    }

    fn passes(&self, local: NaiveDateTime) -> bool {
        let date = local.date();
        let by_day = self.unit == "week"
            || self
                .days
                .as_ref()
                .is_none_or(|days| days.contains(&date.weekday().number_from_monday()));
        let by_parity = self
            .parity
            .is_none_or(|parity| (date.iso_week().week() % 2 == 1) == (parity == "odd"));
        by_day && by_parity && self.passes_hours(local)
    }

    fn passes_hours(&self, local: NaiveDateTime) -> bool {
        self.hours.is_none_or(|(start, end)| {
            let hour = local.hour();
            match start.cmp(&end) {
                std::cmp::Ordering::Less => (start..end).contains(&hour),
                std::cmp::Ordering::Equal => true,
                std::cmp::Ordering::Greater => hour >= start || hour < end,
            }
        })
    }

    /// The date of a month rule in the month of `first`.
    fn day_of(&self, first: NaiveDate, anchor: NaiveDate) -> Option<NaiveDate> {
        match self.month_day {
            None => first.with_day(anchor.day().min(month_length(first))),
            Some(MonthDay::Day(day)) => first.with_day(day.min(month_length(first))),
            Some(MonthDay::Nth(nth, weekday)) => {
                let matching: Vec<NaiveDate> = (1..=month_length(first))
                    .filter_map(|day| first.with_day(day))
                    .filter(|date| date.weekday().number_from_monday() == weekday)
                    .collect();
                match nth {
                    -1 => matching.last().copied(),
                    nth => matching.get(nth as usize - 1).copied(),
                }
            }
        }
    }

    /// The wall-clock times of day, week and month rules, in order.
    fn readings(&self, anchor: NaiveDateTime, until: NaiveDateTime) -> Vec<NaiveDateTime> {
        let time = anchor.time();
        let start = anchor.date();
        let monday =
            |date: NaiveDate| date - Duration::days(date.weekday().num_days_from_monday().into());
        let dates: Vec<NaiveDate> = match self.unit {
            "month" => {
                let first = start.with_day(1).unwrap();
                (0..)
                    .map(|k| first + Months::new(k * self.every as u32))
                    .take_while(|month| *month <= until.date())
                    .filter_map(|month| self.day_of(month, start))
                    .collect()
            }
            unit => start
                .iter_days()
                .take_while(|date| *date <= until.date())
                .filter(|date| {
                    let days = (*date - start).num_days();
                    let weeks = (monday(*date) - monday(start)).num_days() / 7;
                    match (unit, &self.days) {
                        ("day", _) => days % self.every == 0,
                        (_, None) => days % (7 * self.every) == 0,
                        (_, Some(listed)) => {
                            weeks % self.every == 0
                                && listed.contains(&date.weekday().number_from_monday())
                        }
                    }
                })
                .collect(),
        };
        dates
            .into_iter()
            .map(|date| date.and_time(time))
            .filter(|local| *local >= anchor)
            .collect()
    }

    fn occurrences(
        &self,
        tz: Tz,
        start: DateTime<Utc>,
        until: DateTime<Utc>,
        (gap, fold): (OnGap, OnFold),
    ) -> BTreeSet<DateTime<Utc>> {
        let shown = |at: DateTime<Utc>| tz.from_utc_datetime(&at.naive_utc()).naive_local();
        let seconds = match self.unit {
            "minute" => Some(self.every * 60),
            "hour" => Some(self.every * 3600),
            _ => None,
        };
        if let Some(seconds) = seconds {
            return (0..)
                .map(|k| start + Duration::seconds(k * seconds))
                .take_while(|at| *at <= until)
                .filter(|at| self.passes(shown(*at)))
                .collect();
        }
        let anchor = shown(start);
        self.readings(anchor, shown(until) + Duration::days(2))
            .into_iter()
            .flat_map(|local| match local == anchor {
                // The start is the first occurrence, in either pass.
                true if fold != OnFold::Both => vec![start],
                _ => resolve(tz, local, gap, fold),
            })
            .filter(|at| *at >= start && *at <= until && self.passes(shown(*at)))
            .collect()
    }
}

const ZONES: [&str; 9] = [
    "UTC",
    "America/New_York",
    "Europe/London",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Pacific/Apia",
    "Antarctica/Troll",
    "Pacific/Chatham",
    "America/Nuuk",
];

fn rule() -> impl Strategy<Value = Rule> {
    let month_day = prop_oneof![
        2 => Just(None),
        1 => (1u32..=31).prop_map(|day| Some(MonthDay::Day(day))),
        1 => (select(vec![1, 2, 3, 4, 5, -1]), 1u32..=7)
            .prop_map(|(nth, day)| Some(MonthDay::Nth(nth, day))),
    ];
    (
        select(vec!["minute", "hour", "day", "week", "month"]),
        prop_oneof![3 => 1i64..=4, 1 => 5i64..=200],
        prop::option::of(subsequence(vec![1u32, 2, 3, 4, 5, 6, 7], 1..=7)),
        prop::option::of(select(vec!["odd", "even"])),
        prop::option::of((0u32..24, 0u32..24)),
        month_day,
    )
        .prop_map(|(unit, every, days, parity, hours, month_day)| Rule {
            every,
            unit,
            days,
            parity,
            hours,
            month_day: month_day.filter(|_| unit == "month"),
        })
}

/// A zone and a start in it: any quarter hour of twenty years, or one near a clock change.
fn start() -> impl Strategy<Value = (&'static str, DateTime<Utc>)> {
    let quarters = |count: i64| Duration::minutes(15 * count);
    let anywhere = (select(ZONES.to_vec()), 0i64..35_000 * 20).prop_map(move |(zone, count)| {
        (
            zone,
            common::instant("2006-01-01T00:00:00Z") + quarters(count),
        )
    });
    let near_a_change = (select(common::CHANGES.to_vec()), -8i64..8)
        .prop_map(move |((zone, change), count)| (zone, common::instant(change) + quarters(count)));
    prop_oneof![anywhere, near_a_change]
}

/// The occurrences up to an instant, found forward, backward and by counting.
fn engine(recurrence: &Recurrence, until: DateTime<Utc>) -> BTreeSet<DateTime<Utc>> {
    let from = DateTime::UNIX_EPOCH;
    let forward: Vec<DateTime<Utc>> = recurrence
        .occurrences_after(from)
        .map(|occurrence| occurrence.at)
        .take_while(|at| *at <= until)
        .collect();
    let mut backward = Vec::new();
    let mut before = until;
    while let Some(occurrence) = recurrence.previous_or_at(before) {
        backward.push(occurrence.at);
        before = occurrence.at - Duration::nanoseconds(1);
        assert_eq!(recurrence.next_after(before), Some(occurrence));
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
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn structured_rules(
        rule in rule(),
        (zone, start) in start(),
        // A fraction of a second, which every occurrence keeps.
        micros in select(vec![0i64, 250_000]),
        policies in policies(),
    ) {
        let start = start + Duration::microseconds(micros);
        let until = start + match rule.unit {
            "minute" => Duration::days(6),
            "hour" => Duration::days(60),
            "day" => Duration::days(500),
            _ => Duration::days(2500),
        };
        let tz: Tz = zone.parse().unwrap();
        let expected = rule.occurrences(tz, start, until, policies);
        let json = rule.json();
        let Ok(schedule) = Schedule::parse(&json) else {
            prop_assert!(expected.is_empty(), "{} is refused", json);
            return Ok(());
        };
        prop_assert_eq!(&Schedule::parse(&schedule.to_string()).unwrap(), &schedule);
        let bounds = Bounds { starts_at: Some(start), ..Bounds::default() };
        let zone = Zone::parse(zone).unwrap();
        match Recurrence::new(Arc::new(schedule), zone, bounds, policies.0, policies.1) {
            Ok(recurrence) => {
                prop_assert_eq!(engine(&recurrence, until), expected, "{} from {}", json, start);
            }
            Err(error) => {
                let never = matches!(error, RecurrenceError::NeverOccurs { .. });
                prop_assert!(never, "{}", error);
                prop_assert!(expected.is_empty(), "{} from {} is refused", json, start);
            }
        }
    }

    /// Days and time together: the days keep the wall clock, then the time elapses.
    #[test]
    fn mixed_intervals(
        days in 1i64..5,
        seconds in 1i64..86_400,
        (zone, start) in start(),
        gap in select(vec![OnGap::RollForward, OnGap::Skip]),
        fold in select(vec![OnFold::First, OnFold::Second]),
    ) {
        let tz: Tz = zone.parse().unwrap();
        let anchor = tz.from_utc_datetime(&start.naive_utc()).naive_local();
        let until = start + Duration::days(400);
        let expected: BTreeSet<DateTime<Utc>> = (0..410)
            .flat_map(|k| {
                let shift = Duration::seconds(k * seconds);
                let readings = match k {
                    // The start is the first occurrence, in either pass.
                    0 => vec![start],
                    _ => resolve(tz, anchor + Duration::days(k * days), gap, fold),
                };
                readings.into_iter().map(move |at| at + shift)
            })
            .filter(|at| *at >= start && *at <= until)
            .collect();
        let text = format!("P{days}DT{seconds}S");
        let schedule = Arc::new(Schedule::parse(&text).unwrap());
        let bounds = Bounds { starts_at: Some(start), ..Bounds::default() };
        let zone = Zone::parse(zone).unwrap();
        let recurrence = Recurrence::new(schedule, zone, bounds, gap, fold).unwrap();
        prop_assert_eq!(engine(&recurrence, until), expected, "{} from {}", text, start);
    }

    /// `max_runs` counts from the start, in every method.
    #[test]
    fn max_runs_counts_from_the_start(
        rule in rule(),
        (zone, start) in start(),
        runs in 1u32..30,
    ) {
        let build = |max_runs: Option<u32>| {
            let schedule = Arc::new(Schedule::parse(&rule.json()).ok()?);
            let bounds = Bounds { starts_at: Some(start), max_runs, ..Bounds::default() };
            let zone = Zone::parse(zone).unwrap();
            Recurrence::new(schedule, zone, bounds, OnGap::RollForward, OnFold::First).ok()
        };
        let (Some(free), Some(limited)) = (build(None), build(Some(runs))) else {
            return Ok(());
        };
        let all: Vec<_> = free.occurrences_after(DateTime::UNIX_EPOCH).take(runs as usize).collect();
        let some: Vec<_> = limited.occurrences_after(DateTime::UNIX_EPOCH).collect();
        prop_assert_eq!(&all, &some);
        let last = all.last().copied().unwrap();
        let far = last.at + Duration::days(9000);
        prop_assert_eq!(limited.next_after(last.at), None);
        prop_assert_eq!(limited.previous_or_at(far), Some(last));
        prop_assert_eq!(limited.count_between(DateTime::UNIX_EPOCH, far, u64::MAX), all.len() as u64);
    }
}
