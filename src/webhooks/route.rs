//! `recur.route_webhooks`: webhooks that are due get their endpoints.

use super::room::{self, Amount, Fit, Room};
use crate::access::{self, Actor};
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::jsonb::Jsonb;
use crate::pg::planner::PlannerPins;
use crate::pg::query::{Row, fragment, pg_uuids, plain_uuid, queries};
use crate::pg::srf::ResultSet;
use crate::pg::time;
use crate::queue::announce;
use crate::queue::finish::{self, End};
use crate::runtime::environment::environment;
use crate::runtime::{clock, engine, home, wakeup};
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::check_for_interrupts;
use pgrx::datum::Uuid as PgUuid;
use pgrx::pg_sys::FunctionCallInfo;
use pgrx::prelude::*;
use recur_core::action::{Json, check_bytes};
use recur_core::dispatch_id;
use recur_core::pattern::Pattern;
use recur_core::webhook::{Candidate, Operator, PROVIDER, Routes};
use serde_json::json;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

queries! {
    LOCK_UNROUTED = "webhooks/queries/lock_unrouted.sql" (TIMESTAMPTZOID, INT4OID);
    LOCK_UNROUTED_OF_OTHERS = "webhooks/queries/lock_unrouted_of_others.sql"
        {unrouted: fragment!("webhooks/queries/unrouted.sql")}
        (TIMESTAMPTZOID, INT4OID, INT4OID, INT4ARRAYOID, INT4OID);
    CANDIDATES = "webhooks/queries/candidates.sql" (INT4ARRAYOID);
    BIND = "webhooks/queries/bind.sql" (UUIDARRAYOID, TEXTARRAYOID);
    PUT_OFF = "webhooks/queries/put_off.sql" (UUIDARRAYOID, TIMESTAMPTZOID);
    SPLIT = "webhooks/queries/split.sql"
        {own: fragment!("webhooks/queries/own_columns.sql"),
         metadata: fragment!("queue/queries/shown_metadata.sql"),
         name: fragment!("queue/queries/shown_name.sql"),
         row: "p"}
        (UUIDARRAYOID, UUIDARRAYOID, TEXTARRAYOID, TIMESTAMPTZOID);
}

/// One call routes no more than this.
const MOST: i32 = 10_000;
/// A webhook whose owner has enough that waits for endpoints is looked at again after this time.
const PUT_OFF_BY: TimeDelta = TimeDelta::minutes(1);

/// Where the oldest webhooks are those of some owners, a call looks for webhooks of this many others.
const MOST_OTHERS: i32 = 100;

const UNMATCHED: &str = "no endpoint that is enabled matches the action type";

thread_local! {
    /// Behind which owner this session's next look at other owners begins.
    static BEGIN_BEHIND: Cell<i32> = const { Cell::new(0) };
}

/// A webhook that is due.
struct Unrouted {
    id: Uuid,
    owner_id: i32,
    action_type: String,
}

/// What becomes of webhooks: a dispatch goes to the one endpoint that matches, or becomes one for each of several.
#[derive(Default)]
struct Plan<'a> {
    bound: Vec<(Uuid, &'a str)>,
    parents: Vec<Parent<'a>>,
    unmatched: Vec<(Uuid, Option<&'static str>)>,
    put_off: Vec<Uuid>,
}

/// A dispatch, and those that it becomes.
type Parent<'a> = (Uuid, Vec<(Uuid, &'a str)>);

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

fn route(operators: Vec<Operator>, limit: i32, actor: &Actor) -> Routed {
    let now = clock::now();
    let unrouted = unrouted(now, limit);
    if unrouted.is_empty() {
        return Routed::default();
    }
    let owners: HashSet<i32> = unrouted.iter().map(|one| one.owner_id).collect();
    let room = Room::new(limit, owners.len());
    let own = candidates(owners.into_iter().collect());
    // An endpoint of the operator that is disabled is among them: what is for it waits until somebody resumes it.
    let plan = Plan::of(&unrouted, Routes::new(&own, &operators), room, now);
    let mut channels = bind(&plan.bound);
    channels.extend(split(&plan.parents, now));
    complete(&plan.parents, actor);
    put_off(plan.put_off, now);
    finish::end_locked(&plan.unmatched, End::Failed, actor);
    announce(channels);
    let children = plan.parents.iter().map(|(_, parts)| parts.len());
    Routed {
        bound: plan.bound.len() as i32,
        split: plan.parents.len() as i32,
        children: children.sum::<usize>() as i32,
        unmatched: plan.unmatched.len() as i32,
    }
}

impl<'a> Plan<'a> {
    fn of(
        unrouted: &[Unrouted],
        mut routes: Routes<'a>,
        mut room: Room,
        now: DateTime<Utc>,
    ) -> Plan<'a> {
        let mut several = Vec::new();
        for one in unrouted {
            check_for_interrupts!();
            if routes
                .of(one.owner_id, &one.action_type, access::name_of)
                .len()
                > 1
            {
                several.push(one.id);
            }
        }
        let sizes = room::sizes(&several);
        let mut plan = Plan::default();
        for one in unrouted {
            check_for_interrupts!();
            match routes.of(one.owner_id, &one.action_type, access::name_of) {
                [] => plan.unmatched.push((one.id, Some(UNMATCHED))),
                [only] => plan.bound.push((one.id, *only)),
                several => {
                    let children = several.len() as i64;
                    let bytes = children * sizes.get(&one.id).copied().unwrap_or_default();
                    match room.take(one.owner_id, Amount { children, bytes }) {
                        Fit::Now => {
                            let parts =
                                several.iter().map(|name| (dispatch_id::random(now), *name));
                            plan.parents.push((one.id, parts.collect()));
                        }
                        Fit::NextCall => {}
                        Fit::Later => plan.put_off.push(one.id),
                    }
                }
            }
        }
        plan
    }
}

/// Owners take turns: the oldest webhook of each, then the next one of each.
fn in_turn(unrouted: Vec<Unrouted>) -> Vec<Unrouted> {
    let mut numbers: HashMap<i32, usize> = HashMap::new();
    let numbered = unrouted.into_iter().map(|one| {
        let number = numbers.entry(one.owner_id).or_default();
        *number += 1;
        (*number, one)
    });
    let mut numbered: Vec<(usize, Unrouted)> = numbered.collect();
    numbered.sort_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, one)| one).collect()
}

fn put_off(ids: Vec<Uuid>, now: DateTime<Utc>) {
    if ids.is_empty() {
        return;
    }
    let until = time::timestamptz(now + PUT_OFF_BY);
    PUT_OFF.with(|query| query.execute(&[pg_uuids(ids).into(), until.into()]));
    wakeup::available_on_commit(time::to_micros(now + PUT_OFF_BY));
}

/// The oldest webhooks that are due; if there are more than that, those of other owners take turns with them.
fn unrouted(now: DateTime<Utc>, limit: i32) -> Vec<Unrouted> {
    let arguments = [time::timestamptz(now).into(), limit.into()];
    let read = |row: &Row| Unrouted {
        id: row.uuid(1),
        owner_id: row.required(2),
        action_type: row.required(3),
    };
    let mut oldest = LOCK_UNROUTED.with(|query| query.rows(&arguments, read));
    if oldest.len() >= limit as usize {
        let owners: HashSet<i32> = oldest.iter().map(|one| one.owner_id).collect();
        oldest.extend(of_others(owners.into_iter().collect(), now, limit));
    }
    let mut unrouted = in_turn(oldest);
    unrouted.truncate(limit as usize);
    unrouted
}

fn of_others(owners: Vec<i32>, now: DateTime<Utc>, limit: i32) -> Vec<Unrouted> {
    let arguments = [
        time::timestamptz(now).into(),
        BEGIN_BEHIND.get().into(),
        MOST_OTHERS.into(),
        owners.into(),
        (limit / MOST_OTHERS).max(1).into(),
    ];
    let read = |row: &Row| {
        let owner_id: i32 = row.required(2);
        let one = row.get::<PgUuid>(1).map(|id| Unrouted {
            id: plain_uuid(id),
            owner_id,
            action_type: row.required(3),
        });
        (owner_id, one)
    };
    let seen = LOCK_UNROUTED_OF_OTHERS.with(|query| query.rows(&arguments, read));
    let owners: HashSet<i32> = seen.iter().map(|(owner_id, _)| *owner_id).collect();
    let is_last = owners.len() < MOST_OTHERS as usize;
    let last = owners.into_iter().max().filter(|_| !is_last);
    BEGIN_BEHIND.set(last.unwrap_or_default());
    seen.into_iter().filter_map(|(_, one)| one).collect()
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

fn split(parents: &[Parent], now: DateTime<Utc>) -> Vec<Channel> {
    if parents.is_empty() {
        return Vec::new();
    }
    let parts = || {
        let of_parent = |(parent, parts): &Parent| -> Vec<Uuid> { vec![*parent; parts.len()] };
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
fn complete(parents: &[Parent], actor: &Actor) {
    let result = |(id, parts): &Parent| {
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
