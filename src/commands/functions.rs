//! `recur.arm_sql`, and what SQL asks about dispatches that the database runs.

use super::armed::{self, Armed};
use super::{handlers, rights};
use crate::access;
use crate::pg::error::{OrRaise, SqlError, given};
use crate::pg::jsonb::Jsonb;
use crate::pg::planner::PlannerPins;
use crate::runtime::environment::environment;
use crate::runtime::{engine, wakeup};
use pgrx::pg_sys;
use pgrx::prelude::*;
use recur_core::action::Interval as Span;
use recur_core::action::{Json, check_bytes};
use recur_core::command::{Command, PROVIDER};

/// The payload of an SQL action, from the arguments of a function.
pub fn payload(command: Option<&str>, timeout: Option<Span>) -> Result<Jsonb, SqlError> {
    let missing = |error: SqlError| error.with_hint("Give one or several SQL statements.");
    let command = given("command", command).map_err(missing)?;
    // Before copies of it are made.
    check_bytes("command", command.len(), &environment())?;
    let timeout = timeout.map(|timeout| timeout.to_string());
    let json = Command::payload(command, timeout.as_deref());
    // What is wrong with an argument is said of the argument, not of the payload.
    Command::from_payload(&json)?;
    Ok(Jsonb::from_text(&json))
}

/// `recur_internal.runs_in_database(owner_id, provider, action_type)`.
#[pg_extern(sql = false)]
fn runs_in_database(
    owner_id: Option<i32>,
    provider: Option<&str>,
    action_type: Option<&str>,
) -> Option<bool> {
    let (owner_id, provider, action_type) = (owner_id?, provider?, action_type?);
    (provider == PROVIDER || handlers::find(owner_id, action_type).is_some()).then_some(true)
}

/// Stands for every owner that the caller may act as.
const EVERY_OWNER: &str = "*";

/// `recur.arm_sql(owner)`.
#[pg_extern(sql = false)]
fn arm_sql(owner: Option<&str>) {
    let caller = access::caller();
    let by = access::caller_name();
    let owners = owners_to_arm(owner.unwrap_or(&by), caller).or_raise();
    let _pins = PlannerPins::set();
    engine::as_engine(|| {
        armed::lock();
        for owner_id in owners {
            let role = access::role_of(owner_id);
            if let Some(role) = role.filter(|_| armed::has_something_to_run(owner_id)) {
                armed::arm(Armed { owner_id, role }, &by);
            }
        }
    });
    wakeup::work_on_commit();
}

fn owners_to_arm(owner: &str, caller: pg_sys::Oid) -> Result<Vec<i32>, SqlError> {
    if owner == EVERY_OWNER {
        let all = engine::as_engine(|| access::Visible::All.ids());
        let may_arm = |owner_id: &i32| rights::check_author(caller, *owner_id).is_ok();
        return Ok(all.into_iter().filter(may_arm).collect());
    }
    let owners = access::owner_ids_of(owner);
    if owners.is_empty() {
        let message = format!("invalid owner \"{owner}\": nothing belongs to this role");
        return Err(SqlError::no_data_found(message)
            .with_hint("recur.doctor() names the owners whose SQL does not run."));
    }
    for owner_id in &owners {
        rights::check_author(caller, *owner_id)?;
    }
    Ok(owners)
}
