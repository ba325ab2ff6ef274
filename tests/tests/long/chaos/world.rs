//! A server with actions, consumers and load, and how faults reach it.

use super::audit::{self, Totals};
use super::load::{ATTEMPTS, BACKOFF, Load};
use super::post::Post;
use chrono::{DateTime, Utc};
use pg_recur_tests::dice::Dice;
use pg_recur_tests::{Clock, Cluster, Session, Shutdown, eventually, eventually_some};
use recurrence::Schedule;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use uuid::Uuid;

pub const DISPATCHERS: i64 = 2;
/// Some worker slots are left, which a parallel query can take; `max_wal_size` fits on the small disk.
const SETTINGS: &str = "
fsync = on
max_connections = 30
max_worker_processes = 14
max_parallel_workers = 14
max_parallel_workers_per_gather = 14
max_wal_size = '128MB'
min_wal_size = '64MB'
recur.dispatchers = 2
recur.batch_size = 20
recur.check_interval = '1s'
";

/// An action as it was defined, to be compared with what the server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub id: Uuid,
    pub name: String,
    pub schedule: String,
    pub misfire: String,
    pub starts_at: DateTime<Utc>,
}

pub struct World {
    // Stopped in this order.
    pub post: Post,
    load: Load,
    /// Snapshots that outlive the round.
    pub snapshots: Vec<Session>,
    pub cluster: Cluster,
    clock: Clock,
    shift: i64,
    pub definitions: Vec<Definition>,
    link: TempDir,
}

impl World {
    pub fn create(dice: &mut Dice) -> World {
        let (cluster, clock) = Cluster::with_clock_and_disks(SETTINGS);
        let mut session = cluster.database("app");
        let definitions = define(&mut session, dice);
        session.batch(
            "CREATE TABLE public.entries (dispatch uuid NOT NULL, attempt int NOT NULL);
             CREATE TABLE public.filler AS SELECT n, repeat('x', 2000) AS text FROM generate_series(1, 200) AS n;
             ALTER TABLE public.filler SET (parallel_workers = 14);
             CREATE FUNCTION public.enter(payload jsonb, context jsonb, dispatch jsonb) RETURNS void LANGUAGE sql AS $$
                INSERT INTO public.entries VALUES ((dispatch ->> 'id')::uuid, (dispatch ->> 'attempt')::int)
             $$;
             SELECT recur.set_handler('handled', 'public.enter(jsonb,jsonb,jsonb)')",
        );
        let link = tempfile::Builder::new()
            .prefix("pgr-")
            .tempdir_in("/tmp")
            .expect("a folder");
        let host = link.path().join("host");
        symlink(cluster.sockets(), &host).expect("a link");
        let triggered = definitions.iter().map(|one| one.id).collect();
        World {
            post: Post::open(&host),
            load: Load::start(host, triggered),
            snapshots: Vec::new(),
            cluster,
            clock,
            shift: 0,
            definitions,
            link,
        }
    }

    pub fn load(&self) -> &Load {
        &self.load
    }

    fn host(&self) -> PathBuf {
        self.link.path().join("host")
    }

    /// A session, as soon as the server lets one in.
    pub fn session(&self) -> Session {
        eventually_some("a session", || self.cluster.try_connect("app"))
    }

    /// Sets the server's clock, relative to what it shows.
    pub fn step_clock(&mut self, seconds: i64) {
        self.shift += seconds;
        match u64::try_from(-seconds) {
            Ok(back) => {
                let set_back = || self.clock.set(self.shift);
                self.load.without_edits(Duration::from_secs(back), set_back);
            }
            Err(_) => self.clock.set(self.shift),
        }
    }

    /// Ends the server in this way; it stays down for a while.
    pub fn outage(&mut self, shutdown: Shutdown, milliseconds: u64) {
        self.cluster.stop(shutdown);
        super::load::pause(milliseconds);
        self.cluster.launch();
    }

    /// A standby that has all that was committed takes the place of its primary, which is gone for good.
    pub fn fail_over(&mut self, shutdown: Shutdown) {
        let standby = self.cluster.standby();
        self.cluster.configure("synchronous_standby_names = '*'");
        self.cluster.reload();
        let mut session = self.session();
        eventually("the standby is synchronous", || {
            session.count("pg_stat_replication WHERE sync_state = 'sync'") == 1
        });
        super::load::pause(200);
        drop(session);
        self.cluster.stop(shutdown);
        standby.promote();
        let link = self.link.path().join("new");
        symlink(standby.sockets(), &link).expect("a link");
        fs::rename(&link, self.host()).expect("the link moves");
        self.clock = standby.clock();
        self.cluster = standby;
    }

    /// Returns when all that was due by now is done and every worker is there: that instant, by the server's clock.
    pub fn settle(&self) -> DateTime<Utc> {
        let until: DateTime<Utc> = eventually_some("the server answers", || {
            let mut session = self.cluster.try_connect("app")?;
            let row = session.0.query_one("SELECT clock_timestamp()", &[]).ok()?;
            Some(row.get(0))
        });
        let mut session = None;
        let mut left = String::new();
        let started = std::time::Instant::now();
        loop {
            match session.as_mut() {
                None => session = self.cluster.try_connect("app"),
                Some(connected) => match unsettled(connected, until) {
                    Ok(text) if text.is_empty() => return until,
                    Ok(text) => left = text,
                    Err(_) => session = None,
                },
            }
            assert!(
                started.elapsed().as_secs() < DEADLINE_SECONDS,
                "not done within {DEADLINE_SECONDS} seconds: {left}"
            );
            super::load::pause(25);
        }
    }

    /// The consumers and the server stop as they should; the last books.
    pub fn end(mut self) -> Totals {
        self.snapshots.clear();
        let until = self.settle();
        let totals = audit::check(&self, until);
        let World { post, load, .. } = self;
        drop(load);
        post.close();
        totals
    }
}

/// Much longer than a lease, and than the longest pause between two attempts to connect.
const DEADLINE_SECONDS: u64 = 60;

/// What is still to be done, or empty.
fn unsettled(session: &mut Session, until: DateTime<Utc>) -> Result<String, postgres::Error> {
    let row = session.0.query_one(
        "SELECT concat_ws('; ',
            (SELECT nullif(count(*), 0) || ' timers are due' FROM recur_internal.timers WHERE next_run_at <= $1),
            (SELECT nullif(count(*), 0) || ' dispatches are unfinished, such as ' || min(id::text)
               FROM recur_internal.live_dispatches WHERE scheduled_at <= $1),
            (SELECT 'workers: ' || count(*) FROM pg_stat_activity
              WHERE backend_type = 'pg_recur launcher'
                 OR backend_type = 'pg_recur dispatcher' AND datname = 'app'
             HAVING count(*) <> $2))",
        &[&until, &(DISPATCHERS + 1)],
    )?;
    Ok(row.get(0))
}

/// Schedules of several kinds, each with every misfire policy; for consumers, and for accounts in the database, some of
/// which a handler keeps.
fn define(session: &mut Session, dice: &mut Dice) -> Vec<Definition> {
    let schedules = [
        "* * * * * *",
        "*/2 * * * * *",
        "2s",
        "RRULE:FREQ=SECONDLY;INTERVAL=3",
    ];
    let mut definitions = Vec::new();
    for number in 0..36 {
        let misfire = ["once", "skip", "all"][number % 3];
        let overlap = if misfire == "once" && number % 2 == 0 {
            "skip"
        } else {
            "allow"
        };
        let provider = if number % 4 == 3 { "ledger" } else { "mailer" };
        // Some of the accounts are kept by a handler, if no thread takes them before.
        let action_type = if number % 8 == 7 { "handled" } else { "email" };
        let name = format!("action {number}");
        let schedule = schedules[number % schedules.len()];
        let row = &session.rows(
            "SELECT recur.create($1, $2, $3, $10, jsonb_build_object('to', $1::text, 'seconds', $4::float8),
                        starts_at => date_trunc('second', now()) + interval '2 seconds',
                        misfire => $5, overlap => $6, catchup_limit => 1000,
                        misfire_grace => CASE $5 WHEN 'skip' THEN interval '2 seconds' END,
                        lock_group => CASE WHEN $7 THEN $1 END, max_attempts => $8, retry_backoff => $9::text::jsonb),
                    date_trunc('second', now()) + interval '2 seconds'",
            &[
                &name,
                &schedule,
                &provider,
                &(dice.roll(5) as f64 / 8.0),
                &misfire,
                &overlap,
                &(number % 6 == 5),
                &ATTEMPTS,
                &BACKOFF,
                &action_type,
            ],
        )[0];
        let schedule = Schedule::parse(schedule).expect("a schedule");
        definitions.push(Definition {
            id: row.get(0),
            name,
            schedule: schedule.to_string(),
            misfire: misfire.to_owned(),
            starts_at: row.get(1),
        });
    }
    definitions
}
