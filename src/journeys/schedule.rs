//! `recur.schedule_journey`.

use super::define::unknown;
use super::store::{self, Found, Key};
use crate::access::{self, Visible};
use crate::actions::arguments::{self, Arguments, Special};
use crate::actions::author::Author;
use crate::actions::create;
use crate::pg::error::{OrRaise, SqlError, abbreviated, given};
use crate::pg::planner::PlannerPins;
use crate::pg::query::pg_uuid;
use crate::runtime::{engine, settings};
use pgrx::datum::Uuid as PgUuid;
use pgrx::pg_sys::FunctionCallInfo;
use pgrx::prelude::*;
use recur_core::action::{Changes, Column, Journey, journey};
use recur_core::journey::{Graph, shown};
use recur_core::policy::CountRuns;
use uuid::Uuid;

/// How many journeys of a name are looked at, to name its versions in an error.
const MOST_VERSIONS: i32 = 20;

const JOURNEY: &str = "journey";
const VERSION: &str = "journey_version";
const START: &str = "start";
const INTERVAL: &str = "interval";

const ARGUMENTS: Special = Special {
    renamed: &[(INTERVAL, Column::Schedule), ("start_at", Column::StartsAt)],
    others: &[JOURNEY, VERSION, START],
};

/// `recur.schedule_journey(…)`.
#[pg_extern(sql = false)]
fn schedule_journey(call: FunctionCallInfo) -> PgUuid {
    let given = arguments::read(call, &ARGUMENTS).or_raise();
    let author = Author::current();
    let (owner_id, visible) = (access::own_id(), access::visible());
    let _pins = PlannerPins::set();
    let id = engine::as_engine(|| schedule(&author, owner_id, &visible, given));
    pg_uuid(id.or_raise())
}

fn schedule(
    author: &Author,
    owner_id: i32,
    visible: &Visible,
    arguments: Arguments,
) -> Result<Uuid, SqlError> {
    let name = given(JOURNEY, arguments.text(JOURNEY))?;
    let start = given(START, arguments.text(START))?;
    let key = Key {
        owner_id,
        version: known_version(name, arguments.text(VERSION), owner_id, visible)?,
        name: name.to_owned(),
    };
    let Some(graph) = key.lock_to_schedule() else {
        return Err(unknown(&key.name, Some(&key.version)));
    };
    check(&key, &graph?, start)?;
    let journey = Journey {
        name: key.name,
        version: key.version,
        start_state: start.to_owned(),
    };
    let mut columns = arguments.columns;
    columns.push((Column::Name, journey.action_name().into()));
    let is_given = |column| columns.iter().any(|(given, _)| *given == column);
    given(INTERVAL, is_given(Column::Schedule).then_some(()))?;
    let defaults = [
        (Column::Provider, journey::PROVIDER),
        (Column::ActionType, journey.name.as_str()),
        // max_runs is a hard cap: a run by hand has its place among them.
        (Column::CountRuns, CountRuns::Completed.as_str()),
    ];
    let missing =
        defaults.map(|(column, default)| (!is_given(column)).then(|| (column, default.into())));
    columns.extend(missing.into_iter().flatten());
    let changes = Changes::from_arguments(columns)?;
    create::create_of_journey(author, owner_id, &changes, arguments.on_existing, journey)
}

/// The version that is meant: the only one, where none is given.
fn known_version(
    name: &str,
    version: Option<&str>,
    owner_id: i32,
    visible: &Visible,
) -> Result<String, SqlError> {
    let found = store::find(name, version, Some(owner_id), visible, MOST_VERSIONS);
    let own: Vec<&Found> = found.iter().filter(|found| found.is_own).collect();
    match (own.as_slice(), found.first()) {
        ([only], _) => Ok(only.version.clone()),
        ([], None) => Err(unknown(name, version)),
        // A journey and its schedules have one owner, so that a role that may change it sees what that affects.
        ([], Some(other)) => {
            let owner = other.owner.as_deref().unwrap_or("?");
            let message = format!("journey \"{}\" belongs to \"{owner}\"", abbreviated(name));
            Err(
                SqlError::new(PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE, message)
                    .with_hint("SET ROLE to its owner first, or store a journey of your own."),
            )
        }
        (several, _) => {
            let versions: Vec<&str> = several.iter().map(|found| found.version.as_str()).collect();
            let message = format!(
                "journey \"{}\" has several versions: {}",
                abbreviated(name),
                versions.join(", ")
            );
            Err(
                SqlError::new(PgSqlErrorCode::ERRCODE_TOO_MANY_ROWS, message)
                    .with_hint("Say which, with journey_version."),
            )
        }
    }
}

/// Refuses a start that is no state, or from which a run could reach an interactive one.
fn check(key: &Key, graph: &Graph, start: &str) -> Result<(), SqlError> {
    if graph.state(start).is_none() {
        let problem = format!(
            "journey \"{}\" version \"{}\" has no such state",
            key.name, key.version
        );
        return Err(
            SqlError::invalid_argument(START, start, &problem).with_hint(graph.nearest(start))
        );
    }
    let Some(way) = graph.interactive_path(start, &settings::interactive_state_types()) else {
        return Ok(());
    };
    let last = way.last().copied().unwrap_or_default();
    let kind = graph.state(last).map_or("", |state| &state.kind);
    let problem = format!(
        "a run could reach \"{last}\", which is of type \"{kind}\": {}",
        shown(&way)
    );
    Err(SqlError::invalid_argument(START, start, &problem).with_hint(
        "A scheduled run has no one to ask. Start it behind that state, or give the journey a way around it.",
    ))
}
