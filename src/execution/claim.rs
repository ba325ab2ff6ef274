//! Taking the next dispatch of an owner. Everything here runs as the engine.

use crate::commands::armed::{self, Armed};
use crate::commands::handlers::{self, Call};
use crate::pg;
use crate::pg::jsonb::Jsonb;
use crate::pg::query::{Query, Row, fragment, pg_uuid, queries};
use crate::pg::time;
use crate::runtime::clock;
use crate::runtime::shared::executors::{self, Attempt};
use chrono::{DateTime, Utc};
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;
use recur_core::action::Json;
use std::thread::LocalKey;
use uuid::Uuid;

queries! {
    CLAIM = "execution/queries/claim.sql"
        {chosen: fragment!("execution/queries/next_of_owner.sql"), shown: SHOWN, attempt: "c.attempt"}
        (TIMESTAMPTZOID, TEXTOID, INT4OID, OIDOID);
    CLAIM_ONE = "execution/queries/claim.sql"
        {chosen: fragment!("execution/queries/one_of_owner.sql"), shown: SHOWN, attempt: "c.attempt"}
        (TIMESTAMPTZOID, TEXTOID, INT4OID, OIDOID, UUIDOID);
    TAKE_GROUP = "execution/queries/take_group.sql"
        {groupable: fragment!("execution/queries/groupable.sql"), shown: SHOWN, attempt: "c.attempt + 1"}
        (TIMESTAMPTZOID, INT4OID, OIDOID, TEXTARRAYOID, INT8OID, TEXTARRAYOID);
}

const SHOWN: &str = fragment!("execution/queries/shown_to_handler.sql");

/// A dispatch that this process is to run. It outlives the transaction that claimed it.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub attempt: Attempt,
    pub owner_id: i32,
    pub provider: String,
    pub action_type: String,
    pub payload: String,
    pub context: Option<String>,
    /// What the action, or the dispatch, is called.
    pub name: Option<String>,
    /// The dispatch as a handler sees it.
    pub shown: String,
    /// The function that runs it, and how long the call may take; None for a command.
    pub handler: Option<Call>,
}

/// Claims the next dispatch of the owner, if it is armed. The slot knows of it before the claim is committed.
pub fn next(slot: usize, owner: Armed) -> Option<Claimed> {
    claim(slot, owner, &CLAIM, None)
}

/// Claims one dispatch of the owner, if it waits and the owner is armed.
pub fn one(slot: usize, owner: Armed, dispatch: Uuid) -> Option<Claimed> {
    claim(slot, owner, &CLAIM_ONE, Some(dispatch))
}

fn claim(
    slot: usize,
    owner: Armed,
    query: &'static LocalKey<Query>,
    dispatch: Option<Uuid>,
) -> Option<Claimed> {
    let consumer = format!("executor {}", pg::my_pid());
    let mut arguments: Vec<DatumWithOid> = vec![
        time::timestamptz(clock::now()).into(),
        consumer.as_str().into(),
        owner.owner_id.into(),
        owner.role.into(),
    ];
    arguments.extend(dispatch.map(|id| pg_uuid(id).into()));
    let read = |row: &Row| read(row, owner.owner_id);
    let mut claimed = query.with(|query| query.row(&arguments, read))?;
    // The handlers were read after the dispatch: one may have been inserted by hand in between.
    if claimed.handler.is_some() && !armed::is_armed_now(owner) {
        claimed.handler = None;
    }
    executors::note_claimed(slot, claimed.attempt);
    Some(claimed)
}

/// A dispatch that this transaction has locked, to run it with others. It lives as long as the transaction.
pub struct Job {
    pub id: Uuid,
    /// Which version of its row is locked.
    pub version: String,
    /// The number of this attempt.
    pub number: i32,
    pub action_type: String,
    pub name: Option<String>,
    pub payload: Jsonb,
    /// The dispatch as a handler sees it that takes it.
    pub shown: Option<Jsonb>,
    pub handler: Call,
}

impl Job {
    pub fn attempt(&self) -> Attempt {
        Attempt {
            dispatch: self.id,
            number: self.number,
        }
    }
}

/// Locks the next dispatches of the owner that may run together, if it is armed: of these action types, at most this
/// many, with handlers of which `may_run` is true.
pub fn together(
    owner: Armed,
    now: DateTime<Utc>,
    (types, most): (&[&str], usize),
    may_run: impl Fn(&Call) -> bool,
) -> Vec<Job> {
    // SAFETY: a variable of this process; what is read outlives the query.
    let home = unsafe { pg_sys::CurrentMemoryContext };
    let takes_all = |name: &&str| {
        let call = handlers::find(owner.owner_id, name);
        call.is_some_and(|call| call.takes_dispatch())
    };
    let shown: Vec<&str> = types.iter().copied().filter(takes_all).collect();
    let arguments = [
        time::timestamptz(now).into(),
        owner.owner_id.into(),
        owner.role.into(),
        types.to_vec().into(),
        i64::try_from(most).unwrap_or(i64::MAX).into(),
        shown.into(),
    ];
    let read = |row: &Row| {
        let action_type: String = row.required(4);
        let handler = handlers::find(owner.owner_id, &action_type)?;
        Some(Job {
            id: row.uuid(1),
            version: row.required(2),
            number: row.required(3),
            payload: row.required::<Jsonb>(5).copy_to(home),
            name: row.get(6),
            shown: row.get::<Jsonb>(7).map(|shown| shown.copy_to(home)),
            action_type,
            handler,
        })
    };
    let jobs = TAKE_GROUP.with(|query| query.rows(&arguments, read));
    let mut jobs: Vec<Job> = jobs.into_iter().flatten().collect();
    jobs.retain(|job| may_run(&job.handler));
    match jobs.is_empty() || armed::is_armed_now(owner) {
        true => jobs,
        false => Vec::new(),
    }
}

fn read(row: &Row, owner_id: i32) -> Claimed {
    let action_type: String = row.required(4);
    let text = |ordinal| row.get::<Jsonb>(ordinal).map(|json| json.text());
    Claimed {
        attempt: Attempt {
            dispatch: row.uuid(1),
            number: row.required(2),
        },
        owner_id,
        provider: row.required(3),
        handler: handlers::find(owner_id, &action_type),
        action_type,
        payload: text(5).unwrap_or_default(),
        context: text(6),
        name: row.get(7),
        shown: text(8).unwrap_or_default(),
    }
}
