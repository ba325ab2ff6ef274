//! Which databases have a process of their own, and which one is visited next: what the launcher decides.
//!
//! PostgreSQL has a fixed number of slots for background workers, which parallel queries and other extensions use as
//! well, and a worker can connect to one database in its life. Where there are slots for all, each database has a first
//! dispatcher of its own, which sleeps until the exact instant. Where there are not, all but one of the dispatchers
//! stay where they are, and the last slot *roams*: its process does what is due in one database and leaves, and the
//! launcher starts it again in the database that has waited longest.
//!
//! To the launcher a database is in one of these states:
//!
//! | state | meaning |
//! | --- | --- |
//! | dedicated | its first dispatcher stays |
//! | roaming | its first dispatcher leaves when another database is in need, at the latest after a second |
//! | none | it has no process; it is visited at the next instant that is known, and once a round |
//! | vacated | a command needs it without connections, or it is not to be served: it has no process and gets none |
//!
//! | from | to | when |
//! | --- | --- | --- |
//! | none | dedicated | a slot is free, and another one besides it or none is needed |
//! | none | roaming | the roaming slot is free, and no other database has waited longer |
//! | dedicated | roaming | no slot roams; of all dispatchers, the one with nothing due for longest |
//! | dedicated, roaming | the other one | nothing is due for long in one database, and soon in the other |
//! | roaming | none | it has left, because another database is in need |
//! | roaming | dedicated | there are slots again |
//! | any | vacated | the workers see it, and leave |
//! | vacated | none | it is over |
//!
//! A maintenance process takes a free slot, or a turn of the roaming one; there is at most one. Dispatchers beyond the
//! first take slots that are free otherwise.
//!
//! No database starves: visits are in the order of the instants since which databases wait, and none waits since an
//! instant before its last visit.

mod shortage;
#[cfg(test)]
mod tests;

pub use shortage::{Say, Shortage};

use chrono::{DateTime, TimeDelta, Utc};

type Instant = DateTime<Utc>;

/// Two dispatchers change places if one has nothing to do for this much longer.
const WORTH_A_CHANGE: TimeDelta = TimeDelta::seconds(10);

/// A database that is to be served.
#[derive(Clone, Debug)]
pub struct Database {
    /// Its oid.
    pub id: u32,
    /// Has the extension been found in it? Other dispatchers follow where it has.
    pub is_known: bool,
    /// Its first dispatcher.
    pub first: Option<Process>,
    /// The dispatchers beyond the first: their numbers, and whether they have been asked to leave.
    pub others: Vec<(u8, bool)>,
    /// After a failure, no process is started before.
    pub not_before: Instant,
    /// When it is to be visited if it has no process.
    pub visit_at: Instant,
    /// Since when it waits for a maintenance process.
    pub needs_maintenance_since: Option<Instant>,
}

/// A first dispatcher.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// Does it leave when another database is in need?
    pub roams: bool,
    /// Has it been asked to leave?
    pub is_leaving: bool,
    /// When something is due in its database. None while it starts or works.
    pub next_at: Option<Instant>,
}

/// What the server allows.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// How many processes there may be.
    pub capacity: usize,
    /// How many there are.
    pub running: usize,
    /// Is one of them a maintenance process?
    pub maintenance_runs: bool,
    /// How many dispatchers each database is to have.
    pub dispatchers: u8,
    /// The next visit begins no earlier.
    pub next_visit: Instant,
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The first dispatcher of its database.
    First {
        /// Does it leave when another database is in need?
        roams: bool,
    },
    /// Another dispatcher.
    Other(u8),
    /// Maintenance.
    Maintenance,
}

/// What the launcher does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Starts a process in this database.
    Start(u32, Role),
    /// Asks a process of this database to leave.
    Leave(u32, Role),
    /// From now on, the first dispatcher of this database roams, or stays.
    Roam(u32, bool),
}

/// What the launcher does next, and when to decide again.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// In this order.
    pub steps: Vec<Step>,
    /// When to decide again, if nothing happens before.
    pub look_at: Option<Instant>,
}

/// Decides what to do at this moment.
pub fn plan(server: Server, databases: &[Database], now: Instant) -> Plan {
    let mut planning = Planning {
        server,
        databases,
        now,
        free: server.capacity.saturating_sub(server.running),
        plan: Plan::default(),
    };
    let waits = |one: &Database| one.needs_maintenance_since.is_some();
    let has_job = server.maintenance_runs || databases.iter().any(waits);
    if databases.len() + usize::from(has_job) <= server.capacity {
        planning.serve_all();
    } else {
        planning.share();
    }
    planning.plan
}

/// Is something due much earlier where the first process is than where the second one is?
fn is_more_in_demand(process: Process, other: Process) -> bool {
    let both = process.next_at.zip(other.next_at);
    both.is_some_and(|(next_at, later)| later - next_at > WORTH_A_CHANGE)
}

struct Planning<'a> {
    server: Server,
    databases: &'a [Database],
    now: Instant,
    free: usize,
    plan: Plan,
}

impl Planning<'_> {
    /// There are slots for all.
    fn serve_all(&mut self) {
        let mut lacking = 0;
        let waiting = self.without_process();
        let mut waiting: Vec<_> = waiting
            .map(|one| (one.visit_at, one.id, one.not_before))
            .collect();
        waiting.sort_unstable();
        for (_, database, not_before) in waiting {
            if not_before > self.now {
                self.look_again(not_before);
            } else if self.free > 0 {
                self.start(database, Role::First { roams: false });
            } else {
                lacking += 1;
            }
        }
        if let Some((database, _)) = self.waiting_maintenance() {
            if self.free > 0 {
                self.start(database, Role::Maintenance);
            } else {
                lacking += 1;
            }
        }
        match lacking {
            0 => self.start_others(),
            _ => self.send_others_away(lacking),
        }
        // Last: should the server refuse a process after all, the roaming one goes on.
        for database in self.databases {
            if database.first.is_some_and(|first| first.roams) {
                self.step(Step::Roam(database.id, false));
            }
        }
    }

    /// Dispatchers beyond the first, a second one for each database before a third for any.
    fn start_others(&mut self) {
        let databases = self.databases;
        for number in 1..self.server.dispatchers {
            for database in databases.iter().filter(|one| one.first.is_some()) {
                let runs = database.others.iter().any(|other| other.0 == number);
                let may_start = database.is_known && database.not_before <= self.now;
                if !runs && may_start && self.free > 0 {
                    self.start(database.id, Role::Other(number));
                }
            }
        }
    }

    /// The last ones first.
    fn send_others_away(&mut self, lacking: usize) {
        let others = self.databases.iter().flat_map(|database| {
            let others = database.others.iter();
            others.map(move |(number, is_leaving)| (*number, database.id, *is_leaving))
        });
        let (leaving, mut staying): (Vec<_>, Vec<_>) = others.partition(|other| other.2);
        staying.sort_unstable();
        let more = lacking.saturating_sub(leaving.len());
        for (number, database, _) in staying.into_iter().rev().take(more) {
            self.step(Step::Leave(database, Role::Other(number)));
        }
    }

    /// There are more databases than slots.
    fn share(&mut self) {
        self.send_others_away(usize::MAX);
        self.send_surplus_away();
        let dedicated = |one: &&Database| one.first.is_some_and(|first| !first.roams);
        let mut dedicated = self.databases.iter().filter(dedicated).count();
        while self.free > 0 && dedicated + 1 < self.server.capacity {
            let Some(database) = self.first_waiting(|one| one.not_before <= self.now) else {
                break;
            };
            self.start(database, Role::First { roams: false });
            dedicated += 1;
        }
        let mut roaming =
            (self.databases.iter()).filter(|one| one.first.is_some_and(|first| first.roams));
        let (roaming, more) = (roaming.next(), roaming);
        for database in more {
            self.plan.steps.push(Step::Roam(database.id, false));
        }
        match roaming {
            _ if self.server.maintenance_runs => {}
            Some(roaming) => self.move_on(roaming),
            None if self.free > 0 => self.begin_visit(),
            None => self.let_one_roam(),
        }
        let waiting = self.without_process();
        let next = waiting.map(|one| one.visit_at.max(one.not_before)).min();
        if let Some(next) = next {
            self.look_again(next.max(self.server.next_visit));
        }
    }

    /// Fewer slots than before.
    fn send_surplus_away(&mut self) {
        let firsts = self
            .databases
            .iter()
            .filter_map(|one| Some((one, one.first?)));
        let leaving = firsts.clone().filter(|(_, first)| first.is_leaving).count();
        let others: usize = self.databases.iter().map(|one| one.others.len()).sum();
        let staying = self.server.running.saturating_sub(leaving + others);
        let surplus = staying.saturating_sub(self.server.capacity);
        let mut candidates: Vec<_> = firsts.filter(|(_, first)| !first.is_leaving).collect();
        candidates.sort_by_key(|(one, first)| (first.next_at, one.id));
        for (database, first) in candidates.into_iter().rev().take(surplus) {
            self.step(Step::Leave(database.id, Role::First { roams: first.roams }));
        }
    }

    /// The roaming slot is free.
    fn begin_visit(&mut self) {
        if self.server.next_visit > self.now {
            return self.look_again(self.server.next_visit);
        }
        let database = self.first_waiting(|one| one.not_before <= self.now);
        let visit_at = |id: u32| {
            self.databases
                .iter()
                .find(|one| one.id == id)
                .map(|one| one.visit_at)
        };
        let since = database.and_then(visit_at);
        match (database, self.waiting_maintenance()) {
            (database, Some((other, waits_since)))
                if database.is_none() || since.is_some_and(|since| waits_since <= since) =>
            {
                self.start(other, Role::Maintenance);
            }
            (Some(database), _) => self.start(database, Role::First { roams: true }),
            (None, _) => {}
        }
    }

    /// Of the dispatchers, that which has nothing to do for longest.
    fn let_one_roam(&mut self) {
        let firsts = self
            .databases
            .iter()
            .filter_map(|one| Some((one, one.first?)));
        let staying = firsts.filter(|(_, first)| !first.is_leaving);
        if let Some((idlest, _)) = staying.max_by_key(|(one, first)| (first.next_at, one.id)) {
            self.step(Step::Roam(idlest.id, true));
            self.look_again(self.now);
        }
    }

    /// Asks the roaming dispatcher to leave if another database is in need; or one that stays, if that is less in
    /// demand: then the two change places.
    fn move_on(&mut self, roaming: &Database) {
        let is_due = |one: &Database| one.visit_at.max(one.not_before) <= self.now;
        let is_needed =
            self.first_waiting(is_due).is_some() || self.waiting_maintenance().is_some();
        let Some(process) = roaming.first.filter(|process| !process.is_leaving) else {
            return;
        };
        if !is_needed {
            return;
        }
        if self.server.next_visit > self.now {
            return self.look_again(self.server.next_visit);
        }
        let firsts = self
            .databases
            .iter()
            .filter_map(|one| Some((one, one.first?)));
        let staying = firsts.filter(|(_, first)| !first.roams && !first.is_leaving);
        let idlest = staying.max_by_key(|(one, first)| (first.next_at, one.id));
        let leaves = match idlest {
            Some((idlest, first)) if is_more_in_demand(process, first) => {
                self.step(Step::Roam(roaming.id, false));
                self.step(Step::Roam(idlest.id, true));
                idlest.id
            }
            _ => roaming.id,
        };
        self.step(Step::Leave(leaves, Role::First { roams: true }));
    }

    fn without_process(&self) -> impl Iterator<Item = &Database> + use<'_> {
        let started = |id| {
            let is_first =
                |step: &Step| matches!(step, Step::Start(of, Role::First { .. }) if *of == id);
            self.plan.steps.iter().any(is_first)
        };
        self.databases
            .iter()
            .filter(move |one| one.first.is_none() && !started(one.id))
    }

    /// The database without a process that has waited longest.
    fn first_waiting(&self, may_be_visited: impl Fn(&Database) -> bool) -> Option<u32> {
        let waiting = self.without_process().filter(|one| may_be_visited(one));
        let first = waiting.min_by_key(|one| (one.visit_at, one.id));
        first.map(|one| one.id)
    }

    /// The database that has waited longest for a maintenance process, if none runs.
    fn waiting_maintenance(&self) -> Option<(u32, Instant)> {
        if self.server.maintenance_runs {
            return None;
        }
        let waiting = self
            .databases
            .iter()
            .filter_map(|one| Some((one.id, one.needs_maintenance_since?)));
        waiting.min_by_key(|(id, since)| (*since, *id))
    }

    fn start(&mut self, database: u32, role: Role) {
        self.free = self.free.saturating_sub(1);
        self.step(Step::Start(database, role));
    }

    fn step(&mut self, step: Step) {
        self.plan.steps.push(step);
    }

    fn look_again(&mut self, at: Instant) {
        let earlier = self.plan.look_at.into_iter().chain([at]);
        self.plan.look_at = earlier.min();
    }
}
