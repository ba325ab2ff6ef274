//! `recur.pause_all` and `recur.resume_all`.

use super::author::Author;
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::jsonb::Jsonb;
use crate::pg::planner::PlannerPins;
use crate::pg::query::{Query, queries};
use crate::pg::srf::ResultSet;
use crate::runtime::engine;
use crate::runtime::environment::environment;
use chrono::{DateTime, Utc};
use pgrx::check_for_interrupts;
use pgrx::memcxt::PgMemoryContexts;
use pgrx::pg_sys::FunctionCallInfo;
use pgrx::prelude::*;
use recur_core::action::{self, Action, Changes, Invalid, is_resumable};
use std::thread::LocalKey;
use uuid::Uuid;

queries! {
    RUNNING_ACTIONS = "actions/queries/matching_actions.sql" {state: "t.enabled"}
        (TEXTOID, TEXTOID, JSONBOID, INT4ARRAYOID);
    PAUSED_IN_BULK = "actions/queries/matching_actions.sql" {state: "t.paused_in_bulk"}
        (TEXTOID, TEXTOID, JSONBOID, INT4ARRAYOID);
}

/// The filters of the call; None for all.
struct Filter<'a> {
    namespace: Option<&'a str>,
    tenant: Option<&'a str>,
    labels: Option<Jsonb>,
}

/// `recur.pause_all(namespace, tenant, labels, reason)`.
#[pg_extern(sql = false)]
fn pause_all(
    namespace: Option<&str>,
    tenant: Option<&str>,
    labels: Option<Jsonb>,
    reason: Option<&str>,
    call: FunctionCallInfo,
) {
    let filter = Filter {
        namespace,
        tenant,
        labels,
    };
    let pause = |action: &Action<Jsonb>, _now| match action.timer.enabled {
        true => action::pause(action, reason).map(Some),
        false => Ok(None),
    };
    filter.change_all(&RUNNING_ACTIONS, pause, call);
}

/// `recur.resume_all(namespace, tenant, labels)`. An action that was paused by itself, has ended, or has no occurrence
/// left, stays as it is.
#[pg_extern(sql = false)]
fn resume_all(
    namespace: Option<&str>,
    tenant: Option<&str>,
    labels: Option<Jsonb>,
    call: FunctionCallInfo,
) {
    let filter = Filter {
        namespace,
        tenant,
        labels,
    };
    let resume = |action: &Action<Jsonb>, now| match is_resumable(action, now, &environment()) {
        true => action::resume(action).map(Some),
        false => Ok(None),
    };
    filter.change_all(&PAUSED_IN_BULK, resume, call);
}

impl Filter<'_> {
    /// Changes the actions one by one, always in the same order, so that two calls over the same actions can't
    /// block each other.
    fn change_all(
        &self,
        query: &'static LocalKey<Query>,
        wanted: impl Fn(&Action<Jsonb>, DateTime<Utc>) -> Result<Option<Changes<Jsonb>>, Invalid>,
        call: FunctionCallInfo,
    ) {
        let author = Author::current();
        let result = ResultSet::begin(call);
        let _pins = PlannerPins::set();
        let changed = engine::as_engine(|| {
            for id in self.matching(query, &author) {
                check_for_interrupts!();
                // The memory of each action is freed before the next one.
                let mut memory = PgMemoryContexts::new("pg_recur action");
                // SAFETY: no value that lives in the context leaves it.
                let changed =
                    unsafe { memory.switch_to(|_| change_one(&author, id, &wanted, &result)) };
                changed?;
            }
            Ok::<(), SqlError>(())
        });
        changed.or_raise();
    }

    fn matching(&self, query: &'static LocalKey<Query>, author: &Author) -> Vec<Uuid> {
        let arguments = [
            self.namespace.into(),
            self.tenant.into(),
            self.labels.into(),
            author.visible().parameter().into(),
        ];
        query.with(|query| query.rows(&arguments, |row| row.uuid(1)))
    }
}

/// Another session may have deleted or changed the action since it was found.
fn change_one(
    author: &Author,
    id: Uuid,
    wanted: &impl Fn(&Action<Jsonb>, DateTime<Utc>) -> Result<Option<Changes<Jsonb>>, Invalid>,
    result: &ResultSet,
) -> Result<(), SqlError> {
    let Some(locked) = author.lock(id, false) else {
        return Ok(());
    };
    if let Some(changes) = wanted(&locked.action, locked.now)? {
        author.change_in_bulk(locked, &changes)?.put(result);
    }
    Ok(())
}
