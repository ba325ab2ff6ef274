//! Routes, claims and delivers until it is stopped. Any number of instances do so side by side: the database hands each
//! dispatch to one of them, with a lease.
//!
//! One loop routes and claims. Each delivery is a task of its own, which holds one of the slots until its report is
//! committed. A single task reports, and wakes the loop after each batch, because an endpoint may have room again then.

use super::address::Policy;
use super::client::{Answer, Client};
use super::delivery::{self, Delivery};
use super::report::{Report, Reporter, jittered};
use crate::config::webhooks::Deliver;
use crate::db::{self, Database, Failure};
use crate::state::State;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

const ROUTE: &str = include_str!("../../sql/webhooks/route.sql");
const CLAIM: &str = include_str!("../../sql/webhooks/claim.sql");
const EXTEND: &str = include_str!("../../sql/webhooks/extend.sql");
const RELEASE: &str = include_str!("../../sql/webhooks/release.sql");

/// Routed in one transaction, and claimed in one.
const ROUTED: i32 = 1000;
const CLAIMED: usize = 100;
/// While most slots are busy, a claim waits for a few more to be free: one for each costs a transaction a delivery.
const GATHERING: Duration = Duration::from_millis(5);
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Delivers until the token is cancelled; what is under way then has some time left.
pub async fn run(state: &State, stop: CancellationToken) -> Result<(), String> {
    let engine = Arc::new(Engine::new(state)?);
    let wakeup = Arc::clone(&engine.wakeup);
    let listener = db::listen(state, &engine.config().notify_channel, move || {
        wakeup.notify_one()
    });
    let listener = AbortOnDropHandle::new(tokio::spawn(listener));
    tracing::info!(event = "deliver.started", consumer = engine.consumer);
    engine.run(&stop, false).await;
    drop(listener);
    tracing::info!(event = "deliver.stopped");
    Ok(())
}

/// Deliveries that calls from outside ask for, where no process may run all the time.
pub struct Calls {
    /// One at a time: callers that hang up do not pile up.
    turn: Arc<Semaphore>,
    running: TaskTracker,
}

impl Default for Calls {
    fn default() -> Calls {
        Calls {
            turn: Arc::new(Semaphore::new(1)),
            running: TaskTracker::new(),
        }
    }
}

impl Calls {
    /// Until all that was begun has ended.
    pub async fn finish(&self) {
        self.running.close();
        self.running.wait().await;
    }
}

/// Delivers what is due, until nothing is left or the time is over. It goes on where the caller hangs up: a claim that
/// is broken off lies idle until its lease expires.
pub async fn for_a_while(state: &State, limit: Duration) -> Result<(), String> {
    let until = Instant::now() + limit;
    let turn = Arc::clone(&state.calls.turn).acquire_owned();
    let Ok(Ok(turn)) = tokio::time::timeout_at(until, turn).await else {
        // Another call has delivered all the time.
        return Ok(());
    };
    let engine = Arc::new(Engine::new(state)?);
    let stop = state.stop.child_token();
    let running = state.calls.running.spawn(async move {
        let timer = stop.clone();
        let timer = AbortOnDropHandle::new(tokio::spawn(async move {
            tokio::time::sleep_until(until).await;
            timer.cancel();
        }));
        engine.run(&stop, true).await;
        drop((timer, turn));
    });
    running.await.map_err(|error| error.to_string())
}

struct Engine {
    state: State,
    database: Database,
    client: Client,
    /// The operator's endpoints, as the database routes to them.
    operator: String,
    consumer: String,
    slots: Arc<Semaphore>,
    wakeup: Arc<Notify>,
}

/// What ends a delivery early.
enum Interruption {
    /// Another instance has it, or it is finished: nothing is to be reported.
    Lost,
    Cancelled,
}

impl Engine {
    fn new(state: &State) -> Result<Engine, String> {
        let config = state.config.deliver.as_ref();
        let config = config.ok_or("the configuration has no section [deliver]")?;
        let database = state.database.clone().ok_or("no database is configured")?;
        let policy = Policy::public(config.allow_networks.clone(), config.allow_http);
        Ok(Engine {
            client: Client::new(policy)?,
            operator: delivery::operator(&config.endpoints),
            consumer: consumer(),
            slots: Arc::new(Semaphore::new(config.concurrency)),
            wakeup: Arc::new(Notify::new()),
            state: state.clone(),
            database,
        })
    }

    fn config(&self) -> &Deliver {
        self.state
            .config
            .deliver
            .as_ref()
            .expect("checked when this was made")
    }

    async fn run(self: &Arc<Engine>, stop: &CancellationToken, until_idle: bool) {
        let config = self.config();
        let (reports, inbox) = mpsc::channel(2 * config.concurrency);
        let reporter = Reporter {
            database: self.database.clone(),
            role: config.role.clone(),
            lease: config.lease,
            wakeup: Arc::clone(&self.wakeup),
        };
        let reporter = tokio::spawn(reporter.run(inbox));
        let crew = Crew {
            engine: Arc::clone(self),
            tasks: TaskTracker::new(),
            give_back: CancellationToken::new(),
            reports,
        };
        crew.work(stop, until_idle).await;
        crew.finish(config.grace).await;
        // While the database is away, reports wait; what is not reported comes again.
        match tokio::time::timeout(config.grace, reporter).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(event = "deliver.reporter_ended", %error),
            Err(_) => tracing::warn!(event = "deliver.reports_lost"),
        }
    }

    /// Gives all waiting dispatches their endpoints.
    async fn route(&self) -> Result<(), Failure> {
        loop {
            let parameters: [&(dyn db::ToSql + Sync); 2] = [&self.operator, &ROUTED];
            let rows = self
                .database
                .query(&self.config().role, ROUTE, &parameters)
                .await?;
            let routed: i32 = rows.first().map_or(0, |row| row.get("routed"));
            if routed < ROUTED {
                return Ok(());
            }
        }
    }

    async fn claim(&self, limit: usize) -> Result<Vec<Delivery>, Failure> {
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let lease = self.config().lease.as_secs_f64();
        let parameters: [&(dyn db::ToSql + Sync); 4] =
            [&limit, &lease, &self.consumer, &self.operator];
        let rows = self
            .database
            .query(&self.config().role, CLAIM, &parameters)
            .await?;
        Ok(rows.iter().map(Delivery::of).collect())
    }

    /// What the receiver answered; None where the dispatch is no longer this instance's.
    async fn attempt(&self, mut delivery: Delivery) -> Option<Answer> {
        let request = match delivery.request(self.config()) {
            Ok(request) => request,
            Err(reason) => return Some(Answer::none(&reason, json!({}))),
        };
        let answer = tokio::select! {
            answer = self.client.send(request) => answer,
            interruption = self.keep(&delivery) => match interruption {
                Interruption::Lost => return None,
                Interruption::Cancelled => Answer::none("cancelled during the delivery", json!({})),
            },
        };
        log(&delivery, &answer);
        Some(answer)
    }

    /// Renews the lease until it is lost, or the dispatch is to stop.
    async fn keep(&self, delivery: &Delivery) -> Interruption {
        let config = self.config();
        let mut expires = Instant::now() + config.lease;
        let mut pause = config.lease / 3;
        loop {
            tokio::time::sleep(pause).await;
            let asked = Instant::now();
            let lease = config.lease.as_secs_f64();
            let parameters: [&(dyn db::ToSql + Sync); 3] =
                [&delivery.id, &delivery.attempt, &lease];
            match self.database.query(&config.role, EXTEND, &parameters).await {
                Ok(rows) => {
                    let is_cancelled = |row: &tokio_postgres::Row| row.get("cancel_requested");
                    if rows.first().is_some_and(is_cancelled) {
                        return Interruption::Cancelled;
                    }
                    expires = asked + config.lease;
                    pause = config.lease / 3;
                }
                Err(failure) if failure.is_transient() && Instant::now() < expires => {
                    tracing::warn!(event = "webhook.lease_delayed", dispatch = %delivery.id, %failure);
                    pause = jittered(config.lease / 10);
                }
                Err(failure) => {
                    tracing::warn!(event = "webhook.lease_lost", dispatch = %delivery.id, %failure);
                    return Interruption::Lost;
                }
            }
        }
    }

    /// The attempt does not count, and another instance takes the dispatch at once.
    async fn release(&self, delivery: &Delivery) {
        let parameters: [&(dyn db::ToSql + Sync); 2] = [&delivery.id, &delivery.attempt];
        if let Err(failure) = self
            .database
            .query(&self.config().role, RELEASE, &parameters)
            .await
        {
            tracing::warn!(event = "webhook.release_failed", dispatch = %delivery.id, %failure);
        }
    }
}

/// The deliveries that are under way.
struct Crew {
    engine: Arc<Engine>,
    tasks: TaskTracker,
    give_back: CancellationToken,
    reports: mpsc::Sender<Report>,
}

impl Crew {
    /// A claim is never broken off: what it has taken would lie idle until its lease expires.
    async fn work(&self, stop: &CancellationToken, until_idle: bool) {
        let poll = self.engine.config().poll;
        let mut pause = FIRST_PAUSE;
        while !stop.is_cancelled() {
            // Asked before the claim: an endpoint may have had no room for more while something was not reported.
            let is_all_reported = self.is_all_reported();
            match self.round().await {
                Ok(0) if until_idle && is_all_reported => return,
                Ok(claimed) => {
                    pause = FIRST_PAUSE;
                    if claimed > 0 && self.engine.slots.available_permits() > 0 {
                        continue;
                    }
                    // A timeout is as good as a wake-up: the safety net.
                    let wakeup = tokio::time::timeout(poll, self.engine.wakeup.notified());
                    if stop.run_until_cancelled(wakeup).await.is_some() {
                        self.gather().await;
                    }
                }
                Err(failure) => {
                    tracing::warn!(event = "deliver.failed", %failure);
                    let pausing = tokio::time::sleep(jittered(pause));
                    let _ = stop.run_until_cancelled(pausing).await;
                    pause = (pause * 2).min(poll);
                }
            }
        }
    }

    fn is_all_reported(&self) -> bool {
        self.engine.slots.available_permits() == self.engine.config().concurrency
    }

    async fn gather(&self) {
        let slots = self.engine.config().concurrency;
        if self.engine.slots.available_permits() < slots.div_ceil(4) {
            tokio::time::sleep(GATHERING).await;
        }
    }

    /// How many deliveries were claimed and begun.
    async fn round(&self) -> Result<usize, Failure> {
        let engine = &self.engine;
        engine.route().await?;
        let limit = engine.slots.available_permits().min(CLAIMED);
        if limit == 0 {
            return Ok(0);
        }
        let claimed = engine.claim(limit).await?;
        let count = claimed.len();
        for delivery in claimed {
            // Free slots were counted, and nothing else takes them.
            let slot = Arc::clone(&engine.slots).acquire_owned().await;
            let slot = slot.expect("the slots are never closed");
            self.begin(delivery, slot);
        }
        Ok(count)
    }

    fn begin(&self, delivery: Delivery, slot: OwnedSemaphorePermit) {
        let engine = Arc::clone(&self.engine);
        let give_back = self.give_back.clone();
        let reports = self.reports.clone();
        self.tasks.spawn(async move {
            let attempted = give_back.run_until_cancelled(engine.attempt(delivery.clone()));
            match attempted.await {
                Some(Some(answer)) => {
                    // The reporter outlives all deliveries.
                    let _ = reports.send(Report::new(&delivery, answer, slot)).await;
                    return;
                }
                Some(None) => {}
                None => engine.release(&delivery).await,
            }
            drop(slot);
            engine.wakeup.notify_one();
        });
    }

    /// Lets deliveries end that are under way; what takes too long is given back.
    async fn finish(self, grace: Duration) {
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait())
            .await
            .is_err()
        {
            self.give_back.cancel();
            self.tasks.wait().await;
        }
    }
}

fn log(delivery: &Delivery, answer: &Answer) {
    let outcome = answer.outcome.name();
    let (id, attempt, endpoint) = (delivery.id, delivery.attempt, delivery.endpoint.as_str());
    match &answer.reason {
        None => {
            tracing::debug!(event = "webhook.delivered", dispatch = %id, attempt, endpoint, status = answer.status)
        }
        Some(reason) => {
            tracing::info!(event = "webhook.failed", dispatch = %id, attempt, endpoint, outcome, reason);
        }
    }
}

/// Which instance has claimed a dispatch, for people who look.
fn consumer() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("recurd {} {}", host.trim(), std::process::id())
}
