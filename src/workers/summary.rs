//! What a dispatcher says of its work: in the statistics, and once a minute in the log.

use crate::dispatch::decide::EndReason;
use crate::dispatch::tick::Tick;
use crate::stats;
use pgrx::prelude::*;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(60);

pub struct Summary {
    since: Instant,
    batches: u64,
    dispatched: usize,
    skipped: u64,
    ended: usize,
    failed: usize,
}

impl Summary {
    pub fn new() -> Summary {
        Summary {
            since: Instant::now(),
            batches: 0,
            dispatched: 0,
            skipped: 0,
            ended: 0,
            failed: 0,
        }
    }

    pub fn count(&mut self, tick: &Tick) {
        if tick.last.is_none() {
            return;
        }
        stats::count_tick(tick);
        for (action, reason) in &tick.ended {
            match reason {
                EndReason::Exhausted => {
                    log!("pg_recur dispatcher: action ended action={action} reason=exhausted")
                }
                reason => warning!(
                    "pg_recur dispatcher: action ended action={action} reason={}",
                    reason.name()
                ),
            }
        }
        debug1!(
            "pg_recur dispatcher: batch dispatched={} skipped={} ended={} failed={} more={}",
            tick.dispatched,
            tick.skipped,
            tick.ended.len(),
            tick.failed,
            tick.more()
        );
        self.batches += 1;
        self.dispatched += tick.dispatched;
        self.skipped += tick.skipped;
        self.ended += tick.ended.len();
        self.failed += tick.failed;
    }

    pub fn tell_now_and_then(&mut self, database: &str) {
        if self.since.elapsed() < EVERY {
            return;
        }
        if self.batches > 0 {
            log!(
                "pg_recur dispatcher: summary database={database:?} seconds={} batches={} dispatched={} skipped={} ended={} failed={}",
                self.since.elapsed().as_secs(),
                self.batches,
                self.dispatched,
                self.skipped,
                self.ended,
                self.failed
            );
        }
        *self = Summary::new();
    }
}
