//! `recur.claim`: a consumer takes dispatches for the length of a lease.
//!
//! The claim cursor of recur-core decides what to ask next and where to begin; the statements are here.

use crate::access::{self, Visible};
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::planner::PlannerPins;
use crate::pg::query::queries;
use crate::pg::srf::ResultSet;
use crate::pg::{cpu, interval, time};
use crate::runtime::engine;
use chrono::{DateTime, Utc};
use pgrx::datum::{DatumWithOid, Interval, TimestampWithTimeZone};
use pgrx::pg_sys::{self, FunctionCallInfo};
use pgrx::prelude::*;
use recur_core::action::Interval as Span;
use recur_core::cursor::{Claim, Cost, Filter, Memory, Position, Step};
use std::cell::RefCell;

queries! {
    CLAIM = "queue/queries/claim.sql" {pending: "p.status = 'pending'", longest: Span::LONGEST_TEXT}
        (TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, BOOLOID, TEXTARRAYOID, TEXTOID, TEXTARRAYOID,
         TEXTARRAYOID, TEXTARRAYOID, INT4ARRAYOID, INT4OID, TEXTOID, INTERVALOID, INT4OID);
    CLAIM_OF_OWNER = "queue/queries/claim.sql"
        {pending: "p.status < 'running' AND p.owner_id = $15", longest: Span::LONGEST_TEXT}
        (TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, BOOLOID, TEXTARRAYOID, TEXTOID, TEXTARRAYOID,
         TEXTARRAYOID, TEXTARRAYOID, INT4ARRAYOID, INT4OID, TEXTOID, INTERVALOID, INT4OID);
    CLAIM_OF_PROVIDER = "queue/queries/claim.sql"
        {pending: "p.status <> 'running' AND p.owner_id = $15 AND p.provider = $7", longest: Span::LONGEST_TEXT}
        (TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, BOOLOID, TEXTARRAYOID, TEXTOID, TEXTARRAYOID,
         TEXTARRAYOID, TEXTARRAYOID, INT4ARRAYOID, INT4OID, TEXTOID, INTERVALOID, INT4OID);
    NEXT_PRIORITY = "queue/queries/next_priority.sql" {pending: "p.status = 'pending'"}
        (INT8OID, INT8OID, TEXTOID, INT4OID);
    NEXT_PRIORITY_OF_OWNER = "queue/queries/next_priority.sql" {pending: "p.status < 'running' AND p.owner_id = $4"}
        (INT8OID, INT8OID, TEXTOID, INT4OID);
    NEXT_PRIORITY_OF_PROVIDER = "queue/queries/next_priority.sql"
        {pending: "p.status <> 'running' AND p.owner_id = $4 AND p.provider = $3"}
        (INT8OID, INT8OID, TEXTOID, INT4OID);
    FIRST_CLAIMABLE = "queue/queries/first_claimable.sql" {pending: "p.status = 'pending'"}
        (TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTOID, TEXTARRAYOID, TEXTARRAYOID, TEXTARRAYOID,
         TEXTARRAYOID, INT4ARRAYOID, INT4OID);
    FIRST_CLAIMABLE_OF_OWNER = "queue/queries/first_claimable.sql"
        {pending: "p.status < 'running' AND p.owner_id = $11"}
        (TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTOID, TEXTARRAYOID, TEXTARRAYOID, TEXTARRAYOID,
         TEXTARRAYOID, INT4ARRAYOID, INT4OID);
    FIRST_CLAIMABLE_OF_PROVIDER = "queue/queries/first_claimable.sql"
        {pending: "p.status <> 'running' AND p.owner_id = $11 AND p.provider = $5"}
        (TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTOID, TEXTARRAYOID, TEXTARRAYOID, TEXTARRAYOID,
         TEXTARRAYOID, INT4ARRAYOID, INT4OID);
}

/// The index that serves a claim: plans are kept, and each plan uses one index.
#[derive(Clone, Copy)]
enum Index {
    /// Of all owners.
    All,
    /// Of one owner.
    Owner,
    /// Of one owner and one provider.
    Provider,
}

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
    call: FunctionCallInfo,
) {
    let limit = checked_limit(limit).or_raise();
    if let Some(lease) = &lease {
        let hint =
            "Give it as long as the work may take; recur.extend is for work that takes longer.";
        interval::check_lease(lease, hint).or_raise();
    }
    let visible = access::visible();
    let request = Request {
        providers: known(providers),
        action_types: known(action_types),
        namespaces: known(namespaces),
        tenants: known(tenants),
        lease,
        consumer: checked_consumer(consumer).or_raise(),
        role: access::caller().to_u32(),
        owner: visible.only_owner(),
        visible,
        now: time::now(),
    };
    let claimed = ResultSet::begin(call);
    if request.visible.is_none() {
        return;
    }
    let _pins = PlannerPins::set();
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

/// The name is stored with each dispatch.
const LONGEST_CONSUMER: usize = 255;

fn checked_consumer(consumer: Option<String>) -> Result<String, SqlError> {
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
    action_types: Option<Vec<String>>,
    namespaces: Option<Vec<String>>,
    tenants: Option<Vec<String>>,
    lease: Option<Interval>,
    consumer: String,
    /// The role decides what the consumer sees, so it is part of the filter.
    role: u32,
    visible: Visible,
    /// The owner, if the role sees one only.
    owner: Option<i32>,
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
    }

    fn index(&self) -> Index {
        match (self.owner, self.provider()) {
            (None, _) => Index::All,
            (Some(_), None) => Index::Owner,
            (Some(_), Some(_)) => Index::Provider,
        }
    }

    /// The provider, if there is only one.
    fn provider(&self) -> Option<&str> {
        match self.providers.as_deref() {
            Some([only]) => Some(only),
            _ => None,
        }
    }

    fn next_priority(&self, below: Option<i32>, above: Option<i32>) -> Option<i32> {
        let arguments = [
            below.map_or(i64::MAX, i64::from).into(),
            above.map_or(i64::MIN, i64::from).into(),
            self.provider().into(),
            self.owner.into(),
        ];
        let query = match self.index() {
            Index::All => &NEXT_PRIORITY,
            Index::Owner => &NEXT_PRIORITY_OF_OWNER,
            Index::Provider => &NEXT_PRIORITY_OF_PROVIDER,
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
        let [available_at, created_at] = bounds(from);
        let arguments = [
            time::timestamptz(self.now).into(),
            priority.into(),
            available_at,
            created_at,
            only_if_highest.into(),
            self.providers.clone().into(),
            self.provider().into(),
            self.action_types.clone().into(),
            self.namespaces.clone().into(),
            self.tenants.clone().into(),
            self.visible.parameter().into(),
            i32::try_from(limit).unwrap_or(i32::MAX).into(),
            self.consumer.as_str().into(),
            self.lease.into(),
            self.owner.into(),
        ];
        let query = match self.index() {
            Index::All => &CLAIM,
            Index::Owner => &CLAIM_OF_OWNER,
            Index::Provider => &CLAIM_OF_PROVIDER,
        };
        query.with(|query| query.send(&arguments, claimed.receiver())) as u32
    }

    fn first_claimable(&self, priority: i32, from: Option<Position>) -> Position {
        let [available_at, created_at] = bounds(from);
        let arguments = [
            time::timestamptz(self.now).into(),
            priority.into(),
            available_at,
            created_at,
            self.provider().into(),
            self.providers.clone().into(),
            self.action_types.clone().into(),
            self.namespaces.clone().into(),
            self.tenants.clone().into(),
            self.visible.parameter().into(),
            self.owner.into(),
        ];
        let query = match self.index() {
            Index::All => &FIRST_CLAIMABLE,
            Index::Owner => &FIRST_CLAIMABLE_OF_OWNER,
            Index::Provider => &FIRST_CLAIMABLE_OF_PROVIDER,
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
