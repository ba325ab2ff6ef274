//! Are the occurrences that were dispatched exactly those that the engine yields?

use crate::Session;
use chrono::{DateTime, TimeDelta, Utc};
use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use uuid::Uuid;

type Instant = DateTime<Utc>;

/// Consecutive occurrences that were skipped, as their event says.
#[derive(Debug)]
struct Skipped {
    from: Instant,
    until: Instant,
    count: u64,
    reason: String,
}

/// Checks every action of the database: each occurrence from the first to the last is dispatched once, or lies within
/// exactly one event that says it was skipped, whose count is right. With misfire `all`, each is dispatched
/// unless the action was paused. Returns how many dispatches and skipped occurrences there are.
pub fn check(session: &mut Session) -> (usize, u64) {
    session.batch("BEGIN ISOLATION LEVEL REPEATABLE READ");
    let totals = check_in(session);
    session.batch("COMMIT");
    (totals.dispatched, totals.skipped)
}

/// Occurrences of all actions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Occurrences {
    /// As the engine yields them.
    pub due: usize,
    pub dispatched: usize,
    pub skipped: u64,
}

/// The same within the session's transaction, which must have one snapshot for all its statements.
pub fn check_in(session: &mut Session) -> Occurrences {
    let mut fired = HashMap::<Uuid, BTreeMap<Instant, usize>>::new();
    for row in session.rows(
        "SELECT action_id, scheduled_at FROM recur.dispatches WHERE trigger = 'schedule'",
        &[],
    ) {
        *fired
            .entry(row.get(0))
            .or_default()
            .entry(row.get(1))
            .or_default() += 1;
    }
    let mut skipped = HashMap::<Uuid, Vec<Skipped>>::new();
    for row in session.rows(
        "SELECT action_id, (detail ->> 'from')::timestamptz, (detail ->> 'until')::timestamptz,
                    (detail ->> 'count')::bigint, detail ->> 'reason'
               FROM recur.events WHERE kind = 'occurrence.skipped'",
        &[],
    ) {
        skipped.entry(row.get(0)).or_default().push(Skipped {
            from: row.get(1),
            until: row.get(2),
            count: row.get::<_, i64>(3) as u64,
            reason: row.get(4),
        });
    }
    let mut totals = Occurrences::default();
    for row in session.rows(
        "SELECT id, schedule::text, misfire, coalesce(starts_at, created_at), next_run_at, run_count, last_run_at
               FROM recur.recurring_actions ORDER BY name",
        &[],
    ) {
        let id: Uuid = row.get(0);
        let fired = fired.remove(&id).unwrap_or_default();
        let skipped = skipped.remove(&id).unwrap_or_default();
        let action = Action {
            id,
            schedule: row.get(1),
            misfire: row.get(2),
            starts_at: row.get(3),
            next_run_at: row.get(4),
        };
        assert!(
            fired.values().all(|times| *times == 1),
            "{action:?}: dispatched twice"
        );
        assert_eq!(
            row.get::<_, i64>(5),
            fired.len() as i64,
            "{action:?}: run_count"
        );
        assert_eq!(
            row.get::<_, Option<Instant>>(6),
            fired.keys().last().copied(),
            "{action:?}: last_run_at"
        );
        let expected = action.occurrences();
        totals.due += expected.len();
        totals.dispatched += fired.len();
        totals.skipped += action.check(&expected, &fired.into_keys().collect(), &skipped);
    }
    assert!(fired.is_empty(), "dispatches of actions that are not there");
    totals
}

#[derive(Debug)]
struct Action {
    id: Uuid,
    schedule: String,
    misfire: String,
    starts_at: Instant,
    next_run_at: Instant,
}

impl Action {
    /// Returns how many were skipped.
    fn check(
        &self,
        expected: &BTreeSet<Instant>,
        fired: &BTreeSet<Instant>,
        skipped: &[Skipped],
    ) -> u64 {
        let mut missed = 0;
        for one in skipped {
            let within = expected.range(one.from..=one.until).count() as u64;
            assert_eq!(within, one.count, "{self:?}: {one:?} has another count");
            assert!(
                expected.contains(&one.from) && expected.contains(&one.until),
                "{self:?}: {one:?} does not begin and end with an occurrence"
            );
            missed += within;
        }
        for occurrence in expected {
            let runs = usize::from(fired.contains(occurrence));
            let skips = skipped
                .iter()
                .filter(|one| (one.from..=one.until).contains(occurrence))
                .count();
            assert_eq!(
                runs + skips,
                1,
                "{self:?}: {occurrence} was dispatched {runs} and skipped {skips} times"
            );
        }
        let strangers: Vec<_> = fired.difference(expected).collect();
        assert!(
            strangers.is_empty(),
            "{self:?}: {strangers:?} are no occurrences of {}",
            self.id
        );
        if self.misfire == "all" {
            // What was due during a pause does not fire, whatever the policy.
            let dropped = skipped.iter().find(|one| one.reason != "paused");
            assert!(dropped.is_none(), "{self:?} skips none: {dropped:?}");
        }
        missed
    }

    /// All that were due before the next run, by the engine.
    fn occurrences(&self) -> BTreeSet<Instant> {
        let bounds = Bounds {
            starts_at: Some(self.starts_at),
            ends_at: None,
            max_runs: None,
        };
        let schedule = Arc::new(Schedule::parse(&self.schedule).expect("a schedule"));
        let recurrence = Recurrence::new(
            schedule,
            Zone::UTC,
            bounds,
            OnGap::default(),
            OnFold::default(),
        )
        .expect("a recurrence");
        recurrence
            .occurrences_after(self.starts_at - TimeDelta::microseconds(1))
            .map(|occurrence| occurrence.at)
            .take_while(|at| *at < self.next_run_at)
            .collect()
    }
}
