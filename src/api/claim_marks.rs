//! What a session remembers of its last claim, so that the next one need not look for it again.

use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::{Cell, RefCell};

/// Where the last claim found something.
struct Known {
    /// Of one provider, or of all.
    provider: Option<String>,
    priority: i32,
    mark: Option<Mark>,
}

/// Where the pending dispatches of that priority begin, as far as this session knows.
///
/// While somebody holds a snapshot open, the index keeps an entry for each dispatch that was ever pending, and every claim
/// would walk past all of them. So a session that has had to walk far begins where it found something, until it finds
/// too little there, or until it is time to walk all the way again.
struct Mark {
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
    static KNOWN: RefCell<Option<Known>> = const { RefCell::new(None) };
}

/// `recur._known_priority(provider)`: at which dispatches of the provider, or any, were found last; NULL where nothing is known. Its
/// mark is then used once more.
#[pg_extern(sql = false)]
fn known_priority(provider: Option<&str>) -> Option<i32> {
    KNOWN.with_borrow_mut(|known| {
        let known = known.as_mut()?;
        if known.provider.as_deref() != provider {
            return None;
        }
        let now = unsafe { pg_sys::GetCurrentTimestamp() };
        known.mark.take_if(|mark| mark.until <= now);
        if let Some(mark) = &mut known.mark {
            mark.uses += 1;
        }
        Some(known.priority)
    })
}

/// `recur._know_priority(provider, priority)`: there something was found; a mark at another place is of no use any more. With
/// NULL, all is forgotten.
#[pg_extern(sql = false)]
fn know_priority(provider: Option<&str>, priority: Option<i32>) {
    KNOWN.with_borrow_mut(|known| {
        let is_there = |known: &Known| {
            Some(known.priority) == priority && known.provider.as_deref() == provider
        };
        if !known.as_ref().is_some_and(is_there) {
            *known = priority.map(|priority| Known {
                provider: provider.map(str::to_owned),
                priority,
                mark: None,
            });
        }
    });
}

fn of_mark<T>(what: impl FnOnce(&Mark) -> T) -> Option<T> {
    KNOWN.with_borrow(|known| known.as_ref()?.mark.as_ref().map(what))
}

/// `recur._marked_time()`: from when on there are pending dispatches of that priority; NULL where they may begin anywhere.
#[pg_extern(sql = false)]
fn marked_time() -> Option<TimestampWithTimeZone> {
    of_mark(|mark| mark.since)
}

/// `recur._marked_creation()`: when the first of them was written.
#[pg_extern(sql = false)]
fn marked_creation() -> Option<TimestampWithTimeZone> {
    of_mark(|mark| mark.created)
}

/// `recur._mark_is_worn()`.
#[pg_extern(sql = false)]
fn mark_is_worn() -> bool {
    of_mark(|mark| mark.uses >= WORN).unwrap_or(false)
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

/// `recur._mark(provider, priority, since, created, claim)`: sets the mark for claims like the one that began then, or moves it;
/// without a place, removes it, and without a priority, all that is known.
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
    KNOWN.with_borrow_mut(|known| {
        let before = known
            .take()
            .filter(|known| known.provider.as_deref() == provider)
            .and_then(|known| known.mark);
        // Moving it does not put off the walk.
        let until = before.map_or(now.saturating_add(trusted_for), |mark| mark.until);
        let mark = since.zip(created).map(|(since, created)| Mark {
            since,
            created,
            until,
            uses: 0,
        });
        *known = priority.map(|priority| Known {
            provider: provider.map(str::to_owned),
            priority,
            mark,
        });
    });
}
