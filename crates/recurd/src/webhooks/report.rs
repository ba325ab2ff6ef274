//! What deliveries came to goes back to the database, many in one transaction.

use super::client::Answer;
use super::delivery::Delivery;
use crate::config::Role;
use crate::db::{Database, Failure};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

const REPORT: &str = include_str!("../../sql/webhooks/report.sql");
/// What has gathered while the last transaction committed goes into the next one.
const LARGEST_BATCH: usize = 128;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

pub struct Report {
    id: Uuid,
    attempt: i32,
    /// As [`Delivery::locked`] has it.
    endpoint: (String, Option<String>),
    answer: Answer,
    /// The delivery's, until what it came to is committed or given up.
    _slot: OwnedSemaphorePermit,
}

impl Report {
    pub fn new(delivery: &Delivery, answer: Answer, slot: OwnedSemaphorePermit) -> Report {
        Report {
            id: delivery.id,
            attempt: delivery.attempt,
            endpoint: delivery.locked(),
            answer,
            _slot: slot,
        }
    }
}

/// Between half of the pause and all of it: instances that failed together do not come back together.
pub fn jittered(pause: Duration) -> Duration {
    let random = Uuid::new_v4().as_u128() as u32;
    pause.mul_f64(0.5 + 0.5 * f64::from(random) / f64::from(u32::MAX))
}

/// Writes reports to the database.
#[derive(Clone)]
pub struct Reporter {
    pub database: Database,
    pub role: Role,
    /// How long a report is worth something: later its lease has expired.
    pub lease: Duration,
    /// Informed after each batch: the endpoints have room again.
    pub wakeup: Arc<Notify>,
}

impl Reporter {
    /// Until every sender is gone and all is reported.
    pub async fn run(self, mut inbox: mpsc::Receiver<Report>) {
        let stuck = TaskTracker::new();
        let mut batch = Vec::new();
        while inbox.recv_many(&mut batch, LARGEST_BATCH).await > 0 {
            let until = Instant::now() + self.lease;
            let left = self.report(std::mem::take(&mut batch), until).await;
            if !left.is_empty() {
                stuck.spawn(self.clone().repeat(left, until));
            }
            self.wakeup.notify_one();
        }
        stuck.close();
        stuck.wait().await;
    }

    /// Returns those that may succeed later.
    async fn report(&self, mut batch: Vec<Report>, until: Instant) -> Vec<Report> {
        sort(&mut batch);
        match self.persist(&batch, until).await {
            Ok(()) => Vec::new(),
            Err(failure) if failure.is_of_the_server() => {
                // The leases are over as well.
                for report in &batch {
                    self.give_up(report, &failure);
                }
                Vec::new()
            }
            Err(failure) if failure.is_transient() || batch.len() > 1 => {
                // Of many, one stands in the way of the others: each has a transaction of its own.
                self.one_by_one(batch, until).await
            }
            Err(failure) => {
                self.give_up(&batch[0], &failure);
                Vec::new()
            }
        }
    }

    /// Reports that locks of others kept back, beside the reports that come in meanwhile.
    async fn repeat(self, mut left: Vec<Report>, until: Instant) {
        let mut pause = FIRST_PAUSE;
        while !left.is_empty() {
            tokio::time::sleep(jittered(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            left = self.one_by_one(left, until).await;
            self.wakeup.notify_one();
        }
    }

    /// Returns those that may succeed later.
    async fn one_by_one(&self, batch: Vec<Report>, until: Instant) -> Vec<Report> {
        let mut left = Vec::new();
        for report in batch {
            match self.persist(std::slice::from_ref(&report), until).await {
                Ok(()) => {}
                Err(failure) if failure.is_transient() && Instant::now() < until => {
                    tracing::warn!(event = "webhook.report_delayed", dispatch = %report.id, %failure);
                    left.push(report);
                }
                Err(failure) => self.give_up(&report, &failure),
            }
        }
        left
    }

    /// Until the database answers, or the leases have expired.
    async fn persist(&self, batch: &[Report], until: Instant) -> Result<(), Failure> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.send(batch).await {
                Err(failure) if failure.is_of_the_server() && Instant::now() < until => {
                    let reports = batch.len();
                    tracing::warn!(event = "webhook.report_delayed", reports, %failure);
                }
                result => return result,
            }
            tokio::time::sleep(jittered(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn send(&self, batch: &[Report]) -> Result<(), Failure> {
        let ids: Vec<Uuid> = batch.iter().map(|report| report.id).collect();
        let attempts: Vec<i32> = batch.iter().map(|report| report.attempt).collect();
        let answers = || batch.iter().map(|report| &report.answer);
        let outcomes: Vec<&str> = answers().map(|answer| answer.outcome.name()).collect();
        let statuses: Vec<Option<i32>> = answers()
            .map(|answer| answer.status.map(i32::from))
            .collect();
        let results: Vec<String> = answers().map(|answer| answer.result.to_string()).collect();
        let reasons: Vec<Option<&str>> = answers().map(|answer| answer.reason.as_deref()).collect();
        let waits: Vec<Option<f64>> = answers()
            .map(|answer| answer.outcome.retry_in().map(|wait| wait.as_secs_f64()))
            .collect();
        self.database
            .query(
                &self.role,
                REPORT,
                &[
                    &ids, &attempts, &outcomes, &statuses, &results, &reasons, &waits,
                ],
            )
            .await
            .map(drop)
    }

    /// The lease expires, and the dispatch is delivered again.
    fn give_up(&self, report: &Report, failure: &Failure) {
        tracing::warn!(
            event = "webhook.report_refused",
            dispatch = %report.id,
            attempt = report.attempt,
            outcome = report.answer.outcome.name(),
            %failure
        );
    }
}

/// In the order in which they lock: two instances that report on the same endpoints wait for each other, and do not
/// deadlock.
fn sort(batch: &mut [Report]) {
    batch.sort_unstable_by(|a, b| (&a.endpoint, a.id).cmp(&(&b.endpoint, b.id)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tokio::sync::Semaphore;

    #[test]
    fn reports_lock_endpoint_by_endpoint() {
        let slots = Arc::new(Semaphore::new(8));
        let report = |id: u128, endpoint: &str, owner: Option<&str>| Report {
            id: Uuid::from_u128(id),
            attempt: 1,
            endpoint: (endpoint.to_owned(), owner.map(str::to_owned)),
            answer: Answer::none("", json!({})),
            _slot: Arc::clone(&slots).try_acquire_owned().unwrap(),
        };
        let mut batch = [
            report(1, "b", Some("one")),
            report(2, "a", Some("two")),
            report(3, "operator:x", None),
            report(4, "a", Some("one")),
            report(5, "b", Some("one")),
            report(6, "a", Some("two")),
        ];
        sort(&mut batch);
        let ids: Vec<u128> = batch.iter().map(|report| report.id.as_u128()).collect();
        assert_eq!(ids, [4, 2, 6, 1, 5, 3]);
        assert_eq!(slots.available_permits(), 2);
        drop(batch);
        assert_eq!(slots.available_permits(), 8);
    }

    #[test]
    fn pauses_differ_within_their_half() {
        let pauses: std::collections::BTreeSet<Duration> =
            (0..100).map(|_| jittered(Duration::from_secs(2))).collect();
        assert!(pauses.len() > 50);
        assert!(*pauses.first().unwrap() >= Duration::from_secs(1));
        assert!(*pauses.last().unwrap() <= Duration::from_secs(2));
    }
}
