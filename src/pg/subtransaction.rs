//! Trying something that may fail, inside a transaction that goes on.

use super::transaction::Failure;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::panic::AssertUnwindSafe;

/// Runs `body` in a subtransaction. An error of the data inside, or a panic, rolls it back and comes out as a value.
/// What is not the data's fault (a cancelled query, a shutdown, a deadlock, a full disk) is raised again, after the
/// subtransaction has been rolled back: left open, it would keep the session in an aborted transaction.
pub fn attempt<R>(body: impl FnOnce() -> R) -> Result<R, Failure> {
    attempt_unless(body, |failure| !failure.is_about_data())
}

/// Does the work for all of them together. If that fails, for each half of them, and so on, so that only those are left
/// for which it fails alone: these are returned, with the reason. With so many of them the fault is hardly theirs, and
/// the rest is left, too.
pub fn attempt_in_parts<'a, T>(
    all: &'a [T],
    most_at_fault: usize,
    mut work: impl FnMut(&'a [T]),
) -> Vec<(&'a T, Failure)> {
    let mut at_fault = Vec::new();
    let mut parts = vec![all];
    while let Some(part) = parts.pop() {
        check_for_interrupts!();
        match (attempt(|| work(part)), part) {
            (Ok(()), _) => {}
            (Err(failure), [one]) => at_fault.push((one, failure)),
            (Err(_), _) => {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first]);
            }
        }
        if at_fault.len() == most_at_fault {
            break;
        }
    }
    at_fault
}

/// The same as [`attempt`]; only such failures are raised again.
pub fn attempt_unless<R>(
    body: impl FnOnce() -> R,
    is_raised: fn(&Failure) -> bool,
) -> Result<R, Failure> {
    let (context, owner) = unsafe {
        let saved = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(saved.0);
        saved
    };
    let restore = || unsafe {
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
    };
    let roll_back = || unsafe {
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::RollbackAndReleaseCurrentSubTransaction();
        restore();
    };
    PgTryBuilder::new(AssertUnwindSafe(|| {
        let result = body();
        unsafe { pg_sys::ReleaseCurrentSubTransaction() };
        restore();
        Ok(result)
    }))
    .catch_others(|error| {
        let failure = Failure::from(&error);
        roll_back();
        match is_raised(&failure) {
            true => error.rethrow(),
            false => Err(failure),
        }
    })
    .catch_rust_panic(|error| {
        roll_back();
        Err(Failure::from(&error))
    })
    .execute()
}
