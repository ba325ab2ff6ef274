//! Lock groups: at most one dispatch of a group runs at a time.

use crate::dispatch::query::queries;
use crate::pg::latest::LatestQuery;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;
use uuid::Uuid;

queries! {
    LOCK_IF_FREE = "lock_if_free.sql" (UUIDOID);
    TRY_GROUP_LOCK = "try_group_lock.sql" (TEXTOID);
}

/// Of the claim that is under way.
#[derive(Default)]
struct Groups {
    /// When it began: another claim, another time.
    claim: Option<pg_sys::TimestampTz>,
    known: HashMap<String, Standing>,
    /// How many groups it was asked for of which one runs.
    running: usize,
}

#[derive(Clone, Copy)]
enum Standing {
    /// One of it runs, or is about to.
    Taken,
    /// This claim may start this one of it. Whether it does depends on whether it gets the row.
    Offered(Uuid),
}

thread_local! {
    static GROUPS: RefCell<Groups> = RefCell::default();
    static RUNNING: LatestQuery = const {
        LatestQuery::new(
            c"SELECT l.lock_group FROM recur.live_dispatches AS l WHERE l.status = 'running' AND l.lock_group = $1",
            pg_sys::BuiltinOid::TEXTOID,
        )
    };
    static OTHERS_RUNNING: LatestQuery = const {
        LatestQuery::new(
            c"SELECT l.lock_group FROM recur.live_dispatches AS l WHERE l.status = 'running' AND l.lock_group <> $1",
            pg_sys::BuiltinOid::TEXTOID,
        )
    };
}

/// `recur._group_is_free(lock_group, id, claim)`: may this claim start this dispatch of the group?
///
/// Two claims that look at the same time could both find that none of a group runs, so each claim first takes the
/// group's lock; it has it until its transaction ends, when the row says all that the lock said. A claim that does not
/// get the lock leaves the group to the one that has it or, as groups share locks, to a later claim.
#[pg_extern(sql = false)]
fn group_is_free(lock_group: &str, id: pgrx::datum::Uuid, claim: TimestampWithTimeZone) -> bool {
    let claim = pg_sys::TimestampTz::from(claim);
    let id = Uuid::from_bytes(*id.as_bytes());
    if GROUPS.with_borrow(|groups| groups.claim != Some(claim)) {
        GROUPS.replace(Groups {
            claim: Some(claim),
            ..Groups::default()
        });
    }
    let standing = GROUPS.with_borrow(|groups| groups.known.get(lock_group).copied());
    let standing = match standing {
        Some(Standing::Taken) => Standing::Taken,
        Some(Standing::Offered(offered)) if offered == id => Standing::Offered(id),
        // Was it taken? Somebody else may have had it locked.
        Some(Standing::Offered(offered)) if is_ours(offered) => Standing::Taken,
        Some(Standing::Offered(_)) => Standing::Offered(id),
        None if is_locked_now(lock_group) && !runs(lock_group) => Standing::Offered(id),
        None => Standing::Taken,
    };
    GROUPS.with_borrow_mut(|groups| groups.known.insert(lock_group.to_owned(), standing));
    matches!(standing, Standing::Offered(_))
}

/// Nobody else has the dispatch locked: then this transaction has, as that of the claim which it was offered to.
fn is_ours(dispatch: Uuid) -> bool {
    let dispatch = pgrx::datum::Uuid::from_bytes(dispatch.into_bytes());
    let rows = LOCK_IF_FREE.with(|query| query.rows(&[dispatch.into()], |_| Ok(())));
    let rows = rows.unwrap_or_else(|error| pgrx::error!("pg_recur: {error}"));
    !rows.is_empty()
}

fn is_locked_now(lock_group: &str) -> bool {
    let rows = TRY_GROUP_LOCK
        .with(|query| query.rows(&[lock_group.into()], |row| Ok(row.get(1)?.unwrap_or(false))));
    rows.unwrap_or_else(|error| pgrx::error!("pg_recur: {error}"))
        .contains(&true)
}

/// Does a dispatch of the group run, whosever it is?
///
/// Each group is asked for by itself: while somebody holds a snapshot, the index keeps an entry for each that has ever run, and to
/// read all of them took up to 100 ms after 200,000. But a claim that meets many groups that run reads all of them once: past 1,000, one by
/// one, it took 5.8 ms instead of 2.6.
fn runs(lock_group: &str) -> bool {
    const MANY: usize = 16;
    if RUNNING.with(|query| query.texts(lock_group)).is_empty() {
        return false;
    }
    let running = GROUPS.with_borrow_mut(|groups| {
        groups.running += 1;
        groups.running
    });
    if running == MANY {
        let others = OTHERS_RUNNING.with(|query| query.texts(lock_group));
        let others = others.into_iter().map(|group| (group, Standing::Taken));
        GROUPS.with_borrow_mut(|groups| groups.known.extend(others));
    }
    true
}
