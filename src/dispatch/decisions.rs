//! Decides what happens to the timers of a batch. The decision itself is in the crate recur-core.

use super::duplicates::{self, Candidate, Dedup, Found, KeyLocks, Locking, MOST_KEYS};
use super::errors::ActionError;
use super::store::{self, Definition, LockedTimer};
use crate::queue::runs;
use crate::runtime::settings;
use chrono::{DateTime, Utc};
use recur_core::decide::{self, Decision, Due, Duplicates, Mode};
use recur_core::definition::{self, Compiled};
use recur_core::dispatch_id;
use recur_core::policy::{Horizon, Policy};
use recurrence::ScheduleCache;
use std::cell::RefCell;
use std::collections::HashMap;
use uuid::Uuid;

/// Far more schedules than an application has, at about a kilobyte each.
const CACHED_SCHEDULES: usize = 10_000;

thread_local! {
    /// A million actions share a few schedules: each text is parsed once.
    static SCHEDULES: RefCell<ScheduleCache> = RefCell::new(ScheduleCache::new(CACHED_SCHEDULES));
}

/// A timer and what to do with it.
pub type Decided<'a> = (&'a LockedTimer, Decision);

/// A timer whose definition could be evaluated.
struct Evaluated<'a> {
    timer: &'a LockedTimer,
    max_runs: Option<i32>,
    counts_completed: bool,
    owner_id: i32,
    weight: usize,
    definition: Compiled,
    dedup: Option<Dedup<'a>>,
}

/// What happens to the timers of a batch.
pub struct Decisions<'a> {
    pub decided: Vec<Decided<'a>>,
    pub duplicates: Found,
}

impl Evaluated<'_> {
    fn needs_unfinished(&self) -> bool {
        self.timer.all_dispatched.is_some() || self.definition.policy.overlap.needs_unfinished()
    }
}

/// Decides for each timer. Timers that are left to their instant or for later, and those of invalid definitions, have
/// no decision; errors of definitions are added to `errors`. Each timer fires at most `share` occurrences, fewer if
/// their payloads are large.
pub fn decide_all<'a>(
    locked: &'a [LockedTimer],
    definitions: &'a HashMap<Uuid, Definition>,
    share: usize,
    now: DateTime<Utc>,
    mode: Mode,
    keys: &KeyLocks,
    errors: &mut Vec<ActionError>,
) -> Decisions<'a> {
    let evaluated = evaluate(locked, definitions, mode, errors);
    let unfinished = match mode {
        Mode::Due => {
            let depending = evaluated.iter().filter(|one| one.needs_unfinished());
            store::unfinished(depending.map(|one| one.timer.action).collect(), now)
        }
        Mode::Stage { .. } => HashMap::new(),
    };
    let counting = evaluated.iter().filter(|one| one.counts_completed);
    let completed = match mode {
        Mode::Due => runs::count(counting.map(|one| one.timer.action).collect()),
        Mode::Stage { .. } => HashMap::new(),
    };
    let ahead = AheadByOwner::of(definitions);
    let decide = |one: &Evaluated, duplicates: Option<Duplicates>| {
        let counted = completed
            .get(&one.timer.action)
            .copied()
            .unwrap_or_default();
        let due = Due {
            recurrence: &one.definition.recurrence,
            next_run_at: one.timer.next_run_at,
            ahead: one.timer.ahead,
            all_dispatched: one.timer.all_dispatched,
            run_count: match one.counts_completed {
                true => counted.taken(),
                false => one.timer.run_count,
            },
            max_runs: one.max_runs.map(i64::from),
            completed: one.counts_completed.then_some(counted.completed),
            policy: ahead.limited(one),
            unfinished: unfinished
                .get(&one.timer.action)
                .copied()
                .unwrap_or_default(),
            duplicates,
            share: match one.dedup {
                Some(_) => share.min(MOST_KEYS) / one.weight,
                None => share / one.weight,
            },
        };
        decide::decide(&due, now, mode)
    };
    let first = evaluated.iter().filter_map(|one| {
        let duplicates = one.dedup.map(|_| Duplicates::default());
        Some((one, decide(one, duplicates)?))
    });
    let first: Vec<(&Evaluated, Decision)> = first.collect();
    let duplicates = find_duplicates(&first, definitions, keys);
    let decided = first.into_iter().filter_map(|(one, decision)| {
        if one.dedup.is_none() {
            return Some((one.timer, decision));
        }
        let known = duplicates.of(one.timer.action)?;
        let decision = match known == Duplicates::default() {
            true => decision,
            false => decide(one, Some(known))?,
        };
        Some((one.timer, decision))
    });
    Decisions {
        decided: decided.collect(),
        duplicates,
    }
}

fn find_duplicates(
    decisions: &[(&Evaluated, Decision)],
    definitions: &HashMap<Uuid, Definition>,
    keys: &KeyLocks,
) -> Found {
    let mut candidates = Vec::new();
    for (one, decision) in decisions {
        let action = one.timer.action;
        let (Some(dedup), Some(definition)) = (one.dedup, definitions.get(&action)) else {
            continue;
        };
        candidates.extend(decision.fire.iter().map(|occurrence| Candidate {
            dispatch: dispatch_id::of_occurrence(action, *occurrence),
            action,
            occurrence: *occurrence,
            definition,
            dedup,
            cancels_previous: decision.cancels_previous,
        }));
    }
    duplicates::find(&candidates, Locking::Try(keys))
}

/// How many dispatches each action of an owner may have ahead of their time: what the owner may have, shared equally.
/// To count what lies ahead would take a scan of it in every batch.
struct AheadByOwner(HashMap<i32, usize>);

impl AheadByOwner {
    fn of(definitions: &HashMap<Uuid, Definition>) -> AheadByOwner {
        let with_horizon = definitions.values().filter(|one| one.has_horizon());
        let mut owners: Vec<i32> = with_horizon.map(|one| one.owner_id).collect();
        owners.sort_unstable();
        owners.dedup();
        let share = |actions: i64| {
            let actions = usize::try_from(actions).unwrap_or(usize::MAX).max(1);
            settings::max_ahead_per_owner() / actions
        };
        let counted = store::count_with_horizon(owners).into_iter();
        AheadByOwner(counted.map(|(owner, n)| (owner, share(n))).collect())
    }

    /// The policy of an action, with a horizon that keeps within the share: at least one dispatch, if there is a share.
    fn limited(&self, one: &Evaluated) -> Policy {
        let policy = one.definition.policy;
        let share = self.0.get(&one.owner_id).copied().unwrap_or(usize::MAX);
        let count = match share.min(Horizon::LARGEST_COUNT) {
            0 => 0,
            share => (share / one.weight).max(1),
        };
        Policy {
            horizon: policy.horizon.and_then(|horizon| horizon.limited(count)),
            ..policy
        }
    }
}

fn evaluate<'a>(
    locked: &'a [LockedTimer],
    definitions: &'a HashMap<Uuid, Definition>,
    mode: Mode,
    errors: &mut Vec<ActionError>,
) -> Vec<Evaluated<'a>> {
    let mut evaluated = Vec::with_capacity(locked.len());
    for timer in locked {
        // The foreign key deletes the timer with its definition.
        let Some(stored) = definitions.get(&timer.action) else {
            continue;
        };
        match SCHEDULES.with_borrow_mut(|cache| definition::compile(&stored.stored(), cache)) {
            Ok(definition) => evaluated.push(Evaluated {
                timer,
                max_runs: stored.max_runs,
                counts_completed: stored.counts_completed,
                owner_id: stored.owner_id,
                weight: stored.weight(),
                definition,
                dedup: Dedup::of(stored),
            }),
            // An invalid definition can still be mended before its instant.
            Err(_) if mode != Mode::Due => {}
            Err(error) => errors.push(ActionError::bad_definition(timer.action, error.to_string())),
        }
    }
    evaluated
}
