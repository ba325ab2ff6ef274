//! Trying something that may fail, inside a transaction that goes on.

use super::transaction::Failure;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::panic::AssertUnwindSafe;

/// Runs `body` in a subtransaction. An error of the data inside, or a panic, rolls it back and comes out as a value. What
/// is not the data's fault (a cancelled query, a shutdown, a deadlock, a full disk) is raised again, after the
/// subtransaction has been rolled back: left open, it would keep the session in an aborted transaction.
pub fn attempt<R>(body: impl FnOnce() -> R) -> Result<R, Failure> {
    attempt_unless(body, |failure| !failure.is_about_data())
}

/// The same; only such failures are raised again.
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
