//! Where the extension's objects are in this database.

use crate::pg::index_scan::Index;
use crate::pg::query::queries;
use crate::pg::{catalog, invalidation};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::{Cell, LazyCell};
use std::ffi::CStr;

/// The objects that every wake-up of a worker needs. They are looked up once, and again after one of these relations
/// has been changed: a look-up takes longer than to see that nothing is due.
#[derive(Clone, Copy)]
pub struct Installation {
    pub extension: pg_sys::Oid,
    pub timers_due: Index,
    pub live_dispatches_later: Index,
    pub live_dispatches_leased: Index,
    pub alarms_due: Index,
}

queries! {
    EXTENSION_VERSION = "install/queries/extension_version.sql" ();
}

/// The version of this library. The objects of a database have the same one, or have to be updated.
pub const LIBRARY_VERSION: &str = env!("CARGO_PKG_VERSION");

thread_local! {
    static KNOWN: Cell<Option<Installation>> = const { Cell::new(None) };
    /// Counts the calls of [`forget`].
    static FORGOTTEN: Cell<u64> = const { Cell::new(0) };
    static WATCH: LazyCell<()> =
        LazyCell::new(|| invalidation::on_relation_change(relation_changed));
}

/// None if the extension is not installed here. Needs a transaction.
pub fn find() -> Option<Installation> {
    if let Some(known) = KNOWN.get() {
        return Some(known);
    }
    WATCH.with(|watch| **watch);
    let forgotten = FORGOTTEN.get();
    let found = look_up()?;
    // Keep the result only if no relation was changed during the look-up.
    if FORGOTTEN.get() == forgotten {
        KNOWN.set(Some(found));
    }
    Some(found)
}

/// Raises where the objects of this database are of another version than this library: a worker would misread them.
pub fn check_version() {
    let version: Option<String> =
        EXTENSION_VERSION.with(|query| query.row(&[], |row| row.required(1)));
    let version = version.unwrap_or_default();
    if version != LIBRARY_VERSION {
        pgrx::ereport!(
            ERROR,
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "the extension in this database has version {version}, and the library {LIBRARY_VERSION}: nothing \
                 fires until ALTER EXTENSION pg_recur UPDATE"
            )
        );
    }
}

fn relation_changed(relation: Option<pg_sys::Oid>) {
    let concerns = |known: Installation| {
        let indexes = [
            known.timers_due,
            known.live_dispatches_later,
            known.live_dispatches_leased,
            known.alarms_due,
        ];
        relation.is_none_or(|changed| {
            indexes
                .iter()
                .any(|one| changed == one.table || changed == one.index)
        })
    };
    if KNOWN.get().is_none_or(concerns) {
        forget();
    }
}

/// Makes the next [`find`] look everything up again.
pub fn forget() {
    KNOWN.set(None);
    FORGOTTEN.set(FORGOTTEN.get().wrapping_add(1));
}

fn look_up() -> Option<Installation> {
    let schema = catalog::schema(c"recur_internal")?;
    let extension = catalog::extension(c"pg_recur")?;
    let relation = |name: &CStr| catalog::relation(schema, name);
    let timers = relation(c"timers")?;
    let live_dispatches = relation(c"live_dispatches")?;
    let alarms = relation(c"alarms")?;
    let index = |table, name| {
        let index = relation(name)?;
        Some(Index { table, index })
    };
    Some(Installation {
        extension,
        timers_due: index(timers, c"timers_due")?,
        live_dispatches_later: index(live_dispatches, c"live_dispatches_later")?,
        live_dispatches_leased: index(live_dispatches, c"live_dispatches_leased")?,
        alarms_due: index(alarms, c"alarms_due")?,
    })
}
