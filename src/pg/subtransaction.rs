//! Trying something that may fail, inside a transaction that goes on.

use super::transaction::Failure;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::panic::AssertUnwindSafe;

/// Runs `body` in a subtransaction. An error of the data inside rolls it back and comes out as a value. What is not the
/// data's fault (a cancelled query, a shutdown, a deadlock, a full disk) is raised again.
pub fn attempt<R>(body: impl FnOnce() -> R) -> Result<R, Failure> {
    let (context, owner) = unsafe {
        let saved = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(saved.0);
        saved
    };
    let outcome = PgTryBuilder::new(AssertUnwindSafe(|| {
        let result = body();
        unsafe { pg_sys::ReleaseCurrentSubTransaction() };
        Ok(result)
    }))
    .catch_others(|error| {
        let failure = Failure::from(&error);
        if failure.is_about_data() {
            Err(failure)
        } else {
            error.rethrow()
        }
    })
    .execute();
    unsafe {
        pg_sys::MemoryContextSwitchTo(context);
        if outcome.is_err() {
            pg_sys::RollbackAndReleaseCurrentSubTransaction();
            pg_sys::MemoryContextSwitchTo(context);
        }
        pg_sys::CurrentResourceOwner = owner;
    }
    outcome
}
