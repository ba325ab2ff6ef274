//! The owners of whom enough has run alone, one after the other, since the server began.
//!
//! Calls of handlers that share a transaction have claimed nothing that is committed. If one of them crashes the
//! server, or ends its process, no attempt is used up, and it would be called again without end. So the owner is
//! forgotten then, and what waits first runs alone, where each attempt counts.

use pgrx::pg_sys;

/// Of more owners than this, the first one has to prove itself again.
const MAX_PROVEN: usize = 64;

#[derive(Clone, Copy)]
pub struct Proven {
    /// (database, owner)
    owners: [(pg_sys::Oid, i32); MAX_PROVEN],
    /// Where the next one goes.
    next: usize,
}

impl Proven {
    pub const NONE: Proven = Proven {
        owners: [(pg_sys::InvalidOid, 0); MAX_PROVEN],
        next: 0,
    };

    pub fn contains(&self, database: pg_sys::Oid, owner_id: i32) -> bool {
        self.owners.contains(&(database, owner_id))
    }

    pub fn add(&mut self, database: pg_sys::Oid, owner_id: i32) {
        if !self.contains(database, owner_id) {
            self.owners[self.next] = (database, owner_id);
            self.next = (self.next + 1) % MAX_PROVEN;
        }
    }

    pub fn forget(&mut self, database: pg_sys::Oid, owner_id: i32) {
        for one in &mut self.owners {
            if *one == (database, owner_id) {
                *one = (pg_sys::InvalidOid, 0);
            }
        }
    }
}
