//! `recur.fail_interactive`: a run met a state that waits for input, although its schedule was checked. The graph that
//! the program runs is not the stored one, or the setting has changed since.

use crate::pg::error::{OrRaise, given};
use crate::pg::planner::PlannerPins;
use crate::pg::query::{pg_uuid, queries};
use crate::queue::finish::End;
use crate::queue::report::{self, Report};
use crate::runtime::{engine, stats};
use pgrx::datum::Uuid as PgUuid;
use pgrx::pg_sys::FunctionCallInfo;
use pgrx::prelude::*;
use recur_core::journey::check_state;
use recur_core::report::stored_reason;
use uuid::Uuid;

queries! {
    COUNT_INTERACTIVE = "journeys/queries/count_interactive.sql" (UUIDOID);
}

/// Stands in front of the reason, so that programs know the failure by it.
const CODE: &str = "RC010";

/// `recur.fail_interactive(id, attempt, state)`.
#[pg_extern(sql = false)]
fn fail_interactive(
    id: Option<PgUuid>,
    attempt: Option<i32>,
    state: Option<&str>,
    call: FunctionCallInfo,
) {
    let _pins = PlannerPins::set();
    let state = given("state", state).or_raise();
    check_state(state).or_raise();
    let report = Report::new(id, attempt);
    let reason =
        format!("{CODE}: state \"{state}\" waits for input, and a scheduled run has no one to ask");
    let reason = stored_reason(Some(&reason));
    let ended = report::give_back(report, call, Some(&reason), |reported, now| {
        reported.fail(false, now)
    });
    // A run that was asked to stop is cancelled.
    if let Some((dispatch, End::Failed)) = ended {
        count(dispatch.action);
    }
}

fn count(action: Option<Uuid>) {
    stats::count_interactive_on_commit();
    let Some(action) = action else { return };
    engine::as_engine(|| COUNT_INTERACTIVE.with(|query| query.execute(&[pg_uuid(action).into()])));
}
