//! How endpoints are doing, after each delivery. Everything here runs as the engine.

use super::store::Key;
use super::{OPERATOR, events, keeper};
use crate::access::Actor;
use crate::pg::query::{Row, queries};
use crate::pg::time;
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::datum::DatumWithOid;
use recur_core::event::EventKind;
use recur_core::webhook::{Delivery, Health, Turn};
use serde_json::json;
use uuid::Uuid;

queries! {
    HEALTH = "webhooks/queries/health.sql" {lock: ""} (INT4OID, TEXTOID, TIMESTAMPTZOID);
    LOCK_HEALTH = "webhooks/queries/health.sql" {lock: "FOR UPDATE SKIP LOCKED"} (INT4OID, TEXTOID, TIMESTAMPTZOID);
    SAVE_HEALTH = "webhooks/queries/save_health.sql"
        (INT4OID, TEXTOID, TIMESTAMPTZOID, BOOLOID, INT4OID, TEXTOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID,
         TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTOID);
    NOTE_SUCCESS = "webhooks/queries/note_success.sql" (INT4OID, TEXTOID, TIMESTAMPTZOID, INT4OID);
    RESET_HEALTH = "webhooks/queries/reset_health.sql" (INT4OID, TEXTOID);
}

/// How a delivery went.
pub struct Ended<'a> {
    pub dispatch: Uuid,
    pub delivery: Delivery,
    pub http_status: Option<i32>,
    pub reason: Option<&'a str>,
    pub retry_in: Option<TimeDelta>,
}

/// What is known of an endpoint, from the columns of a row that begin at `first`.
pub fn read(row: &Row, first: usize) -> Health {
    Health {
        failures: row.required(first),
        failing_since: row.instant(first + 1),
        paused_until: row.instant(first + 2),
        throttled_until: row.instant(first + 3),
        disabled_at: row.instant(first + 4),
    }
}

/// Takes in how a delivery went. While another transaction has the endpoint's row, such as that of an author who leaves
/// it open, what is known of the endpoint stays as it is: other deliveries do not wait for that.
pub fn note(owner_id: i32, endpoint: &str, ended: &Ended, now: DateTime<Utc>, actor: &Actor) {
    let is_operators = keeper(owner_id, endpoint) == OPERATOR;
    if is_operators && !ended.delivery.is_of_endpoint(ended.http_status) {
        return;
    }
    let key = Key {
        owner_id: keeper(owner_id, endpoint),
        name: endpoint.to_owned(),
    };
    let [owner, name] = key.parameters();
    let arguments = [owner, name, time::timestamptz(now).into()];
    let read = |row: &Row| (read(row, 1), row.required::<bool>(6));
    if ended.delivery == Delivery::Delivered {
        match HEALTH.with(|query| query.row(&arguments, read)) {
            // Dropped meanwhile, or of a restored database.
            None => return,
            Some((health, true)) if health.is_sound() => return,
            Some((health, false)) if health.is_sound() => {
                let [owner, name] = key.parameters();
                let arguments = [
                    owner,
                    name,
                    time::timestamptz(now).into(),
                    ended.http_status.into(),
                ];
                NOTE_SUCCESS.with(|query| query.execute(&arguments));
                return;
            }
            Some(_) => {}
        }
    }
    let Some((before, _)) = LOCK_HEALTH.with(|query| query.row(&arguments, read)) else {
        return;
    };
    let (after, turn) = before.after(ended.delivery, ended.retry_in, now);
    save(&key, &after, ended, turn, now);
    if let Some(turn) = turn {
        record(&key, &after, ended, turn, actor);
    }
}

fn save(key: &Key, health: &Health, ended: &Ended, turn: Option<Turn>, now: DateTime<Utc>) {
    let instant = |at: Option<DateTime<Utc>>| -> DatumWithOid { at.map(time::timestamptz).into() };
    let why = match turn {
        Some(Turn::Disabled(reason)) => Some(reason.as_str()),
        _ => None,
    };
    let [owner, name] = key.parameters();
    let arguments = [
        owner,
        name,
        time::timestamptz(now).into(),
        (ended.delivery == Delivery::Delivered).into(),
        ended.http_status.into(),
        ended.reason.into(),
        health.failures.into(),
        instant(health.failing_since),
        instant(health.paused_until),
        instant(health.throttled_until),
        instant(health.disabled_at),
        why.into(),
    ];
    SAVE_HEALTH.with(|query| query.execute(&arguments));
}

fn record(key: &Key, health: &Health, ended: &Ended, turn: Turn, actor: &Actor) {
    let (kind, mut detail) = match turn {
        Turn::Paused(until) => (
            EventKind::EndpointPaused,
            json!({ "failures": health.failures, "until": time::rfc3339(until) }),
        ),
        Turn::Resumed => (EventKind::EndpointResumed, json!({})),
        Turn::Disabled(reason) => (
            EventKind::EndpointDisabled,
            json!({ "reason": reason.as_str() }),
        ),
    };
    if ended.delivery != Delivery::Delivered {
        detail["error"] = json!(ended.reason);
        detail["http_status"] = json!(ended.http_status);
    }
    events::record(kind, key, detail, Some(ended.dispatch), actor);
}

/// Forgets what went wrong. True if deliveries were kept back.
pub fn reset(key: &Key) -> bool {
    let was_held = RESET_HEALTH.with(|query| query.row(&key.parameters(), |row| row.required(1)));
    was_held.unwrap_or(false)
}
