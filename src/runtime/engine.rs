//! Acting as `recur_engine`, the role that reads and writes the extension's tables.

use pgrx::pg_sys;

const ENGINE: &std::ffi::CStr = c"recur_engine";
/// Nothing that runs as the engine may change the role for the session, or leave anything behind in it.
const RESTRICTED: i32 =
    (pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_RESTRICTED_OPERATION) as i32;

/// The role that the process acts as, and what is restricted meanwhile.
struct Identity {
    role: pg_sys::Oid,
    context: i32,
}

impl Identity {
    fn current() -> Identity {
        let mut current = Identity {
            role: pg_sys::InvalidOid,
            context: 0,
        };
        // SAFETY: both pointers are valid.
        unsafe { pg_sys::GetUserIdAndSecContext(&mut current.role, &mut current.context) };
        current
    }

    fn assume(&self) {
        // SAFETY: the role exists, or existed a moment ago: then the next check of a right fails.
        unsafe { pg_sys::SetUserIdAndSecContext(self.role, self.context) };
    }
}

fn engine() -> pg_sys::Oid {
    // SAFETY: a catalog look-up that raises where the role is missing.
    unsafe { pg_sys::get_role_oid(ENGINE.as_ptr(), false) }
}

/// Does the work as the engine. The process is the caller again afterwards, also after an error.
pub fn as_engine<T>(work: impl FnOnce() -> T) -> T {
    struct Restore(Identity);
    impl Drop for Restore {
        fn drop(&mut self) {
            self.0.assume();
        }
    }
    let caller = Restore(Identity::current());
    let engine = Identity {
        role: engine(),
        context: caller.0.context | RESTRICTED,
    };
    engine.assume();
    work()
}

/// For the rest of this transaction the process acts as the engine: a worker starts as a superuser and has no need to
/// be one. [`transaction::run`](crate::pg::transaction::run), which began the transaction, restores the role.
pub fn become_engine_until_commit() {
    let context = Identity::current().context | RESTRICTED;
    let role = engine();
    Identity { role, context }.assume();
}

/// Does the extension itself write at the moment?
pub fn is_engine() -> bool {
    let role = Identity::current().role;
    // SAFETY: a catalog look-up; a missing role is no error here.
    role == unsafe { pg_sys::get_role_oid(ENGINE.as_ptr(), true) }
}
