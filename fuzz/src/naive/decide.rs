//! The policies of an action, applied to a list of all its occurrences.

use chrono::{DateTime, TimeDelta, Utc};
use recur_core::decide::{
    Decision, Due, Duplicates, EndReason, Mode, SkipReason, Skipped, StillAhead, Then, Unfinished,
};
use recur_core::policy::{Horizon, Misfire, Overlap};

type Instant = DateTime<Utc>;

/// At most this many occurrences are dispatched ahead in one decision.
const MOST_AHEAD: usize = 50;
/// At most this many occurrences of one action fire in one decision.
const MOST_FIRED: usize = 1_000;
const MICROSECOND: TimeDelta = TimeDelta::microseconds(1);

/// Everything that may still occur: `next_run_at`, even if it was set by hand, and what follows it.
struct Occurrences<'a>(&'a Due<'a>);

impl Occurrences<'_> {
    fn after(&self, instant: Instant) -> Option<Instant> {
        let due = self.0;
        if instant >= due.next_run_at {
            return due
                .recurrence
                .next_after(instant)
                .map(|occurrence| occurrence.at);
        }
        let ends_at = due.recurrence.bounds().ends_at;
        Some(due.next_run_at).filter(|next| ends_at.is_none_or(|end| *next <= end))
    }

    fn between(&self, after: Instant, until: Instant) -> Vec<Instant> {
        let mut found = Vec::new();
        let mut last = after;
        while let Some(next) = self.after(last).filter(|next| *next <= until) {
            found.push(next);
            last = next;
        }
        found
    }
}

/// What [`recur_core::decide::decide`] should answer. It walks: `now` must not be far behind `next_run_at`.
pub fn decide(due: &Due<'_>, now: Instant, mode: Mode) -> Option<Decision> {
    match mode {
        Mode::Due => Some(with_ahead(due, at_its_instant(due, now), now)),
        Mode::Stage { until } => ahead_of_it(due, now, until),
    }
}

/// An action with dispatches ahead of their time is looked at when the first of them comes due, and goes on until the
/// last is over. What is unfinished is asked when all is dispatched.
fn with_ahead(due: &Due<'_>, mut answer: Decision, now: Instant) -> Decision {
    let (come_due, ahead): (Vec<Instant>, Vec<Instant>) =
        answer.fire.iter().partition(|at| **at <= now);
    let Some(first) = ahead.first().copied() else {
        let dispatches_ahead = due.policy.horizon.is_some() && due.policy.overlap == Overlap::Allow;
        let is_asked = due.all_dispatched.is_none();
        if matches!(answer.then, Then::End(_)) && dispatches_ahead && is_asked {
            answer.then = Then::Finish { due_at: now };
        }
        return answer;
    };
    answer.ahead = Some(StillAhead {
        first,
        came_due: come_due.last().copied(),
    });
    match &mut answer.then {
        Then::Wait { due_at, .. } => *due_at = first.min(*due_at),
        then => *then = Then::Finish { due_at: first },
    }
    answer
}

fn skipped(reason: SkipReason, occurrences: &[Instant]) -> Option<Skipped> {
    let (first, last) = (occurrences.first()?, occurrences.last()?);
    Some(Skipped {
        reason,
        from: *first,
        until: *last,
        count: occurrences.len() as u64,
    })
}

fn at_its_instant(due: &Due<'_>, now: Instant) -> Decision {
    let all = Occurrences(due);
    let left = due.max_runs.map_or(i64::MAX, |most| most - due.run_count);
    let mut answer = Decision {
        fire: Vec::new(),
        skipped: Vec::new(),
        cancels_previous: false,
        ahead: None,
        then: Then::End(EndReason::Exhausted),
    };
    let over = due.completed.unwrap_or(due.run_count);
    let is_exhausted = due.max_runs.is_some_and(|most| over >= most);
    if let Some(last) = due.all_dispatched {
        let Unfinished {
            pending,
            running,
            stale,
        } = due.unfinished;
        if pending || running || stale {
            let pause = TimeDelta::hours(1).min(now - last);
            let due_at = now + pause.max(TimeDelta::seconds(10));
            answer.then = Then::Finish { due_at };
        } else if !is_exhausted {
            answer.then = Then::End(match due.recurrence.bounds().ends_at {
                Some(_) => EndReason::Expired,
                None => EndReason::NoNext,
            });
        }
        return answer;
    }
    if is_exhausted {
        return answer;
    }
    let share = due.share.clamp(1, MOST_FIRED);
    let just_before = due.next_run_at - MICROSECOND;
    let missed = all.between(just_before, now);
    let (old, fresh) = misfired(due, &missed, now);
    answer.skipped.extend(skipped(SkipReason::Misfire, old));
    let (fire, rest) = fresh.split_at(fresh.len().min(share));
    let mut settled = rest
        .first()
        .map_or(now.max(just_before), |rest| *rest - MICROSECOND);
    let places = usize::try_from(left.max(0)).unwrap_or(usize::MAX);
    let (fire, beyond) = fire.split_at(places.min(fire.len()));
    answer.fire = fire.to_vec();
    if due.completed.is_some() {
        answer.skipped.extend(skipped(SkipReason::MaxRuns, beyond));
    }
    overlap(due, &mut answer);
    duplicates(due, &mut answer);
    let is_usable = due.policy.overlap == Overlap::Allow && due.duplicates.is_none();
    let horizon = due.policy.horizon.filter(|_| is_usable);
    let mut is_full = false;
    if let Some(horizon) = horizon.filter(|_| settled >= now) {
        is_full = fill(due, now, horizon, &mut settled, &mut answer.fire);
    }
    answer.then = then(due, answer.fire.len(), settled);
    if let Then::Wait {
        next_run_at,
        due_at,
    } = &mut answer.then
        && let Some(horizon) = horizon.filter(|_| left > answer.fire.len() as i64)
    {
        *due_at = (*next_run_at - horizon.reach).max(now.min(*next_run_at));
        if is_full {
            let room = due.recurrence.next_after(now).map(|next| next.at);
            *due_at = (*due_at).max(room.unwrap_or(*next_run_at));
        }
    }
    answer
}

/// Fires what lies within the horizon. Is the horizon full then?
fn fill(
    due: &Due<'_>,
    now: Instant,
    horizon: Horizon,
    settled: &mut Instant,
    fire: &mut Vec<Instant>,
) -> bool {
    let left = due.max_runs.map_or(i64::MAX, |most| most - due.run_count);
    let until = (due.next_run_at - MICROSECOND).max(now);
    let mut ahead = due.recurrence.count_between(now, until, u64::MAX) as usize;
    for _ in 0..MOST_AHEAD {
        let next = Occurrences(due).after(*settled);
        let is_over = ahead >= horizon.count
            || fire.len() >= due.share.clamp(1, MOST_FIRED)
            || fire.len() as i64 >= left;
        let Some(next) = next.filter(|next| *next <= now + horizon.reach && !is_over) else {
            break;
        };
        fire.push(next);
        *settled = next;
        ahead += 1;
    }
    ahead >= horizon.count
}

/// What is too old, or too much, and what may fire: the newest.
fn misfired<'a>(
    due: &Due<'_>,
    missed: &'a [Instant],
    now: Instant,
) -> (&'a [Instant], &'a [Instant]) {
    let grace = match due.policy.misfire {
        Misfire::Skip => Some(due.policy.misfire_grace.unwrap_or(TimeDelta::minutes(1))),
        _ => due.policy.misfire_grace,
    };
    let too_old = missed
        .iter()
        .filter(|at| grace.is_some_and(|grace| now - **at > grace))
        .count();
    let most = match due.policy.misfire {
        Misfire::Once | Misfire::Skip => 1,
        Misfire::All => due.policy.catchup_limit,
    };
    missed.split_at(too_old.max(missed.len().saturating_sub(most)))
}

fn overlap(due: &Due<'_>, answer: &mut Decision) {
    let Unfinished {
        pending,
        running,
        stale,
    } = due.unfinished;
    let fire = answer.fire.clone();
    let kept = match due.policy.overlap {
        Overlap::Allow => 0..fire.len(),
        Overlap::Skip if pending || running => 0..0,
        Overlap::QueueOne if pending => 0..0,
        Overlap::Skip | Overlap::QueueOne => 0..fire.len().min(1),
        Overlap::CancelPrevious => fire.len().saturating_sub(1)..fire.len(),
    };
    let (before, after) = (&fire[..kept.start], &fire[kept.end..]);
    answer
        .skipped
        .extend(skipped(SkipReason::Overlap, &[before, after].concat()));
    answer.fire = fire[kept].to_vec();
    answer.cancels_previous = due.policy.overlap == Overlap::CancelPrevious
        && (pending || running || stale)
        && !answer.fire.is_empty();
}

fn duplicates(due: &Due<'_>, answer: &mut Decision) {
    let Duplicates { skipped, merged } = due.duplicates.unwrap_or_default();
    for (reason, dropped) in [
        (SkipReason::Duplicate, skipped),
        (SkipReason::Merged, merged),
    ] {
        let (gone, kept): (Vec<_>, Vec<_>) =
            answer.fire.iter().partition(|at| dropped.contains(at));
        answer.skipped.extend(self::skipped(reason, &gone));
        answer.fire = kept;
    }
    answer.cancels_previous &= !answer.fire.is_empty();
}

fn then(due: &Due<'_>, fired: usize, settled: Instant) -> Then {
    let counted = due.run_count + fired as i64;
    if due.completed.is_none() && due.max_runs.is_some_and(|most| counted >= most) {
        return Then::End(EndReason::Exhausted);
    }
    match Occurrences(due).after(settled) {
        Some(next) => Then::Wait {
            next_run_at: next,
            due_at: next,
        },
        None if due.recurrence.bounds().ends_at.is_some() => Then::End(EndReason::Expired),
        None => Then::End(EndReason::NoNext),
    }
}

fn ahead_of_it(due: &Due<'_>, now: Instant, until: Instant) -> Option<Decision> {
    let depends = due.policy.overlap != Overlap::Allow
        || due.policy.horizon.is_some()
        || due.duplicates.is_some();
    let is_counted_later = due.completed.is_some() && due.max_runs.is_some();
    let is_over = due.all_dispatched.is_some();
    if depends || is_counted_later || is_over || due.next_run_at <= now {
        return None;
    }
    let mut fire = Occurrences(due).between(due.next_run_at - MICROSECOND, until);
    let left = due.max_runs.map_or(i64::MAX, |most| most - due.run_count);
    fire.truncate(
        MOST_AHEAD
            .min(due.share.max(1))
            .min(usize::try_from(left.max(0)).unwrap_or(usize::MAX)),
    );
    let then = then(due, fire.len(), *fire.last()?);
    matches!(then, Then::Wait { .. }).then_some(Decision {
        fire,
        skipped: Vec::new(),
        cancels_previous: false,
        ahead: None,
        then,
    })
}
