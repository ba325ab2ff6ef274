//! Who sees what: asked by row-level security in every query of everybody who is not a superuser, so it must cost
//! next to nothing.

use crate::pg::latest::LatestQuery;
use pgrx::prelude::*;
use pgrx::{direct_function_call, pg_sys};
use std::cell::{Cell, RefCell};

/// `recur._is_admin()`: may the current role execute `recur._admin()`?
#[pg_extern(sql = false)]
pub fn is_admin() -> bool {
    let Some(marker) = marker() else {
        return false;
    };
    let may: Option<bool> = unsafe {
        direct_function_call(
            pg_sys::has_function_privilege_id,
            &[marker.into_datum(), "EXECUTE".into_datum()],
        )
    };
    may == Some(true)
}

/// The function whose execution is an admin's right.
fn marker() -> Option<pg_sys::Oid> {
    let oid = unsafe {
        let schema = pg_sys::get_namespace_oid(c"recur".as_ptr(), true);
        pg_sys::GetSysCacheOid(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as i32,
            pg_sys::Anum_pg_proc_oid as pg_sys::AttrNumber,
            pg_sys::Datum::from(c"_admin".as_ptr()),
            pg_sys::Datum::from(pg_sys::buildoidvector(std::ptr::null(), 0)),
            pg_sys::Datum::from(schema),
            pg_sys::Datum::from(0),
        )
    };
    (oid != pg_sys::InvalidOid).then_some(oid)
}

thread_local! {
    /// Whose owners they are, and the owners. Kept until a role or a membership changes.
    static OWNERS: RefCell<Option<(pg_sys::Oid, Vec<String>)>> = const { RefCell::new(None) };
    static CHANGES_SEEN: Cell<u64> = const { Cell::new(0) };
    static WATCHING: Cell<bool> = const { Cell::new(false) };
}

/// `recur._visible_owners()`: the roles that the current role is a member of.
#[pg_extern(sql = false)]
pub fn visible_owners() -> Vec<String> {
    watch_roles();
    let user = unsafe { pg_sys::GetUserId() };
    let known = OWNERS.with_borrow(|owners| match owners {
        Some((of, owners)) if *of == user => Some(owners.clone()),
        _ => None,
    });
    known.unwrap_or_else(|| {
        let before = CHANGES_SEEN.get();
        let owners = memberships();
        // A change that was heard of in the meantime may or may not be in the answer.
        if CHANGES_SEEN.get() == before {
            OWNERS.set(Some((user, owners.clone())));
        }
        owners
    })
}

thread_local! {
    static OWNER_OF: LatestQuery = const {
        LatestQuery::new(
            c"SELECT d.owner FROM recur.definitions AS d WHERE d.id = $1",
            pg_sys::BuiltinOid::UUIDOID,
        )
    };
}

/// `recur._is_hidden(action_id)`: is there such an action, and the current role does not see it? One that was created a
/// moment ago counts, also in a transaction that has begun before: its id is in a notification, which anybody can hear.
#[pg_extern(sql = false)]
fn is_hidden(action_id: Option<pgrx::datum::Uuid>) -> bool {
    let owner = OWNER_OF.with(|query| query.texts(action_id));
    let is_seen = |owner| visible_owners().contains(owner) || is_admin();
    !owner.iter().all(is_seen)
}

/// Read-only: on a standby and in a parallel plan it must work as well.
fn memberships() -> Vec<String> {
    const QUERY: &str =
        "SELECT pg_catalog.array_agg(r.rolname::pg_catalog.text) FROM pg_catalog.pg_roles AS r
                          WHERE pg_catalog.pg_has_role(r.oid, 'MEMBER')";
    Spi::connect(|client| client.select(QUERY, None, &[])?.first().get_one())
        .expect("the catalog can be read")
        .unwrap_or_default()
}

/// The server tells when a role or a membership changes, in whatever session.
fn watch_roles() {
    if WATCHING.replace(true) {
        return;
    }
    for cache in [
        pg_sys::SysCacheIdentifier::AUTHOID,
        pg_sys::SysCacheIdentifier::AUTHMEMROLEMEM,
    ] {
        unsafe {
            pg_sys::CacheRegisterSyscacheCallback(
                cache as i32,
                Some(roles_changed),
                pg_sys::Datum::from(0),
            );
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn roles_changed(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    CHANGES_SEEN.set(CHANGES_SEEN.get() + 1);
    OWNERS.set(None);
}
