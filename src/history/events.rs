//! Events: what happened to actions and occurrences, recorded in the transaction in which it happened.
//!
//! Everything here runs as the engine.

use super::partition;
use crate::access::{Actor, WORKER};
use crate::pg::jsonb::{self, Jsonb};
use crate::pg::query::{pg_uuid, pg_uuids, queries};
use crate::runtime::{notify_queue, settings};
use recur_core::event::EventKind;
use uuid::Uuid;

queries! {
    RECORD_EVENTS = "history/queries/record_events.sql"
        (UUIDARRAYOID, TEXTARRAYOID, TEXTARRAYOID, TEXTOID, INT2OID, BOOLOID);
    RECORD_CHANGES = "history/queries/record_changes.sql"
        (TEXTARRAYOID, UUIDARRAYOID, UUIDARRAYOID, INT4ARRAYOID, JSONBARRAYOID, TEXTOID, TEXTOID, INT2OID, BOOLOID);
    RECORD_DISPATCHES = "history/queries/record_dispatches.sql"
        (TEXTOID, UUIDARRAYOID, UUIDARRAYOID, INT4ARRAYOID, TEXTARRAYOID, TEXTOID, TEXTOID, INT2OID, BOOLOID, INT4OID);
}

/// Events of workers, collected column by column.
#[derive(Default)]
pub struct WorkerEvents {
    actions: Vec<Uuid>,
    kinds: Vec<&'static str>,
    details: Vec<String>,
}

impl WorkerEvents {
    pub fn add(&mut self, action: Uuid, kind: EventKind, detail: &serde_json::Value) {
        self.actions.push(action);
        self.kinds.push(kind.as_str());
        self.details.push(detail.to_string());
    }

    /// Records the events, and announces those of actions that are not muted.
    pub fn record(self) {
        if self.actions.is_empty() {
            return;
        }
        let arguments = [
            pg_uuids(self.actions).into(),
            self.kinds.into(),
            self.details.into(),
            WORKER.into(),
            partition::current().into(),
            notify_queue::has_room().into(),
        ];
        RECORD_EVENTS.with(|query| query.execute(&arguments));
    }
}

/// What a person, or a program that a person runs, did.
pub struct Change {
    pub kind: EventKind,
    pub action: Option<Uuid>,
    pub dispatch: Option<Uuid>,
    pub owner_id: i32,
    /// A JSON object.
    pub detail: Jsonb,
}

/// Records changes, and announces them even where the action is muted.
pub fn record_changes(changes: &[Change], actor: &Actor) {
    if changes.is_empty() {
        return;
    }
    let kinds: Vec<&str> = changes.iter().map(|change| change.kind.as_str()).collect();
    let actions: Vec<_> = changes
        .iter()
        .map(|change| change.action.map(pg_uuid))
        .collect();
    let dispatches: Vec<_> = changes
        .iter()
        .map(|change| change.dispatch.map(pg_uuid))
        .collect();
    let owners: Vec<i32> = changes.iter().map(|change| change.owner_id).collect();
    let details: Vec<_> = changes.iter().map(|change| Some(change.detail)).collect();
    let arguments = [
        kinds.into(),
        actions.into(),
        dispatches.into(),
        owners.into(),
        jsonb::array_of(&details),
        actor.name.as_str().into(),
        actor.login.as_deref().into(),
        partition::current().into(),
        notify_queue::has_room().into(),
    ];
    RECORD_CHANGES.with(|query| query.execute(&arguments));
}

/// What became of a dispatch.
pub struct DispatchEvent {
    pub dispatch: Uuid,
    /// None for a dispatch that was enqueued.
    pub action: Option<Uuid>,
    pub owner_id: i32,
    /// A JSON object.
    pub detail: serde_json::Value,
}

/// Records events of dispatches, and announces those of actions that are not muted.
pub fn record_dispatches(kind: EventKind, events: &[DispatchEvent], actor: &Actor) {
    if events.is_empty() {
        return;
    }
    let actions: Vec<_> = events.iter().map(|one| one.action.map(pg_uuid)).collect();
    let owners: Vec<i32> = events.iter().map(|one| one.owner_id).collect();
    let details: Vec<String> = events.iter().map(|one| one.detail.to_string()).collect();
    let each_max = i32::try_from(settings::notify_each_max()).unwrap_or(i32::MAX);
    let arguments = [
        kind.as_str().into(),
        actions.into(),
        pg_uuids(events.iter().map(|one| one.dispatch)).into(),
        owners.into(),
        details.into(),
        actor.name.as_str().into(),
        actor.login.as_deref().into(),
        partition::current().into(),
        notify_queue::has_room().into(),
        each_max.into(),
    ];
    RECORD_DISPATCHES.with(|query| query.execute(&arguments));
}
