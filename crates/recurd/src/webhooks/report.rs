//! What deliveries came to goes back to the database, many in one transaction.

use super::client::Answer;
use super::delivery::Delivery;
use crate::config::Role;
use crate::db::{Database, Failure};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use uuid::Uuid;

const REPORT: &str = include_str!("../../sql/webhooks/report.sql");
/// What has gathered while the last transaction committed goes into the next one.
const LARGEST_BATCH: usize = 128;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

pub struct Report {
    id: Uuid,
    attempt: i32,
    answer: Answer,
}

impl Report {
    pub fn new(delivery: &Delivery, answer: Answer) -> Report {
        Report {
            id: delivery.id,
            attempt: delivery.attempt,
            answer,
        }
    }
}

/// Writes reports to the database.
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
        let mut batch = Vec::new();
        while inbox.recv_many(&mut batch, LARGEST_BATCH).await > 0 {
            self.report(&mut batch).await;
            batch.clear();
            self.wakeup.notify_one();
        }
    }

    async fn report(&self, batch: &mut [Report]) {
        // Two that report the same dispatches lock them in the same order.
        batch.sort_by_key(|report| report.id);
        let Err(failure) = self.persist(batch).await else {
            return;
        };
        if batch.len() == 1 {
            return self.give_up(&batch[0], &failure);
        }
        // One of them is refused, and the transaction with it: the others are reported one by one.
        for report in batch {
            if let Err(failure) = self.persist(std::slice::from_ref(report)).await {
                self.give_up(report, &failure);
            }
        }
    }

    /// Until the database answers, or the leases have expired.
    async fn persist(&self, batch: &[Report]) -> Result<(), Failure> {
        let until = Instant::now() + self.lease;
        let mut pause = FIRST_PAUSE;
        loop {
            match self.send(batch).await {
                Err(failure @ (Failure::Unavailable(_) | Failure::Busy))
                    if Instant::now() < until =>
                {
                    let reports = batch.len();
                    tracing::warn!(event = "webhook.report_delayed", reports, %failure);
                }
                result => return result,
            }
            tokio::time::sleep(pause).await;
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
