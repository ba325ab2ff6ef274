//! The keys of requests. Everything here runs as the engine.
//!
//! A key is taken by inserting its row, in the transaction that does the work. A session that inserts it as well
//! waits until that transaction has ended: if it has committed, the answer stands in the row; if not, the key is free.

use crate::pg::error::SqlError;
use crate::pg::jsonb::Jsonb;
use crate::pg::query::queries;
use crate::pg::{subtransaction, time};
use crate::runtime::allowance::Allowance;
use crate::runtime::{clock, settings};
use chrono::{DateTime, Utc};
use pgrx::pg_sys;
use pgrx::prelude::*;

queries! {
    FIND_KEY = "requests/queries/find_key.sql" (INT4OID, TEXTOID, TIMESTAMPTZOID);
    TAKE_KEY = "requests/queries/take_key.sql" (INT4OID, TEXTOID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID);
    FINISH_KEY = "requests/queries/finish_key.sql" (INT4OID, TEXTOID, INT4OID, JSONBOID);
    COUNT_KEYS = "requests/queries/count_keys.sql" (INT4OID, INT8OID);
    ANY_FORGOTTEN = "requests/queries/any_forgotten.sql" (TIMESTAMPTZOID);
    REMOVE_FORGOTTEN = "requests/queries/remove_forgotten.sql" (TIMESTAMPTZOID, INT8OID, INT4OID);
}

const LOCK_NOT_AVAILABLE: &str = "55P03";
/// The row of a key that another transaction has given up may be gone before it is read.
const MOST_TRIES: usize = 3;
/// Keys are removed in transactions of this many.
pub const AT_ONCE: i64 = 1_000;

thread_local! {
    static ALLOWANCE: Allowance = const { Allowance::new() };
}

/// A key of one role.
pub struct Key<'a> {
    pub owner_id: i32,
    pub text: &'a str,
}

/// What a request was answered.
pub struct Answer {
    pub status: i32,
    pub response: Option<Jsonb>,
}

/// Returns the answer of an earlier request with the key, or else takes the key in this transaction.
pub fn begin(key: &Key, fingerprint: &str) -> Result<Option<Answer>, SqlError> {
    let now = clock::now();
    let forgotten = forgotten_before(now);
    for attempt in 0..MOST_TRIES {
        check_for_interrupts!();
        if let Some(known) = find(key, forgotten) {
            return known.answer(key, fingerprint).map(Some);
        }
        if attempt == 0 {
            check_number(key.owner_id, forgotten)?;
        }
        if take(key, fingerprint, now, forgotten)? {
            return Ok(None);
        }
    }
    Err(key.is_busy())
}

/// Keeps the answer of a request that was begun in this transaction.
pub fn finish(key: &Key, status: i32, response: Option<Jsonb>) -> Result<(), SqlError> {
    let arguments = [
        key.owner_id.into(),
        key.text.into(),
        status.into(),
        response.into(),
    ];
    if FINISH_KEY.with(|query| query.execute(&arguments)) > 0 {
        return Ok(());
    }
    let message = format!("request {key} was not begun, or has its answer already");
    let code = PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
    Err(SqlError::new(code, message)
        .with_hint("Call recur.begin_request first, in the same transaction."))
}

/// Are there keys that have been forgotten for a while? A part of the retention more, so that a process that removes
/// them finds more than one.
pub fn await_removal(now: DateTime<Utc>) -> bool {
    let before = forgotten_before(now) - settings::request_key_retention() / 24;
    let arguments = [time::timestamptz(before).into()];
    ANY_FORGOTTEN.with(|query| query.execute(&arguments)) > 0
}

/// Removes forgotten keys, and returns how many: as many as are removed at once, if there may be more.
pub fn remove_forgotten(now: DateTime<Utc>) -> i64 {
    remove(forgotten_before(now), None)
}

fn remove(forgotten: DateTime<Utc>, owner_id: Option<i32>) -> i64 {
    let arguments = [
        time::timestamptz(forgotten).into(),
        AT_ONCE.into(),
        owner_id.into(),
    ];
    REMOVE_FORGOTTEN.with(|query| query.execute(&arguments)) as i64
}

fn forgotten_before(now: DateTime<Utc>) -> DateTime<Utc> {
    now.checked_sub_signed(settings::request_key_retention())
        .unwrap_or(DateTime::UNIX_EPOCH)
}

/// A key that is known.
struct Known {
    fingerprint: String,
    status: Option<i32>,
    response: Option<Jsonb>,
}

impl Known {
    fn answer(self, key: &Key, fingerprint: &str) -> Result<Answer, SqlError> {
        if self.fingerprint != fingerprint {
            let message = format!("request {key} was another request");
            return Err(SqlError::own("RC012", message).with_hint(
                "Give each request a key of its own, and repeat none but the same request.",
            ));
        }
        let Some(status) = self.status else {
            let message = format!("request {key} was begun and not finished");
            let code = PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
            return Err(SqlError::new(code, message).with_hint(
                "recur.finish_request belongs into the transaction of recur.begin_request, once for each key.",
            ));
        };
        Ok(Answer {
            status,
            response: self.response,
        })
    }
}

fn find(key: &Key, forgotten: DateTime<Utc>) -> Option<Known> {
    // SAFETY: a variable of this process: the memory context of the call, in which the answer has to live.
    let context = unsafe { pg_sys::CurrentMemoryContext };
    let arguments = [
        key.owner_id.into(),
        key.text.into(),
        time::timestamptz(forgotten).into(),
    ];
    FIND_KEY.with(|query| {
        query.row(&arguments, |row| Known {
            fingerprint: row.required(1),
            status: row.get(2),
            response: row
                .get::<Jsonb>(3)
                .map(|response| response.copy_to(context)),
        })
    })
}

/// False if the key has an answer by now.
fn take(
    key: &Key,
    fingerprint: &str,
    now: DateTime<Utc>,
    forgotten: DateTime<Utc>,
) -> Result<bool, SqlError> {
    let arguments = [
        key.owner_id.into(),
        key.text.into(),
        fingerprint.into(),
        time::timestamptz(now).into(),
        time::timestamptz(forgotten).into(),
    ];
    let insert = || TAKE_KEY.with(|query| query.execute(&arguments)) > 0;
    subtransaction::attempt_unless(insert, |failure| failure.sqlstate != LOCK_NOT_AVAILABLE)
        .map_err(|_| key.is_busy())
}

/// No role fills the disk with keys: an owner at its limit first loses those that are forgotten.
fn check_number(owner_id: i32, forgotten: DateTime<Utc>) -> Result<(), SqlError> {
    let limit = settings::max_request_keys_per_owner();
    let count = || {
        let arguments = [owner_id.into(), limit.into()];
        let count = || COUNT_KEYS.with(|query| query.row(&arguments, |row| row.required(1)));
        let counted: i64 = count().unwrap_or_default();
        match counted >= limit && remove(forgotten, Some(owner_id)) > 0 {
            true => count().unwrap_or_default(),
            false => counted,
        }
    };
    if ALLOWANCE.with(|allowance| allowance.take(owner_id, limit, count)) {
        return Ok(());
    }
    let code = PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED;
    let message = format!("the role has all of the {limit} request keys that it may have");
    Err(SqlError::new(code, message).with_hint(
        "Keys are forgotten after recur.request_key_retention. recur.max_request_keys_per_owner is the limit.",
    ))
}

impl Key<'_> {
    fn is_busy(&self) -> SqlError {
        let message = format!("request {self} is still under way in another session");
        SqlError::new(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, message)
            .with_hint("Ask again later: the answer of the first request is kept.")
    }
}

impl std::fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "\"{}\"", crate::pg::error::abbreviated(self.text))
    }
}
