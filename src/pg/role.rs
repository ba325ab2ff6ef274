//! Acting as somebody else.

use super::installation::{self, Installation};
use pgrx::pg_sys;

/// For the rest of this transaction the process acts as the owner of the extension's tables, and as nobody else: not
/// even code that he has attached to them can get back at the superuser that a background worker starts as.
/// [`transaction::run`](super::transaction::run), which began the transaction, ends it.
pub fn become_owner_until_commit(installation: &Installation) {
    let (mut user, mut context) = (pg_sys::InvalidOid, 0);
    let restricted = pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_RESTRICTED_OPERATION;
    unsafe {
        pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
        pg_sys::SetUserIdAndSecContext(installation.owner, context | restricted as i32);
    }
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
    if let Some(installation) = installation::find() {
        let context = caller.1 | pg_sys::SECURITY_LOCAL_USERID_CHANGE as i32;
        unsafe { pg_sys::SetUserIdAndSecContext(installation.owner, context) };
    }
    work()
}
