//! The role that this process acts as.

use pgrx::pg_sys;

/// A role to act as, and the server's restrictions on what may be done meanwhile.
#[derive(Clone, Copy)]
pub struct Identity {
    pub role: pg_sys::Oid,
    pub restrictions: i32,
}

impl Identity {
    pub fn current() -> Identity {
        let mut current = Identity {
            role: pg_sys::InvalidOid,
            restrictions: 0,
        };
        // SAFETY: both pointers are valid; the server copies two variables and raises nothing.
        unsafe { pg_sys::GetUserIdAndSecContext(&mut current.role, &mut current.restrictions) };
        current
    }

    /// Acts as this role from now on. A role that has been dropped meanwhile has no rights.
    pub fn assume(self) {
        // SAFETY: the server assigns two variables and raises nothing; rights are checked where one is needed.
        unsafe { pg_sys::SetUserIdAndSecContext(self.role, self.restrictions) };
    }
}

/// The role that calls, behind SET ROLE and functions that run as their owner.
pub fn current_role() -> pg_sys::Oid {
    Identity::current().role
}

/// The role that acts: the one that logged in or was set with SET ROLE, also inside functions that run as their owner.
pub fn acting_role() -> pg_sys::Oid {
    // SAFETY: the server returns a variable that is set in every session.
    unsafe { pg_sys::GetOuterUserId() }
}

/// The role that logged in.
pub fn session_role() -> pg_sys::Oid {
    // SAFETY: the server returns a variable that is set in every session.
    unsafe { pg_sys::GetSessionUserId() }
}

/// Is the current role a superuser? Needs a transaction.
pub fn is_superuser() -> bool {
    // SAFETY: a look-up in the catalog cache.
    unsafe { pg_sys::superuser() }
}

/// Is this role a superuser? Needs a transaction.
pub fn is_superuser_role(role: pg_sys::Oid) -> bool {
    // SAFETY: a look-up in the catalog cache; a role that does not exist is none.
    unsafe { pg_sys::superuser_arg(role) }
}

/// Has a role, by itself or by membership, the rights of another? Needs a transaction.
pub fn has_rights_of(role: pg_sys::Oid, other: pg_sys::Oid) -> bool {
    // SAFETY: a look-up in the catalog cache; roles that do not exist have no rights.
    unsafe { pg_sys::has_privs_of_role(role, other) }
}
