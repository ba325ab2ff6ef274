//! Handlers: functions of the database that run the dispatches of action types.

use super::rights;
use crate::access;
use crate::pg::error::{OrRaise, SqlError, abbreviated, given};
use crate::pg::function::{self, Function};
use crate::pg::planner::PlannerPins;
use crate::pg::query::queries;
use crate::pg::{compat, interval};
use crate::runtime::cached_table::CachedTable;
use crate::runtime::{engine, wakeup};
use chrono::TimeDelta;
use pgrx::datum::Interval;
use pgrx::pg_sys;
use pgrx::prelude::*;
use recur_core::command;
use recur_core::pattern::Pattern;
use std::rc::Rc;

queries! {
    HANDLERS = "commands/queries/handlers.sql" ();
    INSERT_HANDLER = "commands/queries/insert_handler.sql" (INT4OID, TEXTOID, TEXTOID, TEXTOID, TEXTOID);
    DELETE_HANDLER = "commands/queries/delete_handler.sql" (INT4OID, TEXTOID);
    REFLAG = "commands/queries/reflag.sql" (INT4OID);
}

/// A function that runs what a pattern matches of an owner.
pub struct Handler {
    pub owner_id: i32,
    pub pattern: Pattern,
    pub call: Call,
}

/// What a handler calls.
#[derive(Clone, Debug)]
pub struct Call {
    /// The function's name and the types of its arguments.
    pub function: String,
    /// The role that the function belongs to: one of another role is another function.
    pub function_owner: String,
    pub timeout: Option<TimeDelta>,
}

impl Call {
    /// Does the function take the dispatch? If in doubt, yes.
    pub fn takes_dispatch(&self) -> bool {
        self.function.matches("jsonb").count() >= 3
    }
}

thread_local! {
    static KNOWN: CachedTable<Rc<Vec<Handler>>> = const { CachedTable::new(c"handlers", read) };
}

fn read() -> Rc<Vec<Handler>> {
    let rows = HANDLERS.with(|query| {
        query.latest_rows(&[], |row| {
            let (pattern, timeout) = (row.required::<String>(2), row.get::<String>(5));
            // A restored row that does not hold is as if there was none.
            Some(Handler {
                owner_id: row.required(1),
                pattern: Pattern::parse("action_type", &pattern).ok()?,
                call: Call {
                    function: row.required(3),
                    function_owner: row.required(4),
                    timeout: timeout.and_then(|timeout| command::timeout(&timeout).ok()),
                },
            })
        })
    });
    Rc::new(rows.into_iter().flatten().collect())
}

/// All of them, in the order of their owners.
pub fn all() -> Rc<Vec<Handler>> {
    KNOWN.with(CachedTable::get)
}

/// What runs the owner's dispatches of an action type.
pub fn find(owner_id: i32, action_type: &str) -> Option<Call> {
    let handlers = all();
    let own = handlers.partition_point(|handler| handler.owner_id < owner_id);
    let own = handlers[own..]
        .iter()
        .take_while(|handler| handler.owner_id == owner_id);
    let matching = own.filter(|handler| handler.pattern.matches(action_type));
    let best = matching.max_by(|one, other| one.pattern.cmp(&other.pattern))?;
    Some(best.call.clone())
}

/// Marks the pending dispatches of an owner that the database runs now, and no others. As the engine.
pub fn reflag(owner_id: i32) {
    let changed = REFLAG.with(|query| query.execute(&[owner_id.into()]));
    if changed > 0 {
        wakeup::work_on_commit();
    }
}

/// `recur.set_handler(action_type, function, timeout, owner)`.
#[pg_extern(sql = false)]
fn set_handler(
    action_type: Option<&str>,
    function: Option<pg_sys::Oid>,
    timeout: Option<Interval>,
    owner: Option<&str>,
) {
    let pattern = Pattern::parse("action_type", given("action_type", action_type).or_raise());
    let pattern = pattern.or_raise().to_string();
    let timeout = timeout.map(|timeout| interval::parts(&timeout).to_string());
    if let Some(timeout) = &timeout {
        command::timeout(timeout).or_raise();
    }
    let owner_id = access::owner_to_act_as(owner).or_raise();
    let caller = access::caller();
    rights::check_author(caller, owner_id).or_raise();
    let function = function.and_then(function::look_up);
    let function = given("function", function)
        .map_err(|error| error.with_hint("Give a function as in 'app.send_mail(jsonb)'."))
        .or_raise();
    check_function(&function, owner_id).or_raise();
    let writer = access::caller_name();
    let _pins = PlannerPins::set();
    engine::as_engine(|| {
        rights::prepare(owner_id, &writer);
        let arguments = [
            owner_id.into(),
            pattern.as_str().into(),
            function.signature.as_str().into(),
            function.owner.as_str().into(),
            timeout.as_deref().into(),
        ];
        if INSERT_HANDLER.with(|query| query.execute(&arguments)) == 0 {
            let owner = access::name_of(owner_id);
            let message = format!("action type \"{pattern}\" of {owner} has a handler already");
            SqlError::new(PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION, message)
                .with_hint("recur.drop_handler removes it; recur.handlers shows them all.")
                .raise();
        }
        reflag(owner_id);
    });
}

/// `recur.drop_handler(action_type, owner)`.
#[pg_extern(sql = false)]
fn drop_handler(action_type: Option<&str>, owner: Option<&str>) {
    let pattern = given("action_type", action_type).or_raise();
    let owner_id = access::owner_to_act_as(owner).or_raise();
    rights::check_author(access::caller(), owner_id).or_raise();
    let _pins = PlannerPins::set();
    engine::as_engine(|| {
        let arguments = [owner_id.into(), pattern.into()];
        if DELETE_HANDLER.with(|query| query.execute(&arguments)) == 0 {
            let shown = abbreviated(pattern);
            SqlError::no_data_found(format!("action type \"{shown}\" has no handler"))
                .with_hint("Give the pattern as recur.handlers shows it.")
                .raise();
        }
        reflag(owner_id);
    });
}

/// A handler takes one to three jsonb, and returns jsonb, a record of result and context, or nothing.
fn check_function(function: &Function, owner_id: i32) -> Result<(), SqlError> {
    const HINT: &str = "A handler takes (payload jsonb), (payload jsonb, context jsonb) or (payload jsonb, context \
                        jsonb, dispatch jsonb), and returns jsonb, void, or OUT result jsonb, OUT context jsonb.";
    let refuse = |problem: &str| {
        Err(SqlError::invalid_argument("function", &function.signature, problem).with_hint(HINT))
    };
    if !function.is_plain {
        return refuse("must be a function, not a procedure, an aggregate or a window function");
    }
    if function.is_strict {
        return refuse("must not be STRICT");
    }
    let takes_jsonb = function
        .arguments
        .iter()
        .all(|oid| *oid == pg_sys::JSONBOID);
    if !takes_jsonb || !(1..=3).contains(&function.arguments.len()) {
        return refuse("must take one to three jsonb");
    }
    if function.returns_set || !function.returns.is_handled() {
        return refuse("must return jsonb, void, or a record of result and context");
    }
    let owner = access::role_of(owner_id).unwrap_or(pg_sys::InvalidOid);
    if !compat::can_execute(owner, function.oid) {
        let problem = format!("{} may not execute it", access::name_of(owner_id));
        return Err(
            SqlError::invalid_argument("function", &function.signature, &problem)
                .with_hint("GRANT EXECUTE on the function to the owner."),
        );
    }
    Ok(())
}
