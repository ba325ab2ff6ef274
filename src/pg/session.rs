//! The state that a session keeps between transactions: what one run leaves there, the next one must not see.

use super::identity::{self, Identity};
use super::transaction::{self, Failure};
use pgrx::pg_sys;
use std::convert::Infallible;
use std::ffi::{CStr, c_char};

unsafe extern "C-unwind" {
    fn Async_UnlistenAll();
    fn ResetSequenceCaches();
    fn AtEOXact_LargeObject(is_commit: bool);
}

/// Puts the session into the state that it began with: as DISCARD ALL, but with the plans kept.
pub fn reset() -> Result<(), Failure> {
    forget_cancellation();
    let outcome = transaction::run(c"pg_recur executor", || {
        // SAFETY: what DISCARD ALL does, in its order, inside a transaction that has done nothing else.
        unsafe {
            pg_sys::PortalHashTableDeleteAll();
            pg_sys::SetPGVariable(
                c"session_authorization".as_ptr(),
                std::ptr::null_mut(),
                false,
            );
            pg_sys::ResetAllOptions();
            pg_sys::DropAllPreparedStatements();
            Async_UnlistenAll();
            pg_sys::LockReleaseAll(pg_sys::USER_LOCKMETHOD as pg_sys::LOCKMETHODID, true);
            pg_sys::ResetTempTableNamespace();
            ResetSequenceCaches();
        }
    });
    // The transaction has left the role that it began as, which the run had set.
    Identity {
        role: identity::session_role(),
        restrictions: 0,
    }
    .assume();
    report_statistics(false);
    outcome
}

/// Brings a call to its end inside a transaction that goes on: what waits for the commit happens now, and what the
/// session keeps is gone, as far as this is possible. Raises the errors of deferred triggers, after which the
/// transaction can't go on. Not in a subtransaction.
pub fn end_call() {
    let fired: Result<(), Infallible> = with_settings_restored(|| {
        // SAFETY: a transaction is open, outside of a query.
        unsafe { pg_sys::AfterTriggerFireDeferred() };
        Ok(())
    });
    let Ok(()) = fired;
    // SAFETY: as above; each of them may be called more than once in a transaction.
    unsafe {
        pg_sys::PortalHashTableDeleteAll();
        pg_sys::DropAllPreparedStatements();
        pg_sys::LockReleaseSession(pg_sys::USER_LOCKMETHOD as pg_sys::LOCKMETHODID);
        ResetSequenceCaches();
        AtEOXact_LargeObject(true);
    }
    Identity {
        role: identity::session_role(),
        restrictions: 0,
    }
    .assume();
}

/// Has the transaction used temporary objects? They stay until its end.
pub fn has_used_temporary_objects() -> bool {
    // SAFETY: a variable of this process.
    unsafe { pg_sys::MyXactFlags & pg_sys::XACT_FLAGS_ACCESSEDTEMPNAMESPACE as i32 != 0 }
}

/// How many subtransactions of the open one have written. Those beyond 64 slow down every other session.
pub fn written_subtransactions() -> usize {
    // SAFETY: the entry of this process, which it alone writes.
    unsafe { usize::from((*pg_sys::MyProc).subxidStatus.count) }
}

/// Settings that are changed while `body` runs have their former values afterwards, also those that were meant to
/// stay. After an error, the end of the subtransaction restores them.
pub fn with_settings_restored<R, E>(body: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
    // SAFETY: the level is ended in the subtransaction that it was begun in, or by its rollback.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        let result = body()?;
        pg_sys::AtEOXact_GUC(false, level);
        Ok(result)
    }
}

/// Lets autovacuum and `pg_stat_*` see what was done: now, or, unless forced, not more than about once a second.
pub fn report_statistics(is_forced: bool) {
    // SAFETY: outside of a transaction, statistics may be reported.
    unsafe { pg_sys::pgstat_report_stat(is_forced) };
}

/// Shows in `pg_stat_activity` what runs.
pub fn show(application_name: &str, query: &CStr) {
    let name = std::ffi::CString::new(application_name).unwrap_or_default();
    // SAFETY: the texts end with a zero byte, and the server copies them.
    unsafe {
        set(c"application_name".as_ptr(), name.as_ptr());
        pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_RUNNING, query.as_ptr());
        pg_sys::debug_query_string = query.as_ptr();
    }
}

/// Nothing runs any more.
pub fn show_idle() {
    // SAFETY: as above; the server forgets the text that it pointed to.
    unsafe {
        pg_sys::debug_query_string = std::ptr::null();
        set(c"application_name".as_ptr(), c"pg_recur".as_ptr());
        pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_IDLE, std::ptr::null());
    }
}

/// # Safety
/// Both texts must end with a zero byte.
unsafe fn set(name: *const c_char, value: *const c_char) {
    // SAFETY: the caller promises texts; a value that a later SET hides comes back with its reset.
    unsafe {
        pg_sys::SetConfigOption(
            name,
            value,
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_OVERRIDE,
        );
    }
}

/// A request to cancel that came too late is none for the next run.
pub fn forget_cancellation() {
    // SAFETY: a flag that a signal handler of this process sets, hence volatile.
    unsafe { (&raw mut pg_sys::QueryCancelPending).write_volatile(0) };
}

/// While the value exists, names and operators are those of `pg_catalog`, whatever the role or a run has set.
pub struct Pinned {
    level: i32,
}

impl Pinned {
    pub fn names() -> Pinned {
        // SAFETY: the level is ended with the value, or with the transaction that an error ends.
        unsafe {
            let level = pg_sys::NewGUCNestLevel();
            pg_sys::set_config_option(
                c"search_path".as_ptr(),
                c"pg_catalog, pg_temp".as_ptr(),
                pg_sys::GucContext::PGC_USERSET,
                pg_sys::GucSource::PGC_S_SESSION,
                pg_sys::GucAction::GUC_ACTION_SAVE,
                true,
                0,
                false,
            );
            Pinned { level }
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // After an error, the end of the transaction ends the level.
        if !std::thread::panicking() {
            // SAFETY: the level is the one that was begun last: those inside have ended.
            unsafe { pg_sys::AtEOXact_GUC(true, self.level) };
        }
    }
}

/// The settings that new transactions begin with, for a part of the time: those that the role has would let the
/// bookkeeping write nothing, or see nothing new.
pub struct PlainTransactions {
    isolation: i32,
    read_only: bool,
}

impl PlainTransactions {
    pub fn set() -> PlainTransactions {
        // SAFETY: variables of this process, which has one thread; the server reads them when a transaction begins.
        unsafe {
            let before = PlainTransactions {
                isolation: pg_sys::DefaultXactIsoLevel,
                read_only: pg_sys::DefaultXactReadOnly,
            };
            pg_sys::DefaultXactIsoLevel = pg_sys::XACT_READ_COMMITTED as i32;
            pg_sys::DefaultXactReadOnly = false;
            before
        }
    }
}

impl Drop for PlainTransactions {
    fn drop(&mut self) {
        // SAFETY: variables of this process, which has one thread; the server reads them when a transaction begins.
        unsafe {
            pg_sys::DefaultXactIsoLevel = self.isolation;
            pg_sys::DefaultXactReadOnly = self.read_only;
        }
    }
}

/// May the transaction that is open write, and does it see what others commit meanwhile?
pub fn is_plain_transaction() -> bool {
    // SAFETY: variables of this process.
    unsafe { !pg_sys::XactReadOnly && pg_sys::XactIsoLevel == pg_sys::XACT_READ_COMMITTED as i32 }
}

pub fn is_read_only() -> bool {
    // SAFETY: a variable of this process.
    unsafe { pg_sys::XactReadOnly }
}
