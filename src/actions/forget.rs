//! `recur.forget_subject`: removes all that is stored of a subject, events included.

use super::author::Author;
use super::store;
use crate::access::{self, Visible};
use crate::history::events::{self, Change};
use crate::pg::error::{OrRaise, given};
use crate::pg::jsonb::Jsonb;
use crate::pg::planner::PlannerPins;
use crate::pg::query::{Query, fragment, pg_uuids, queries};
use crate::pg::srf::ResultSet;
use crate::runtime::engine;
use pgrx::check_for_interrupts;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::FunctionCallInfo;
use pgrx::prelude::*;
use recur_core::action::{EventKind, Json};
use std::thread::LocalKey;
use uuid::Uuid;

queries! {
    ACTIONS_OF_SUBJECT = "actions/queries/actions_of_subject.sql" (TEXTOID, TEXTOID, TEXTOID, INT4ARRAYOID);
    FORMER_ACTIONS = "actions/queries/former_actions_of_subject.sql" (TEXTOID, TEXTOID, TEXTOID, INT4ARRAYOID);
    COUNT_CONTEXTS = "actions/queries/count_contexts.sql" (UUIDARRAYOID);
    FORGET_DISPATCHES = "actions/queries/forget_dispatches.sql"
        (TEXTOID, TEXTOID, TEXTOID, INT4ARRAYOID, UUIDARRAYOID);
    FORGET_CONTEXTS = "actions/queries/forget_contexts.sql" {periods: PERIODS}
        (TEXTOID, TEXTOID, TEXTOID, INT4ARRAYOID);
    FORGET_EVENTS = "actions/queries/forget_events.sql" {periods: PERIODS}
        (TEXTOID, TEXTOID, TEXTOID, INT4ARRAYOID, UUIDARRAYOID, UUIDARRAYOID);
}

/// When actions that are another subject's now were this subject's, as events that change the subject tell.
const PERIODS: &str = fragment!("actions/queries/periods_of_subject.sql");

/// Whose rows are removed: of the owners that the caller sees.
struct Subject<'a> {
    name: &'a str,
    namespace: Option<&'a str>,
    tenant: Option<&'a str>,
    visible: Visible,
}

/// How many rows were removed.
#[derive(Default)]
struct Removed {
    actions: i64,
    dispatches: i64,
    contexts: i64,
    events: i64,
}

/// `recur.forget_subject(subject, namespace, tenant)`.
#[pg_extern(sql = false)]
fn forget_subject(
    subject: Option<&str>,
    namespace: Option<&str>,
    tenant: Option<&str>,
    call: FunctionCallInfo,
) {
    let subject = Subject {
        name: given("subject", subject).or_raise(),
        namespace,
        tenant,
        visible: access::visible(),
    };
    let author = Author::current();
    let owner_id = access::own_id();
    let result = ResultSet::begin(call);
    let _pins = PlannerPins::set();
    let removed = engine::as_engine(|| {
        let removed = subject.forget(&author);
        removed.record(&author, owner_id);
        removed
    });
    result.put(&[
        removed.actions.into(),
        removed.dispatches.into(),
        removed.contexts.into(),
        removed.events.into(),
    ]);
}

impl Subject<'_> {
    fn forget(&self, author: &Author) -> Removed {
        let present = self.actions(&ACTIONS_OF_SUBJECT);
        let mut actions = self.actions(&FORMER_ACTIONS);
        let contexts = COUNT_CONTEXTS.with(|query| {
            let arguments = [pg_uuids(present.iter().copied()).into()];
            query.row(&arguments, |row| row.required(1))
        });
        let mut removed = Removed {
            contexts: contexts.unwrap_or_default(),
            ..Removed::default()
        };
        let mut dispatches = Vec::new();
        for id in present {
            check_for_interrupts!();
            // The order of locks: timer, dispatches, progress.
            if author.lock(id, false).is_some() {
                dispatches.extend(self.forget_dispatches(vec![id]));
                store::lock_progress(id);
                store::delete(id);
                removed.actions += 1;
                actions.push(id);
            }
        }
        dispatches.extend(self.forget_dispatches(actions.clone()));
        removed.dispatches = dispatches.len() as i64;
        let parameters = self.parameters();
        removed.contexts += FORGET_CONTEXTS.with(|query| query.execute(&parameters)) as i64;
        let mut arguments = self.parameters();
        arguments.push(pg_uuids(actions).into());
        arguments.push(pg_uuids(dispatches).into());
        removed.events = FORGET_EVENTS.with(|query| query.execute(&arguments)) as i64;
        removed
    }

    fn parameters(&self) -> Vec<DatumWithOid<'static>> {
        vec![
            self.name.into(),
            self.namespace.into(),
            self.tenant.into(),
            self.visible.parameter().into(),
        ]
    }

    fn actions(&self, query: &'static LocalKey<Query>) -> Vec<Uuid> {
        query.with(|query| query.rows(&self.parameters(), |row| row.uuid(1)))
    }

    fn forget_dispatches(&self, actions: Vec<Uuid>) -> Vec<Uuid> {
        let mut arguments = self.parameters();
        arguments.push(pg_uuids(actions).into());
        FORGET_DISPATCHES.with(|query| query.rows(&arguments, |row| row.uuid(1)))
    }
}

impl Removed {
    /// The event says how much was removed, and not of whom.
    fn record(&self, author: &Author, owner_id: i32) {
        let detail = serde_json::json!({
            "actions": self.actions,
            "dispatches": self.dispatches,
            "contexts": self.contexts,
            "events": self.events,
        });
        let change = Change {
            kind: EventKind::Forgotten,
            action: None,
            dispatch: None,
            owner_id,
            detail: Jsonb::from_text(&detail.to_string()),
        };
        events::record_changes(&[change], author.actor());
    }
}
