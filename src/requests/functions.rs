//! `recur.begin_request` and `recur.finish_request`.

use super::keys::{self, Key};
use crate::access;
use crate::pg::error::{OrRaise, SqlError, given};
use crate::pg::jsonb::Jsonb;
use crate::pg::lock_timeout::LockTimeout;
use crate::pg::planner::PlannerPins;
use crate::pg::srf::ResultSet;
use crate::runtime::engine;
use pgrx::pg_sys::FunctionCallInfo;
use pgrx::prelude::*;
use recur_core::action::Json;

/// Longer than requests take. The client that waits has sent its request twice, and asks again.
const LONGEST_WAIT_MILLIS: i32 = 10_000;
/// As much as a header carries.
const LONGEST_TEXT: usize = 255;
/// An answer names what was done, and does not repeat it.
const LARGEST_RESPONSE: usize = 64 * 1024;

/// `recur.begin_request(key, fingerprint)`.
#[pg_extern(sql = false)]
fn begin_request(key: Option<&str>, fingerprint: Option<&str>, call: FunctionCallInfo) {
    let key = checked("key", key).or_raise();
    let fingerprint = checked("fingerprint", fingerprint).or_raise();
    let _timeout = LockTimeout::of_millis(LONGEST_WAIT_MILLIS);
    let key = Key {
        owner_id: access::own_id(),
        text: key,
    };
    let result = ResultSet::begin(call);
    let _pins = PlannerPins::set();
    let answer = engine::as_engine(|| keys::begin(&key, fingerprint));
    if let Some(answer) = answer.or_raise() {
        result.put(&[answer.status.into(), answer.response.into()]);
    }
}

/// `recur.finish_request(key, status, response)`.
#[pg_extern(sql = false)]
fn finish_request(key: Option<&str>, status: Option<i32>, response: Option<Jsonb>) {
    let key = checked("key", key).or_raise();
    let status = given("status", status).and_then(check_status).or_raise();
    if let Some(response) = &response {
        check_response(response).or_raise();
    }
    let key = Key {
        owner_id: access::own_id(),
        text: key,
    };
    let _pins = PlannerPins::set();
    engine::as_engine(|| keys::finish(&key, status, response)).or_raise();
}

fn checked<'a>(argument: &str, text: Option<&'a str>) -> Result<&'a str, SqlError> {
    let text = given(argument, text)?;
    if (1..=LONGEST_TEXT).contains(&text.chars().count()) {
        return Ok(text);
    }
    let problem = format!("must have 1 to {LONGEST_TEXT} characters");
    Err(SqlError::invalid_argument(argument, text, &problem)
        .with_hint("A UUID is a good key, and a hash of the request a good fingerprint."))
}

fn check_status(status: i32) -> Result<i32, SqlError> {
    if (100..=599).contains(&status) {
        return Ok(status);
    }
    let problem = "must be a status of HTTP, from 100 to 599";
    Err(
        SqlError::invalid_argument("status", &status.to_string(), problem)
            .with_hint("201 stands for what was created."),
    )
}

fn check_response(response: &Jsonb) -> Result<(), SqlError> {
    let size = response.size();
    if size <= LARGEST_RESPONSE {
        return Ok(());
    }
    let problem = format!("must not have more than {LARGEST_RESPONSE} bytes");
    Err(
        SqlError::invalid_argument("response", &format!("{size} bytes"), &problem)
            .with_hint("Name what was created, and leave out what it holds."),
    )
}
