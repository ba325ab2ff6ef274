//! Owners: the extension's numbers for the roles that actions and dispatches belong to.

use crate::pg::error::{SqlError, abbreviated};
use crate::pg::query::queries;
use crate::pg::{catalog, compat, identity, invalidation};
use crate::runtime::engine;
use pgrx::prelude::*;
use pgrx::{direct_function_call, pg_sys};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

queries! {
    OWNERS = "access/queries/owners.sql" ();
    ADD_OWNER = "access/queries/add_owner.sql" (OIDOID, TEXTOID);
    REFRESH_OWNER_NAMES = "access/queries/refresh_owner_names.sql" ();
    REFRESH_LEVEL_NAMES = "access/queries/refresh_level_names.sql" ();
    OUTDATED_NAMES = "access/queries/outdated_names.sql" ();
}

/// What the current role sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visible {
    /// The rows of every owner.
    All,
    /// The rows of these owners.
    Owners(Rc<[i32]>),
}

impl Visible {
    /// As a parameter of a query: NULL for all.
    pub fn parameter(&self) -> Option<Vec<i32>> {
        match self {
            Visible::All => None,
            Visible::Owners(ids) => Some(ids.to_vec()),
        }
    }

    /// The owners whose rows are seen.
    pub fn ids(&self) -> Vec<i32> {
        match self {
            Visible::All => owners().iter().map(|owner| owner.id).collect(),
            Visible::Owners(ids) => ids.to_vec(),
        }
    }
}

#[derive(Clone)]
struct Owner {
    id: i32,
    /// None where a restore found no role of the name.
    role: Option<pg_sys::Oid>,
    name: String,
}

thread_local! {
    /// All owners, until one is added or a role changes.
    static KNOWN: RefCell<Option<Rc<[Owner]>>> = const { RefCell::new(None) };
    /// What a role sees: for the role that asked last.
    static SEEN: RefCell<Option<(pg_sys::Oid, Visible)>> = const { RefCell::new(None) };
    /// Counts the changes. A result is kept only if nothing changed while it was read.
    static CHANGES: Cell<u64> = const { Cell::new(0) };
    static WATCHING: Cell<bool> = const { Cell::new(false) };
}

/// What the current role sees: a reader, an author or a consumer the rows of owners whose rights it has, an admin all.
pub fn visible() -> Visible {
    let role = caller();
    if sees_all() {
        return Visible::All;
    }
    let known = SEEN.with_borrow(|seen| match seen {
        Some((of, visible)) if *of == role => Some(visible.clone()),
        _ => None,
    });
    known.unwrap_or_else(|| {
        let changes = CHANGES.get();
        let owners = owners();
        let has_rights_of = |owner: &&Owner| {
            let has_rights = |of| identity::has_rights_of(role, of);
            owner.role.is_some_and(has_rights)
        };
        let ids = owners.iter().filter(has_rights_of).map(|owner| owner.id);
        let visible = Visible::Owners(ids.collect());
        if CHANGES.get() == changes {
            SEEN.set(Some((role, visible.clone())));
        }
        visible
    })
}

/// The role that calls, behind SET ROLE and functions that run as their owner.
pub fn caller() -> pg_sys::Oid {
    identity::current_role()
}

/// The name of the role that calls.
pub fn caller_name() -> String {
    catalog::role_name(caller()).unwrap_or_default()
}

/// The name of the role that logged in.
pub fn session_name() -> String {
    catalog::role_name(identity::session_role()).unwrap_or_default()
}

/// Who acts where a worker does.
pub const WORKER: &str = "recur_engine";

/// Who did something, for the history.
pub struct Actor {
    /// The role that acts.
    pub name: String,
    /// The role that logged in, where it is another one: a pool, or a person who acts for a team.
    pub login: Option<String>,
}

impl Actor {
    /// The actor of the current call.
    pub fn current() -> Actor {
        let name = catalog::role_name(identity::acting_role()).unwrap_or_default();
        let login = session_name();
        Actor {
            login: (login != name).then_some(login),
            name,
        }
    }

    /// Where a worker acts.
    pub fn worker() -> Actor {
        Actor {
            name: WORKER.to_owned(),
            login: None,
        }
    }
}

/// The owner of the current role, added if there is none yet.
pub fn own_id() -> i32 {
    id_of_role(caller())
}

/// The owner of a role, added if there is none yet.
pub fn id_of_role(role: pg_sys::Oid) -> i32 {
    let find = || {
        owners()
            .iter()
            .find(|owner| owner.role == Some(role))
            .map(|owner| owner.id)
    };
    if let Some(id) = find() {
        return id;
    }
    let name = catalog::role_name(role).unwrap_or_default();
    engine::as_engine(|| ADD_OWNER.with(|query| query.execute(&[role.into(), name.into()])));
    forget();
    find().unwrap_or_else(|| {
        pgrx::error!("pg_recur: the owner of this role was added by a transaction that began later")
    })
}

/// The owner that is named: the caller where none is, or else a role that the caller may SET ROLE to.
pub fn owner_to_act_as(owner: Option<&str>) -> Result<i32, SqlError> {
    let Some(name) = owner else {
        return Ok(own_id());
    };
    let may_act_as = |role: &pg_sys::Oid| compat::can_set_role(caller(), *role);
    match role_named(name).filter(may_act_as) {
        Some(role) => Ok(id_of_role(role)),
        None => {
            let (name, caller) = (abbreviated(name), caller_name());
            let message =
                format!("invalid owner \"{name}\": {caller} may not SET ROLE to this role");
            let code = PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE;
            Err(SqlError::new(code, message).with_hint("Leave it out to own it yourself."))
        }
    }
}

/// The owner that the current role is, if it is one. Never found by name: a dropped role's rows are not its namesake's.
pub fn own_id_if_any() -> Option<i32> {
    let role = caller();
    let owners = owners();
    let own = owners.iter().find(|owner| owner.role == Some(role));
    own.map(|owner| owner.id)
}

/// The role of an owner; None where a restore found no role of the name. The role may have been dropped since.
pub fn role_of(id: i32) -> Option<pg_sys::Oid> {
    let owners = owners();
    let found = owners.binary_search_by_key(&id, |owner| owner.id).ok()?;
    owners[found].role
}

/// The name of an owner's role.
pub fn name_of(id: i32) -> String {
    owner_name(id).unwrap_or_else(|| id.to_string())
}

/// Have roles been renamed whose names are in the tables?
pub fn names_are_outdated() -> bool {
    OUTDATED_NAMES.with(|query| !query.rows(&[], |_| ()).is_empty())
}

/// Writes the present names of renamed roles into the tables that a restore finds roles by. Needs the engine's rights.
pub fn refresh_names() {
    REFRESH_OWNER_NAMES.with(|query| query.execute(&[]));
    REFRESH_LEVEL_NAMES.with(|query| query.execute(&[]));
}

/// The owners whose role has this name now.
pub fn owner_ids_of(name: &str) -> Vec<i32> {
    let owners = owners();
    let has_name = |owner: &&Owner| current_name(owner) == name;
    owners
        .iter()
        .filter(has_name)
        .map(|owner| owner.id)
        .collect()
}

/// `recur_internal.sees_all()`: may the current role execute `recur_internal.admin()`?
#[pg_extern(sql = false)]
pub fn sees_all() -> bool {
    identity::is_superuser() || may_execute(identity::current_role(), c"admin")
}

/// Has the role the level that lets it make the database run SQL? It may execute `recur_internal.runs_sql()` then.
pub fn may_run_sql(role: pg_sys::Oid) -> bool {
    identity::is_superuser_role(role) || may_execute(role, c"runs_sql")
}

/// May a role execute this empty function? The right is what the role's level is.
fn may_execute(role: pg_sys::Oid, marker: &std::ffi::CStr) -> bool {
    let Some(marker) = marker_function(marker) else {
        return false;
    };
    // SAFETY: the function takes two oids and a text, and returns a boolean or NULL.
    let may: Option<bool> = unsafe {
        direct_function_call(
            pg_sys::has_function_privilege_id_id,
            &[
                role.into_datum(),
                marker.into_datum(),
                "EXECUTE".into_datum(),
            ],
        )
    };
    may == Some(true)
}

/// `recur_internal.visible_owners()`.
#[pg_extern(sql = false)]
fn visible_owners() -> Vec<i32> {
    visible().parameter().unwrap_or_default()
}

/// `recur_internal.owner_name(id)`.
#[pg_extern(sql = false)]
fn owner_name(id: i32) -> Option<String> {
    let owners = owners();
    let found = owners.binary_search_by_key(&id, |owner| owner.id).ok()?;
    Some(current_name(&owners[found]))
}

/// Row trigger on `recur_internal.owners`. A restored row has the role's oid of another cluster, so the name decides.
/// The engine knows the role.
#[pg_trigger(sql = false)]
fn owner_changed<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, impl WhoAllocated>>, PgTriggerError> {
    // SAFETY: the relation of a trigger that fires is open.
    unsafe { pg_sys::CacheInvalidateRelcache(trigger.relation()?.as_ptr()) };
    let Some(row) = trigger.new() else {
        return Ok(trigger.old().map(PgHeapTuple::into_owned));
    };
    let mut row = row.into_owned();
    if !engine::is_engine() {
        let name: Option<String> = row.get_by_name("name").unwrap_or_default();
        let role = name.and_then(|name| role_named(&name));
        if row.set_by_name("role", role).is_err() {
            pgrx::error!("pg_recur: recur_internal.owners has no column \"role\" of type oid");
        }
    }
    Ok(Some(row))
}

fn owners() -> Rc<[Owner]> {
    watch();
    if let Some(known) = KNOWN.with_borrow(Clone::clone) {
        return known;
    }
    let changes = CHANGES.get();
    let read: Vec<Owner> = engine::as_engine(|| {
        OWNERS.with(|query| {
            query.rows(&[], |row| Owner {
                id: row.required(1),
                role: row.get(2),
                name: row.required(3),
            })
        })
    });
    let read: Rc<[Owner]> = read.into();
    if CHANGES.get() == changes {
        KNOWN.set(Some(read.clone()));
    }
    read
}

/// The name of the owner's role. A role that was dropped has its last name.
fn current_name(owner: &Owner) -> String {
    let current = owner.role.and_then(catalog::role_name);
    current.unwrap_or_else(|| owner.name.clone())
}

fn role_named(name: &str) -> Option<pg_sys::Oid> {
    let name = std::ffi::CString::new(name).unwrap_or_default();
    catalog::role(&name)
}

fn marker_function(name: &std::ffi::CStr) -> Option<pg_sys::Oid> {
    let schema = catalog::schema(c"recur_internal")?;
    catalog::function_without_arguments(schema, name)
}

/// Forgets the owners when a role, a membership or the table of owners changes, in any session.
fn watch() {
    if WATCHING.replace(true) {
        return;
    }
    invalidation::on_role_change(forget);
    // Any relation: they change rarely, and a callback must not look up which one this is.
    invalidation::on_relation_change(|_relation| forget());
}

fn forget() {
    CHANGES.set(CHANGES.get().wrapping_add(1));
    KNOWN.set(None);
    SEEN.set(None);
}
