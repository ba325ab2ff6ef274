//! Acting as somebody else.

use pgrx::pg_sys;

/// For the rest of this transaction the process acts as the owner of the extension's tables, and as nobody else: not
/// even code that he has attached to them can get back at the superuser that a background worker starts as. The end of
/// the transaction ends it. False if the tables are not there.
pub fn become_owner_until_commit() -> bool {
    let Some(owner) = owner_of_tables() else {
        return false;
    };
    let (mut user, mut context) = (pg_sys::InvalidOid, 0);
    let restricted = pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_RESTRICTED_OPERATION;
    unsafe {
        pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
        pg_sys::SetUserIdAndSecContext(owner, context | restricted as i32);
    }
    true
}

/// Does this work as the owner of the extension's tables, and is the caller again afterwards, also after an error. The
/// work must run nothing that somebody else has written.
pub fn as_owner<T>(work: impl FnOnce() -> T) -> T {
    struct Caller(pg_sys::Oid, i32);
    impl Drop for Caller {
        fn drop(&mut self) {
            unsafe { pg_sys::SetUserIdAndSecContext(self.0, self.1) };
        }
    }
    let mut caller = Caller(pg_sys::InvalidOid, 0);
    unsafe { pg_sys::GetUserIdAndSecContext(&mut caller.0, &mut caller.1) };
    if let Some(owner) = owner_of_tables() {
        let context = caller.1 | pg_sys::SECURITY_LOCAL_USERID_CHANGE as i32;
        unsafe { pg_sys::SetUserIdAndSecContext(owner, context) };
    }
    work()
}

fn owner_of_tables() -> Option<pg_sys::Oid> {
    const LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    unsafe {
        let schema = pg_sys::get_namespace_oid(c"recur".as_ptr(), true);
        let table = pg_sys::get_relname_relid(c"timers".as_ptr(), schema);
        if table == pg_sys::InvalidOid {
            return None;
        }
        let relation = pg_sys::try_relation_open(table, LOCK);
        if relation.is_null() {
            return None;
        }
        let owner = (*(*relation).rd_rel).relowner;
        pg_sys::relation_close(relation, LOCK);
        Some(owner)
    }
}
