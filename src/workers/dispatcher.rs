//! The dispatcher of one database: sleeps until the next instant, dispatches what is due, and so on.

use super::{Backoff, reload_settings};
use crate::dispatch::tick::{self, Tick};
use crate::guc;
use crate::pg::{self, latch, role, time, transaction};
use crate::shared::{self, Departure};
use chrono::{DateTime, Utc};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CStr;
use std::time::Duration;

pub fn main(slot: usize) {
    let database = shared::slot_database(slot);
    unsafe {
        pg_sys::BackgroundWorkerInitializeConnectionByOid(database, pg_sys::InvalidOid, 0);
        pg_sys::before_shmem_exit(Some(leave_slot), pg_sys::Datum::from(slot));
    }
    pin_settings();
    shared::occupy_slot(slot);
    let departure = serve(database, &database_name(database));
    shared::explain_departure(slot, departure);
}

/// What ALTER DATABASE or ALTER ROLE may have set otherwise, and our queries depend on.
fn pin_settings() {
    const PINNED: [(&CStr, &CStr); 3] = [
        // Names and operators mean pg_catalog's.
        (c"search_path", c"pg_catalog, pg_temp"),
        // A definition is read after its timer is locked, and must then be seen as it is, not as it was.
        (c"default_transaction_isolation", c"read committed"),
        (c"lock_timeout", c"0"),
    ];
    for (name, value) in PINNED {
        unsafe {
            pg_sys::SetConfigOption(
                name.as_ptr(),
                value.as_ptr(),
                pg_sys::GucContext::PGC_SUSET,
                pg_sys::GucSource::PGC_S_OVERRIDE,
            );
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn leave_slot(_code: i32, slot: pg_sys::Datum) {
    shared::leave_slot(slot.value());
}

/// Constant while we are connected: renaming a database sends its workers away first.
fn database_name(database: pg_sys::Oid) -> String {
    transaction::run(c"pg_recur dispatcher", move || unsafe {
        let name = pg_sys::get_database_name(database);
        if name.is_null() {
            String::new()
        } else {
            CStr::from_ptr(name).to_string_lossy().into_owned()
        }
    })
    .unwrap_or_default()
}

/// Dispatches until there is a reason to leave.
fn serve(database: pg_sys::Oid, name: &str) -> Departure {
    let mut installation = None;
    let mut backoff = Backoff::new();
    loop {
        reload_settings();
        if shared::is_vacated(database) || !guc::enabled() || !guc::serves_database(name) {
            return Departure::Asked;
        }
        let sleep = match run_once(installation, time::now()) {
            Ok(Turn::Gone) => {
                if installation.is_some() {
                    log!("pg_recur dispatcher: the extension is gone, leaving");
                    // It may have been dropped and created anew in one transaction: look again.
                    return Departure::Asked;
                }
                return Departure::NothingToDo;
            }
            Ok(Turn::Ticked { extension, tick }) => {
                if installation.replace(extension).is_none() {
                    log!("pg_recur dispatcher: started");
                }
                backoff.reset();
                pause_after(&tick, time::now())
            }
            Err(failure) => {
                let pause = backoff.pause();
                warning!(
                    "pg_recur dispatcher: tick failed sqlstate={} message={:?} retry_in={pause:?}",
                    failure.sqlstate,
                    failure.message
                );
                pause
            }
        };
        latch::wait(sleep);
    }
}

enum Turn {
    /// The extension is not, or no longer, the one that was served.
    Gone,
    Ticked {
        extension: pg_sys::Oid,
        tick: Tick,
    },
}

/// One batch in one transaction.
fn run_once(
    installation: Option<pg_sys::Oid>,
    now: DateTime<Utc>,
) -> Result<Turn, transaction::Failure> {
    transaction::run(c"pg_recur dispatcher", move || {
        let Some(extension) = pg::extension_oid() else {
            return Turn::Gone;
        };
        if installation.is_some_and(|known| known != extension)
            || !role::become_owner_until_commit()
        {
            return Turn::Gone;
        }
        Turn::Ticked {
            extension,
            tick: tick::run_batch(now),
        }
    })
}

/// How long to sleep after a batch.
fn pause_after(tick: &Tick, now: DateTime<Utc>) -> Duration {
    /// Rows that are due but locked by somebody else: their commit wakes us, their rollback does not.
    const LOCKED_ELSEWHERE: Duration = Duration::from_millis(100);
    if tick.more {
        return Duration::ZERO;
    }
    let longest = guc::check_interval();
    match tick.next_instant {
        None => longest,
        Some(next) => match (next - now).to_std() {
            Ok(until) if !until.is_zero() => until.min(longest),
            // Due in the meantime: go on at once, unless this batch already found it locked.
            _ if next > tick.now => Duration::ZERO,
            _ => LOCKED_ELSEWHERE.min(longest),
        },
    }
}
