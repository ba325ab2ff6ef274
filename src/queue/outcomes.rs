//! What follows from the end of runs: counts, events, and messages to contacts. Everything here runs as the engine.

use crate::access::Actor;
use crate::alerts::contacts::{self, Message, RECIPIENT_COLUMNS, RECIPIENT_WIDTH, Recipient};
use crate::history::events::{self, DispatchEvent, WorkerEvents};
use crate::history::lines;
use crate::pg::query::{Row, fragment, pg_uuids, queries};
use crate::pg::time;
use crate::runtime::{clock, settings, stats, wakeup};
use chrono::{DateTime, Utc};
use recur_core::decide::EndReason;
use recur_core::event::EventKind;
use recur_core::notice::{Problem, Streak};
use serde_json::json;
use uuid::Uuid;

queries! {
    COUNT_COMPLETED = "queue/queries/count_completed.sql" (UUIDARRAYOID);
    LOCK_COMPLETED = "queue/queries/lock_completed.sql" (UUIDARRAYOID);
    END_COMPLETED = "queue/queries/end_completed.sql" {reason: EndReason::Exhausted.as_str()} (UUIDARRAYOID);
    LOOK_AT_END = "queue/queries/look_at_end.sql" (UUIDARRAYOID, TIMESTAMPTZOID);
    COUNT_FAILED = "queue/queries/count_failed.sql" {recipient: RECIPIENT_COLUMNS}
        (UUIDARRAYOID, UUIDARRAYOID, TEXTARRAYOID);
}

pub const SUBJECT_OF_ENQUEUED: &str = fragment!("queue/queries/subject_of_enqueued.sql");

/// Namespace, tenant and subject of an enqueued dispatch that has one. Its events name them, so that
/// `recur.forget_subject` finds them after the dispatch was purged; events of other dispatches name their action.
#[derive(Clone)]
pub struct Enqueued(Option<String>);

impl Enqueued {
    /// Reads the column that `SUBJECT_OF_ENQUEUED` selects.
    pub fn read(row: &Row, ordinal: usize) -> Enqueued {
        Enqueued(row.get(ordinal))
    }

    /// Adds them to the detail of an event.
    pub fn named_in(&self, mut detail: serde_json::Value) -> serde_json::Value {
        let named = self.0.as_deref().map(serde_json::from_str);
        if let (Some(Ok(serde_json::Value::Object(mut named))), Some(detail)) =
            (named, detail.as_object_mut())
        {
            detail.append(&mut named);
        }
        detail
    }
}

/// A dispatch that has been moved to the history.
pub struct Finished {
    /// The number of the report, counted from 0.
    pub number: usize,
    pub id: Uuid,
    pub attempt: i32,
    pub available_at: DateTime<Utc>,
    pub cancel_requested: bool,
    pub action: Option<Uuid>,
    pub context_version: Option<i32>,
    pub owner_id: i32,
    pub claimed_by: Option<String>,
    /// Which events are recorded, where that is not left to the setting.
    pub record_events: Option<String>,
    pub enqueued: Enqueued,
    /// Was it generated long before its time? Herds are staged at most a minute ahead.
    pub was_ahead: bool,
    /// When the latest attempt was claimed.
    pub started_at: Option<DateTime<Utc>>,
}

/// Is an event of this kind recorded of a dispatch that says so, or leaves it to the setting?
pub fn is_recorded(of_dispatch: Option<&str>, kind: EventKind) -> bool {
    // What is stored has been checked when the action was written.
    let own = of_dispatch.and_then(|text| text.parse().ok());
    own.unwrap_or_else(settings::recorded_events).contains(kind)
}

/// How long their last attempts have run, in microseconds.
fn durations(finished: &[Finished]) -> impl Iterator<Item = i64> {
    let now = clock::now();
    let since = move |started_at: DateTime<Utc>| (now - started_at).num_microseconds();
    finished
        .iter()
        .filter_map(move |one| since(one.started_at?))
}

/// Dispatches were completed.
pub fn completed(finished: &[Finished], actor: &Actor) {
    let number = finished.len() as u64;
    stats::count_attempts_on_commit(|all| all.completed += number, durations(finished));
    let counted = finished.iter().filter_map(|one| one.action);
    let actions = pg_uuids(counted);
    if !actions.is_empty() {
        let counted = COUNT_COMPLETED.with(|query| query.rows(&[actions.into()], Counted::read));
        let over = counted.iter().filter(|one| one.is_over);
        end_actions(over.map(|one| one.action).collect());
        resolve(&counted);
    }
    record(
        EventKind::Completed,
        finished,
        actor,
        |one| json!({ "attempt": one.attempt, "claimed_by": one.claimed_by }),
    );
    look_at_end(finished);
}

/// An action that has dispatched ahead ends when its last run is over: the dispatcher decides whether it is.
fn look_at_end(finished: &[Finished]) {
    let ahead = finished.iter().filter(|one| one.was_ahead);
    let actions: Vec<Uuid> = ahead.filter_map(|one| one.action).collect();
    if actions.is_empty() {
        return;
    }
    let now = time::timestamptz(clock::now());
    let arguments = [pg_uuids(actions).into(), now.into()];
    if LOOK_AT_END.with(|query| query.execute(&arguments)) > 0 {
        wakeup::due_on_commit(now.into());
    }
}

/// Dispatches were cancelled, each for a reason or none.
pub fn cancelled(finished: &[Finished], reasons: &[Option<&str>], actor: &Actor) {
    let number = finished.len() as u64;
    stats::count_attempts_on_commit(|all| all.cancelled += number, std::iter::empty());
    record(
        EventKind::Cancelled,
        finished,
        actor,
        |one| json!({ "attempt": one.attempt, "reason": reasons.get(one.number) }),
    );
    look_at_end(finished);
}

/// Dispatches have failed for good.
pub fn failed(finished: &[Finished], reasons: &[Option<&str>], actor: &Actor) {
    let number = finished.len() as u64;
    stats::count_attempts_on_commit(|all| all.failed += number, durations(finished));
    let reason = |one: &Finished| {
        reasons
            .get(one.number)
            .copied()
            .flatten()
            .unwrap_or_default()
    };
    record(
        EventKind::RunFailed,
        finished,
        actor,
        |one| json!({ "attempt": one.attempt, "error": reason(one), "claimed_by": one.claimed_by }),
    );
    look_at_end(finished);
    let of_actions = || finished.iter().filter(|one| one.action.is_some());
    if of_actions().next().is_none() {
        return;
    }
    let arguments = [
        pg_uuids(of_actions().filter_map(|one| one.action)).into(),
        pg_uuids(of_actions().map(|one| one.id)).into(),
        of_actions().map(reason).collect::<Vec<&str>>().into(),
    ];
    let failing = COUNT_FAILED.with(|query| {
        query.rows(&arguments, |row| Failing {
            recipient: Recipient::read(row),
            streak: Streak {
                in_a_row: row.required(RECIPIENT_WIDTH + 1),
                new: row.required(RECIPIENT_WIDTH + 2),
            },
            since: row.instant(RECIPIENT_WIDTH + 3),
            dispatch: row.uuid(RECIPIENT_WIDTH + 4),
            error: row.get(RECIPIENT_WIDTH + 5),
        })
    });
    for one in &failing {
        let Recipient { action, name, .. } = &one.recipient;
        lines::runs_failed(*action, name, one.dispatch, one.streak.in_a_row);
    }
    tell(&failing);
}

fn record(
    kind: EventKind,
    finished: &[Finished],
    actor: &Actor,
    detail: impl Fn(&Finished) -> serde_json::Value,
) {
    let recorded = finished
        .iter()
        .filter(|one| is_recorded(one.record_events.as_deref(), kind));
    let events = recorded.map(|one| DispatchEvent {
        dispatch: one.id,
        action: one.action,
        owner_id: one.owner_id,
        detail: one.enqueued.named_in(detail(one)),
    });
    events::record_dispatches(kind, &events.collect::<Vec<_>>(), actor);
}

/// An action of which dispatches have just failed.
struct Failing {
    recipient: Recipient,
    streak: Streak,
    since: Option<DateTime<Utc>>,
    /// The last of the dispatches.
    dispatch: Uuid,
    error: Option<String>,
}

fn tell(failing: &[Failing]) {
    let now = clock::now();
    let notified = failing
        .iter()
        .filter(|one| one.recipient.is_notified(one.streak, now));
    let messages = notified.map(|one| {
        let report = one.recipient.report(one.since);
        Message {
            recipient: &one.recipient,
            kind: EventKind::Notified,
            notice: report.failing(Problem::Runs {
                in_a_row: one.streak.in_a_row,
                error: one.error.as_deref().unwrap_or_default(),
            }),
            dispatch: Some(one.dispatch),
            alarm: None,
        }
    });
    contacts::tell(&messages.collect::<Vec<_>>(), now);
}

/// An action of which dispatches have just been completed.
struct Counted {
    action: Uuid,
    /// How many had failed in a row before.
    failures: i32,
    since: Option<DateTime<Utc>>,
    was_notified: bool,
    error: Option<String>,
    /// Has it had all of its runs?
    is_over: bool,
}

impl Counted {
    fn read(row: &Row) -> Counted {
        Counted {
            action: row.uuid(1),
            failures: row.required(2),
            since: row.instant(3),
            was_notified: row.required(4),
            error: row.get(5),
            is_over: row.required(6),
        }
    }
}

/// Ends actions that have had all of the completed runs that they may have. An action that another session has locked
/// ends when its next occurrence is due: a report waits for no timer, whose lock comes before that of the progress.
fn end_actions(actions: Vec<Uuid>) {
    if actions.is_empty() {
        return;
    }
    let free =
        LOCK_COMPLETED.with(|query| query.rows(&[pg_uuids(actions).into()], |row| row.uuid(1)));
    let ended = END_COMPLETED.with(|query| query.rows(&[pg_uuids(free).into()], |row| row.uuid(1)));
    let mut ends = WorkerEvents::default();
    for action in &ended {
        ends.add(*action, EventKind::Exhausted, &serde_json::json!({}));
    }
    lines::exhausted(&ended);
    ends.record();
}

/// Notifies those who were notified of the failures that they are over.
fn resolve(counted: &[Counted]) {
    let notified: Vec<&Counted> = counted.iter().filter(|one| one.was_notified).collect();
    if notified.is_empty() {
        return;
    }
    let recipients = contacts::recipients(notified.iter().map(|one| one.action));
    let messages = recipients.iter().filter_map(|recipient| {
        let one = notified.iter().find(|one| one.action == recipient.action)?;
        let report = recipient.report(one.since);
        let error = one.error.as_deref().unwrap_or_default();
        (!recipient.is_muted()).then(|| Message {
            recipient,
            kind: EventKind::Resolved,
            notice: report.resolved(one.failures, error),
            dispatch: None,
            alarm: None,
        })
    });
    contacts::tell(&messages.collect::<Vec<_>>(), clock::now());
}
