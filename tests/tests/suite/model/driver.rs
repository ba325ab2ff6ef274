//! A server, its sessions, and the model beside it.

use super::world::{ADMIN, Action, Dispatch, Instant, ROLES, Status, World};
use chrono::{TimeDelta, Utc};
use pg_recur_tests::dice::Dice;
use pg_recur_tests::{Clock, Cluster, Session, database_error};
use postgres::Row;
use postgres::types::ToSql;
use std::collections::BTreeMap;
use uuid::Uuid;

pub struct Driver {
    pub dice: Dice,
    pub world: World,
    sessions: BTreeMap<&'static str, Session>,
    clock: Clock,
    shift: TimeDelta,
    /// What was called, for the report of a failure.
    pub calls: Vec<String>,
    _cluster: Cluster,
}

/// The clock is a little later than the model's noon, and never earlier.
const HALF_A_MINUTE: TimeDelta = TimeDelta::seconds(30);

/// What a call must answer: rows, or an error with this SQLSTATE.
pub type Expected = Result<(), &'static str>;

impl Driver {
    pub fn new(seed: u64) -> Driver {
        let (cluster, clock) =
            Cluster::with_clock("recur.enabled = off\nrecur.pause_after_errors = 0");
        let mut owner = cluster.database("app");
        for role in ROLES {
            owner.batch(&format!("CREATE ROLE {role} LOGIN"));
            let levels: &[&str] = if role == ADMIN {
                &["admin"]
            } else {
                &["author", "consumer"]
            };
            for level in levels {
                owner.batch(&format!("SELECT recur.grant_access('{role}', '{level}')"));
            }
        }
        let noon: Instant = "2031-03-01T12:00:00Z".parse().expect("an instant");
        let shift = noon - Utc::now() + HALF_A_MINUTE;
        clock.set(shift.num_seconds());
        let sessions = ROLES.map(|role| (role, cluster.session_as(role, "app")));
        Driver {
            dice: Dice::new(seed),
            world: World {
                now: noon,
                actions: BTreeMap::new(),
                dispatches: BTreeMap::new(),
            },
            sessions: sessions.into_iter().collect(),
            clock,
            shift,
            calls: Vec::new(),
            _cluster: cluster,
        }
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.dice.roll(from.len() as u64) as usize]
    }

    /// One of the keys of a map; an id that does not exist where there is none.
    pub fn pick_id(&mut self, ids: Vec<Uuid>) -> Uuid {
        match ids.is_empty() {
            true => Uuid::from_u128(1),
            false => self.pick(&ids),
        }
    }

    /// Lets days pass, from noon to noon.
    pub fn pass_days(&mut self, days: i64) {
        self.world.now += TimeDelta::days(days);
        self.shift = self.world.now - Utc::now() + HALF_A_MINUTE;
        self.clock.set(self.shift.num_seconds());
        self.calls.push(format!("{days} days pass"));
    }

    /// Calls a function as a role, and checks whether it is refused as expected.
    pub fn run(
        &mut self,
        role: &'static str,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
        expected: Expected,
    ) -> Vec<Row> {
        self.calls.push(format!("{role}: {sql} {parameters:?}"));
        let session = self.sessions.get_mut(role).expect("a session");
        let answer = session
            .0
            .query(sql, parameters)
            .map_err(|error| database_error(&error));
        match (answer, expected) {
            (Ok(rows), Ok(())) => rows,
            (Err((state, ..)), Err(code)) if state == code => Vec::new(),
            (answer, expected) => {
                let shown = answer.map(|rows| rows.len());
                panic!(
                    "{shown:?}, and {expected:?} was expected; calls:\n{}",
                    self.last_calls()
                )
            }
        }
    }

    pub fn last_calls(&self) -> String {
        let from = self.calls.len().saturating_sub(60);
        self.calls[from..].join("\n")
    }

    /// Compares what each role sees with what the model says it sees.
    pub fn compare(&mut self) {
        for role in ROLES {
            let actions: BTreeMap<Uuid, String> = self
                .world
                .actions
                .iter()
                .filter(|(_, action)| self.world.sees(role, action.owner))
                .map(|(id, action)| (*id, shown_action(action)))
                .collect();
            let session = self.sessions.get_mut(role).expect("a session");
            let rows = session.rows(ACTIONS, &[]);
            let found: BTreeMap<Uuid, String> =
                rows.iter().map(|row| (row.get(0), row.get(1))).collect();
            assert_same(role, "actions", &found, &actions, &self.calls);
            let dispatches: BTreeMap<Uuid, String> = self
                .world
                .dispatches
                .iter()
                .filter(|(_, dispatch)| self.world.sees(role, dispatch.owner))
                .map(|(id, dispatch)| (*id, shown_dispatch(dispatch)))
                .collect();
            let rows = session.rows(DISPATCHES, &[]);
            let found: BTreeMap<Uuid, String> =
                rows.iter().map(|row| (row.get(0), row.get(1))).collect();
            assert_same(role, "dispatches", &found, &dispatches, &self.calls);
        }
    }
}

fn assert_same(
    role: &str,
    what: &str,
    found: &BTreeMap<Uuid, String>,
    expected: &BTreeMap<Uuid, String>,
    calls: &[String],
) {
    if found == expected {
        return;
    }
    let differs = |id: &&Uuid| found.get(*id) != expected.get(*id);
    let all = found.keys().chain(expected.keys());
    let shown: Vec<String> = all
        .filter(differs)
        .map(|id| {
            format!(
                "{id}\n  server: {:?}\n  model:  {:?}",
                found.get(id),
                expected.get(id)
            )
        })
        .collect();
    let from = calls.len().saturating_sub(60);
    panic!(
        "{what} that {role} sees:\n{}\ncalls:\n{}",
        shown.join("\n"),
        calls[from..].join("\n")
    );
}

const ACTIONS: &str = "
SELECT id, concat_ws(' ', owner, name, schedule, payload ->> 'n', misfire, overlap, 'max', max_runs, enabled, 'next',
                     extract(epoch FROM next_run_at)::bigint, 'runs', run_count, 'paused', paused_reason,
                     'ended', ended_reason, completed_count, failed_count)
  FROM recur.recurring_actions";

fn shown_action(one: &Action) -> String {
    let mut words = vec![
        one.owner.to_owned(),
        one.name.to_owned(),
        format!("0 {} * * *", one.hour),
        one.payload.to_string(),
        one.misfire.to_owned(),
        one.overlap.to_owned(),
        "max".to_owned(),
    ];
    words.extend(one.max_runs.map(|most| most.to_string()));
    words.push(if one.enabled { "t" } else { "f" }.to_owned());
    words.push("next".to_owned());
    words.extend(one.next_run_at.map(|next| next.timestamp().to_string()));
    words.extend([
        "runs".to_owned(),
        one.run_count.to_string(),
        "paused".to_owned(),
    ]);
    words.extend(one.paused_reason.map(str::to_owned));
    words.push("ended".to_owned());
    words.extend(one.ended_reason.map(str::to_owned));
    words.extend([one.completed.to_string(), one.failed.to_string()]);
    words.join(" ")
}

const DISPATCHES: &str = "
SELECT id, concat_ws(' ', owner, coalesce(action_id::text, 'none'), trigger, extract(epoch FROM scheduled_at)::bigint,
                     payload ->> 'n', status, attempt,
                     CASE status WHEN 'pending' THEN extract(epoch FROM available_at)::bigint END,
                     CASE status WHEN 'running' THEN cancel_requested END)
  FROM recur.dispatches";

fn shown_dispatch(one: &Dispatch) -> String {
    let mut words = vec![
        one.owner.to_owned(),
        one.action
            .map_or("none".to_owned(), |action| action.to_string()),
        one.trigger.to_owned(),
        seconds(one.scheduled_at),
        one.payload.to_string(),
        one.status.name().to_owned(),
        one.attempt.to_string(),
    ];
    match one.status {
        Status::Pending => words.push(seconds(one.available_at)),
        Status::Running => words.push(if one.cancel_requested { "t" } else { "f" }.to_owned()),
        _ => {}
    }
    words.join(" ")
}

/// As PostgreSQL rounds them.
fn seconds(at: Instant) -> String {
    (at + TimeDelta::milliseconds(500)).timestamp().to_string()
}
