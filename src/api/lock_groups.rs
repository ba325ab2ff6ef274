//! Lock groups: at most one dispatch of a group runs at a time.

use crate::dispatch::query::queries;
use crate::pg::role;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
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
        let running = running_groups(None).into_iter();
        let known = running.map(|group| (group, Standing::Taken)).collect();
        let claim = Some(claim);
        GROUPS.replace(Groups { claim, known });
    }
    let standing = GROUPS.with_borrow(|groups| groups.known.get(lock_group).copied());
    let standing = match standing {
        Some(Standing::Taken) => Standing::Taken,
        Some(Standing::Offered(offered)) if offered == id => Standing::Offered(id),
        // Was it taken? Somebody else may have had it locked.
        Some(Standing::Offered(offered)) if is_ours(offered) => Standing::Taken,
        Some(Standing::Offered(_)) => Standing::Offered(id),
        None if is_locked_now(lock_group) && running_groups(Some(lock_group)).is_empty() => {
            Standing::Offered(id)
        }
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

/// The groups of which a dispatch runs: all, or this one, if it is. They are seen as they are now, in a transaction that
/// sees everything else as it was when it began, too. As the owner of the tables, because the one that runs may belong to
/// somebody else.
fn running_groups(only: Option<&str>) -> HashSet<String> {
    let mut values = [only
        .and_then(IntoDatum::into_datum)
        .unwrap_or(pg_sys::Datum::null())];
    role::as_owner(|| unsafe {
        pg_sys::SPI_connect();
        pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
        let plan = running_groups_plan(only.is_some());
        // Read-only: with the snapshot that was just taken, not with the transaction's.
        let status = pg_sys::SPI_execute_plan(plan, values.as_mut_ptr(), std::ptr::null(), true, 0);
        if status != pg_sys::SPI_OK_SELECT as i32 {
            pgrx::error!("pg_recur: the groups that run could not be read");
        }
        let table = &*pg_sys::SPI_tuptable;
        let tuples = std::slice::from_raw_parts(table.vals, table.numvals as usize);
        let groups = tuples.iter().filter_map(|tuple| {
            let mut is_null = false;
            let value = pg_sys::SPI_getbinval(*tuple, table.tupdesc, 1, &mut is_null);
            String::from_datum(value, is_null)
        });
        let groups = groups.collect();
        pg_sys::PopActiveSnapshot();
        pg_sys::SPI_finish();
        groups
    })
}

/// Prepared once, and kept for the life of the process. Inside SPI only.
unsafe fn running_groups_plan(only_one: bool) -> pg_sys::SPIPlanPtr {
    thread_local! {
        static PLANS: Cell<[pg_sys::SPIPlanPtr; 2]> = const { Cell::new([std::ptr::null_mut(); 2]) };
    }
    let mut plans = PLANS.get();
    let plan = &mut plans[usize::from(only_one)];
    if plan.is_null() {
        let (query, parameters) = match only_one {
            false => (
                c"SELECT l.lock_group FROM recur.live_dispatches AS l WHERE l.status = 'running' AND l.lock_group IS NOT NULL",
                0,
            ),
            true => (
                c"SELECT l.lock_group FROM recur.live_dispatches AS l WHERE l.status = 'running' AND l.lock_group = $1",
                1,
            ),
        };
        let mut types = [pg_sys::TEXTOID];
        unsafe {
            *plan = pg_sys::SPI_prepare(query.as_ptr(), parameters, types.as_mut_ptr());
            if plan.is_null() || pg_sys::SPI_keepplan(*plan) != 0 {
                pgrx::error!("pg_recur: the groups that run can't be read");
            }
        }
        PLANS.set(plans);
        return plans[usize::from(only_one)];
    }
    *plan
}
