//! One-time dispatches: enqueued by a program, or received from outside.

use super::announce::{self, ANNOUNCED_COLUMNS, Announceable};
use super::dedup::{self, KeyLock};
use super::limits;
use crate::access;
use crate::commands;
use crate::pg::error::{self, OrRaise, SqlError, given};
use crate::pg::interval;
use crate::pg::jsonb::Jsonb;
use crate::pg::jsonb_object::{self, Part};
use crate::pg::planner::PlannerPins;
use crate::pg::query::{Row, pg_uuid, queries};
use crate::pg::time;
use crate::runtime::environment::environment;
use crate::runtime::{clock, engine, home, wakeup};
use chrono::{DateTime, Utc};
use pgrx::datum::{DatumWithOid, Interval, TimestampWithTimeZone, Uuid as PgUuid};
use pgrx::prelude::*;
use recur_core::action::{
    Column, DefaultValue, Interval as Span, Invalid, Json, Value, check_bytes, checked,
    window_without_key,
};
use recur_core::command;
use recur_core::dispatch_id;
use recur_core::notify::Announcement;
use uuid::Uuid;

queries! {
    INSERT_ENQUEUED = "queue/queries/insert_enqueued.sql"
        (UUIDOID, TIMESTAMPTZOID, TEXTOID, TEXTOID, TEXTOID, INT4OID, TEXTOID, TEXTOID, TEXTOID, JSONBOID, BYTEAOID,
         JSONBOID, TEXTOID, INT4OID, TEXTOID, TEXTOID, INT4OID, JSONBOID, INTERVALOID, TEXTOID, JSONBOID,
         TEXTOID);
    MERGE_DUPLICATE = "queue/queries/merge_duplicate.sql" {announced: ANNOUNCED_COLUMNS}
        (TEXTOID, TEXTOID, TEXTOID, INT4OID, TEXTOID, TEXTOID, TEXTOID, INTERVALOID, JSONBOID, BYTEAOID, JSONBOID,
         TEXTOID, JSONBOID, TIMESTAMPTZOID, INT4OID, TEXTOID, TEXTOID, TEXTOID, INT4OID, JSONBOID, INTERVALOID,
         TEXTOID);
    RECEIVED_BEFORE = "queue/queries/received_before.sql"
        (TEXTOID, TEXTOID, TEXTOID, INT4OID, TEXTOID, TEXTOID, INTERVALOID);
}

/// A dispatch to be enqueued, checked. Columns that actions have, too, have the defaults and the checks of actions.
/// What was not given is None: a merge leaves it as it is.
pub struct OneTime {
    trigger: &'static str,
    provider: String,
    action_type: String,
    payload: Option<Jsonb>,
    raw_payload: Option<Vec<u8>>,
    run_at: Option<DateTime<Utc>>,
    namespace: String,
    tenant: String,
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
    /// Where a webhook is delivered.
    endpoint: Option<String>,
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
    key: Option<String>,
    window: Option<Interval>,
    metadata: Option<Jsonb>,
    priority: Option<i32>,
    lock_group: Option<String>,
    channel: Option<String>,
    max_attempts: Option<i32>,
    backoff: Option<Jsonb>,
    lease: Option<Interval>,
    name: Option<String>,
    labels: Option<Jsonb>,
) -> PgUuid {
    checked_dispatch(
        provider,
        action_type,
        payload,
        run_at,
        namespace,
        tenant,
        subject,
        key,
        window,
        metadata,
        priority,
        lock_group,
        channel,
        max_attempts,
        backoff,
        lease,
        name,
        labels,
    )
    .enqueue()
}

/// A dispatch of these arguments, checked.
#[allow(clippy::too_many_arguments)]
pub fn checked_dispatch(
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
) -> OneTime {
    let run_at = run_at.map(|at| time::instant("run_at", at).or_raise());
    let has_key = dedup_key.is_some();
    OneTime {
        trigger: "enqueue",
        provider: required(Column::Provider, provider),
        action_type: required(Column::ActionType, action_type),
        payload: payload.inspect(|payload| check_size("payload", payload)),
        raw_payload: None,
        run_at,
        namespace: required(Column::Namespace, namespace),
        tenant: required(Column::Tenant, tenant),
        subject: optional(Column::Subject, subject),
        dedup_key: optional(Column::DedupKey, dedup_key),
        dedup_window: dedup_window.inspect(|window| check_window(window, has_key)),
        metadata: metadata.inspect(|metadata| check(Column::Metadata, Value::Json(*metadata))),
        priority: priority.inspect(|number| check_int(Column::Priority, *number)),
        lock_group: optional(Column::LockGroup, lock_group),
        notify_channel: optional(Column::NotifyChannel, notify_channel),
        max_attempts: max_attempts.inspect(|number| check_int(Column::MaxAttempts, *number)),
        retry_backoff: retry_backoff
            .inspect(|backoff| check(Column::RetryBackoff, Value::Json(*backoff))),
        lease: lease.inspect(|lease| check(Column::Lease, Value::Interval(interval::parts(lease)))),
        name: optional(Column::Name, name),
        labels: optional_labels(labels),
        endpoint: None,
    }
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
    let headers = headers.unwrap_or_else(|| Jsonb::from_text("{}"));
    check_size("headers", &headers);
    let has_key = dedup_key.is_some();
    let metadata = content_type.map(|content_type| {
        check_content_type(&content_type);
        let metadata = serde_json::json!({ "content_type": content_type });
        Jsonb::from_text(&metadata.to_string())
    });
    let dispatch = OneTime {
        trigger: "webhook",
        provider: required(Column::Provider, provider),
        action_type: required(Column::ActionType, action_type),
        payload: Some(jsonb_object::object(vec![("headers", Part::Json(headers))])),
        raw_payload: Some(raw_payload),
        run_at: None,
        namespace: required(Column::Namespace, namespace),
        tenant: required(Column::Tenant, tenant),
        subject: optional(Column::Subject, subject),
        dedup_key: optional(Column::DedupKey, dedup_key),
        dedup_window: dedup_window.inspect(|window| check_window(window, has_key)),
        metadata,
        priority: priority.inspect(|number| check_int(Column::Priority, *number)),
        lock_group: optional(Column::LockGroup, lock_group),
        notify_channel: None,
        max_attempts: max_attempts.inspect(|number| check_int(Column::MaxAttempts, *number)),
        retry_backoff: None,
        lease: None,
        name: optional(Column::Name, name),
        labels: optional_labels(labels),
        endpoint: None,
    };
    dispatch.enqueue()
}

impl OneTime {
    /// The same for an endpoint.
    pub fn to_endpoint(self, endpoint: Option<String>) -> OneTime {
        OneTime { endpoint, ..self }
    }

    pub fn enqueue(self) -> PgUuid {
        let owner_id = access::own_id();
        let is_command = self.provider == command::PROVIDER;
        if is_command {
            commands::check_author(access::caller(), owner_id).or_raise();
            let payload = given("payload", self.payload).or_raise();
            commands::check_payload(&self.action_type, &payload).or_raise();
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
        let window = dedup::window(self.dedup_window, &self.namespace);
        if window.is_some_and(|window| interval::parts(&window) == Span::ZERO) {
            return None;
        }
        KeyLock::of(owner_id, &self.namespace, &self.tenant, key).take();
        let mut arguments = self.identity(key, owner_id);
        arguments.extend(self.to_merge(window));
        let read = |row: &Row| (Announceable::read(row), row.required::<String>(9));
        if let Some((merged, left_out)) = MERGE_DUPLICATE.with(|query| query.row(&arguments, read))
        {
            self.announce_merged(&merged);
            if !left_out.is_empty() {
                let message = format!(
                    "merged with a pending dispatch of the same dedup_key, which keeps its own {left_out}"
                );
                error::notice(
                    message,
                    Some("Use another dedup_key for a dispatch of its own."),
                );
            }
            return Some(merged.id);
        }
        // A delivery that is repeated is one, also if its dispatch has been claimed or has finished meanwhile.
        let window = window.filter(|_| self.raw_payload.is_some())?;
        let mut arguments = self.identity(key, owner_id);
        arguments.push(window.into());
        RECEIVED_BEFORE.with(|query| query.row(&arguments, |row| row.uuid(1)))
    }

    /// What a dispatch has in common with its duplicates: $1 to $6 of both statements.
    fn identity<'a>(&'a self, key: &'a str, owner_id: i32) -> Vec<DatumWithOid<'a>> {
        vec![
            key.into(),
            self.namespace.as_str().into(),
            self.tenant.as_str().into(),
            owner_id.into(),
            self.provider.as_str().into(),
            self.action_type.as_str().into(),
        ]
    }

    /// What is merged, and what is compared: $7 to $22.
    fn to_merge(&self, window: Option<Interval>) -> [DatumWithOid<'_>; 16] {
        [
            self.trigger.into(),
            window.into(),
            self.payload.into(),
            self.raw_payload.clone().into(),
            self.metadata.into(),
            self.name.as_deref().into(),
            self.labels.into(),
            self.run_at.map(time::timestamptz).into(),
            self.priority.into(),
            self.subject.as_deref().into(),
            self.lock_group.as_deref().into(),
            self.notify_channel.as_deref().into(),
            self.max_attempts.into(),
            self.retry_backoff.into(),
            self.lease.into(),
            self.endpoint.as_deref().into(),
        ]
    }

    /// A dispatch that was moved is announced at its new time, as a new one is.
    fn announce_merged(&self, merged: &Announceable) {
        match self.run_at {
            Some(run_at) if run_at > clock::now() => {
                wakeup::available_on_commit(time::to_micros(run_at));
            }
            Some(_) => announce::announce(merged.announcement().as_slice()),
            None => {}
        }
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
            self.payload
                .unwrap_or_else(|| Jsonb::from_text("{}"))
                .into(),
            self.raw_payload.into(),
            self.metadata.into(),
            self.dedup_key.into(),
            int_or_default(Column::Priority, self.priority).into(),
            self.lock_group.into(),
            self.notify_channel.as_deref().into(),
            int_or_default(Column::MaxAttempts, self.max_attempts).into(),
            self.retry_backoff.into(),
            self.lease.into(),
            self.name.into(),
            self.labels.into(),
            self.endpoint.into(),
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

fn check_window(window: &Interval, has_key: bool) {
    let window = interval::parts(window);
    window.check("dedup_window", true).or_raise();
    if !has_key {
        SqlError::from(window_without_key(&window.to_string())).raise();
    }
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

/// JSON of any type is right, up to a size.
fn check_size(argument: &str, given: &Jsonb) {
    check_bytes(argument, given.size(), &environment()).or_raise();
}

fn optional_labels(given: Option<Jsonb>) -> Option<Jsonb> {
    given.inspect(|labels| check(Column::Labels, Value::Json(*labels)))
}

fn check_int(column: Column, given: i32) {
    check(column, Value::Int(given.into()));
}

fn int_or_default(column: Column, given: Option<i32>) -> i32 {
    given.unwrap_or_else(|| match column.spec().default {
        DefaultValue::Int(number) => i32::try_from(number).unwrap_or(0),
        _ => SqlError::from(Invalid::missing(column.name())).raise(),
    })
}
