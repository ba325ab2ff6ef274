//! Where the extension's objects are in this database.

use crate::pg::index_scan::Index;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::{Cell, LazyCell};
use std::ffi::CStr;

/// What every wake-up of a worker needs. Looked up once, and again when somebody has changed one of these relations: to
/// ask the catalogs each time takes longer than to see that nothing is due.
#[derive(Clone, Copy)]
pub struct Installation {
    pub extension: pg_sys::Oid,
    pub timers_due: Index,
    pub live_dispatches_later: Index,
    pub live_dispatches_leased: Index,
}

thread_local! {
    static KNOWN: Cell<Option<Installation>> = const { Cell::new(None) };
    /// How often what is known had to be forgotten.
    static FORGOTTEN: Cell<u64> = const { Cell::new(0) };
    static WATCH: LazyCell<()> = LazyCell::new(|| unsafe {
        pg_sys::CacheRegisterRelcacheCallback(Some(relation_changed), pg_sys::Datum::null());
    });
}

/// None if the extension is not installed here. Needs a transaction.
pub fn find() -> Option<Installation> {
    if let Some(known) = KNOWN.get() {
        return Some(known);
    }
    WATCH.with(|watch| **watch);
    let forgotten = FORGOTTEN.get();
    let found = look_up()?;
    // Something changed meanwhile: it is looked up again the next time.
    if FORGOTTEN.get() == forgotten {
        KNOWN.set(Some(found));
    }
    Some(found)
}

/// Called whenever somebody has changed, dropped or re-indexed a relation, or, with no oid, perhaps any.
#[pg_guard]
unsafe extern "C-unwind" fn relation_changed(_argument: pg_sys::Datum, relation: pg_sys::Oid) {
    let concerns = |known: Installation| {
        let indexes = [
            known.timers_due,
            known.live_dispatches_later,
            known.live_dispatches_leased,
        ];
        relation == pg_sys::InvalidOid
            || indexes
                .iter()
                .any(|one| relation == one.table || relation == one.index)
    };
    if KNOWN.get().is_none_or(concerns) {
        forget();
    }
}

/// It is looked up again the next time.
pub fn forget() {
    KNOWN.set(None);
    FORGOTTEN.set(FORGOTTEN.get().wrapping_add(1));
}

fn look_up() -> Option<Installation> {
    let schema = unsafe { pg_sys::get_namespace_oid(c"recur_internal".as_ptr(), true) };
    let extension = unsafe { pg_sys::get_extension_oid(c"pg_recur".as_ptr(), true) };
    if schema == pg_sys::InvalidOid || extension == pg_sys::InvalidOid {
        return None;
    }
    let relation = |name: &CStr| {
        let oid = unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema) };
        (oid != pg_sys::InvalidOid).then_some(oid)
    };
    let timers = relation(c"timers")?;
    let live_dispatches = relation(c"live_dispatches")?;
    let index = |table, name| {
        let index = relation(name)?;
        Some(Index { table, index })
    };
    Some(Installation {
        extension,
        timers_due: index(timers, c"timers_due")?,
        live_dispatches_later: index(live_dispatches, c"live_dispatches_later")?,
        live_dispatches_leased: index(live_dispatches, c"live_dispatches_leased")?,
    })
}
