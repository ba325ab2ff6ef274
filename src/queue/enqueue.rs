//! One-time dispatches: enqueued by a program, or received from outside.

use super::{announce, limits};
use crate::access;
use crate::commands;
use crate::pg::advisory::{self, Space};
use crate::pg::error::{OrRaise, SqlError, given};
use crate::pg::interval;
use crate::pg::jsonb::Jsonb;
use crate::pg::jsonb_object::{self, Part};
use crate::pg::planner::PlannerPins;
use crate::pg::query::{pg_uuid, queries};
use crate::pg::time;
use crate::runtime::environment::environment;
use crate::runtime::{clock, engine, home, wakeup};
use chrono::{DateTime, Utc};
use pgrx::datum::{Interval, TimestampWithTimeZone, Uuid as PgUuid};
use pgrx::prelude::*;
use recur_core::action::{
    Column, DefaultValue, Interval as Span, Invalid, Json, Value, check_bytes, checked,
};
use recur_core::command;
use recur_core::dispatch_id;
use recur_core::notify::Announcement;
use uuid::Uuid;

queries! {
    INSERT_ENQUEUED = "queue/queries/insert_enqueued.sql"
        (UUIDOID, TIMESTAMPTZOID, TEXTOID, TEXTOID, TEXTOID, INT4OID, TEXTOID, TEXTOID, TEXTOID, JSONBOID, BYTEAOID,
         JSONBOID, TEXTOID, INT4OID, TEXTOID, TEXTOID, INT4OID, JSONBOID, INTERVALOID, TEXTOID, JSONBOID);
    MERGE_DUPLICATE = "queue/queries/merge_duplicate.sql"
        (TEXTOID, TEXTOID, TEXTOID, INT4OID, TEXTOID, TEXTOID, TEXTOID, INTERVALOID, JSONBOID, BYTEAOID, JSONBOID,
         TEXTOID, JSONBOID);
}

/// A dispatch to be enqueued. Columns that actions have, too, have the defaults and the checks of actions. Metadata and
/// lease are NULL for the default.
struct OneTime {
    trigger: &'static str,
    provider: String,
    action_type: String,
    payload: Jsonb,
    raw_payload: Option<Vec<u8>>,
    run_at: Option<DateTime<Utc>>,
    namespace: String,
    tenant: String,
    subject: Option<String>,
    dedup_key: Option<String>,
    dedup_window: Option<Interval>,
    metadata: Option<Jsonb>,
    priority: i32,
    lock_group: Option<String>,
    notify_channel: Option<String>,
    max_attempts: i32,
    retry_backoff: Option<Jsonb>,
    lease: Option<Interval>,
    name: Option<String>,
    labels: Option<Jsonb>,
}

/// `recur.enqueue(…)`.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn enqueue(
    provider: Option<String>,
    action_type: Option<String>,
    payload: Option<Jsonb>,
    run_at: Option<TimestampWithTimeZone>,
    namespace: Option<String>,
    tenant: Option<String>,
    subject: Option<String>,
    dedup_key: Option<String>,
    dedup_window: Option<Interval>,
    metadata: Option<Jsonb>,
    priority: Option<i32>,
    lock_group: Option<String>,
    notify_channel: Option<String>,
    max_attempts: Option<i32>,
    retry_backoff: Option<Jsonb>,
    lease: Option<Interval>,
    name: Option<String>,
    labels: Option<Jsonb>,
) -> PgUuid {
    let run_at = run_at.map(|at| time::instant("run_at", at).or_raise());
    let dispatch = OneTime {
        trigger: "enqueue",
        provider: required(Column::Provider, provider),
        action_type: required(Column::ActionType, action_type),
        payload: any_json("payload", payload),
        raw_payload: None,
        run_at,
        namespace: required(Column::Namespace, namespace),
        tenant: required(Column::Tenant, tenant),
        subject: optional(Column::Subject, subject),
        dedup_key: optional(Column::DedupKey, dedup_key),
        dedup_window: dedup_window.inspect(check_window),
        metadata: metadata.inspect(|metadata| check(Column::Metadata, Value::Json(*metadata))),
        priority: int_or_default(Column::Priority, priority),
        lock_group: optional(Column::LockGroup, lock_group),
        notify_channel: optional(Column::NotifyChannel, notify_channel),
        max_attempts: int_or_default(Column::MaxAttempts, max_attempts),
        retry_backoff: retry_backoff
            .inspect(|backoff| check(Column::RetryBackoff, Value::Json(*backoff))),
        lease: lease.inspect(|lease| check(Column::Lease, Value::Interval(interval::parts(lease)))),
        name: optional(Column::Name, name),
        labels: optional_labels(labels),
    };
    dispatch.enqueue()
}

/// `recur.enqueue_sql(…)`: the command becomes the payload of a dispatch of the reserved provider.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn enqueue_sql(
    command: Option<&str>,
    run_at: Option<TimestampWithTimeZone>,
    timeout: Option<Interval>,
    name: Option<String>,
    labels: Option<Jsonb>,
    namespace: Option<String>,
    tenant: Option<String>,
    subject: Option<String>,
    dedup_key: Option<String>,
    dedup_window: Option<Interval>,
    metadata: Option<Jsonb>,
    priority: Option<i32>,
    lock_group: Option<String>,
    max_attempts: Option<i32>,
    retry_backoff: Option<Jsonb>,
) -> PgUuid {
    let timeout = timeout.map(|timeout| interval::parts(&timeout));
    let payload = commands::payload(command, timeout).or_raise();
    enqueue(
        Some(command::PROVIDER.to_owned()),
        Some(command::ACTION_TYPE.to_owned()),
        Some(payload),
        run_at,
        namespace,
        tenant,
        subject,
        dedup_key,
        dedup_window,
        metadata,
        priority,
        lock_group,
        None,
        max_attempts,
        retry_backoff,
        None,
        name,
        labels,
    )
}

/// `recur.receive(…)`: the body byte for byte, the headers as payload, the content type in the metadata.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn receive(
    provider: Option<String>,
    action_type: Option<String>,
    raw_payload: Option<Vec<u8>>,
    content_type: Option<String>,
    headers: Option<Jsonb>,
    namespace: Option<String>,
    tenant: Option<String>,
    subject: Option<String>,
    dedup_key: Option<String>,
    dedup_window: Option<Interval>,
    priority: Option<i32>,
    lock_group: Option<String>,
    max_attempts: Option<i32>,
    name: Option<String>,
    labels: Option<Jsonb>,
) -> PgUuid {
    if provider.as_deref() == Some(command::PROVIDER) {
        SqlError::invalid_argument("provider", command::PROVIDER, "is reserved for SQL actions")
            .with_hint("Receive it for another provider; a handler can run it in the database.")
            .raise();
    }
    let missing = |error: SqlError| error.with_hint("An empty body is ''::bytea.");
    let raw_payload = given("raw_payload", raw_payload)
        .map_err(missing)
        .or_raise();
    let headers = any_json("headers", headers);
    let metadata = content_type.map(|content_type| {
        check_content_type(&content_type);
        let metadata = serde_json::json!({ "content_type": content_type });
        Jsonb::from_text(&metadata.to_string())
    });
    let dispatch = OneTime {
        trigger: "webhook",
        provider: required(Column::Provider, provider),
        action_type: required(Column::ActionType, action_type),
        payload: jsonb_object::object(vec![("headers", Part::Json(headers))]),
        raw_payload: Some(raw_payload),
        run_at: None,
        namespace: required(Column::Namespace, namespace),
        tenant: required(Column::Tenant, tenant),
        subject: optional(Column::Subject, subject),
        dedup_key: optional(Column::DedupKey, dedup_key),
        dedup_window: dedup_window.inspect(check_window),
        metadata,
        priority: int_or_default(Column::Priority, priority),
        lock_group: optional(Column::LockGroup, lock_group),
        notify_channel: None,
        max_attempts: int_or_default(Column::MaxAttempts, max_attempts),
        retry_backoff: None,
        lease: None,
        name: optional(Column::Name, name),
        labels: optional_labels(labels),
    };
    dispatch.enqueue()
}

impl OneTime {
    fn enqueue(self) -> PgUuid {
        let owner_id = access::own_id();
        let is_command = self.provider == command::PROVIDER;
        if is_command {
            commands::check_author(access::caller(), owner_id).or_raise();
            commands::check_payload(&self.action_type, &self.payload).or_raise();
        }
        let writer = is_command.then(access::caller_name);
        let _pins = PlannerPins::set();
        let id = engine::as_engine(|| {
            if let Some(writer) = writer {
                commands::prepare(owner_id, &writer);
            }
            match self.merge(owner_id) {
                Some(merged) => Ok(merged),
                None => limits::check_pending(owner_id).map(|()| self.insert(owner_id)),
            }
        });
        pg_uuid(id.or_raise())
    }

    /// Merges with a pending dispatch of the same key. The lock makes the second of two concurrent calls wait for the
    /// first.
    fn merge(&self, owner_id: i32) -> Option<Uuid> {
        let key = self.dedup_key.as_deref()?;
        let window = self.dedup_window.as_ref();
        if window.is_some_and(|window| interval::parts(window) == Span::ZERO) {
            return None;
        }
        let names = [&self.namespace, &self.tenant, key];
        let bytes = names
            .into_iter()
            .flat_map(|name| name.bytes().chain([0x1f]));
        let hash = advisory::key(bytes) as u32;
        advisory::lock(Space::DedupKey, advisory::owned_key(owner_id, hash));
        let arguments = [
            key.into(),
            self.namespace.as_str().into(),
            self.tenant.as_str().into(),
            owner_id.into(),
            self.provider.as_str().into(),
            self.action_type.as_str().into(),
            self.trigger.into(),
            window.cloned().into(),
            self.payload.into(),
            self.raw_payload.clone().into(),
            self.metadata.into(),
            self.name.as_deref().into(),
            self.labels.into(),
        ];
        MERGE_DUPLICATE.with(|query| query.row(&arguments, |row| row.uuid(1)))
    }

    fn insert(self, owner_id: i32) -> Uuid {
        let now = clock::now();
        let scheduled_at = self.run_at.unwrap_or(now);
        let id = dispatch_id::random(scheduled_at);
        let arguments = [
            pg_uuid(id).into(),
            time::timestamptz(scheduled_at).into(),
            self.trigger.into(),
            self.namespace.as_str().into(),
            self.tenant.as_str().into(),
            owner_id.into(),
            self.subject.into(),
            self.provider.as_str().into(),
            self.action_type.as_str().into(),
            self.payload.into(),
            self.raw_payload.into(),
            self.metadata.into(),
            self.dedup_key.into(),
            self.priority.into(),
            self.lock_group.into(),
            self.notify_channel.as_deref().into(),
            self.max_attempts.into(),
            self.retry_backoff.into(),
            self.lease.into(),
            self.name.into(),
            self.labels.into(),
        ];
        home::settle_first();
        INSERT_ENQUEUED.with(|query| query.execute(&arguments));
        if scheduled_at > clock::now() {
            // The dispatcher announces the dispatch at that instant.
            wakeup::available_on_commit(time::to_micros(scheduled_at));
        } else {
            announce::announce(&[Announcement {
                id,
                action_id: None,
                scheduled_at,
                namespace: &self.namespace,
                tenant: &self.tenant,
                provider: &self.provider,
                action_type: &self.action_type,
                channel: self.notify_channel.as_deref(),
            }]);
        }
        id
    }
}

fn check(column: Column, value: Value<Jsonb>) {
    checked(column, &value, &environment()).or_raise();
}

/// Content types have no column of their own; the longest that are in use have a hundred characters.
fn check_content_type(content_type: &str) {
    const LONGEST: usize = 255;
    if content_type.chars().count() > LONGEST {
        let problem = format!("must not be longer than {LONGEST} characters");
        SqlError::invalid_argument("content_type", content_type, &problem)
            .with_hint("Give the value of the header Content-Type, such as 'application/json'.")
            .raise();
    }
}

fn check_window(window: &Interval) {
    interval::parts(window)
        .check("dedup_window", true)
        .or_raise();
}

/// A text that must have a value: the one given, or else the default of the column.
fn required(column: Column, given: Option<String>) -> String {
    let text = given.or_else(|| match column.spec().default {
        DefaultValue::Text(text) => Some(text.to_owned()),
        _ => None,
    });
    let text = text.unwrap_or_else(|| {
        // An empty name and a missing one are the same mistake.
        checked::<Jsonb>(column, &Value::Text(String::new()), &environment()).or_raise();
        SqlError::from(Invalid::missing(column.name())).raise()
    });
    check(column, Value::Text(text.clone()));
    text
}

fn optional(column: Column, given: Option<String>) -> Option<String> {
    given.inspect(|text| check(column, Value::Text(text.clone())))
}

/// A JSON value of any type; an empty object where none is given.
fn any_json(argument: &str, given: Option<Jsonb>) -> Jsonb {
    let json = given.unwrap_or_else(|| Jsonb::from_text("{}"));
    check_bytes(argument, json.size(), &environment()).or_raise();
    json
}

fn optional_labels(given: Option<Jsonb>) -> Option<Jsonb> {
    given.inspect(|labels| check(Column::Labels, Value::Json(*labels)))
}

fn int_or_default(column: Column, given: Option<i32>) -> i32 {
    let number = match (given, column.spec().default) {
        (Some(number), _) => i64::from(number),
        (None, DefaultValue::Int(number)) => number,
        (None, _) => SqlError::from(Invalid::missing(column.name())).raise(),
    };
    check(column, Value::Int(number));
    i32::try_from(number).unwrap_or(0)
}
