//! `recur.cancel` and `recur.retry`.

use crate::access::{self, Actor, Visible};
use crate::alerts::alarms;
use crate::pg::error::{OrRaise, SqlError, given};
use crate::pg::planner::PlannerPins;
use crate::pg::query::{pg_uuid, plain_uuid, queries};
use crate::pg::srf::ResultSet;
use crate::queue::announce::{self, ANNOUNCED_COLUMNS, Announceable};
use crate::queue::finish::{self, End};
use crate::queue::report::{self, Answer};
use crate::queue::runs;
use crate::runtime::{clock, engine};
use pgrx::datum::Uuid as PgUuid;
use pgrx::pg_sys::FunctionCallInfo;
use pgrx::prelude::*;
use recur_core::report::stored_reason;
use uuid::Uuid;

queries! {
    LOCK_DISPATCH = "recovery/queries/lock_dispatch.sql" (UUIDOID, INT4ARRAYOID);
    REQUEST_CANCEL = "recovery/queries/request_cancel.sql" (UUIDOID, TEXTOID);
    FINISHED_ACTION = "recovery/queries/finished_action.sql" (UUIDOID, INT4ARRAYOID);
    RETRY = "recovery/queries/retry.sql" {announced: ANNOUNCED_COLUMNS} (UUIDOID, INT4ARRAYOID);
}

/// `recur.cancel(id, reason)`.
#[pg_extern(sql = false)]
fn cancel(id: Option<PgUuid>, reason: Option<&str>, call: FunctionCallInfo) {
    let reason = reason.map(|reason| stored_reason(Some(reason)));
    let id = plain_uuid(given("id", id).or_raise());
    let (visible, actor) = (access::visible(), Actor::current());
    let answers = ResultSet::begin(call);
    let _pins = PlannerPins::set();
    engine::as_engine(|| {
        let arguments = [pg_uuid(id).into(), visible.parameter().into()];
        let status =
            LOCK_DISPATCH.with(|query| query.row(&arguments, |row| row.required::<String>(1)));
        match status.as_deref() {
            None => refuse(id, &visible, |status| {
                format!("dispatch {id} is {status} already")
            }),
            Some("pending") => {
                for one in finish::end_locked(&[(id, reason.as_deref())], End::Cancelled, &actor) {
                    Answer::finished(&one, End::Cancelled).put(&answers);
                }
            }
            Some(_) => {
                request_cancel(id, reason.as_deref()).put(&answers);
                announce::wake_executors();
            }
        }
    });
}

fn request_cancel(id: Uuid, reason: Option<&str>) -> Answer {
    let arguments = [pg_uuid(id).into(), reason.into()];
    let running = REQUEST_CANCEL.with(|query| {
        query.row(&arguments, |row| Answer {
            id,
            status: "running",
            attempt: row.required(1),
            available_at: row.required_instant(2),
            cancel_requested: true,
        })
    });
    running.unwrap_or_else(|| pgrx::error!("pg_recur: a locked dispatch is gone"))
}

/// `recur.retry(id)`.
#[pg_extern(sql = false)]
fn retry(id: Option<PgUuid>, call: FunctionCallInfo) {
    let id = plain_uuid(given("id", id).or_raise());
    let visible = access::visible();
    let answers = ResultSet::begin(call);
    let _pins = PlannerPins::set();
    engine::as_engine(|| {
        let arguments = [pg_uuid(id).into(), visible.parameter().into()];
        let action =
            FINISHED_ACTION.with(|query| query.row(&arguments, |row| row.optional_uuid(1)));
        if let Some(action) = action.flatten() {
            runs::take_place(action, &visible).or_raise();
        }
        let back = RETRY.with(|query| {
            query.row(&arguments, |row| {
                let answer = Answer {
                    id,
                    status: "pending",
                    attempt: row.required(9),
                    available_at: row.required_instant(10),
                    cancel_requested: false,
                };
                (answer, Announceable::read(row))
            })
        });
        let Some((answer, dispatch)) = back else {
            let problem = |status: &str| {
                format!(
                    "dispatch {id} is {status}: only what has failed or was cancelled can be retried"
                )
            };
            refuse(id, &visible, problem)
        };
        announce::announce(dispatch.announcement().as_slice());
        if let Some(action) = dispatch.action {
            alarms::look_in_time(action, clock::now());
        }
        answer.put(&answers);
    });
}

/// Raises the error for a dispatch that is in another state, or that the caller does not see.
fn refuse(id: Uuid, visible: &Visible, problem: impl FnOnce(&str) -> String) -> ! {
    let rejection = report::rejection(id, None, visible);
    match rejection.status {
        None => SqlError::no_data_found(rejection.problem).raise(),
        Some(status) => {
            let code = PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
            SqlError::new(code, problem(&status)).raise()
        }
    }
}
