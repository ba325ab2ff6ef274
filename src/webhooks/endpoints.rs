//! The functions of SQL by which people make and change endpoints.

use super::health;
use super::store::{self, Key};
use super::{OPERATOR, events};
use crate::access::{self, Actor};
use crate::pg::error::{OrRaise, SqlError, given};
use crate::pg::interval;
use crate::pg::jsonb::Jsonb;
use crate::pg::planner::PlannerPins;
use crate::runtime::environment::environment;
use crate::runtime::{clock, engine};
use pgrx::datum::Interval;
use pgrx::prelude::*;
use recur_core::action::{Json, check_bytes};
use recur_core::event::EventKind;
use recur_core::webhook::{self, OPERATOR_PREFIX, Settings};
use serde_json::json;

/// `recur.create_endpoint(…)`.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn create_endpoint(
    name: Option<&str>,
    url: Option<&str>,
    patterns: Option<Vec<Option<String>>>,
    secret: Option<&str>,
    headers: Option<Jsonb>,
    timeout: Option<Interval>,
    rate: Option<f64>,
    concurrency: Option<i32>,
    enabled: Option<bool>,
    description: Option<String>,
) -> String {
    let name = given("name", name).or_raise();
    webhook::check_name("name", name).or_raise();
    let default = Settings::new(given("url", url).or_raise());
    let patterns = patterns.unwrap_or_default();
    let settings = Settings {
        patterns: webhook::check_patterns(&patterns).or_raise(),
        headers: headers.map_or(default.headers, |headers| checked_text("headers", &headers)),
        timeout: timeout.map_or(default.timeout, |timeout| interval::parts(&timeout)),
        rate,
        concurrency: concurrency.unwrap_or(default.concurrency),
        enabled: enabled.unwrap_or(true),
        description,
        url: default.url,
    };
    settings.check().or_raise();
    secret.map_or(Ok(()), webhook::check_secret).or_raise();
    let actor = Actor::current();
    let key = Key {
        owner_id: access::own_id(),
        name: name.to_owned(),
    };
    let _pins = PlannerPins::set();
    engine::as_engine(|| create(&key, &settings, secret, &actor)?.ok_or_else(|| is_taken(name)))
        .or_raise()
}

/// The signing secret of a new endpoint; None if its owner has one of the name.
pub fn create(
    key: &Key,
    settings: &Settings,
    secret: Option<&str>,
    actor: &Actor,
) -> Result<Option<String>, SqlError> {
    let now = clock::now();
    if !key.insert(settings, now)? {
        return Ok(None);
    }
    let secret = key.add_secret(secret, now)?;
    let detail = json!({ "url": settings.url, "patterns": settings.patterns });
    events::record(EventKind::EndpointCreated, key, detail, None, actor);
    Ok(Some(secret))
}

fn is_taken(name: &str) -> SqlError {
    let message = format!("you have an endpoint \"{name}\" already");
    SqlError::new(PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION, message).with_hint(
        "recur.update_endpoint changes it; recur.rotate_webhook_secret gives it a new secret.",
    )
}

/// Before a value is written as text: one that is too large is not.
fn checked_text(argument: &str, value: &Jsonb) -> String {
    check_bytes(argument, value.size(), &environment()).or_raise();
    value.text()
}

/// Does the work as the engine, on the endpoint that the caller means.
fn with_endpoint<T>(
    name: Option<&str>,
    owner: Option<&str>,
    work: impl FnOnce(&Key, &Actor) -> Result<T, SqlError>,
) -> T {
    let name = given("name", name).or_raise();
    let (own, visible, actor) = (access::own_id_if_any(), access::visible(), Actor::current());
    let _pins = PlannerPins::set();
    let done = engine::as_engine(|| {
        let key = store::find(name, owner, own, &visible)?;
        work(&key, &actor)
    });
    done.or_raise()
}

/// `recur.update_endpoint(name, changes, owner)`.
#[pg_extern(sql = false)]
fn update_endpoint(name: Option<&str>, changes: Option<Jsonb>, owner: Option<&str>) {
    let changes = checked_text("changes", &given("changes", changes).or_raise());
    with_endpoint(name, owner, |key, actor| {
        let before = key.lock().ok_or_else(|| store::unknown(&key.name))?;
        let after = before.clone().with(&changes)?;
        let asks_for_it = after.enabled && changes.contains("\"enabled\"");
        if asks_for_it && health::reset(key) {
            events::record(EventKind::EndpointResumed, key, json!({}), None, actor);
        }
        if after == before {
            return Ok(());
        }
        key.update(&after, clock::now());
        events::record(
            EventKind::EndpointChanged,
            key,
            difference(&before, &after),
            None,
            actor,
        );
        Ok(())
    });
}

/// What has changed; of headers, which may hold credentials, only that.
fn difference(before: &Settings, after: &Settings) -> serde_json::Value {
    let mut changed = serde_json::Map::new();
    let mut note = |name: &str, old: serde_json::Value, new: serde_json::Value| {
        if old != new {
            changed.insert(name.to_owned(), json!([old, new]));
        }
    };
    note("url", json!(before.url), json!(after.url));
    note("patterns", json!(before.patterns), json!(after.patterns));
    note(
        "timeout",
        json!(before.timeout.to_string()),
        json!(after.timeout.to_string()),
    );
    note("rate", json!(before.rate), json!(after.rate));
    note(
        "concurrency",
        json!(before.concurrency),
        json!(after.concurrency),
    );
    note("enabled", json!(before.enabled), json!(after.enabled));
    note(
        "description",
        json!(before.description),
        json!(after.description),
    );
    let headers = before.headers != after.headers;
    if headers {
        changed.insert("headers".to_owned(), json!("changed"));
    }
    serde_json::Value::Object(changed)
}

/// `recur.drop_endpoint(name, owner)`.
#[pg_extern(sql = false)]
fn drop_endpoint(name: Option<&str>, owner: Option<&str>) {
    with_endpoint(name, owner, |key, actor| {
        if !key.delete() {
            return Err(store::unknown(&key.name));
        }
        events::record(EventKind::EndpointDropped, key, json!({}), None, actor);
        Ok(())
    });
}

/// `recur.rotate_webhook_secret(name, secret, owner)`.
#[pg_extern(sql = false)]
fn rotate_webhook_secret(name: Option<&str>, secret: Option<&str>, owner: Option<&str>) -> String {
    secret.map_or(Ok(()), webhook::check_secret).or_raise();
    with_endpoint(name, owner, |key, actor| {
        key.lock().ok_or_else(|| store::unknown(&key.name))?;
        let secret = key.add_secret(secret, clock::now())?;
        let detail = json!({ "secret": "rotated" });
        events::record(EventKind::EndpointChanged, key, detail, None, actor);
        Ok(secret)
    })
}

/// `recur.resume_endpoint(name, owner)`.
#[pg_extern(sql = false)]
fn resume_endpoint(name: Option<&str>, owner: Option<&str>) {
    let name = given("name", name).or_raise();
    let resume = |key: &Key, actor: &Actor| {
        if health::reset(key) {
            events::record(EventKind::EndpointResumed, key, json!({}), None, actor);
        }
    };
    if name.starts_with(OPERATOR_PREFIX) {
        if !access::sees_all() {
            let code = PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE;
            SqlError::new(code, format!("endpoint \"{name}\" is the operator's"))
                .with_hint("An admin may resume it.")
                .raise();
        }
        let actor = Actor::current();
        let key = Key {
            owner_id: OPERATOR,
            name: name.to_owned(),
        };
        let _pins = PlannerPins::set();
        engine::as_engine(|| resume(&key, &actor));
        return;
    }
    with_endpoint(Some(name), owner, |key, actor| {
        key.lock().ok_or_else(|| store::unknown(&key.name))?;
        resume(key, actor);
        Ok(())
    });
}
