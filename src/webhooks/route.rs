//! `recur.route_webhooks`: webhooks that are due get their endpoints.

use crate::access::{self, Actor};
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::jsonb::Jsonb;
use crate::pg::planner::PlannerPins;
use crate::pg::query::{Row, fragment, pg_uuids, queries};
use crate::pg::srf::ResultSet;
use crate::pg::time;
use crate::queue::announce;
use crate::queue::finish::{self, End};
use crate::runtime::environment::environment;
use crate::runtime::{clock, engine, home};
use chrono::{DateTime, Utc};
use pgrx::pg_sys::FunctionCallInfo;
use pgrx::prelude::*;
use recur_core::action::{Json, check_bytes};
use recur_core::dispatch_id;
use recur_core::pattern::Pattern;
use recur_core::webhook::{Candidate, Operator, PROVIDER, Routes};
use serde_json::json;
use std::collections::HashSet;
use uuid::Uuid;

queries! {
    LOCK_UNROUTED = "webhooks/queries/lock_unrouted.sql" (TIMESTAMPTZOID, INT4OID);
    CANDIDATES = "webhooks/queries/candidates.sql" (INT4ARRAYOID);
    DISABLED_OPERATORS = "webhooks/queries/disabled_operators.sql" ();
    BIND = "webhooks/queries/bind.sql" (UUIDARRAYOID, TEXTARRAYOID);
    SPLIT = "webhooks/queries/split.sql"
        {own: fragment!("webhooks/queries/own_columns.sql"),
         metadata: fragment!("queue/queries/shown_metadata.sql"),
         name: fragment!("queue/queries/shown_name.sql"),
         row: "p"}
        (UUIDARRAYOID, UUIDARRAYOID, TEXTARRAYOID, TIMESTAMPTZOID);
}

/// One call routes no more than this, and makes no more than ten times as many dispatches of it.
const MOST: i32 = 10_000;

const UNMATCHED: &str = "no endpoint that is enabled matches the action type";

/// A webhook that is due.
struct Unrouted {
    id: Uuid,
    owner_id: i32,
    action_type: String,
}

/// What a call has done.
#[derive(Default)]
struct Routed {
    bound: i32,
    split: i32,
    children: i32,
    unmatched: i32,
}

/// `recur.route_webhooks(operator, "limit")`.
#[pg_extern(sql = false)]
fn route_webhooks(operator: Option<Jsonb>, limit: Option<i32>, call: FunctionCallInfo) {
    let operators = operators(operator).or_raise();
    let limit = checked_limit(limit.unwrap_or(1_000), MOST).or_raise();
    let actor = Actor::current();
    let result = ResultSet::begin(call);
    let routed = match home::may_fire() {
        false => {
            home::warn_once();
            Routed::default()
        }
        true => {
            let _pins = PlannerPins::set();
            engine::as_engine(|| route(operators, limit, &actor))
        }
    };
    result.put(&[
        routed.bound.into(),
        routed.split.into(),
        routed.children.into(),
        routed.unmatched.into(),
    ]);
}

/// The endpoints of the operator, as the caller gives them.
pub fn operators(given: Option<Jsonb>) -> Result<Vec<Operator>, SqlError> {
    let Some(given) = given else {
        return Ok(Vec::new());
    };
    check_bytes("operator", given.size(), &environment())?;
    Ok(Operator::parse(&given.text())?)
}

pub fn checked_limit(limit: i32, most: i32) -> Result<i32, SqlError> {
    if (1..=most).contains(&limit) {
        return Ok(limit);
    }
    let problem = format!("must be from 1 to {most}");
    Err(
        SqlError::invalid_argument("limit", &limit.to_string(), &problem)
            .with_hint("Call it again for more."),
    )
}

fn route(mut operators: Vec<Operator>, limit: i32, actor: &Actor) -> Routed {
    let now = clock::now();
    let unrouted = unrouted(now, limit);
    if unrouted.is_empty() {
        return Routed::default();
    }
    let owners: HashSet<i32> = unrouted.iter().map(|one| one.owner_id).collect();
    let own = candidates(owners.into_iter().collect());
    let disabled: Vec<String> =
        DISABLED_OPERATORS.with(|query| query.rows(&[], |row| row.required(1)));
    operators.retain(|one| !disabled.contains(&one.key));
    let mut routes = Routes::new(&own, &operators);
    let (mut bound, mut unmatched) = (Vec::new(), Vec::new());
    let mut parents: Vec<(Uuid, Vec<(Uuid, &str)>)> = Vec::new();
    let mut children = 0;
    for one in &unrouted {
        match routes.of(one.owner_id, &one.action_type, access::name_of) {
            [] => unmatched.push((one.id, Some(UNMATCHED))),
            [only] => bound.push((one.id, *only)),
            several => {
                children += several.len();
                let parts = several.iter().map(|name| (dispatch_id::random(now), *name));
                parents.push((one.id, parts.collect()));
            }
        }
        // The rest is left to the next call.
        if children > 10 * limit as usize {
            break;
        }
    }
    let mut channels = bind(&bound);
    channels.extend(split(&parents, now));
    complete(&parents, actor);
    finish::end_locked(&unmatched, End::Failed, actor);
    announce(channels);
    Routed {
        bound: bound.len() as i32,
        split: parents.len() as i32,
        children: children as i32,
        unmatched: unmatched.len() as i32,
    }
}

fn unrouted(now: DateTime<Utc>, limit: i32) -> Vec<Unrouted> {
    let arguments = [time::timestamptz(now).into(), limit.into()];
    let read = |row: &Row| Unrouted {
        id: row.uuid(1),
        owner_id: row.required(2),
        action_type: row.required(3),
    };
    LOCK_UNROUTED.with(|query| query.rows(&arguments, read))
}

/// A stored pattern that is none matches nothing.
fn candidates(owners: Vec<i32>) -> Vec<Candidate> {
    let read = |row: &Row| {
        let patterns: Vec<Option<String>> = row.required(3);
        let patterns = patterns.into_iter().flatten();
        Candidate {
            owner_id: row.required(1),
            name: row.required(2),
            patterns: patterns
                .filter_map(|text| Pattern::parse("patterns", &text).ok())
                .collect(),
        }
    };
    CANDIDATES.with(|query| query.rows(&[owners.into()], read))
}

type Channel = Option<String>;

fn bind(bound: &[(Uuid, &str)]) -> Vec<Channel> {
    if bound.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = bound.iter().map(|(_, name)| *name).collect();
    let arguments = [
        pg_uuids(bound.iter().map(|(id, _)| *id)).into(),
        names.into(),
    ];
    BIND.with(|query| query.rows(&arguments, |row| row.get(1)))
}

fn split(parents: &[(Uuid, Vec<(Uuid, &str)>)], now: DateTime<Utc>) -> Vec<Channel> {
    if parents.is_empty() {
        return Vec::new();
    }
    let parts = || {
        let of_parent = |(parent, parts): &(Uuid, Vec<(Uuid, &str)>)| -> Vec<Uuid> {
            vec![*parent; parts.len()]
        };
        let children = parents.iter().flat_map(|(_, parts)| parts);
        (parents.iter().flat_map(of_parent), children)
    };
    let (of_parents, children) = parts();
    let names: Vec<&str> = children.clone().map(|(_, name)| *name).collect();
    let arguments = [
        pg_uuids(of_parents).into(),
        pg_uuids(children.map(|(id, _)| *id)).into(),
        names.into(),
        time::timestamptz(now).into(),
    ];
    SPLIT.with(|query| query.rows(&arguments, |row| row.get(1)))
}

/// A webhook that went to several endpoints is done: what is left to do is that of its children.
fn complete(parents: &[(Uuid, Vec<(Uuid, &str)>)], actor: &Actor) {
    let result = |(id, parts): &(Uuid, Vec<(Uuid, &str)>)| {
        let children = parts
            .iter()
            .map(|(child, name)| json!({ "id": child.to_string(), "endpoint": name }));
        let result = json!({ "children": children.collect::<Vec<_>>() });
        (*id, Jsonb::from_text(&result.to_string()))
    };
    finish::complete_locked(&parents.iter().map(result).collect::<Vec<_>>(), actor);
}

/// Lets the programs that deliver know, by the number for each channel.
fn announce(mut channels: Vec<Channel>) {
    channels.sort_unstable();
    let groups = channels.chunk_by(|one, other| one == other);
    announce::announce_counts(groups.map(|group| {
        let channel = group.first().and_then(Option::as_deref);
        (channel, PROVIDER, group.len() as i64)
    }));
}
