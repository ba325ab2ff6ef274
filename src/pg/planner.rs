//! Planner settings for a part of a call.

use pgrx::pg_sys;

/// While the value exists, plans use indexes in order and are not compiled: the tables are queues that are empty at one
/// moment and full at the next, and statistics say little about them. The variables are set directly, because `SET
/// LOCAL` takes longer than most statements.
pub struct PlannerPins {
    seqscan: bool,
    bitmapscan: bool,
    jit: bool,
}

impl PlannerPins {
    pub fn set() -> PlannerPins {
        // SAFETY: variables of this process, which has one thread; the planner reads them when it plans.
        unsafe {
            let before = PlannerPins {
                seqscan: pg_sys::enable_seqscan,
                bitmapscan: pg_sys::enable_bitmapscan,
                jit: pg_sys::jit_enabled,
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
