//! Acting as `recur_engine`, the role that reads and writes the extension's tables.

use crate::pg::catalog;
use crate::pg::error::SqlError;
use crate::pg::identity::{self, Identity};
use pgrx::pg_sys;
use pgrx::prelude::PgSqlErrorCode;

const ENGINE: &std::ffi::CStr = c"recur_engine";
/// Code that runs as the engine may neither change the session's role nor leave anything behind in the session.
const RESTRICTED: i32 =
    (pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_RESTRICTED_OPERATION) as i32;

/// The engine, with the restrictions that hold already and its own.
fn engine(current: Identity) -> Identity {
    let Some(role) = catalog::role(ENGINE) else {
        let code = PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT;
        SqlError::new(code, "the role recur_engine does not exist")
            .with_hint("If the role was renamed, ALTER ROLE … RENAME TO recur_engine restores it.")
            .raise()
    };
    Identity {
        role,
        restrictions: current.restrictions | RESTRICTED,
    }
}

/// Does the work as the engine. Afterwards the process is the caller again, also after an error.
pub fn as_engine<T>(work: impl FnOnce() -> T) -> T {
    struct Restore(Identity);
    impl Drop for Restore {
        fn drop(&mut self) {
            self.0.assume();
        }
    }
    let caller = Restore(Identity::current());
    engine(caller.0).assume();
    work()
}

/// The process acts as the engine until the transaction ends: a worker starts as a superuser, and needs no such rights.
/// [`transaction::run`](crate::pg::transaction::run), which began the transaction, restores the role.
pub fn become_engine_until_commit() {
    engine(Identity::current()).assume();
}

/// Is the current role the engine?
pub fn is_engine() -> bool {
    catalog::role(ENGINE) == Some(identity::current_role())
}
