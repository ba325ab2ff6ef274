//! Schedules in any notation: parsing, admission, description.

use crate::input::Input;
use crate::naive::clock::{policies, zone, zone_and_instant};
use crate::random::hash;
use crate::target::Signature;
use crate::targets::texts::BETWEEN;
use chrono::{DateTime, TimeDelta, Utc};
use recurrence::{Bounds, Kind, OnFold, OnGap, Recurrence, Schedule, ScheduleCache, Style, Zone};
use std::sync::Arc;

fn kind(schedule: &Schedule) -> u8 {
    match schedule.kind() {
        Kind::Cron(_) => 1,
        Kind::Interval(_) => 2,
        Kind::Rule(_) => 3,
        Kind::RRule(_) => 4,
        Kind::At(_) => 5,
    }
}

/// Any text: parse, display, parse.
pub fn schedule(input: &Input) -> Signature {
    let text = input.text.as_str();
    let parsed = Schedule::parse(text);
    let mut cache = ScheduleCache::new(2);
    for _ in 0..2 {
        let cached = cache.parse(text).map(|schedule| (*schedule).clone());
        assert_eq!(cached, parsed, "from the cache");
    }
    match parsed {
        Ok(schedule) => {
            let canonical = schedule.to_string();
            assert_eq!(
                Schedule::parse(&canonical).as_ref(),
                Ok(&schedule),
                "canonical text {canonical:?}"
            );
            assert_eq!(text.parse::<Schedule>().as_ref(), Ok(&schedule));
            // Blanks around the text make no difference, except around intervals, which take none.
            if !matches!(schedule.kind(), Kind::Interval(_)) && text.len() < 900 {
                assert_eq!(
                    Schedule::parse(&format!(" {text}\t")).as_ref(),
                    Ok(&schedule),
                    "with blanks"
                );
            }
            assert!(schedule.shortest_gap().is_none_or(|gap| gap.as_secs() >= 1));
            Signature::of_shape(kind(&schedule), &canonical)
        }
        Err(error) => Signature::of_error(error),
    }
}

/// Every valid expression is admitted, and an invalid one has the same error.
pub fn admit(input: &Input) -> Signature {
    let parsed = Schedule::parse(&input.text);
    assert_eq!(Schedule::admit(&input.text), parsed);
    match parsed {
        Ok(schedule) => Signature::of_shape(kind(&schedule), &schedule.to_string()),
        Err(error) => Signature::of_error(error),
    }
}

/// A description is a sentence, and says all that the schedule says: two schedules of one description recur alike.
pub fn describe(input: &Input) -> Signature {
    let mut schedules = input.text.split(BETWEEN).map(Schedule::parse);
    let Some(Ok(one)) = schedules.next() else {
        return Signature(0);
    };
    let description = one.describe();
    check_sentence(&description);
    let (tz, _) = zone_and_instant(&mut input.choices());
    let in_zone = one.describe_in(zone(tz));
    assert!(
        in_zone == description || in_zone == format!("{description}, {}", tz.name()),
        "{in_zone}"
    );
    let again = Schedule::parse(&one.to_string()).expect("a canonical text");
    assert_eq!(again.describe(), description);
    if let Some(Ok(other)) = schedules.next()
        && other != one
        // What counts from a start says nothing of the time of day.
        && other.needs_start() == one.needs_start()
        && other.describe() == description
    {
        let start = Some(DateTime::from_timestamp(1_700_000_000, 0).expect("an instant"));
        let (first, second) = (recurrence(&one, start), recurrence(&other, start));
        assert_eq!(first, second, "{one} and {other}: both {description:?}");
    }
    Signature(hash(words(&description).as_bytes()) ^ u64::from(kind(&one)))
}

/// The words of a description that are not values.
fn words(description: &str) -> String {
    let word = |word: &str| match word.contains(|c: char| c.is_ascii_digit() || c.is_uppercase()) {
        true => 'x',
        false => word.chars().next().unwrap_or(' '),
    };
    description.split(' ').map(word).collect()
}

fn check_sentence(text: &str) {
    assert!(
        !text.is_empty() && !text.starts_with(' ') && !text.ends_with([' ', ',']),
        "{text:?}"
    );
    assert!(
        !text.contains("  ") && !text.contains(" ,") && !text.contains(",,"),
        "{text:?}"
    );
    assert!(!text.contains(|c: char| c.is_control()), "{text:?}");
    assert!(text.starts_with(|c: char| c.is_lowercase()), "{text:?}");
}

/// What is said about a schedule that is valid and probably not meant.
pub fn lint(input: &Input) -> Signature {
    let Ok(schedule) = Schedule::parse(&input.text) else {
        return Signature(0);
    };
    let mut choices = input.choices();
    let (tz, now) = zone_and_instant(&mut choices);
    let (gap, fold) = policies(&mut choices);
    let starts_at = choices
        .one_in(2)
        .then(|| now + TimeDelta::days(choices.within(-900, 900)));
    let findings = recurrence::lint(&schedule, zone(tz), starts_at, now);
    assert_eq!(
        findings,
        recurrence::lint(&schedule, zone(tz), starts_at, now)
    );
    for finding in &findings {
        assert!(
            !finding.finding.is_empty() && !finding.remedy.is_empty(),
            "{finding:?}"
        );
        assert!(finding.finding.len() < 1_000, "{finding:?}");
    }
    let bounds = Bounds {
        starts_at: starts_at.or(Some(now)),
        ..Bounds::default()
    };
    for style in [Style::Hours24, Style::Hours12] {
        assert!(
            !schedule
                .describe_as(style, Some(zone(tz)), &bounds)
                .is_empty()
        );
    }
    if let Ok(recurrence) = Recurrence::new(Arc::new(schedule), zone(tz), bounds, gap, fold) {
        assert!(
            recurrence
                .warning(now)
                .is_none_or(|warning| !warning.to_string().is_empty())
        );
    }
    let codes: String = findings.iter().map(|finding| finding.code.name()).collect();
    Signature(hash(codes.as_bytes()))
}

fn recurrence(schedule: &Schedule, starts_at: Option<DateTime<Utc>>) -> Option<Vec<DateTime<Utc>>> {
    let bounds = Bounds {
        starts_at,
        ..Bounds::default()
    };
    let schedule = Arc::new(schedule.clone());
    let zone = Zone::parse("America/New_York").expect("a zone");
    let recurrence =
        Recurrence::new(schedule, zone, bounds, OnGap::RollForward, OnFold::First).ok()?;
    let from = DateTime::from_timestamp(1_699_999_999, 0).expect("an instant");
    Some(
        recurrence
            .occurrences_after(from)
            .take(40)
            .map(|occurrence| occurrence.at)
            .collect(),
    )
}

/// A schedule with its surroundings, by choices.
pub fn evaluated(
    schedule: Schedule,
    choices: &mut crate::input::Choices<'_>,
) -> (Option<Recurrence>, DateTime<Utc>) {
    let (tz, near) = zone_and_instant(choices);
    let (gap, fold) = policies(choices);
    let mut around = |chance: usize, most: i64| {
        let fraction = choices.pick(&[0, 0, 1, 500_000_000, 999_999_999]);
        let days = choices.within(-most, most);
        let at = DateTime::from_timestamp(near.timestamp() + days * 7_919, fraction)?;
        choices.one_in(chance).then_some(at)
    };
    let starts_at = match schedule.needs_start() {
        true => Some(around(2, 10_000).unwrap_or(near)),
        false => around(3, 10_000),
    };
    let ends_at = around(3, 20_000);
    let max_runs = choices.one_in(4).then(|| choices.below(40) as u32 + 1);
    let bounds = Bounds {
        starts_at,
        ends_at,
        max_runs,
    };
    (
        Recurrence::new(Arc::new(schedule), zone(tz), bounds, gap, fold).ok(),
        near,
    )
}
