//! `recur.set_journey` and `recur.drop_journey`.

use super::store::{self, Found, Key, Schedules};
use crate::access::{self, Actor};
use crate::history::events::{self, Change};
use crate::pg::error::{OrRaise, SqlError, abbreviated, given};
use crate::pg::jsonb::Jsonb;
use crate::pg::planner::PlannerPins;
use crate::pg::srf::ResultSet;
use crate::runtime::environment::environment;
use crate::runtime::{clock, engine, settings};
use pgrx::check_for_interrupts;
use pgrx::pg_sys::FunctionCallInfo;
use pgrx::prelude::*;
use recur_core::action::journey::check_identity;
use recur_core::action::{Json, check_bytes};
use recur_core::event::EventKind;
use recur_core::journey::{Graph, shown};

/// How many owners an error names.
const MOST_OWNERS: i32 = 5;

/// `recur.set_journey(name, version, states)`.
#[pg_extern(sql = false)]
fn set_journey(
    name: Option<&str>,
    version: Option<&str>,
    states: Option<Jsonb>,
    call: FunctionCallInfo,
) {
    let (name, version) = identity(name, version).or_raise();
    let states = given("states", states).or_raise();
    check_bytes("states", states.size(), &environment()).or_raise();
    let graph = Graph::parse(&states.text()).or_raise();
    let actor = Actor::current();
    let key = Key {
        owner_id: access::own_id(),
        name: name.to_owned(),
        version: version.to_owned(),
    };
    let result = ResultSet::begin(call);
    let _pins = PlannerPins::set();
    let (is_changed, schedules) = engine::as_engine(|| set(&key, &graph, &actor)).or_raise();
    result.put(&[
        name.into(),
        version.into(),
        is_changed.into(),
        schedules.into(),
    ]);
}

/// Returns whether anything has changed, and how many schedules the journey has.
fn set(key: &Key, graph: &Graph, actor: &Actor) -> Result<(bool, i64), SqlError> {
    loop {
        if key.insert(graph, clock::now()) {
            record(EventKind::JourneyStored, key, Some(graph), actor);
            return Ok((true, 0));
        }
        // Another session may have deleted the journey since.
        let Some(stored) = key.lock_to_change() else {
            check_for_interrupts!();
            continue;
        };
        let schedules = key.schedules();
        let number = schedules.iter().map(|some| some.number).sum();
        // What is not valid any more is replaced like any other.
        if stored.is_ok_and(|stored| stored == *graph) {
            return Ok((false, number));
        }
        for some in &schedules {
            check(key, graph, some)?;
        }
        key.update(graph, clock::now());
        record(EventKind::JourneyChanged, key, Some(graph), actor);
        return Ok((true, number));
    }
}

/// Refuses a change after which runs of existing schedules could not start, or would reach an interactive state.
fn check(key: &Key, graph: &Graph, schedules: &Schedules) -> Result<(), SqlError> {
    let start = &schedules.start_state;
    let problem = match graph.state(start) {
        None => "which would no longer be a state".to_owned(),
        Some(_) => {
            let Some(way) = graph.interactive_path(start, &settings::interactive_state_types())
            else {
                return Ok(());
            };
            let last = way.last().copied().unwrap_or_default();
            let kind = graph.state(last).map_or("", |state| &state.kind);
            let way = shown(&way);
            format!("and could reach \"{last}\", which is of type \"{kind}\": {way}")
        }
    };
    let runs = counted(schedules.number);
    let verb = if schedules.number == 1 {
        "starts"
    } else {
        "start"
    };
    let message = format!(
        "{runs} of {} {verb} in \"{start}\", {problem}",
        described(key)
    );
    Err(in_use(message, schedules)
        .with_hint("Store the change as another version, or delete these schedules first."))
}

fn counted(number: i64) -> String {
    match number {
        1 => "a schedule".to_owned(),
        several => format!("{several} schedules"),
    }
}

fn described(key: &Key) -> String {
    format!("journey \"{}\" version \"{}\"", key.name, key.version)
}

fn in_use(message: String, schedules: &Schedules) -> SqlError {
    let more = if schedules.ids.matches(',').count() as i64 + 1 < schedules.number {
        ", …"
    } else {
        ""
    };
    SqlError::new(PgSqlErrorCode::ERRCODE_OBJECT_IN_USE, message)
        .with_detail(format!("Actions that use it: {}{more}.", schedules.ids))
}

/// `recur.drop_journey(name, version)`.
#[pg_extern(sql = false)]
fn drop_journey(name: Option<&str>, version: Option<&str>, call: FunctionCallInfo) {
    let name = given("name", name).or_raise();
    let version = given("version", version).or_raise();
    let (actor, own, visible) = (Actor::current(), access::own_id_if_any(), access::visible());
    let result = ResultSet::begin(call);
    let _pins = PlannerPins::set();
    let dropped = engine::as_engine(|| {
        let found = store::find(name, Some(version), own, &visible, MOST_OWNERS + 1);
        let key = Key {
            owner_id: only(&found, name, version)?.owner_id,
            name: name.to_owned(),
            version: version.to_owned(),
        };
        drop(&key, &actor)
    });
    dropped.or_raise();
    result.put(&[name.into(), version.into()]);
}

/// Among the journeys of several owners, the caller's own is meant.
fn only<'a>(found: &'a [Found], name: &str, version: &str) -> Result<&'a Found, SqlError> {
    match found {
        [] => Err(unknown(name, Some(version))),
        [first, ..] if first.is_own => Ok(first),
        [only] => Ok(only),
        several => {
            let shown = several.iter().take(MOST_OWNERS as usize);
            let owners: Vec<&str> = shown
                .map(|found| found.owner.as_deref().unwrap_or("?"))
                .collect();
            let message = format!(
                "several owners have a journey \"{}\" version \"{}\": {}",
                abbreviated(name),
                abbreviated(version),
                owners.join(", ")
            );
            Err(
                SqlError::new(PgSqlErrorCode::ERRCODE_TOO_MANY_ROWS, message)
                    .with_hint("SET ROLE to the owner first."),
            )
        }
    }
}

fn drop(key: &Key, actor: &Actor) -> Result<(), SqlError> {
    if key.lock_to_change().is_none() {
        return Err(unknown(&key.name, Some(&key.version)));
    }
    let schedules = key.schedules();
    if let Some(first) = schedules.first() {
        let number: i64 = schedules.iter().map(|some| some.number).sum();
        let runs = counted(number);
        let verb = if number == 1 { "uses" } else { "use" };
        let message = format!("{runs} {verb} {}", described(key));
        return Err(in_use(message, first).with_hint("Delete them first: recur.delete(id)."));
    }
    key.delete();
    record(EventKind::JourneyDropped, key, None, actor);
    Ok(())
}

/// The error for a journey that the caller does not see.
pub fn unknown(name: &str, version: Option<&str>) -> SqlError {
    let version = match version {
        Some(version) => format!(" version \"{}\"", abbreviated(version)),
        None => String::new(),
    };
    let message = format!("no journey \"{}\"{version}", abbreviated(name));
    SqlError::no_data_found(message)
        .with_hint("recur.journeys shows those that you can see; recur.set_journey stores one.")
}

fn identity<'a>(
    name: Option<&'a str>,
    version: Option<&'a str>,
) -> Result<(&'a str, &'a str), SqlError> {
    let (name, version) = (given("name", name)?, given("version", version)?);
    check_identity(name, version)?;
    Ok((name, version))
}

fn record(kind: EventKind, key: &Key, graph: Option<&Graph>, actor: &Actor) {
    let mut detail = serde_json::json!({"journey": key.name, "journey_version": key.version});
    if let Some(graph) = graph {
        detail["states"] = graph.states().len().into();
    }
    let change = Change {
        kind,
        action: None,
        dispatch: None,
        owner_id: key.owner_id,
        detail: Jsonb::from_text(&detail.to_string()),
    };
    events::record_changes(&[change], actor);
}
