//! What claims and reports ask that SQL would answer too slowly, or not at all.

use crate::dispatch::query::queries;
use crate::pg::role;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

queries! {
    HISTORY_PARTITION = "history_partition.sql" ();
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
/// get the lock leaves the group to the one that has it.
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

/// Where the pending dispatches begin, as far as this session knows.
///
/// While somebody holds a snapshot open, the index keeps an entry for each dispatch that was ever pending, and every claim
/// would walk past all of them. So a session that has had to walk far begins where it found something, until it finds
/// too little there, or until it is time to walk all the way again.
struct Mark {
    provider: Option<String>,
    priority: i32,
    since: TimestampWithTimeZone,
    /// Then it is time.
    until: pg_sys::TimestampTz,
    uses: u32,
}

/// After so many claims much lies dead behind the mark as well.
const WORN: u32 = 16;
/// Walking all the way takes a twentieth of the time at the most; and once a minute it is done in any case.
const TRUSTED_FOR: i64 = 20;
const TRUSTED_FOR_AT_MOST: i64 = 60_000_000;

thread_local! {
    static MARK: RefCell<Option<Mark>> = const { RefCell::new(None) };
}

/// `recur._marked_time(provider)`: from when on there are pending dispatches; NULL where nothing is known.
#[pg_extern(sql = false)]
fn marked_time(provider: Option<&str>) -> Option<TimestampWithTimeZone> {
    MARK.with_borrow_mut(|mark| {
        let now = unsafe { pg_sys::GetCurrentTimestamp() };
        mark.take_if(|mark| mark.until <= now);
        let mark = mark.as_mut()?;
        if mark.provider.as_deref() != provider {
            return None;
        }
        mark.uses += 1;
        Some(mark.since)
    })
}

/// `recur._marked_priority()`: of those dispatches.
#[pg_extern(sql = false)]
fn marked_priority() -> Option<i32> {
    MARK.with_borrow(|mark| mark.as_ref().map(|mark| mark.priority))
}

/// `recur._mark_is_worn()`.
#[pg_extern(sql = false)]
fn mark_is_worn() -> bool {
    MARK.with_borrow(|mark| mark.as_ref().is_some_and(|mark| mark.uses >= WORN))
}

/// `recur._is_slow_again(claim)`: told of a claim that took long, it says whether another one did shortly before. One alone may
/// have waited for its plans, or for the machine.
#[pg_extern(sql = false)]
fn is_slow_again(claim: TimestampWithTimeZone) -> bool {
    thread_local! {
        static SUSPICIOUS_UNTIL: Cell<pg_sys::TimestampTz> = const { Cell::new(pg_sys::TimestampTz::MIN) };
    }
    let now = unsafe { pg_sys::GetCurrentTimestamp() };
    let began = pg_sys::TimestampTz::from(claim);
    let took = now.saturating_sub(began).saturating_mul(TRUSTED_FOR);
    SUSPICIOUS_UNTIL.replace(now.saturating_add(took)) > began
}

/// `recur._mark(provider, priority, since, claim)`: sets the mark for claims like the one that began then, or moves it; with
/// NULLs, removes it.
#[pg_extern(sql = false)]
fn mark(
    provider: Option<&str>,
    priority: Option<i32>,
    since: Option<TimestampWithTimeZone>,
    claim: Option<TimestampWithTimeZone>,
) {
    let now = unsafe { pg_sys::GetCurrentTimestamp() };
    let began = claim.map_or(now, pg_sys::TimestampTz::from);
    let took = now.saturating_sub(began);
    let trusted_for = took.saturating_mul(TRUSTED_FOR).min(TRUSTED_FOR_AT_MOST);
    MARK.with_borrow_mut(|mark| {
        let known = mark.take();
        let known = known.filter(|known| known.provider.as_deref() == provider);
        *mark = priority.zip(since).map(|(priority, since)| Mark {
            provider: provider.map(str::to_owned),
            priority,
            since,
            // Moving it does not put off the walk.
            until: known.map_or(now.saturating_add(trusted_for), |known| known.until),
            uses: 0,
        });
    });
}

/// `recur._history_partition()`: asked for by every report, and changed about once a day.
#[pg_extern(sql = false)]
fn history_partition() -> i16 {
    const FRESH_MICROS: i64 = 100_000;
    thread_local! {
        static LAST: Cell<Option<(pg_sys::TimestampTz, i16)>> = const { Cell::new(None) };
    }
    let now = unsafe { pg_sys::GetCurrentTimestamp() };
    if let Some((at, partition)) = LAST.get()
        && (0..FRESH_MICROS).contains(&now.saturating_sub(at))
    {
        return partition;
    }
    let rows = HISTORY_PARTITION.with(|query| query.rows(&[], |row| row.get::<i16>(1)));
    let rows = rows.unwrap_or_else(|error| pgrx::error!("pg_recur: {error}"));
    let partition = rows.into_iter().flatten().next().unwrap_or(0);
    LAST.set(Some((now, partition)));
    partition
}
