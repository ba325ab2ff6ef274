//! The next and the previous occurrence: invariants, and walks through the calendar.

use crate::input::Input;
use crate::naive;
use crate::naive::clock::{policies, shown, zone, zone_and_instant};
use crate::target::Signature;
use crate::targets::schedules::evaluated;
use chrono::{DateTime, Duration, Utc};
use chrono_tz::Tz;
use recurrence::rrule::RuleError;
use recurrence::{
    Bounds, Kind, Occurrence, OnFold, OnGap, Recurrence, RecurrenceError, Schedule, Shift, Zone,
};
use std::sync::Arc;

/// chrono-tz has no clock changes beyond 2099.
const LAST_CHANGE: i64 = 4_070_908_800;

/// What holds for every schedule in every zone, within any bounds.
pub fn bounds(input: &Input) -> Signature {
    let Ok(schedule) = Schedule::parse(&input.text) else {
        return Signature(0);
    };
    let mut choices = input.choices();
    let (recurrence, near) = evaluated(schedule, &mut choices);
    let Some(recurrence) = recurrence else {
        return Signature(1);
    };
    let from = match choices.below(8) {
        6 => DateTime::<Utc>::MIN_UTC,
        7 => DateTime::<Utc>::MAX_UTC,
        _ => near + Duration::seconds(choices.within(-20_000, 20_000) * 600),
    };
    let found: Vec<Occurrence> = recurrence.occurrences_after(from).take(4).collect();
    let tz: Tz = recurrence.zone().name().parse().expect("a zone");
    let mut after = from;
    for (index, occurrence) in found.iter().enumerate() {
        check_occurrence(&recurrence, occurrence, tz);
        assert!(occurrence.at > after, "increasing: {found:?}");
        // Without a start there is nothing to count runs from.
        let bounds = recurrence.bounds();
        if bounds.max_runs.is_none() || bounds.starts_at.is_some() {
            assert_eq!(
                recurrence.next_after(after).as_ref(),
                Some(occurrence),
                "after {after}"
            );
            assert_eq!(
                recurrence.previous_or_at(occurrence.at).as_ref(),
                Some(occurrence),
                "previous"
            );
            let count = recurrence.count_between(from, occurrence.at, 1_000);
            assert_eq!(
                count,
                index as u64 + 1,
                "how many from {from} to {}",
                occurrence.at
            );
            let before = occurrence.at - Duration::nanoseconds(1);
            let previous = recurrence
                .previous_or_at(before)
                .map(|previous| previous.at);
            assert!(previous.is_none_or(|previous| previous < occurrence.at));
            if index > 0 {
                assert_eq!(
                    previous,
                    Some(found[index - 1].at),
                    "before {}",
                    occurrence.at
                );
            }
        }
        after = occurrence.at;
    }
    check_gap(&recurrence, &found);
    Signature::of_shape(
        found.len() as u8,
        &format!("{}{}", recurrence.schedule(), shifts(&found)),
    )
}

fn shifts(found: &[Occurrence]) -> String {
    let letter = |occurrence: &Occurrence| match occurrence.shift {
        Shift::None => '.',
        Shift::MovedOutOfGap { .. } => '>',
        Shift::FirstOfFold => '<',
        Shift::SecondOfFold => '=',
    };
    found.iter().map(letter).collect()
}

fn check_occurrence(recurrence: &Recurrence, occurrence: &Occurrence, tz: Tz) {
    let Bounds {
        starts_at, ends_at, ..
    } = recurrence.bounds();
    assert!(
        starts_at.is_none_or(|start| occurrence.at >= start),
        "{occurrence:?} is before the start"
    );
    assert!(
        ends_at.is_none_or(|end| occurrence.at <= end),
        "{occurrence:?} is after the end"
    );
    if (0..LAST_CHANGE).contains(&occurrence.at.timestamp()) {
        assert_eq!(
            occurrence.local,
            shown(tz, occurrence.at),
            "what the clock shows at {}",
            occurrence.at
        );
    }
    let is_noted = occurrence.shift.note().is_some();
    assert_eq!(is_noted, occurrence.shift != Shift::None);
}

/// Nothing comes closer than the shortest gap, where no clock changes and nothing was added.
fn check_gap(recurrence: &Recurrence, found: &[Occurrence]) {
    let gap = recurrence.schedule().shortest_gap();
    assert!(found.len() < 2 || gap.is_some(), "a gap of {found:?}");
    let has_added = match recurrence.schedule().kind() {
        Kind::RRule(rules) => !rules.added().is_empty(),
        _ => false,
    };
    if recurrence.zone() == Zone::UTC && !has_added {
        for pair in found.windows(2) {
            let apart = (pair[1].at - pair[0].at).to_std().unwrap_or_default();
            assert!(
                gap.is_some_and(|gap| apart >= gap),
                "{apart:?} apart, and the shortest gap is {gap:?}"
            );
        }
    }
}

/// Nothing comes closer than the shortest gap, in a walk through many occurrences of UTC.
pub fn spacing(input: &Input) -> Signature {
    let Ok(schedule) = Schedule::parse(&input.text) else {
        return Signature(0);
    };
    let shape = schedule.to_string();
    let mut choices = input.choices();
    // Just before midnight, where days meet.
    let seconds = choices.within(0, 20_000) * 86_400 - choices.within(0, 70);
    let start = DateTime::from_timestamp(seconds, 0).expect("an instant");
    let policies = (OnGap::RollForward, OnFold::First);
    let Ok(recurrence) = build(schedule, Tz::UTC, Some(start), policies) else {
        return Signature(1);
    };
    let from = start + Duration::hours(choices.within(-1, 47));
    let found: Vec<Occurrence> = recurrence.occurrences_after(from).take(64).collect();
    check_gap(&recurrence, &found);
    Signature::of_shape(found.len().min(3) as u8, &shape)
}

fn build(
    schedule: Schedule,
    tz: Tz,
    starts_at: Option<DateTime<Utc>>,
    policies: (OnGap, OnFold),
) -> Result<Recurrence, RecurrenceError> {
    let bounds = Bounds {
        starts_at,
        ..Bounds::default()
    };
    Recurrence::new(Arc::new(schedule), zone(tz), bounds, policies.0, policies.1)
}

/// The next occurrences of a cron expression in UTC, found by walking through days.
pub fn cron(input: &Input) -> Signature {
    let (Ok(schedule), Some((model, _))) = (
        Schedule::parse(&input.text),
        naive::cron::Cron::read(&input.text),
    ) else {
        return Signature(0);
    };
    let Kind::Cron(spec) = schedule.kind() else {
        return Signature(1);
    };
    let shape = Signature::of_shape(0, &spec.to_string());
    let mut choices = input.choices();
    let mut after =
        zone_and_instant(&mut choices).1 + Duration::milliseconds(choices.within(0, 999));
    let recurrence =
        build(schedule, Tz::UTC, None, (OnGap::Skip, OnFold::First)).expect("a recurrence");
    for _ in 0..3 {
        let found = recurrence.next_after(after).map(|next| next.at);
        let Some(expected) = model.next_in_utc(after, 800) else {
            let limit = after + Duration::days(798);
            assert!(
                found.is_none_or(|found| found > limit),
                "{found:?} after {after}, and a walk finds none"
            );
            return Signature(shape.0 ^ 1);
        };
        assert_eq!(found, Some(expected), "after {after}");
        let previous = recurrence
            .previous_or_at(expected - Duration::nanoseconds(1))
            .map(|previous| previous.at);
        assert!(
            previous.is_none_or(|previous| previous <= after),
            "{previous:?} between {after} and {expected}"
        );
        after = expected;
    }
    shape
}

/// The occurrences of a cron expression around a clock change, found by walking through seconds and readings.
pub fn cron_in_zone(input: &Input) -> Signature {
    let (Ok(schedule), Some((model, is_stepping))) = (
        Schedule::parse(&input.text),
        naive::cron::Cron::read(&input.text),
    ) else {
        return Signature(0);
    };
    if !matches!(schedule.kind(), Kind::Cron(_)) || model.times().len() > 3_000 {
        return Signature(1);
    }
    let mut choices = input.choices();
    let (tz, near) = zone_and_instant(&mut choices);
    let policies = policies(&mut choices);
    let from = near - Duration::minutes(choices.within(0, 180));
    let until = from + Duration::minutes(if is_stepping { 240 } else { 2_880 });
    let expected = model.between(is_stepping, tz, (from, until), policies);
    let recurrence = build(schedule, tz, None, policies).expect("a recurrence");
    let found: Vec<Occurrence> = recurrence
        .occurrences_after(from)
        .take_while(|next| next.at <= until)
        .collect();
    let instants: Vec<DateTime<Utc>> = found.iter().map(|next| next.at).collect();
    let expected: Vec<DateTime<Utc>> = expected.into_iter().collect();
    assert_eq!(
        instants, expected,
        "from {from} to {until} in {tz} with {policies:?}"
    );
    let count = recurrence.count_between(from, until, u64::MAX);
    assert_eq!(
        count,
        expected.len() as u64,
        "how many from {from} to {until} in {tz}"
    );
    let mut seen: Vec<char> = shifts(&found).chars().collect();
    seen.sort_unstable();
    seen.dedup();
    Signature::of_numbers(&[
        usize::from(is_stepping),
        expected.len().min(20),
        seen.len(),
        tz.name().len(),
    ])
}

/// The occurrences of a structured rule, found by walking from its start.
pub fn rule(input: &Input) -> Signature {
    let (Ok(schedule), Some(model)) = (
        Schedule::parse(&input.text),
        naive::rule::Rule::read(input.text.trim_ascii()),
    ) else {
        return Signature(0);
    };
    let shape = Signature::of_shape(0, &schedule.to_string());
    let mut choices = input.choices();
    let (tz, start) = zone_and_instant(&mut choices);
    let policies = policies(&mut choices);
    let (expected, until) = model.first(60, tz, start, policies);
    // chrono-tz ends its clock changes in that year.
    let until = until.min(DateTime::from_timestamp(LAST_CHANGE, 0).expect("an instant"));
    let expected: Vec<DateTime<Utc>> = expected
        .into_iter()
        .filter(|at| *at <= until)
        .take(20)
        .collect();
    let recurrence = match build(schedule, tz, Some(start), policies) {
        Ok(recurrence) => recurrence,
        Err(error) => {
            assert!(
                expected.is_empty(),
                "refused with {error}, and a walk finds {expected:?}"
            );
            return Signature(1);
        }
    };
    let before = start - Duration::days(1);
    let found: Vec<DateTime<Utc>> = recurrence
        .occurrences_after(before)
        .map(|next| next.at)
        .take_while(|at| *at <= until)
        .take(20)
        .collect();
    assert_eq!(found, expected, "from {start} in {tz} with {policies:?}");
    if let Some(last) = found.last() {
        assert_eq!(
            recurrence.previous_or_at(*last).map(|previous| previous.at),
            Some(*last)
        );
        assert_eq!(
            recurrence.count_between(before, *last, u64::MAX),
            found.len() as u64
        );
    }
    Signature(shape.0 ^ found.len().min(3) as u64)
}

/// The occurrences of an RFC 5545 rule in UTC, found by walking through days.
pub fn rrule(input: &Input) -> Signature {
    let Ok(schedule) = Schedule::parse(&input.text) else {
        return Signature(0);
    };
    let canonical = schedule.to_string();
    let Some(model) = naive::rrule::Rule::read(&canonical) else {
        return Signature(1);
    };
    let (_, start) = zone_and_instant(&mut input.choices());
    let expected = model.first(900, start.naive_utc());
    let until = start + Duration::days(898);
    let expected: Vec<DateTime<Utc>> = expected
        .into_iter()
        .filter(|at| *at <= until)
        .take(12)
        .collect();
    let recurrence = match build(
        schedule,
        Tz::UTC,
        Some(start),
        (OnGap::RollForward, OnFold::First),
    ) {
        Ok(recurrence) => recurrence,
        // So sparse a rule can't be counted out, and says so.
        Err(RecurrenceError::Rule(RuleError::CountOutOfReach { .. })) => return Signature(3),
        Err(error) => {
            assert!(
                expected.is_empty(),
                "refused with {error}, and a walk finds {expected:?}"
            );
            return Signature(2);
        }
    };
    let found = recurrence
        .occurrences_after(start - Duration::days(1))
        .map(|next| next.at);
    let found: Vec<DateTime<Utc>> = found.take_while(|at| *at <= until).take(12).collect();
    assert_eq!(found, expected, "from {start}");
    if let Some(last) = found.last() {
        let count = recurrence.count_between(start - Duration::days(1), *last, u64::MAX);
        assert_eq!(count, found.len() as u64);
    }
    Signature::of_shape(found.len().min(3) as u8, &canonical)
}
