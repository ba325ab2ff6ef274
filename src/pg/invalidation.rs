//! Callbacks for changes of the catalogs, in any session. The server runs them where it processes invalidation
//! messages: a callback may forget what it knows, and must look nothing up.

use pgrx::pg_sys;
use pgrx::prelude::*;

/// Calls back whenever a relation was changed, dropped or re-indexed. Without an oid, any relation may have been.
pub fn on_relation_change(callback: fn(Option<pg_sys::Oid>)) {
    let argument = pg_sys::Datum::from(callback as *mut ());
    // SAFETY: the callback lives as long as the process, and takes the argument for what it is.
    unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(relation_changed), argument) };
}

/// Calls back whenever a role or a membership was changed.
pub fn on_role_change(callback: fn()) {
    use pg_sys::SysCacheIdentifier::{AUTHMEMROLEMEM, AUTHOID};
    for cache in [AUTHOID, AUTHMEMROLEMEM] {
        let argument = pg_sys::Datum::from(callback as *mut ());
        // SAFETY: both caches exist; the callback lives as long as the process, and takes the argument for what it is.
        unsafe {
            pg_sys::CacheRegisterSyscacheCallback(cache as i32, Some(roles_changed), argument)
        };
    }
}

/// # Safety
/// `callback` must be the argument that [`on_relation_change`] registers.
#[pg_guard]
unsafe extern "C-unwind" fn relation_changed(callback: pg_sys::Datum, relation: pg_sys::Oid) {
    // SAFETY: the argument is a function pointer of this type.
    let callback =
        unsafe { std::mem::transmute::<*mut (), fn(Option<pg_sys::Oid>)>(callback.cast_mut_ptr()) };
    callback((relation != pg_sys::InvalidOid).then_some(relation));
}

/// # Safety
/// `callback` must be the argument that [`on_role_change`] registers.
#[pg_guard]
unsafe extern "C-unwind" fn roles_changed(callback: pg_sys::Datum, _cache: i32, _hash: u32) {
    // SAFETY: the argument is a function pointer of this type.
    let callback = unsafe { std::mem::transmute::<*mut (), fn()>(callback.cast_mut_ptr()) };
    callback();
}

/// Tells every process, from the commit of this transaction on, that a relation was changed.
pub fn announce_change(relation: pg_sys::Oid) {
    // SAFETY: an oid of no relation raises an error.
    unsafe { pg_sys::CacheInvalidateRelcacheByRelid(relation) };
}
