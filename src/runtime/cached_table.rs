//! Small tables that every process reads once, and again after they were changed: a trigger on the table invalidates
//! what all processes know, from the commit of the change on.

use super::{engine, wakeup};
use crate::pg::{self, catalog, invalidation};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::{Cell, LazyCell, RefCell};
use std::ffi::CStr;
use std::rc::Rc;

/// What a process knows of a table of `recur_internal`.
pub struct CachedTable<T> {
    name: &'static CStr,
    /// Reads the table, as the engine.
    read: fn() -> T,
    known: RefCell<Option<T>>,
    /// The state of `watched` when the table was read.
    read_at: Cell<Option<u64>>,
    watched: LazyCell<Rc<Watched>>,
}

/// The table, and how often it was changed.
#[derive(Default)]
struct Watched {
    table: Cell<Option<pg_sys::Oid>>,
    changes: Cell<u64>,
}

thread_local! {
    static ALL_WATCHED: RefCell<Vec<Rc<Watched>>> = const { RefCell::new(Vec::new()) };
    static WATCH: LazyCell<()> = LazyCell::new(|| invalidation::on_relation_change(relation_changed));
}

impl<T: Clone + Default> CachedTable<T> {
    pub const fn new(name: &'static CStr, read: fn() -> T) -> CachedTable<T> {
        CachedTable {
            name,
            read,
            known: RefCell::new(None),
            read_at: Cell::new(None),
            watched: LazyCell::new(watch),
        }
    }

    /// What the table says. Outside of a transaction, what it said last; the default where the extension is not
    /// installed.
    pub fn get(&self) -> T {
        if self.read_at.get() != Some(self.watched.changes.get()) && pg::can_read_tables() {
            self.refresh();
        }
        self.known.borrow().clone().unwrap_or_default()
    }

    fn refresh(&self) {
        WATCH.with(|watch| **watch);
        let Some(table) = table(self.name) else {
            self.known.replace(None);
            return;
        };
        self.watched.table.set(Some(table));
        let changes = self.watched.changes.get();
        let found = match engine::is_engine() {
            true => (self.read)(),
            false => engine::as_engine(self.read),
        };
        self.known.replace(Some(found));
        // If the table was changed meanwhile, the next call reads it again.
        self.read_at.set(Some(changes));
    }
}

fn watch() -> Rc<Watched> {
    let watched = Rc::new(Watched::default());
    ALL_WATCHED.with_borrow_mut(|all| all.push(watched.clone()));
    watched
}

fn table(name: &CStr) -> Option<pg_sys::Oid> {
    catalog::relation(catalog::schema(c"recur_internal")?, name)
}

fn relation_changed(relation: Option<pg_sys::Oid>) {
    ALL_WATCHED.with_borrow(|all| {
        for watched in all {
            if relation.is_none() || relation == watched.table.get() {
                watched.changes.set(watched.changes.get().wrapping_add(1));
            }
        }
    });
}

/// Statement trigger on such a table: every process reads it again, and the workers look what that changes.
#[pg_trigger(sql = false)]
fn cached_table_changed<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, PgTriggerError> {
    invalidation::announce_change(trigger.relid()?);
    wakeup::workers_on_commit();
    wakeup::anything_on_commit();
    Ok(None)
}
