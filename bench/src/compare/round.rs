//! One round of a comparison: a fresh server, every operation through the public API, so that builds with other tables
//! can be compared.

use crate::measure::{Samples, cpu_seconds};
use crate::server::{Server, wal_position};
use chrono::{DateTime, Utc};
use pg_recur_tests::{Session, eventually};
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

/// What was measured, by name; the names sort in the order of the report.
pub type Figures = BTreeMap<String, f64>;

const ENQUEUED: usize = 6_000;
const WARM_UPS: usize = 6;
const ACTIONS: i64 = 5_000;
const WAKE_UPS: usize = 500;
const SECONDS_OF_LATENESS: usize = 6;

pub fn run() -> Figures {
    let server = Server::start("recur.notify_each_max = 100");
    let mut figures = Figures::new();
    queue(&server, &mut figures);
    wake_ups(&server, &mut figures);
    lateness(&server, &mut figures);
    dispatching(&server, &mut figures);
    figures
}

/// CPU time and WAL of the session's process while it does something.
struct Meter {
    pid: i32,
    cpu: f64,
    wal: f64,
}

impl Meter {
    fn start(session: &mut Session) -> Meter {
        let (pid, wal) = (session.pid(), wal_position(session));
        Meter {
            pid,
            cpu: cpu_seconds(pid),
            wal,
        }
    }

    /// Notes what each of `count` operations took.
    fn stop(self, session: &mut Session, figures: &mut Figures, name: &str, count: usize) {
        let cpu = cpu_seconds(self.pid) - self.cpu;
        let wal = wal_position(session) - self.wal;
        figures.insert(format!("{name}: CPU µs"), cpu * 1e6 / count as f64);
        figures.insert(format!("{name}: WAL bytes"), wal / count as f64);
    }
}

/// Enqueues, claims and reports, by consumers that filter as the shipped ones do.
fn queue(server: &Server, figures: &mut Figures) {
    let mut session = server.bench();
    let enqueue = session
        .0
        .prepare(
            "SELECT count(*) FROM recur.enqueue('bench', 'noop', jsonb_build_object('n', $1::int))",
        )
        .expect("a plan");
    // The first calls fill the caches of the session.
    for number in 0..100 {
        session.0.query(&enqueue, &[&number]).expect("a dispatch");
    }
    let meter = Meter::start(&mut session);
    for number in 0..ENQUEUED as i32 {
        session.0.query(&enqueue, &[&number]).expect("a dispatch");
    }
    meter.stop(&mut session, figures, "1 enqueue", ENQUEUED);
    session.batch("ANALYZE");
    claims(&mut session, figures, 1, 800);
    claims(&mut session, figures, 10, 100);
    claims(&mut session, figures, 100, 15);
}

fn claims(session: &mut Session, figures: &mut Figures, batch: i32, rounds: usize) {
    let claim = "SELECT id, attempt FROM recur.claim($1::int, providers => '{bench}', action_types => '{noop}')";
    let report = match batch {
        1 => "SELECT count(*) FROM recur.complete(($1::uuid[])[1], ($2::int[])[1])",
        _ => "SELECT count(*) FROM recur.complete_many($1::uuid[], $2::int[])",
    };
    let claim = session.0.prepare(claim).expect("a plan");
    let report = session.0.prepare(report).expect("a plan");
    let take = |session: &mut Session| -> (Vec<Uuid>, Vec<i32>) {
        let rows = session.0.query(&claim, &[&batch]).expect("dispatches");
        rows.iter()
            .map(|row| (row.get::<_, Uuid>(0), row.get::<_, i32>(1)))
            .unzip()
    };
    // The first calls make the plans of the session.
    for _ in 0..WARM_UPS {
        let (ids, attempts) = take(session);
        session
            .0
            .query(&report, &[&ids, &attempts])
            .expect("a report");
    }
    let mut taken = Vec::with_capacity(rounds);
    let dispatches = rounds * batch as usize;
    let meter = Meter::start(session);
    for _ in 0..rounds {
        taken.push(take(session));
    }
    meter.stop(
        session,
        figures,
        &format!("2 claim, batch {batch}"),
        dispatches,
    );
    let meter = Meter::start(session);
    for (ids, attempts) in &taken {
        session
            .0
            .query(&report, &[ids, attempts])
            .expect("a report");
    }
    meter.stop(
        session,
        figures,
        &format!("3 report, batch {batch}"),
        dispatches,
    );
    let claimed: usize = taken.iter().map(|(ids, _)| ids.len()).sum();
    assert_eq!(claimed, dispatches, "each claim found what it asked for");
}

/// What the dispatcher takes to see that nothing is due.
fn wake_ups(server: &Server, figures: &mut Figures) {
    let mut session = server.bench();
    let pid = dispatchers(&mut session)[0];
    let sleeps = || crate::sections::idle::sleeps(pid);
    std::thread::sleep(Duration::from_millis(500));
    let (cpu, slept) = (cpu_seconds(pid), sleeps());
    for _ in 0..WAKE_UPS {
        // Workers look around after any DROP: the extension might be gone.
        session.batch("DROP TABLE IF EXISTS pg_temp.nothing");
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(Duration::from_millis(200));
    let wakes = sleeps() - slept;
    figures.insert(
        "4 idle wake-up: CPU µs".to_owned(),
        (cpu_seconds(pid) - cpu) * 1e6 / wakes,
    );
}

/// From an occurrence to the notification in a client's hands.
fn lateness(server: &Server, figures: &mut Figures) {
    let mut session = server.bench();
    session.batch("LISTEN recur");
    session.batch(
        "SELECT count(recur.create('late ' || n, '* * * * * *', 'late', 'noop')) FROM generate_series(1, 10) AS n",
    );
    let mut millis = Samples::default();
    while millis.0.len() < 10 * SECONDS_OF_LATENESS {
        let message = session.notification();
        let arrived = Utc::now();
        let Some(scheduled) = message["scheduled_at"].as_str() else {
            continue;
        };
        let scheduled: DateTime<Utc> = scheduled.parse().expect("an instant");
        millis.push((arrived - scheduled).num_microseconds().unwrap_or(i64::MAX) as f64 / 1e3);
    }
    figures.insert("5 lateness: ms, median".to_owned(), millis.median());
    session.batch("SELECT recur.delete(id) FROM recur.recurring_actions");
}

/// By the server's own view: that of pg_recur had other columns once.
fn dispatchers(session: &mut Session) -> Vec<i32> {
    session.column(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_recur dispatcher'",
        &[],
    )
}

/// One tick over actions that are all due.
fn dispatching(server: &Server, figures: &mut Figures) {
    let mut session = server.bench();
    server.set("recur.enabled", "off");
    eventually("the dispatcher has left", || {
        dispatchers(&mut session).is_empty()
    });
    let create =
        "SELECT count(recur.create('a' || n, '1h', 'bench', 'noop', jsonb_build_object('n', n)))
                    FROM generate_series(1, $1::bigint) AS n";
    let create = session.0.prepare(create).expect("a plan");
    let meter = Meter::start(&mut session);
    session.0.query(&create, &[&ACTIONS]).expect("actions");
    meter.stop(&mut session, figures, "6 create", ACTIONS as usize);
    session.batch("ANALYZE");
    let meter = Meter::start(&mut session);
    let dispatched: i64 = session.value("SELECT dispatched FROM recur.tick()", &[]);
    meter.stop(&mut session, figures, "7 dispatch", ACTIONS as usize);
    assert_eq!(dispatched, ACTIONS, "every action was due");
    eventually("nothing is due any more", || {
        session.value::<i64>("SELECT dispatched FROM recur.tick()", &[]) == 0
    });
}
