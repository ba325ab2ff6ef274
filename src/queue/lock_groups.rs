//! Lock groups: at most one dispatch of a group runs at a time.

use crate::pg::advisory::{self, Space};
use crate::pg::query::{pg_uuid, plain_uuid, queries};
use pgrx::datum::{TimestampWithTimeZone, Uuid as PgUuid};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

queries! {
    GROUP_RUNS = "queue/queries/group_runs.sql" (TEXTOID, INT4OID);
    RUNNING_GROUPS = "queue/queries/running_groups.sql" ();
    LOCK_IF_FREE = "queue/queries/lock_if_free.sql" (UUIDOID);
}

/// A group of an owner: a group of the same name and another owner is another group.
type Group = (String, i32);

/// What the current claim knows of groups.
#[derive(Default)]
struct Groups {
    /// When the claim began: a claim with another instant is another claim.
    claim: Option<pg_sys::TimestampTz>,
    known: HashMap<Group, State>,
    /// The locks that the claim has taken.
    locks: HashSet<u64>,
    /// How many groups with a running dispatch the claim has met.
    met_running: usize,
}

#[derive(Clone, Copy)]
enum State {
    /// A dispatch of the group runs, or is about to.
    Taken,
    /// The claim may start this dispatch, if it gets the lock on the row.
    Offered(Uuid),
}

thread_local! {
    static GROUPS: RefCell<Groups> = RefCell::default();
}

/// `recur_internal.group_is_free(lock_group, owner_id, id, claim)`: may this claim start this dispatch of the group?
///
/// Two concurrent claims could both find that no dispatch of a group runs. So each claim first takes the group's lock
/// until its transaction ends; from then on, the row shows that the group is taken. A claim that does not get the lock
/// leaves the group to the claim that has it or, as groups of an owner share locks, to a later claim.
#[pg_extern(sql = false)]
fn group_is_free(
    lock_group: &str,
    owner_id: i32,
    id: PgUuid,
    claim: TimestampWithTimeZone,
) -> bool {
    let claim = pg_sys::TimestampTz::from(claim);
    let id = plain_uuid(id);
    let group = (lock_group.to_owned(), owner_id);
    if GROUPS.with_borrow(|groups| groups.claim != Some(claim)) {
        GROUPS.replace(Groups {
            claim: Some(claim),
            ..Groups::default()
        });
    }
    let known = GROUPS.with_borrow(|groups| groups.known.get(&group).copied());
    let state = match known {
        Some(State::Taken) => State::Taken,
        Some(State::Offered(offered)) if offered == id => State::Offered(id),
        // The dispatch that was offered may have been locked by another transaction, and not taken.
        Some(State::Offered(offered)) if is_ours(offered) => State::Taken,
        Some(State::Offered(_)) => State::Offered(id),
        None if try_lock(&group) && !runs(&group) => State::Offered(id),
        None => State::Taken,
    };
    GROUPS.with_borrow_mut(|groups| groups.known.insert(group, state));
    matches!(state, State::Offered(_))
}

/// Has this transaction locked the dispatch that the claim was offered? Yes, if no other transaction has.
fn is_ours(dispatch: Uuid) -> bool {
    let locked = LOCK_IF_FREE.with(|query| query.row(&[pg_uuid(dispatch).into()], |_| ()));
    locked.is_some()
}

/// The groups of an owner share this many locks, and a claim takes no more than this: the server's lock table has room
/// for some thousands, of all sessions together, and a claim may meet more groups than that. Two groups that share a
/// lock do not conflict within one claim.
const LOCKS: usize = 1024;

fn try_lock((name, owner_id): &Group) -> bool {
    let slot = advisory::key(name.bytes()) % LOCKS as u64;
    let key = advisory::owned_key(*owner_id, slot as u32);
    let (is_held, held) = GROUPS.with_borrow(|groups| {
        let held = &groups.locks;
        (held.contains(&key), held.len())
    });
    if is_held {
        return true;
    }
    let is_locked = held < LOCKS && advisory::try_lock(Space::LockGroup, key);
    if is_locked {
        GROUPS.with_borrow_mut(|groups| groups.locks.insert(key));
    }
    is_locked
}

/// Does a dispatch of the group run? Reads what is committed now, in every isolation level.
///
/// Groups are queried one by one: while a snapshot is held open, the index keeps an entry for each dispatch that ever
/// ran, and to read all entries took up to 100 ms after 200,000. A claim that meets many running groups reads all of
/// them once: past 1,000 groups, one by one took 5.8 ms and all at once 2.6 ms.
fn runs(group: &Group) -> bool {
    const MANY: usize = 16;
    let arguments = [group.0.as_str().into(), group.1.into()];
    let running = GROUP_RUNS.with(|query| query.latest_rows(&arguments, |_| ()));
    if running.is_empty() {
        return false;
    }
    let met = GROUPS.with_borrow_mut(|groups| {
        groups.met_running += 1;
        groups.met_running
    });
    if met == MANY {
        let all = RUNNING_GROUPS
            .with(|query| query.latest_rows(&[], |row| (row.required(1), row.required(2))));
        let all = all.into_iter().map(|group: Group| (group, State::Taken));
        GROUPS.with_borrow_mut(|groups| groups.known.extend(all));
    }
    true
}
