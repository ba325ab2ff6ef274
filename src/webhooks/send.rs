//! `recur.create_webhook` and `recur.enqueue_webhook`: a payload is sent by HTTP, to a URL or an endpoint.

use super::endpoints;
use super::store::{self, Key};
use crate::access::{self, Actor};
use crate::actions::arguments::{self, Special};
use crate::actions::author::Author;
use crate::actions::create;
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::jsonb::Jsonb;
use crate::pg::planner::PlannerPins;
use crate::pg::query::pg_uuid;
use crate::queue::enqueue;
use crate::runtime::engine;
use pgrx::datum::{Interval, TimestampWithTimeZone, Uuid as PgUuid};
use pgrx::pg_sys::FunctionCallInfo;
use pgrx::prelude::*;
use recur_core::action::{Changes, Column, Value};
use recur_core::policy::Overlap;
use recur_core::webhook::{self, ACTION_TYPE, MAX_ATTEMPTS, PROVIDER, Settings};

const URL: &str = "url";
const ARGUMENTS: Special = Special {
    renamed: &[],
    others: &[URL],
};

/// The longest name of an endpoint, in characters.
const LONGEST_NAME: usize = 255;

/// `recur.create_webhook(…)`.
#[pg_extern(sql = false)]
fn create_webhook(call: FunctionCallInfo) -> PgUuid {
    let given = arguments::read(call, &ARGUMENTS).or_raise();
    let endpoint = given
        .columns
        .iter()
        .find_map(|(column, value)| match column {
            Column::Endpoint => value.as_text().map(str::to_owned),
            _ => None,
        });
    let url = given.text(URL).map(str::to_owned);
    check(url.as_deref(), endpoint.as_deref()).or_raise();
    let (author, actor, owner_id) = (Author::current(), Actor::current(), access::own_id());
    let on_existing = given.on_existing;
    let mut columns = given.columns;
    let is_given = |column| columns.iter().any(|(given, _)| *given == column);
    let defaults: [(Column, Value<Jsonb>); 4] = [
        (Column::Provider, PROVIDER.into()),
        (Column::ActionType, ACTION_TYPE.into()),
        (Column::MaxAttempts, Value::Int(MAX_ATTEMPTS.into())),
        // An endpoint that is away is not to find a heap of the same.
        (Column::Overlap, Value::Text(Overlap::QueueOne.to_string())),
    ];
    let missing: Vec<_> = defaults
        .into_iter()
        .filter(|(column, _)| !is_given(*column))
        .collect();
    columns.extend(missing);
    columns.retain(|(column, _)| *column != Column::Endpoint);
    let _pins = PlannerPins::set();
    let id = engine::as_engine(|| {
        if let Some(name) = destination(url, endpoint, owner_id, &actor)? {
            columns.push((Column::Endpoint, Value::Text(name)));
        }
        let changes = Changes::from_arguments(columns)?;
        create::create(&author, owner_id, &changes, on_existing)
    });
    pg_uuid(id.or_raise())
}

/// `recur.enqueue_webhook(…)`.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn enqueue_webhook(
    url: Option<String>,
    payload: Option<Jsonb>,
    run_at: Option<TimestampWithTimeZone>,
    endpoint: Option<String>,
    action_type: Option<String>,
    name: Option<String>,
    labels: Option<Jsonb>,
    namespace: Option<String>,
    tenant: Option<String>,
    subject: Option<String>,
    key: Option<String>,
    window: Option<Interval>,
    metadata: Option<Jsonb>,
    priority: Option<i32>,
    lock_group: Option<String>,
    max_attempts: Option<i32>,
    backoff: Option<Jsonb>,
) -> PgUuid {
    check(url.as_deref(), endpoint.as_deref()).or_raise();
    let dispatch = enqueue::checked_dispatch(
        Some(PROVIDER.to_owned()),
        Some(action_type.unwrap_or_else(|| ACTION_TYPE.to_owned())),
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
        None,
        max_attempts.or(Some(MAX_ATTEMPTS)),
        backoff,
        None,
        name,
        labels,
    );
    let (actor, owner_id) = (Actor::current(), access::own_id());
    let endpoint = {
        let _pins = PlannerPins::set();
        engine::as_engine(|| destination(url, endpoint, owner_id, &actor)).or_raise()
    };
    dispatch.to_endpoint(endpoint).enqueue()
}

/// What is given must be one of both, or none.
fn check(url: Option<&str>, endpoint: Option<&str>) -> Result<(), SqlError> {
    if let Some(name) = endpoint {
        webhook::check_name("endpoint", name)?;
    }
    let Some(url) = url else {
        return Ok(());
    };
    webhook::check_url(URL, url)?;
    if endpoint.is_some() {
        return Err(
            SqlError::invalid_argument(URL, url, "an endpoint is given as well")
                .with_hint("An endpoint has a URL: give one of both."),
        );
    }
    if url.chars().count() > LONGEST_NAME {
        let problem = format!("must not be longer than {LONGEST_NAME} characters here");
        return Err(SqlError::invalid_argument(URL, url, &problem)
            .with_hint("recur.create_endpoint takes a longer URL; then give the endpoint."));
    }
    Ok(())
}

/// The endpoint that a URL or a name means, as the engine; None for whichever match. A URL alone is an endpoint of that
/// name, which gets only what names it.
fn destination(
    url: Option<String>,
    endpoint: Option<String>,
    owner_id: i32,
    actor: &Actor,
) -> Result<Option<String>, SqlError> {
    let key = |name: String| Key { owner_id, name };
    if let Some(name) = endpoint {
        let key = key(name);
        return match key.url() {
            Some(_) => Ok(Some(key.name)),
            None => Err(store::unknown(&key.name)),
        };
    }
    let Some(url) = url else {
        return Ok(None);
    };
    let key = key(url);
    let known = match key.url() {
        Some(known) => Some(known),
        None => match endpoints::create(&key, &Settings::new(&key.name), None, actor)? {
            Some(_) => return Ok(Some(key.name)),
            // Another session was faster.
            None => key.url(),
        },
    };
    match known {
        Some(other) if other != key.name => {
            let problem = "your endpoint of this name has another URL";
            Err(SqlError::invalid_argument(URL, &key.name, problem)
                .with_hint("Give it as the endpoint, or give the other URL."))
        }
        _ => Ok(Some(key.name)),
    }
}
