//! What a session remembers of its last claim, so that the next one need not look for it again.

use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Where the last claim of a provider, or of all, found something.
struct Known {
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

/// A session that claims for more providers than this, one by one, begins anew with each.
const PROVIDERS: usize = 64;

thread_local! {
    /// What this process had spent on a CPU when the claim began.
    static CPU_AT_BEGINNING: Cell<i64> = const { Cell::new(0) };
    static KNOWN: RefCell<BTreeMap<Option<String>, Known>> = const { RefCell::new(BTreeMap::new()) };
}

fn of_known<T>(provider: Option<&str>, what: impl FnOnce(&mut Known) -> Option<T>) -> Option<T> {
    KNOWN.with_borrow_mut(|known| what(known.get_mut(&provider.map(str::to_owned))?))
}

fn keep(provider: Option<&str>, known: Option<Known>) {
    KNOWN.with_borrow_mut(|all| {
        let provider = provider.map(str::to_owned);
        if known.is_some() && all.len() >= PROVIDERS && !all.contains_key(&provider) {
            all.clear();
        }
        match known {
            Some(known) => all.insert(provider, known),
            None => all.remove(&provider),
        };
    });
}

/// `recur._known_priority(provider)`: at which dispatches of the provider, or any, were found last; NULL where nothing is known. Its
/// mark is then used once more.
#[pg_extern(sql = false)]
fn known_priority(provider: Option<&str>) -> Option<i32> {
    CPU_AT_BEGINNING.set(cpu_micros());
    of_known(provider, |known| {
        let now = unsafe { pg_sys::GetCurrentTimestamp() };
        // A clock that was set back must not make it last longer.
        let is_over =
            |mark: &mut Mark| !(1..=TRUSTED_FOR_AT_MOST).contains(&mark.until.saturating_sub(now));
        known.mark.take_if(is_over);
        if let Some(mark) = &mut known.mark {
            mark.uses += 1;
        }
        Some(known.priority)
    })
}

/// `recur._know_priority(provider, priority)`: there something was found; a mark at another priority is of no use any more. With
/// NULL, all is forgotten that was known of the provider.
#[pg_extern(sql = false)]
fn know_priority(provider: Option<&str>, priority: Option<i32>) {
    if priority.is_some() && of_known(provider, |known| Some(known.priority)) == priority {
        return;
    }
    let mark = None;
    keep(provider, priority.map(|priority| Known { priority, mark }));
}

fn of_mark<T>(provider: Option<&str>, what: impl FnOnce(&Mark) -> T) -> Option<T> {
    of_known(provider, |known| known.mark.as_ref().map(what))
}

/// `recur._marked_time(provider)`: from when on there are pending dispatches of that priority; NULL where they may begin anywhere.
#[pg_extern(sql = false)]
fn marked_time(provider: Option<&str>) -> Option<TimestampWithTimeZone> {
    of_mark(provider, |mark| mark.since)
}

/// `recur._marked_creation(provider)`: when the first of them was written.
#[pg_extern(sql = false)]
fn marked_creation(provider: Option<&str>) -> Option<TimestampWithTimeZone> {
    of_mark(provider, |mark| mark.created)
}

/// `recur._mark_is_worn(provider)`.
#[pg_extern(sql = false)]
fn mark_is_worn(provider: Option<&str>) -> bool {
    of_mark(provider, |mark| mark.uses >= WORN).unwrap_or(false)
}

/// Microseconds that this process has spent on a CPU.
fn cpu_micros() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
}

/// A claim that finds what it looks for at once takes less of the CPU than this, and so much more for each dispatch that it wants.
const SLOW: (i64, i64) = (500, 30);

/// `recur._is_slow_again(claim, "limit")`: told of a claim that took long, it says whether it walked far, and another one did so
/// shortly before. One alone may have made its plans; and who only waited, for the machine or for a lock, has not walked.
#[pg_extern(sql = false)]
fn is_slow_again(claim: TimestampWithTimeZone, limit: i32) -> bool {
    thread_local! {
        static SUSPICIOUS_UNTIL: Cell<pg_sys::TimestampTz> = const { Cell::new(pg_sys::TimestampTz::MIN) };
    }
    let (for_all, for_each) = SLOW;
    let normal = for_all.saturating_add(for_each.saturating_mul(i64::from(limit)));
    if cpu_micros() - CPU_AT_BEGINNING.get() < normal {
        return false;
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
    let before = of_known(provider, |known| known.mark.as_ref().map(|mark| mark.until));
    // Moving it does not put off the walk.
    let until = before.unwrap_or(now.saturating_add(trusted_for));
    let mark = since.zip(created).map(|(since, created)| Mark {
        since,
        created,
        until,
        uses: 0,
    });
    keep(provider, priority.map(|priority| Known { priority, mark }));
}
