//! Where a session's claims begin while somebody's snapshot keeps everything that is dead in the index.

use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::{Cell, RefCell};

/// Where the pending dispatches begin, as far as this session knows.
///
/// While somebody holds a snapshot open, the index keeps an entry for each dispatch that was ever pending, and every claim
/// would walk past all of them. So a session that has had to walk far begins where it found something, until it finds
/// too little there, or until it is time to walk all the way again.
struct Mark {
    provider: Option<String>,
    priority: i32,
    since: TimestampWithTimeZone,
    /// Of those that became available at that time, which may be a whole herd, the first was written then.
    created: TimestampWithTimeZone,
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

/// `recur._marked_creation()`: when the first of them was written.
#[pg_extern(sql = false)]
fn marked_creation() -> Option<TimestampWithTimeZone> {
    MARK.with_borrow(|mark| mark.as_ref().map(|mark| mark.created))
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

/// `recur._mark(provider, priority, since, created, claim)`: sets the mark for claims like the one that began then, or moves it; with
/// NULLs, removes it.
#[pg_extern(sql = false)]
fn mark(
    provider: Option<&str>,
    priority: Option<i32>,
    since: Option<TimestampWithTimeZone>,
    created: Option<TimestampWithTimeZone>,
    claim: Option<TimestampWithTimeZone>,
) {
    let now = unsafe { pg_sys::GetCurrentTimestamp() };
    let began = claim.map_or(now, pg_sys::TimestampTz::from);
    let took = now.saturating_sub(began);
    let trusted_for = took.saturating_mul(TRUSTED_FOR).min(TRUSTED_FOR_AT_MOST);
    MARK.with_borrow_mut(|mark| {
        let known = mark.take();
        let known = known.filter(|known| known.provider.as_deref() == provider);
        let place = priority.zip(since).zip(created);
        *mark = place.map(|((priority, since), created)| Mark {
            provider: provider.map(str::to_owned),
            priority,
            since,
            created,
            // Moving it does not put off the walk.
            until: known.map_or(now.saturating_add(trusted_for), |known| known.until),
            uses: 0,
        });
    });
}
