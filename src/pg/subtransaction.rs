//! Work that may fail, inside a transaction that goes on.

use super::transaction::Failure;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;

/// Runs `body` in a subtransaction. A panic, or an error that the data caused, rolls the subtransaction back and is
/// returned as a value. Any other error (a cancelled query, a shutdown, a deadlock, a full disk) is raised again, after
/// the subtransaction has been rolled back: left open, it would keep the session in an aborted transaction.
pub fn attempt<R>(body: impl FnOnce() -> R) -> Result<R, Failure> {
    attempt_unless(body, |failure| !failure.is_about_data())
}

/// Does the work for all items together. If it fails, for each half of them, and so on: items for which the work fails
/// alone are returned, each with the reason. Stops at `most_at_fault` of them and leaves the rest undone: the cause is
/// then hardly the items.
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

/// The same as [`attempt`], with another choice of the failures that are raised again.
pub fn attempt_unless<R>(
    body: impl FnOnce() -> R,
    is_raised: fn(&Failure) -> bool,
) -> Result<R, Failure> {
    let Ok(result) = enclose(|| Ok::<R, Infallible>(body()), is_raised)?;
    Ok(result)
}

/// Runs `body` in a subtransaction that is kept if it returns a value. If it returns an error, raises one or panics,
/// the subtransaction is rolled back, and the error returned.
pub fn keep_if_ok<R, E: From<Failure>>(body: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
    enclose(body, |_| false)?
}

fn enclose<R, E>(
    body: impl FnOnce() -> Result<R, E>,
    is_raised: fn(&Failure) -> bool,
) -> Result<Result<R, E>, Failure> {
    // SAFETY: inside a transaction; the server restores neither memory context nor resource owner by itself, so both
    // are saved.
    let (context, owner) = unsafe {
        let saved = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(saved.0);
        saved
    };
    // SAFETY: both belong to the surrounding transaction, which outlives the subtransaction.
    let restore = || unsafe {
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
    };
    // SAFETY: the subtransaction that was begun above is the current one: each inside has ended itself in this way.
    let roll_back = || unsafe {
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::RollbackAndReleaseCurrentSubTransaction();
        restore();
    };
    PgTryBuilder::new(AssertUnwindSafe(|| {
        let result = body();
        match result {
            // SAFETY: the subtransaction that was begun above is the current one.
            Ok(_) => unsafe { pg_sys::ReleaseCurrentSubTransaction() },
            Err(_) => roll_back(),
        }
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
