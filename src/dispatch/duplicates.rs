//! Occurrences whose key is that of a pending dispatch: they are skipped, or merged into it.
//!
//! A transaction that writes such a dispatch holds the lock of its key, so that no other one writes a second. The
//! dispatcher waits for no lock: an action whose key another transaction has is decided later.

use super::store::{self, Definition, NewDispatch};
use crate::access::Actor;
use crate::history::events::{self, DispatchEvent};
use crate::pg::error;
use crate::pg::jsonb::Jsonb;
use crate::pg::query::{Query, pg_uuid, pg_uuids, queries};
use crate::pg::time;
use crate::queue::dedup::{self, KeyLock};
use crate::runtime::clock;
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::check_for_interrupts;
use recur_core::decide::{Duplicates, SkipReason};
use recur_core::dispatch_id;
use recur_core::event::EventKind;
use recur_core::policy::OnDuplicate;
use serde_json::json;
use std::cell::Cell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::thread::LocalKey;
use uuid::Uuid;

queries! {
    EXPANDED_KEYS = "dispatch/queries/expanded_keys.sql" (TEXTARRAYOID, UUIDARRAYOID, TIMESTAMPTZARRAYOID);
    PENDING_OF_KEYS = "dispatch/queries/pending_of_keys.sql"
        (TEXTARRAYOID, INT4ARRAYOID, TEXTARRAYOID, TEXTARRAYOID, TEXTARRAYOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID,
         UUIDARRAYOID, UUIDARRAYOID);
    LOCK_DUPLICATES = "dispatch/queries/lock_duplicates.sql" {unless_locked: ""} (UUIDARRAYOID);
    LOCK_FREE_DUPLICATES = "dispatch/queries/lock_duplicates.sql" {unless_locked: "SKIP LOCKED"} (UUIDARRAYOID);
    MERGE_PAYLOADS = "dispatch/queries/merge_payloads.sql" (UUIDARRAYOID, UUIDARRAYOID, JSONBOID);
}

type Instant = DateTime<Utc>;

/// At most this many keys are locked in one transaction: the server has room for some thousand locks of all sessions,
/// 64 for each connection by default.
pub const MOST_KEYS: usize = 256;

/// A backfill locks more, and waits for them: with keys of their own, this many occurrences.
pub const MOST_BACKFILLED: usize = 1_000;

/// How many more keys a transaction may lock.
pub struct KeyLocks(Cell<usize>);

impl KeyLocks {
    pub fn new() -> KeyLocks {
        KeyLocks(Cell::new(MOST_KEYS))
    }

    pub fn left(&self) -> usize {
        self.0.get()
    }

    /// After a rollback, which has released what was locked since.
    pub fn restore(&self, left: usize) {
        self.0.set(left);
    }
}

/// What an action says about its duplicates.
#[derive(Clone, Copy)]
pub struct Dedup<'a> {
    template: &'a str,
    window: TimeDelta,
    on_duplicate: OnDuplicate,
}

impl Dedup<'_> {
    /// None where each occurrence has a dispatch of its own.
    pub fn of(definition: &Definition) -> Option<Dedup<'_>> {
        let template = definition.dedup_key.as_deref()?;
        let window = definition
            .dedup_window
            .or_else(|| dedup::default_window(definition.namespace()))?;
        let on_duplicate = definition.on_duplicate.as_deref();
        (window > TimeDelta::zero()).then(|| Dedup {
            template,
            window,
            on_duplicate: on_duplicate
                .and_then(|name| name.parse().ok())
                .unwrap_or(OnDuplicate::Merge),
        })
    }
}

/// An occurrence that may be a duplicate.
pub struct Candidate<'a> {
    /// The dispatch that the occurrence would have.
    pub dispatch: Uuid,
    pub action: Uuid,
    pub occurrence: Instant,
    pub definition: &'a Definition,
    pub dedup: Dedup<'a>,
    /// The action's own dispatches are about to be cancelled, and do not count.
    pub cancels_previous: bool,
}

/// What to do about locks of other transactions.
#[derive(Clone, Copy)]
pub enum Locking<'a> {
    /// To wait for them.
    Wait,
    /// To leave the action for later, also when this transaction has as many locks as it may have.
    Try(&'a KeyLocks),
}

/// What is known of the duplicates of some actions.
#[derive(Default)]
pub struct Found {
    actions: HashMap<Uuid, OfAction>,
    undecided: HashSet<Uuid>,
    /// Pending dispatches and the actions whose payload they take over.
    merges: Vec<(Uuid, Uuid)>,
    /// True if actions were left because this transaction may lock no more keys.
    pub lacks_locks: bool,
}

#[derive(Default)]
struct OfAction {
    skipped: Vec<Instant>,
    merged: Vec<Instant>,
    /// The latest dispatch that stands for one that was skipped, and for one that was merged.
    stand: [Option<Uuid>; 2],
}

impl Found {
    /// The duplicates of an action; None where that is to be decided later.
    pub fn of(&self, action: Uuid) -> Option<Duplicates<'_>> {
        if self.undecided.contains(&action) {
            return None;
        }
        let known = self.actions.get(&action);
        Some(known.map_or_else(Duplicates::default, |known| Duplicates {
            skipped: &known.skipped,
            merged: &known.merged,
        }))
    }

    /// The pending dispatch that stands for the duplicates of an action.
    pub fn stand(&self, action: Uuid, reason: SkipReason) -> Option<Uuid> {
        let [skipped, merged] = self.actions.get(&action)?.stand;
        match reason {
            SkipReason::Duplicate => skipped,
            SkipReason::Merged => merged,
            _ => None,
        }
    }

    /// Is this occurrence of an action a duplicate?
    pub fn is_duplicate(&self, action: Uuid, occurrence: Instant) -> bool {
        let Some(of_action) = self.actions.get(&action) else {
            return false;
        };
        of_action.skipped.contains(&occurrence) || of_action.merged.contains(&occurrence)
    }

    /// Gives the pending dispatches that others are merged into the payload of the action, or this one. New dispatches
    /// are inserted before.
    pub fn merge(&self, payload: Option<Jsonb>) {
        if self.merges.is_empty() {
            return;
        }
        let arguments = [
            pg_uuids(self.merges.iter().map(|(target, _)| *target)).into(),
            pg_uuids(self.merges.iter().map(|(_, action)| *action)).into(),
            payload.into(),
        ];
        MERGE_PAYLOADS.with(|query| query.execute(&arguments));
    }

    /// Records the duplicates of an action that somebody asked for by hand.
    pub fn record(&self, action: Uuid, owner_id: i32, trigger: &str, actor: &Actor) {
        let Some(of_action) = self.actions.get(&action) else {
            return;
        };
        for (reason, occurrences) in [
            (SkipReason::Duplicate, &of_action.skipped),
            (SkipReason::Merged, &of_action.merged),
        ] {
            let (Some(from), Some(until), Some(stand)) = (
                occurrences.first(),
                occurrences.last(),
                self.stand(action, reason),
            ) else {
                continue;
            };
            let event = DispatchEvent {
                dispatch: stand,
                action: Some(action),
                owner_id,
                detail: json!({
                    "reason": reason.as_str(),
                    "from": time::rfc3339(*from),
                    "until": time::rfc3339(*until),
                    "count": occurrences.len(),
                    "dispatch_id": stand.to_string(),
                    "trigger": trigger,
                }),
            };
            events::record_dispatches(EventKind::Skipped, &[event], actor);
        }
    }

    fn leave(&mut self, action: Uuid) {
        self.undecided.insert(action);
    }

    fn add(&mut self, one: &Candidate, stand: Uuid, is_alike: bool) {
        let of_action = self.actions.entry(one.action).or_default();
        if is_alike && one.dedup.on_duplicate == OnDuplicate::Merge {
            of_action.merged.push(one.occurrence);
            of_action.stand[1] = Some(stand);
            // The latest payload counts.
            self.merges.retain(|(target, _)| *target != stand);
            self.merges.push((stand, one.action));
        } else {
            of_action.skipped.push(one.occurrence);
            of_action.stand[0] = Some(stand);
        }
    }
}

/// Finds the duplicates among occurrences. Those of one action follow each other.
pub fn find(candidates: &[Candidate], locking: Locking) -> Found {
    let mut found = Found::default();
    if candidates.is_empty() {
        return found;
    }
    let keys = expanded_keys(candidates);
    let mut keyed: Vec<(&Candidate, &str)> = candidates
        .iter()
        .zip(keys.iter().map(String::as_str))
        .collect();
    lock_keys(&keyed, locking, &mut found);
    let pending = loop {
        check_for_interrupts!();
        keyed.retain(|(one, _)| !found.undecided.contains(&one.action));
        let pending = pending_of(&keyed);
        let targets = keyed.iter().zip(&pending).filter_map(|((one, _), stand)| {
            let stand = stand.as_ref().filter(|stand| stand.is_alike)?;
            (one.dedup.on_duplicate == OnDuplicate::Merge).then_some((one.action, stand.id))
        });
        let targets: Vec<(Uuid, Uuid)> = targets.collect();
        let locked = lock_targets(&targets, locking);
        let mut busy = targets.iter().filter(|(_, id)| !locked.contains(id));
        match locking {
            // Claimed meanwhile: no longer pending.
            Locking::Wait if busy.next().is_some() => {}
            Locking::Wait => break pending,
            Locking::Try(_) => {
                let mut is_decided = true;
                for (action, _) in busy {
                    found.leave(*action);
                    is_decided = false;
                }
                if is_decided {
                    break pending;
                }
            }
        }
    };
    decide(&keyed, &pending, &mut found);
    found
}

/// Of several occurrences with one key, the first stands for the others, if none is pending.
fn decide(keyed: &[(&Candidate, &str)], pending: &[Option<Pending>], found: &mut Found) {
    let mut new: HashMap<(i32, &str, &str, &str), &Candidate> = HashMap::new();
    for ((one, key), stand) in keyed.iter().copied().zip(pending) {
        if let Some(stand) = stand {
            found.add(one, stand.id, stand.is_alike);
            continue;
        }
        let definition = one.definition;
        let (namespace, tenant) = (definition.namespace(), definition.tenant());
        match new.entry((definition.owner_id, namespace, tenant, key)) {
            Entry::Occupied(first) => {
                let is_alike = definition.does_the_same_as(first.get().definition);
                found.add(one, first.get().dispatch, is_alike);
            }
            Entry::Vacant(place) => {
                place.insert(one);
            }
        }
    }
}

fn expanded_keys(candidates: &[Candidate]) -> Vec<String> {
    let templates: Vec<&str> = candidates.iter().map(|one| one.dedup.template).collect();
    let occurrences = candidates
        .iter()
        .map(|one| time::timestamptz(one.occurrence));
    let arguments = [
        templates.into(),
        pg_uuids(candidates.iter().map(|one| one.action)).into(),
        occurrences.collect::<Vec<_>>().into(),
    ];
    EXPANDED_KEYS.with(|query| query.rows(&arguments, |row| row.required(1)))
}

/// Locks the keys, action by action.
fn lock_keys(keyed: &[(&Candidate, &str)], locking: Locking, found: &mut Found) {
    let mut held: HashSet<KeyLock> = HashSet::new();
    for of_action in keyed.chunk_by(|(one, _), (next, _)| one.action == next.action) {
        for (one, key) in of_action {
            let definition = one.definition;
            let (namespace, tenant) = (definition.namespace(), definition.tenant());
            let lock = KeyLock::of(definition.owner_id, namespace, tenant, key);
            if !held.insert(lock) {
                continue;
            }
            let is_held = match locking {
                Locking::Wait => {
                    lock.take();
                    true
                }
                Locking::Try(keys) if keys.left() == 0 => {
                    found.lacks_locks = true;
                    false
                }
                Locking::Try(keys) => {
                    keys.restore(keys.left() - 1);
                    lock.try_take()
                }
            };
            if !is_held {
                held.remove(&lock);
                found.leave(one.action);
                break;
            }
        }
    }
}

/// A pending dispatch with the key of an occurrence.
struct Pending {
    id: Uuid,
    /// Can the dispatch take over the payload? It has the same provider and action type, and no body from outside.
    is_alike: bool,
}

fn pending_of(keyed: &[(&Candidate, &str)]) -> Vec<Option<Pending>> {
    let mut pending: Vec<Option<Pending>> = keyed.iter().map(|_| None).collect();
    if keyed.is_empty() {
        return pending;
    }
    let now = clock::now();
    let written_after = |window: TimeDelta| {
        let after = now.checked_sub_signed(window);
        time::timestamptz(after.unwrap_or(DateTime::UNIX_EPOCH))
    };
    let texts = |of: fn(&Definition) -> &str| -> Vec<&str> {
        keyed.iter().map(|(one, _)| of(one.definition)).collect()
    };
    let cancelled = |one: &Candidate| one.cancels_previous.then(|| pg_uuid(one.action));
    let arguments = [
        keyed.iter().map(|(_, key)| *key).collect::<Vec<_>>().into(),
        keyed
            .iter()
            .map(|(one, _)| one.definition.owner_id)
            .collect::<Vec<_>>()
            .into(),
        texts(Definition::namespace).into(),
        texts(Definition::tenant).into(),
        texts(Definition::provider).into(),
        texts(Definition::action_type).into(),
        keyed
            .iter()
            .map(|(one, _)| written_after(one.dedup.window))
            .collect::<Vec<_>>()
            .into(),
        pg_uuids(keyed.iter().map(|(one, _)| one.dispatch)).into(),
        keyed
            .iter()
            .map(|(one, _)| cancelled(one))
            .collect::<Vec<_>>()
            .into(),
    ];
    let rows = PENDING_OF_KEYS.with(|query| {
        query.latest_rows(&arguments, |row| {
            let id = row.uuid(2);
            let is_alike = row.required(3);
            (row.required::<i32>(1), Pending { id, is_alike })
        })
    });
    for (place, stand) in rows {
        if let Some(one) = pending.get_mut(place.unsigned_abs() as usize) {
            *one = Some(stand);
        }
    }
    pending
}

/// Locks the dispatches that are to take over a payload, and returns those that are locked and still pending.
fn lock_targets(targets: &[(Uuid, Uuid)], locking: Locking) -> HashSet<Uuid> {
    if targets.is_empty() {
        return HashSet::new();
    }
    let query: &'static LocalKey<Query> = match locking {
        Locking::Wait => &LOCK_DUPLICATES,
        Locking::Try(_) => &LOCK_FREE_DUPLICATES,
    };
    let arguments = [pg_uuids(targets.iter().map(|(_, id)| *id)).into()];
    let rows = query.with(|query| query.rows(&arguments, |row| row.uuid(1)));
    rows.into_iter().collect()
}

/// Drops occurrences of a backfill with the key of a pending dispatch, or of one another, and returns how many there
/// were.
pub fn drop_backfilled(
    new: &mut Vec<NewDispatch>,
    definition: &Definition,
    actor: &Actor,
) -> usize {
    let (Some(dedup), Some(first)) = (Dedup::of(definition), new.first()) else {
        return 0;
    };
    let (action, before) = (first.action, new.len());
    let candidates = new.iter().map(|one| Candidate {
        dispatch: one.id,
        action,
        occurrence: one.occurrence,
        definition,
        dedup,
        cancels_previous: false,
    });
    let found = find(&candidates.collect::<Vec<_>>(), Locking::Wait);
    found.merge(None);
    found.record(action, definition.owner_id, "backfill", actor);
    new.retain(|one| !found.is_duplicate(action, one.occurrence));
    before - new.len()
}

/// The pending dispatch that stands for a run that is triggered, because it has the same key. It gets the payload,
/// where the action says so.
pub fn stand_in(action: Uuid, payload: Option<Jsonb>, actor: &Actor) -> Option<Uuid> {
    let definitions = store::read_definitions(vec![action]);
    let definition = definitions.get(&action)?;
    let now = clock::now();
    let run = Candidate {
        dispatch: dispatch_id::random(now),
        action,
        occurrence: now,
        definition,
        dedup: Dedup::of(definition)?,
        cancels_previous: false,
    };
    let found = find(&[run], Locking::Wait);
    let (stand, said) = match found.stand(action, SkipReason::Merged) {
        Some(stand) => (stand, "has taken over the payload"),
        None => (
            found.stand(action, SkipReason::Duplicate)?,
            "stays as it is",
        ),
    };
    found.merge(payload);
    found.record(action, definition.owner_id, "manual", actor);
    let message =
        format!("a dispatch with the same dedup_key is pending: it {said}, and its id is returned");
    error::notice(
        message,
        Some("Set dedup_window of the action to 0 for a dispatch of each run."),
    );
    Some(stand)
}
