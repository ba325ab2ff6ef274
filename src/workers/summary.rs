//! What a dispatcher reports of its work: to the statistics, and once a minute to the log.

use crate::dispatch::batch::Batch;
use crate::runtime::stats;
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

    pub fn count(&mut self, batch: &Batch) {
        if batch.last.is_none() {
            return;
        }
        stats::count_batch(batch.counts(), &batch.lateness);
        for ended in &batch.ended {
            ended.log();
        }
        debug1!(
            "pg_recur dispatcher: batch dispatched={} skipped={} ended={} failed={} more={}",
            batch.dispatched,
            batch.skipped,
            batch.ended.len(),
            batch.failed,
            batch.has_more()
        );
        self.batches += 1;
        self.dispatched += batch.dispatched;
        self.skipped += batch.skipped;
        self.ended += batch.ended.len();
        self.failed += batch.failed;
    }

    pub fn log_now_and_then(&mut self, database: &str) {
        if self.since.elapsed() < EVERY {
            return;
        }
        if self.batches > 0 {
            log!(
                "pg_recur dispatcher: summary database={database:?} seconds={} batches={} dispatched={} skipped={} \
                 ended={} failed={}",
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
