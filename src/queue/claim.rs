//! `recur.claim`: a consumer takes dispatches for the length of a lease.
//!
//! The claim cursor of recur-core decides what to ask next and where to begin; the statements are here.

use crate::access;
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::planner::PlannerPins;
use crate::pg::query::{Query, fragment, queries};
use crate::pg::srf::ResultSet;
use crate::pg::{cpu, interval, time};
use crate::runtime::{clock, engine, home};
use chrono::{DateTime, Utc};
use pgrx::datum::{DatumWithOid, Interval, TimestampWithTimeZone};
use pgrx::pg_sys::{self, FunctionCallInfo};
use pgrx::prelude::*;
use recur_core::action::{Interval as Span, check_name};
use recur_core::cursor::{Claim, Cost, Filter, Memory, Position, Step};
use recur_core::pattern::Selection;
use std::cell::RefCell;
use std::thread::LocalKey;

queries! {
    CLAIM = "queue/queries/claim.sql"
        {chosen: fragment!("queue/queries/chosen_of_owner.sql"), selected: SELECTED, pending: PENDING,
         longest: Span::LONGEST_TEXT}
        (TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTARRAYOID, TEXTOID, TEXTARRAYOID, TEXTARRAYOID,
         TEXTARRAYOID, INT4OID, TEXTARRAYOID, TEXTOID, BOOLOID, INT4OID, TEXTOID, INTERVALOID);
    CLAIM_OF_PROVIDER = "queue/queries/claim.sql"
        {chosen: fragment!("queue/queries/chosen_of_owner.sql"), selected: SELECTED, pending: PENDING_OF_PROVIDER,
         longest: Span::LONGEST_TEXT}
        (TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTARRAYOID, TEXTOID, TEXTARRAYOID, TEXTARRAYOID,
         TEXTARRAYOID, INT4OID, TEXTARRAYOID, TEXTOID, BOOLOID, INT4OID, TEXTOID, INTERVALOID);
    CLAIM_OF_OWNERS = "queue/queries/claim.sql"
        {chosen: fragment!("queue/queries/chosen_of_owners.sql"), waiting: WAITING, selected: SELECTED,
         pending: PENDING, longest: Span::LONGEST_TEXT}
        (TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTARRAYOID, TEXTOID, TEXTARRAYOID, TEXTARRAYOID,
         TEXTARRAYOID, INT4ARRAYOID, TEXTARRAYOID, TEXTOID, BOOLOID, INT4OID, TEXTOID, INTERVALOID, BOOLOID);
    CLAIM_OF_OWNERS_AND_PROVIDER = "queue/queries/claim.sql"
        {chosen: fragment!("queue/queries/chosen_of_owners.sql"), waiting: WAITING, selected: SELECTED,
         pending: PENDING_OF_PROVIDER, longest: Span::LONGEST_TEXT}
        (TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTARRAYOID, TEXTOID, TEXTARRAYOID, TEXTARRAYOID,
         TEXTARRAYOID, INT4ARRAYOID, TEXTARRAYOID, TEXTOID, BOOLOID, INT4OID, TEXTOID, INTERVALOID, BOOLOID);
    NEXT_PRIORITY = "queue/queries/next_priority.sql" {pending: PENDING_FOR_ANY}
        (INT8OID, INT8OID, TEXTOID, INT4ARRAYOID);
    NEXT_PRIORITY_OF_PROVIDER = "queue/queries/next_priority.sql" {pending: "p.status <> 'running' AND p.provider = $3"}
        (INT8OID, INT8OID, TEXTOID, INT4ARRAYOID);
    FIRST_CLAIMABLE = "queue/queries/first_claimable.sql" {waiting: WAITING, selected: SELECTED, pending: PENDING}
        (TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTARRAYOID, TEXTOID, TEXTARRAYOID, TEXTARRAYOID,
         TEXTARRAYOID, INT4ARRAYOID, TEXTARRAYOID, TEXTOID);
    FIRST_CLAIMABLE_OF_PROVIDER = "queue/queries/first_claimable.sql"
        {waiting: WAITING, selected: SELECTED, pending: PENDING_OF_PROVIDER}
        (TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTARRAYOID, TEXTOID, TEXTARRAYOID, TEXTARRAYOID,
         TEXTARRAYOID, INT4ARRAYOID, TEXTARRAYOID, TEXTOID);
}

const WAITING: &str = fragment!("queue/queries/waiting.sql");
const SELECTED: &str = fragment!("queue/queries/selected.sql");
/// The condition of the index by owner. What the database itself runs, and webhooks, are only for those who name the
/// provider. What is bound to an endpoint counts there as a delivery, so it is for `recur.claim_webhooks` alone, unless
/// it waits for an agent.
const PENDING: &str = fragment!("queue/queries/pending_for_consumers.sql");
const PENDING_FOR_ANY: &str = "p.status = 'pending'";
/// The condition of the index by owner and provider.
const PENDING_OF_PROVIDER: &str = "p.status <> 'running' AND p.provider = $6
           AND (p.endpoint IS NULL OR p.primary_agent IS NOT NULL)";

thread_local! {
    /// What this session remembers from one claim to the next.
    static MEMORY: RefCell<Memory> = RefCell::new(Memory::new());
}

/// A position before all dispatches of a priority.
const BEGINNING: Position = Position {
    available_at: pg_sys::TimestampTz::MIN,
    created_at: pg_sys::TimestampTz::MIN,
};

/// Names to filter by; a NULL among them matches nothing.
type Names = Option<Vec<Option<String>>>;

/// `recur.claim("limit", providers, action_types, namespaces, tenants, lease, consumer)`.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn claim(
    limit: Option<i32>,
    providers: Names,
    action_types: Names,
    namespaces: Names,
    tenants: Names,
    lease: Option<Interval>,
    consumer: Option<String>,
    agent: Option<String>,
    call: FunctionCallInfo,
) {
    let _pins = PlannerPins::set();
    let limit = checked_limit(limit).or_raise();
    if let Some(lease) = &lease {
        let hint =
            "Give it as long as the work may take; recur.extend is for work that takes longer.";
        interval::check_lease(lease, hint).or_raise();
    }
    let action_types = known(action_types);
    let request = Request {
        providers: known(providers),
        selected: selected(action_types.as_deref()).or_raise(),
        action_types,
        namespaces: known(namespaces),
        tenants: known(tenants),
        lease,
        consumer: checked_consumer(consumer).or_raise(),
        agent: agent.inspect(|agent| check_name("agent", agent).or_raise()),
        role: access::caller().to_u32(),
        owners: access::visible().ids(),
        now: clock::now(),
    };
    let claimed = ResultSet::begin(call);
    if request.owners.is_empty() {
        return;
    }
    if !home::may_fire() {
        home::warn_once();
        return;
    }
    engine::as_engine(|| request.run(limit, &claimed));
}

fn checked_limit(limit: Option<i32>) -> Result<u32, SqlError> {
    let checked = limit
        .and_then(|limit| u32::try_from(limit).ok())
        .filter(|limit| *limit > 0);
    checked.ok_or_else(|| {
        let shown = limit.map_or("NULL".to_owned(), |limit| limit.to_string());
        SqlError::invalid_argument("limit", &shown, "must be at least 1")
    })
}

fn known(names: Names) -> Option<Vec<String>> {
    names.map(|names| names.into_iter().flatten().collect())
}

/// What the patterns select; None where they select everything.
fn selected(action_types: Option<&[String]>) -> Result<Option<Selection>, SqlError> {
    match action_types {
        None => Ok(None),
        Some(patterns) => Ok(Selection::parse("action_types", patterns)?),
    }
}

/// The name is stored with each dispatch.
const LONGEST_CONSUMER: usize = 255;

pub fn checked_consumer(consumer: Option<String>) -> Result<String, SqlError> {
    let Some(consumer) = consumer else {
        return Ok(default_consumer());
    };
    if consumer.chars().nth(LONGEST_CONSUMER).is_some() {
        let problem = format!("must have at most {LONGEST_CONSUMER} characters");
        return Err(SqlError::invalid_argument("consumer", &consumer, &problem));
    }
    Ok(consumer)
}

/// The application's name, or else that of the role that logged in.
fn default_consumer() -> String {
    // SAFETY: a setting of the server: NULL, or a text that ends with a zero byte and does not change meanwhile.
    let name = unsafe {
        let name = pg_sys::application_name;
        (!name.is_null()).then(|| {
            std::ffi::CStr::from_ptr(name)
                .to_string_lossy()
                .into_owned()
        })
    };
    name.filter(|name| !name.is_empty())
        .unwrap_or_else(access::session_name)
}

struct Request {
    providers: Option<Vec<String>>,
    /// As they were asked for.
    action_types: Option<Vec<String>>,
    selected: Option<Selection>,
    namespaces: Option<Vec<String>>,
    tenants: Option<Vec<String>>,
    lease: Option<Interval>,
    consumer: String,
    agent: Option<String>,
    /// The role decides what the consumer sees, so it is part of the filter.
    role: u32,
    /// The owners that the role sees.
    owners: Vec<i32>,
    now: DateTime<Utc>,
}

impl Request {
    fn run(&self, limit: u32, claimed: &ResultSet) {
        let mut claim =
            MEMORY.with_borrow(|memory| Claim::start(memory, self.filter(), limit, self.now));
        loop {
            match claim.step() {
                Step::FindPriority { below, above } => {
                    claim.found_priority(self.next_priority(below, above))
                }
                Step::Take {
                    priority,
                    from,
                    only_if_highest,
                    limit,
                } => {
                    let (count, cost) =
                        measured(|| self.take(priority, from, only_if_highest, limit, claimed));
                    claim.took(count, cost);
                }
                Step::MoveCursor { priority, from } => {
                    let (position, cost) = measured(|| self.first_claimable(priority, from));
                    claim.moved_cursor(position, cost);
                }
                Step::Done => break,
            }
        }
        MEMORY.with_borrow_mut(|memory| claim.finish(memory));
    }

    /// Cursors are kept for the whole filter.
    fn filter(&self) -> Filter {
        Filter::of_role(self.role)
            .with_providers(self.providers.clone())
            .with_action_types(self.action_types.clone())
            .with_namespaces(self.namespaces.clone())
            .with_tenants(self.tenants.clone())
            .with_agent(self.agent.clone())
    }

    /// The provider, if there is only one.
    fn provider(&self) -> Option<&str> {
        match self.providers.as_deref() {
            Some([only]) => Some(only),
            _ => None,
        }
    }

    fn exact_types(&self) -> Option<Vec<String>> {
        self.selected
            .as_ref()
            .map(|selected| selected.exact.clone())
    }

    /// None where there are none, which costs a claim by exact names nothing.
    fn type_prefixes(&self) -> Option<Vec<String>> {
        let prefixes = self.selected.as_ref().map(|selected| &selected.prefixes);
        prefixes.filter(|prefixes| !prefixes.is_empty()).cloned()
    }

    /// The providers, if there are several.
    fn providers(&self) -> Option<Vec<String>> {
        match self.provider() {
            Some(_) => None,
            None => self.providers.clone(),
        }
    }

    fn next_priority(&self, below: Option<i32>, above: Option<i32>) -> Option<i32> {
        let arguments = [
            below.map_or(i64::MAX, i64::from).into(),
            above.map_or(i64::MIN, i64::from).into(),
            self.provider().into(),
            self.owners.clone().into(),
        ];
        let query = match self.provider() {
            None => &NEXT_PRIORITY,
            Some(_) => &NEXT_PRIORITY_OF_PROVIDER,
        };
        query.with(|query| query.row(&arguments, |row| row.required(1)))
    }

    fn take(
        &self,
        priority: i32,
        from: Option<Position>,
        only_if_highest: bool,
        limit: u32,
        claimed: &ResultSet,
    ) -> u32 {
        let own_arguments = |limit: u32| {
            [
                only_if_highest.into(),
                i32::try_from(limit).unwrap_or(i32::MAX).into(),
                self.consumer.as_str().into(),
                self.lease.into(),
            ]
        };
        let send = |query: &'static LocalKey<Query>, arguments: &[DatumWithOid]| {
            query.with(|query| query.send(arguments, claimed.receiver())) as u32
        };
        if let [owner] = *self.owners {
            let query = match self.provider() {
                None => &CLAIM,
                Some(_) => &CLAIM_OF_PROVIDER,
            };
            let mut arguments = self.selection(priority, from, owner.into());
            arguments.extend(own_arguments(limit));
            return send(query, &arguments);
        }
        let query = match self.provider() {
            None => &CLAIM_OF_OWNERS,
            Some(_) => &CLAIM_OF_OWNERS_AND_PROVIDER,
        };
        let take = |limit: u32, in_order: bool| {
            let mut arguments = self.selection(priority, from, self.owners.clone().into());
            arguments.extend(own_arguments(limit));
            arguments.push(in_order.into());
            send(query, &arguments)
        };
        let taken = take(limit, true);
        // Other consumers may have locked all that one owner has waiting: its part comes from the others.
        match limit - taken {
            0 => taken,
            missing => taken + take(missing, false),
        }
    }

    fn first_claimable(&self, priority: i32, from: Option<Position>) -> Position {
        let arguments = self.selection(priority, from, self.owners.clone().into());
        let query = match self.provider() {
            None => &FIRST_CLAIMABLE,
            Some(_) => &FIRST_CLAIMABLE_OF_PROVIDER,
        };
        let found = query.with(|query| {
            query.row(&arguments, |row| Position {
                available_at: row.required::<TimestampWithTimeZone>(1).into(),
                created_at: row.required::<TimestampWithTimeZone>(2).into(),
            })
        });
        // If no dispatch is left, any later one becomes available from now on.
        found.unwrap_or(Position {
            available_at: time::to_micros(self.now),
            ..BEGINNING
        })
    }

    /// The arguments that select dispatches of a priority: $1 to $10.
    fn selection<'a>(
        &'a self,
        priority: i32,
        from: Option<Position>,
        owners: DatumWithOid<'a>,
    ) -> Vec<DatumWithOid<'a>> {
        let [available_at, created_at] = bounds(from);
        vec![
            time::timestamptz(self.now).into(),
            priority.into(),
            available_at,
            created_at,
            self.providers().into(),
            self.provider().into(),
            self.exact_types().into(),
            self.namespaces.clone().into(),
            self.tenants.clone().into(),
            owners,
            self.type_prefixes().into(),
            self.agent.as_deref().into(),
        ]
    }
}

fn bounds(from: Option<Position>) -> [DatumWithOid<'static>; 2] {
    let position = from.unwrap_or(BEGINNING);
    [position.available_at, position.created_at].map(|micros| time::raw_timestamptz(micros).into())
}

fn measured<T>(statement: impl FnOnce() -> T) -> (T, Cost) {
    let (began, cpu_before) = (time::now(), cpu::time());
    let result = statement();
    let cost = Cost {
        began,
        ended: time::now(),
        cpu: cpu::time() - cpu_before,
    };
    (result, cost)
}
