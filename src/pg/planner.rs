//! What statements of the extension are planned with, for a part of a call: planner settings, and the names that
//! they see.

use super::compat::Names;
use pgrx::pg_sys;

/// While the value exists, plans use indexes in order and are not compiled: the tables are queues that are empty at one
/// moment and full at the next, and statistics say little about them. The variables are set directly, because `SET
/// LOCAL` takes longer than most statements.
///
/// Names are those of `pg_catalog`, whatever the caller's search_path says. A function whose first act is to set these
/// pins needs no `SET search_path` of its own, which takes the server a hundredth of a claim in each call.
pub struct PlannerPins {
    seqscan: bool,
    bitmapscan: bool,
    jit: bool,
    _names: Names,
}

impl PlannerPins {
    pub fn set() -> PlannerPins {
        // SAFETY: variables of this process, which has one thread; the planner reads them when it plans.
        unsafe {
            let before = PlannerPins {
                seqscan: pg_sys::enable_seqscan,
                bitmapscan: pg_sys::enable_bitmapscan,
                jit: pg_sys::jit_enabled,
                _names: Names::of_server(),
            };
            pg_sys::enable_seqscan = false;
            pg_sys::enable_bitmapscan = false;
            pg_sys::jit_enabled = false;
            before
        }
    }
}

impl Drop for PlannerPins {
    fn drop(&mut self) {
        // SAFETY: variables of this process, which has one thread; the planner reads them when it plans.
        unsafe {
            pg_sys::enable_seqscan = self.seqscan;
            pg_sys::enable_bitmapscan = self.bitmapscan;
            pg_sys::jit_enabled = self.jit;
        }
    }
}
