//! The owners whose SQL runs. A restore, or the owner of the database, can insert rows of any owner; so nothing of an
//! owner runs before a role that may act as it has armed it.

use crate::pg::identity;
use crate::pg::query::queries;
use crate::pg::session::Pinned;
use crate::pg::{compat, relation_lock};
use crate::runtime::cached_table::CachedTable;
use crate::runtime::engine;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::rc::Rc;

queries! {
    ARMED_OWNERS = "commands/queries/armed_owners.sql" ();
    ARM = "commands/queries/arm.sql" (INT4OID, OIDOID, TEXTOID);
    DISARM = "commands/queries/disarm.sql" (INT4ARRAYOID);
    NOTE_HAND = "commands/queries/note_hand.sql" ();
    HAS_SOMETHING = "commands/queries/has_something_to_run.sql" (INT4OID);
}

/// An owner whose SQL runs, as this role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Armed {
    pub owner_id: i32,
    pub role: pg_sys::Oid,
}

thread_local! {
    static ARMED: CachedTable<Rc<Vec<Armed>>> = const { CachedTable::new(c"armed_owners", read) };
}

fn read() -> Rc<Vec<Armed>> {
    let rows = ARMED_OWNERS.with(|query| {
        query.latest_rows(&[], |row| Armed {
            owner_id: row.required(1),
            role: row.required(2),
        })
    });
    Rc::new(rows)
}

/// All of them, in the order of their numbers.
pub fn owners() -> Rc<Vec<Armed>> {
    ARMED.with(CachedTable::get)
}

/// Is there any? Where there is none, nothing is run, and nothing is looked for.
pub fn any() -> bool {
    !owners().is_empty()
}

pub fn is_armed(armed: Armed) -> bool {
    owners().contains(&armed)
}

/// The same, as committed now.
pub fn is_armed_now(armed: Armed) -> bool {
    read().contains(&armed)
}

/// Keeps others from inserting rows by hand, and waits for those that have, until this transaction ends.
pub fn lock() {
    relation_lock::lock(c"recur_internal", c"armed_owners", pg_sys::RowExclusiveLock);
}

/// Has the owner SQL actions, handlers, or dispatches that the database runs? As the engine.
pub fn has_something_to_run(owner_id: i32) -> bool {
    let found = HAS_SOMETHING
        .with(|query| query.latest_rows(&[owner_id.into()], |row| row.required::<bool>(1)));
    found.contains(&true)
}

/// Arms an owner, as the engine.
pub fn arm(armed: Armed, by: &str) {
    let arguments = [armed.owner_id.into(), armed.role.into(), by.into()];
    ARM.with(|query| query.execute(&arguments));
}

/// Disarms owners, as the engine.
pub fn disarm(owners: Vec<i32>) {
    if !owners.is_empty() {
        DISARM.with(|query| query.execute(&[owners.into()]));
    }
}

/// Trigger on the tables that a restore fills: for each statement, and for each row where logical replication writes,
/// which runs no triggers for statements.
#[pg_trigger(sql = false)]
fn disarm_owners<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, impl WhoAllocated>>, PgTriggerError> {
    let row = trigger.new().map(PgHeapTuple::into_owned);
    if engine::is_engine() || identity::is_superuser() {
        return Ok(row);
    }
    // Here, and not as a setting of the function: the engine inserts often.
    let _names = Pinned::names();
    // A session that arms an owner waits until these rows are visible, or gone.
    relation_lock::lock(
        c"recur_internal",
        c"armed_owners",
        pg_sys::ShareRowExclusiveLock,
    );
    let writer = identity::current_role();
    let others = read_as_engine()
        .iter()
        .filter(|armed| !compat::can_set_role(writer, armed.role))
        .map(|armed| armed.owner_id)
        .collect();
    engine::as_engine(|| {
        disarm(others);
        NOTE_HAND.with(|query| query.execute(&[]));
    });
    Ok(row)
}

fn read_as_engine() -> Rc<Vec<Armed>> {
    engine::as_engine(read)
}
