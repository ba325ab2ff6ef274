//! `recur.claim_webhooks`: deliveries for all endpoints in turn, within the limits of each.
//!
//! A claim locks the rows of the endpoints that it takes something for, so that all programs together keep to what an
//! endpoint takes at once. It waits for no lock: what another claim has, is left to it.

use super::round::{Place, Round, Seen};
use super::route::{checked_limit, operators};
use super::{health, keeper};
use crate::access::{self, Actor};
use crate::pg::advisory::{self, Space};
use crate::pg::error::OrRaise;
use crate::pg::interval;
use crate::pg::jsonb::Jsonb;
use crate::pg::planner::PlannerPins;
use crate::pg::query::{Row, fragment, pg_uuids, queries};
use crate::pg::srf::ResultSet;
use crate::pg::time;
use crate::queue::claim::checked_consumer;
use crate::queue::finish::{self, End};
use crate::runtime::{clock, engine, home};
use chrono::{DateTime, Utc};
use pgrx::datum::{DatumWithOid, Interval};
use pgrx::pg_sys::FunctionCallInfo;
use pgrx::prelude::*;
use recur_core::action::Interval as Span;
use recur_core::webhook::{Bucket, Health, Operator, Standing, shares};
use std::cell::RefCell;
use std::collections::HashMap;
use uuid::Uuid;

queries! {
    WAITING_ENDPOINTS = "webhooks/queries/waiting_endpoints.sql"
        {priorities: fragment!("webhooks/queries/priorities.sql"),
         deliverable: fragment!("webhooks/queries/deliverable.sql")}
        (INT4OID, TEXTOID, TIMESTAMPTZOID, INT4OID, INT4OID, TEXTOID);
    ADD_HEALTH = "webhooks/queries/add_health.sql" (INT4ARRAYOID, TEXTARRAYOID);
    LOCK_ENDPOINTS = "webhooks/queries/lock_endpoints.sql" (INT4ARRAYOID, TEXTARRAYOID);
    RUNNING = "webhooks/queries/running.sql" (INT4ARRAYOID, TEXTARRAYOID);
    CLAIM = "webhooks/queries/claim.sql"
        {priorities: fragment!("webhooks/queries/priorities.sql"),
         deliverable: fragment!("webhooks/queries/deliverable.sql"), longest: Span::LONGEST_TEXT}
        (TIMESTAMPTZOID, INT4ARRAYOID, TEXTARRAYOID, INT4ARRAYOID, TEXTOID, INTERVALOID);
    CLAIMED = "webhooks/queries/claimed.sql"
        {metadata: fragment!("queue/queries/shown_metadata.sql"), name: fragment!("queue/queries/shown_name.sql"),
         row: "l"}
        (UUIDARRAYOID);
    SAVE_TOKENS = "webhooks/queries/save_tokens.sql" (INT4ARRAYOID, TEXTARRAYOID, FLOAT8ARRAYOID, TIMESTAMPTZOID);
    LOCK_ORPHANS = "webhooks/queries/lock_orphans.sql" {deliverable: fragment!("webhooks/queries/deliverable.sql")}
        (INT4ARRAYOID, TEXTARRAYOID, INT4OID);
}

/// One call claims no more than this.
const MOST: i32 = 1_000;
/// How many endpoints are taken at once: each costs some ten microseconds.
const PAGE: i32 = 100;

const GONE: &str = "the endpoint does not exist any more";

thread_local! {
    /// Where this session's next claim begins: behind the endpoint that the last one ended with.
    static BEGIN_BEHIND: RefCell<Place> = const { RefCell::new((0, String::new())) };
}

/// An endpoint for which something is due.
struct Waiting {
    place: Place,
    /// Under which owner its health is kept.
    keeper: i32,
    has_health: bool,
    concurrency: i32,
    rate: Option<f64>,
}

/// What an endpoint may get by now.
struct Budget {
    bucket: Option<Bucket>,
    free: u32,
}

struct Request {
    limit: u32,
    lease: Option<Interval>,
    consumer: String,
    operators: Vec<Operator>,
    now: DateTime<Utc>,
}

/// `recur.claim_webhooks("limit", lease, consumer, operator)`.
#[pg_extern(sql = false)]
fn claim_webhooks(
    limit: Option<i32>,
    lease: Option<Interval>,
    consumer: Option<String>,
    operator: Option<Jsonb>,
    call: FunctionCallInfo,
) {
    let limit = checked_limit(limit.unwrap_or(0), MOST).or_raise();
    if let Some(lease) = &lease {
        interval::check_lease(lease, "Give it longer than the timeouts of the endpoints.")
            .or_raise();
    }
    let request = Request {
        limit: limit.unsigned_abs(),
        lease,
        consumer: checked_consumer(consumer).or_raise(),
        operators: operators(operator).or_raise(),
        now: clock::now(),
    };
    let actor = Actor::current();
    let claimed = ResultSet::begin(call);
    if !home::may_fire() {
        home::warn_once();
        return;
    }
    let _pins = PlannerPins::set();
    engine::as_engine(|| {
        let ids = request.run(&actor);
        if !ids.is_empty() {
            let arguments = [pg_uuids(ids).into()];
            CLAIMED.with(|query| query.send(&arguments, claimed.receiver()));
        }
    });
}

impl Request {
    /// Goes round all endpoints once, from where the last claim ended, until there is enough.
    fn run(&self, actor: &Actor) -> Vec<Uuid> {
        let mut round = Round::begin_behind(BEGIN_BEHIND.with_borrow(Clone::clone));
        let mut claimed: Vec<Uuid> = Vec::new();
        while claimed.len() < self.limit as usize {
            if !round.goes_on() {
                if round.is_cut_short() {
                    BEGIN_BEHIND.set(round.behind);
                }
                break;
            }
            let left = self.limit - claimed.len() as u32;
            let page = self.waiting(&mut round, actor);
            if let Some(last) = self.take_all(page, left, &mut claimed) {
                BEGIN_BEHIND.set(last);
            }
        }
        claimed
    }

    /// The next endpoints for which something is due, until the round is to turn. What waits for endpoints that are
    /// gone is ended on the way.
    fn waiting(&self, round: &mut Round, actor: &Actor) -> Vec<Waiting> {
        let mut waiting = Vec::new();
        let mut gone: Vec<Place> = Vec::new();
        while waiting.len() < PAGE as usize && round.goes_on() {
            let seen = self.seen(round);
            let is_last = seen.len() < PAGE as usize;
            let mut is_passed = true;
            for one in seen {
                is_passed = round.pass(&one);
                if !is_passed {
                    break;
                }
                match (one.is_operator, one.exists) {
                    (false, false) => gone.push(one.place),
                    _ => waiting.extend(self.due(one)),
                }
            }
            if is_last && is_passed {
                round.turn();
                break;
            }
        }
        self.end_orphans(&gone, round, actor);
        waiting
    }

    fn seen(&self, round: &Round) -> Vec<Seen> {
        let arguments = [
            round.behind.0.into(),
            round.behind.1.as_str().into(),
            time::timestamptz(self.now).into(),
            PAGE.into(),
            round.start.0.into(),
            round.start.1.as_str().into(),
        ];
        let read = |row: &Row| Seen {
            place: (row.required(1), row.required(2)),
            is_operator: row.required(3),
            has_health: row.required(4),
            exists: row.required(5),
            concurrency: row.get(6),
            rate: row.get(7),
            is_behind_start: row.required(8),
            is_due: row.required(9),
        };
        WAITING_ENDPOINTS.with(|query| query.rows(&arguments, read))
    }

    /// None if nothing is due for the endpoint, or if another program may know it.
    fn due(&self, one: Seen) -> Option<Waiting> {
        if !one.is_due {
            return None;
        }
        let (concurrency, rate) = match one.is_operator {
            false => (one.concurrency.unwrap_or_default(), one.rate),
            true => {
                let operator = self.operator(&one.place)?;
                (operator.concurrency, operator.rate)
            }
        };
        Some(Waiting {
            keeper: keeper(one.place.0, &one.place.1),
            has_health: one.has_health,
            place: one.place,
            concurrency,
            rate,
        })
    }

    /// The operator's endpoint that a place means, if it serves the owner.
    fn operator(&self, (owner_id, name): &Place) -> Option<&Operator> {
        let found = self.operators.iter().find(|one| one.key == *name)?;
        found.serves(&access::name_of(*owner_id)).then_some(found)
    }

    fn end_orphans(&self, gone: &[Place], round: &mut Round, actor: &Actor) {
        if gone.is_empty() || round.orphans == 0 {
            return;
        }
        let [owners, names] = columns(gone);
        let arguments = [owners, names, round.orphans.into()];
        let orphans =
            LOCK_ORPHANS.with(|query| query.rows(&arguments, |row| (row.uuid(1), Some(GONE))));
        round.orphans -= orphans.len() as i32;
        finish::end_locked(&orphans, End::Failed, actor);
    }

    /// Takes up to `left` for the endpoints of a page. What one leaves of its share goes to those that may have more.
    /// Returns the last endpoint that got anything.
    fn take_all(
        &self,
        mut page: Vec<Waiting>,
        left: u32,
        claimed: &mut Vec<Uuid>,
    ) -> Option<Place> {
        let enough = claimed.len() + left as usize;
        let places: Vec<Place> = page.iter().map(|one| one.place.clone()).collect();
        let mut last = None;
        while claimed.len() < enough && !page.is_empty() {
            let missing = (enough - claimed.len()) as u32;
            let (taken, shares) = self.take(&page, missing);
            let numbers = page
                .iter()
                .map(|one| taken.get(&one.place).map_or(0, Vec::len));
            let numbers: Vec<usize> = numbers.collect();
            if let Some(taken) = numbers.iter().rposition(|number| *number > 0) {
                last = last.max(places.iter().position(|place| *place == page[taken].place));
            }
            let mut outcomes = numbers.into_iter().zip(shares);
            page.retain(|_| {
                let next = outcomes.next();
                next.is_some_and(|(number, share)| number > 0 && number >= share as usize)
            });
            for one in &mut page {
                one.has_health = true;
            }
            claimed.extend(taken.into_values().flatten());
        }
        last.map(|number| places[number].clone())
    }

    /// Takes up to `limit` for the endpoints of a page, all alike. Returns what each got, and what its share was.
    fn take(&self, page: &[Waiting], limit: u32) -> (HashMap<Place, Vec<Uuid>>, Vec<u32>) {
        let mut budgets = self.lock(page);
        let mut takes = Vec::with_capacity(page.len());
        // Of an operator's endpoint, the owners share the budget.
        let mut promised: HashMap<Place, u32> = HashMap::new();
        for one in page {
            let key = one.health_key();
            let free = budgets.get(&key).map_or(0, |budget| budget.free);
            let sharers = page
                .iter()
                .filter(|other| other.health_key() == key)
                .count() as u32;
            let before = promised.entry(key).or_default();
            let part = free
                .div_ceil(sharers.max(1))
                .min(free.saturating_sub(*before));
            *before += part;
            takes.push(part);
        }
        let given = shares(limit, &takes);
        let chosen: Vec<(&Waiting, u32)> = page
            .iter()
            .zip(given.iter().copied())
            .filter(|(_, share)| *share > 0)
            .collect();
        let taken = self.claim(&chosen);
        self.save_tokens(page, &taken, &mut budgets);
        (taken, given)
    }

    /// Locks the rows of endpoints, as far as no other claim has, and tells what each may get.
    fn lock(&self, page: &[Waiting]) -> HashMap<Place, Budget> {
        // The row of another transaction that has not ended would be waited for.
        let missing = page.iter().filter(|one| !one.has_health);
        let mut missing: Vec<Place> = missing.map(Waiting::health_key).collect();
        missing.retain(|(owner_id, name)| {
            let key = advisory::owned_key(*owner_id, advisory::key(name.bytes()) as u32);
            advisory::try_lock(Space::Endpoint, key)
        });
        if !missing.is_empty() {
            ADD_HEALTH.with(|query| query.execute(&columns(&missing)));
        }
        let mut keys: Vec<Place> = page.iter().map(Waiting::health_key).collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            return HashMap::new();
        }
        let read = |row: &Row| {
            let key: Place = (row.required(1), row.required(2));
            let stored = row.get::<f64>(8).zip(row.instant(9));
            (key, health::read(row, 3), stored)
        };
        let locked = LOCK_ENDPOINTS.with(|query| query.rows(&columns(&keys), read));
        let keys: Vec<Place> = locked.iter().map(|(key, ..)| key.clone()).collect();
        // What was claimed until the locks were there counts.
        let running: HashMap<Place, i64> = RUNNING
            .with(|query| {
                query.latest_rows(&columns(&keys), |row| {
                    ((row.required(1), row.required(2)), row.required(3))
                })
            })
            .into_iter()
            .collect();
        let budget = |(key, health, stored): (Place, Health, Option<(f64, DateTime<Utc>)>)| {
            let one = page.iter().find(|one| one.health_key() == key)?;
            let running = running.get(&key).copied().unwrap_or_default();
            let bucket = one.rate.map(|rate| match stored {
                Some((tokens, at)) => Bucket { tokens, at }.refilled(rate, self.now),
                None => Bucket::full(rate, self.now),
            });
            let free = (i64::from(one.concurrency) - running).clamp(0, MOST.into()) as u32;
            let free = match health.standing(self.now) {
                Standing::Open => free,
                Standing::Probe => u32::from(running == 0),
                Standing::Closed | Standing::Disabled => 0,
            };
            let free = bucket.map_or(free, |bucket| free.min(bucket.available()));
            Some((key, Budget { bucket, free }))
        };
        locked.into_iter().filter_map(budget).collect()
    }

    fn claim(&self, chosen: &[(&Waiting, u32)]) -> HashMap<Place, Vec<Uuid>> {
        let mut taken: HashMap<Place, Vec<Uuid>> = HashMap::new();
        if chosen.is_empty() {
            return taken;
        }
        let places: Vec<Place> = chosen.iter().map(|(one, _)| one.place.clone()).collect();
        let [owners, names] = columns(&places);
        let numbers: Vec<i32> = chosen.iter().map(|(_, share)| *share as i32).collect();
        let arguments = [
            time::timestamptz(self.now).into(),
            owners,
            names,
            numbers.into(),
            self.consumer.as_str().into(),
            self.lease.into(),
        ];
        let read = |row: &Row| (row.uuid(1), (row.required(2), row.required(3)));
        for (id, place) in CLAIM.with(|query| query.rows(&arguments, read)) {
            taken.entry(place).or_default().push(id);
        }
        taken
    }

    fn save_tokens(
        &self,
        page: &[Waiting],
        taken: &HashMap<Place, Vec<Uuid>>,
        budgets: &mut HashMap<Place, Budget>,
    ) {
        let mut keys: Vec<Place> = Vec::new();
        for one in page {
            let Some(ids) = taken.get(&one.place) else {
                continue;
            };
            let key = one.health_key();
            let Some(budget) = budgets.get_mut(&key) else {
                continue;
            };
            if let Some(bucket) = budget.bucket {
                budget.bucket = Some(bucket.without(ids.len() as u32));
                keys.push(key);
            }
        }
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            return;
        }
        let tokens = |key: &Place| budgets.get(key)?.bucket.map(|bucket| bucket.tokens);
        let tokens: Vec<Option<f64>> = keys.iter().map(tokens).collect();
        let [owners, names] = columns(&keys);
        let now = time::timestamptz(self.now).into();
        SAVE_TOKENS.with(|query| query.execute(&[owners, names, tokens.into(), now]));
    }
}

impl Waiting {
    fn health_key(&self) -> Place {
        (self.keeper, self.place.1.clone())
    }
}

/// Places as two parameters.
fn columns(places: &[Place]) -> [DatumWithOid<'_>; 2] {
    let owners: Vec<i32> = places.iter().map(|(owner_id, _)| *owner_id).collect();
    let names: Vec<&str> = places.iter().map(|(_, name)| name.as_str()).collect();
    [owners.into(), names.into()]
}
