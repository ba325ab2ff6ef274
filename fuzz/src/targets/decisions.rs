//! Decisions about due actions, and about reports.

use crate::input::{Choices, Input};
use crate::naive;
use crate::target::Signature;
use crate::targets::values::uuid;
use chrono::{DateTime, TimeDelta, Utc};
use recur_core::backoff::RetryBackoff;
use recur_core::decide::{Decision, Due, Duplicates, EndReason, Mode, Then, Unfinished};
use recur_core::policy::{Horizon, Misfire, Overlap, Policy};
use recur_core::report::{Outcome, Running};
use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};
use std::sync::Arc;

/// Few schedules, close and sparse, with an end and without: the policies are what is tested.
const SCHEDULES: [&str; 7] = [
    "* * * * *",
    "*/10 * * * * *",
    "0 * * * *",
    "30 2 * * *",
    "90s",
    "at 2027-01-15T08:00:00Z",
    "0 0 1 1 *",
];
const NOON: i64 = 1_800_000_000;

fn instant(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(NOON * 1_000_000 + micros).expect("an instant")
}

fn span(choices: &mut Choices<'_>) -> TimeDelta {
    TimeDelta::microseconds(match choices.below(5) {
        0 => 0,
        1 => 1,
        2 => choices.within(0, 600) * 1_000_000,
        3 => choices.within(0, 90_000_000),
        _ => choices.within(0, 400) * 60_000_000,
    })
}

fn recurrence(choices: &mut Choices<'_>) -> Option<Recurrence> {
    let schedule = Schedule::parse(choices.pick(&SCHEDULES)).expect("a schedule");
    let starts_at = (schedule.needs_start() || choices.one_in(4)).then(|| instant(-7_200_000_000));
    let ends_at = choices
        .one_in(3)
        .then(|| instant(0) + span(choices) - TimeDelta::minutes(30));
    let bounds = Bounds {
        starts_at,
        ends_at,
        max_runs: None,
    };
    Recurrence::new(
        Arc::new(schedule),
        Zone::UTC,
        bounds,
        OnGap::RollForward,
        OnFold::First,
    )
    .ok()
}

fn policy(choices: &mut Choices<'_>) -> Policy {
    let reach = choices.one_in(3).then(|| span(choices));
    let count = choices.one_in(4).then(|| choices.below(60));
    let most = choices.pick(&[4, 200]);
    Policy {
        misfire: choices.pick(Misfire::ALL),
        misfire_grace: choices.one_in(3).then(|| span(choices)),
        catchup_limit: 1 + choices.below(most),
        overlap: choices.pick(&[
            Overlap::Allow,
            Overlap::Allow,
            Overlap::Allow,
            Overlap::Skip,
            Overlap::QueueOne,
            Overlap::CancelPrevious,
        ]),
        horizon: Horizon::new(reach, count),
    }
}

/// Decisions, against lists of all occurrences.
pub fn decide(input: &Input) -> Signature {
    let mut choices = input.choices();
    let Some(recurrence) = recurrence(&mut choices) else {
        return Signature(0);
    };
    let policy = policy(&mut choices);
    let from = instant(0) - span(&mut choices);
    let occurrence = recurrence.next_after(from).map(|next| next.at);
    let next_run_at = match choices.below(8) {
        // Set by hand.
        7 => from,
        _ => occurrence.unwrap_or(from),
    };
    let run_count = choices.below(5) as i64;
    let mut due = Due {
        recurrence: &recurrence,
        next_run_at,
        ahead: None,
        all_dispatched: None,
        run_count,
        max_runs: choices.one_in(3).then(|| choices.below(12) as i64),
        completed: choices.one_in(4).then(|| choices.within(0, run_count)),
        policy,
        share: choices.pick(&[1, 2, 40, 5_000, 0]),
        unfinished: Unfinished {
            pending: choices.one_in(2),
            running: choices.one_in(2),
            stale: choices.one_in(2),
        },
        duplicates: choices.one_in(4).then(Duplicates::default),
    };
    // The walk is long where occurrences are close: at most some hours.
    let now = match choices.below(5) {
        0 => next_run_at,
        1 => next_run_at + TimeDelta::microseconds(choices.within(-2, 2)),
        2 => next_run_at - span(&mut choices),
        _ => next_run_at + span(&mut choices).min(TimeDelta::hours(3)),
    };
    let mode = match choices.below(3) {
        2 => Mode::Stage {
            until: now + span(&mut choices).min(TimeDelta::hours(1)),
        },
        _ => Mode::Due,
    };
    due.all_dispatched = choices.one_in(8).then(|| now - span(&mut choices));
    // Some of what fires at first are duplicates.
    let first = recur_core::decide::decide(&due, now, mode).filter(|_| due.duplicates.is_some());
    let [mut skipped, mut merged] = [Vec::new(), Vec::new()];
    for occurrence in first.into_iter().flat_map(|decision| decision.fire) {
        match choices.below(3) {
            0 => skipped.push(occurrence),
            1 => merged.push(occurrence),
            _ => {}
        }
    }
    let duplicates = due.duplicates.map(|_| Duplicates {
        skipped: &skipped,
        merged: &merged,
    });
    let due = Due { duplicates, ..due };
    let decision = recur_core::decide::decide(&due, now, mode);
    let expected = naive::decide::decide(&due, now, mode);
    assert_eq!(decision, expected, "{due:?} at {now} with {mode:?}");
    signature(decision.as_ref())
}

fn signature(decision: Option<&Decision>) -> Signature {
    let Some(decision) = decision else {
        return Signature(1);
    };
    let then = match decision.then {
        Then::Wait {
            next_run_at,
            due_at,
        } => usize::from(next_run_at == due_at),
        Then::End(EndReason::Exhausted) => 2,
        Then::End(EndReason::Expired) => 3,
        Then::End(EndReason::NoNext) => 4,
        Then::Finish { .. } => 5,
    };
    let cancels = usize::from(decision.cancels_previous);
    Signature::of_numbers(&[
        decision.fire.len().min(52),
        decision.skipped.len(),
        cancels,
        then,
    ])
}

/// What becomes of a running dispatch.
pub fn report(input: &Input) -> Signature {
    let mut choices = input.choices();
    let number = |choices: &mut Choices<'_>| match choices.below(8) {
        0 => choices.pick(&[i32::MIN, -1, 0, i32::MAX]),
        _ => choices.below(8) as i32,
    };
    let running = Running {
        id: uuid(&mut choices),
        attempt: number(&mut choices),
        releases: number(&mut choices),
        max_attempts: number(&mut choices),
        cancel_requested: choices.one_in(4),
    };
    let now = instant(choices.number(5) as i64);
    let backoff = RetryBackoff::default();
    let retry = choices.one_in(2);
    // In wider numbers than the code has.
    let used = i64::from(running.attempt) - i64::from(running.releases);
    let used = used.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
    let is_left = used < i64::from(running.max_attempts);
    let cancelled = running.cancel_requested;
    let again = |available_at| Outcome::Retry { available_at };
    let expected = match (cancelled, retry && is_left) {
        (true, _) => Outcome::Cancelled,
        (false, false) => Outcome::Failed,
        (false, true) => again(now + backoff.delay(used as i32, running.id, running.attempt)),
    };
    assert_eq!(
        running.fail(retry, &backoff, now),
        expected,
        "{running:?} fails"
    );
    let expected = match (cancelled, is_left) {
        (true, _) => Outcome::Cancelled,
        (false, true) => again(now),
        (false, false) => Outcome::Failed,
    };
    assert_eq!(running.expire(now), expected, "{running:?} expires");
    assert_eq!(
        running.fail_until(now),
        expected,
        "{running:?} fails, to be tried again at a time"
    );
    let expected = if cancelled {
        Outcome::Cancelled
    } else {
        again(now)
    };
    assert_eq!(running.release(now), expected, "{running:?} is released");
    Signature::of_numbers(&[
        usize::from(cancelled),
        usize::from(is_left),
        usize::from(retry),
    ])
}
