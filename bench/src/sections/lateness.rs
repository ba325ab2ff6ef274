//! From the due instant to the arrival of the NOTIFY in a client.

use crate::Size;
use crate::measure::{Samples, short};
use crate::report::{Report, progress};
use crate::server::Server;
use chrono::{DateTime, SubsecRound, TimeDelta, Timelike, Utc};
use pg_recur_tests::Session;
use postgres::fallible_iterator::FallibleIterator;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Milliseconds from one instant to another.
pub fn millis(from: DateTime<Utc>, until: DateTime<Utc>) -> f64 {
    (until - from).num_microseconds().unwrap_or(i64::MAX) as f64 / 1000.0
}

pub fn sleep_until(instant: DateTime<Utc>) {
    if let Ok(rest) = (instant - Utc::now()).to_std() {
        std::thread::sleep(rest);
    }
}

/// The next notification: when it came, its channel and its text.
pub fn next_notification(listener: &mut Session) -> (DateTime<Utc>, String, String) {
    let mut notifications = listener.0.notifications();
    let next = notifications
        .timeout_iter(Duration::from_secs(180))
        .next()
        .expect("a connection")
        .expect("a notification within three minutes");
    (
        Utc::now(),
        next.channel().to_owned(),
        next.payload().to_owned(),
    )
}

/// Of what is due every second at its beginning, and of what a client sends by itself at its middle.
#[derive(Default)]
pub struct Lateness {
    pub ours: Samples,
    pub floor: Samples,
    /// The floor of those that also keep a row.
    pub durable: Samples,
}

impl Lateness {
    fn row(&self, name: &str) -> Vec<Vec<String>> {
        let line = |side: &str, samples: &Samples| {
            vec![
                format!("{name}: {side}"),
                short(samples.quantile(0.5)),
                short(samples.quantile(0.99)),
                short(samples.max()),
            ]
        };
        vec![
            line("pg_recur", &self.ours),
            line("floor", &self.floor),
            line("floor with a row", &self.durable),
        ]
    }
}

/// Listens for so many seconds while `each` actions are due every second; the last of them counts.
pub fn measure(server: &Server, seconds: usize, each: i64) -> Lateness {
    let mut listener = server.bench();
    listener.batch(
        "LISTEN recur; LISTEN floor; LISTEN durable;
         CREATE TABLE IF NOT EXISTS bench.floor (due text, n bigint)",
    );
    let mut sender = server.bench();
    let floor = sender
        .0
        .prepare("SELECT count(pg_notify('floor', $1 || ' ' || n)) FROM generate_series(1, $2::bigint) AS n")
        .expect("a plan");
    let durable = sender
        .0
        .prepare(
            "WITH kept AS (INSERT INTO bench.floor SELECT $1, n FROM generate_series(1, $2::bigint) AS n
                           RETURNING due, n)
             SELECT count(pg_notify('durable', due || ' ' || n)) FROM kept",
        )
        .expect("a plan");
    let mut lateness = Lateness::default();
    let begin = Utc::now().trunc_subsecs(0) + TimeDelta::seconds(2);
    let sending = std::thread::spawn(move || {
        for second in 0..=seconds {
            for (statement, offset) in [(&floor, 500), (&durable, 750)] {
                let due =
                    begin + TimeDelta::seconds(second as i64) + TimeDelta::milliseconds(offset);
                sleep_until(due);
                let text = due.timestamp_micros().to_string();
                let _ = sender.0.query(statement, &[&text, &each]);
            }
        }
    });
    let (mut heard, mut heard_floor, mut of_second) = (0, 0, begin);
    while lateness.ours.0.len() < seconds || lateness.durable.0.len() < seconds {
        let (at, channel, payload) = next_notification(&mut listener);
        if channel != "recur" {
            heard_floor += 1;
            if heard_floor == each {
                heard_floor = 0;
                let due = payload.split(' ').next().and_then(|word| word.parse().ok());
                let due = due.and_then(DateTime::from_timestamp_micros).unwrap_or(at);
                let side = if channel == "floor" {
                    &mut lateness.floor
                } else {
                    &mut lateness.durable
                };
                side.push(millis(due, at));
            }
            continue;
        }
        let message: serde_json::Value = serde_json::from_str(&payload).expect("JSON");
        // What is announced as a count does not say of when it is: of the second that it comes in.
        let due = match message["scheduled_at"].as_str() {
            Some(text) => text.parse().expect("an instant"),
            None => at.trunc_subsecs(0),
        };
        if due < begin {
            continue;
        }
        if due != of_second {
            (heard, of_second) = (0, due);
        }
        heard += message["count"].as_i64().unwrap_or(1);
        if heard == each {
            lateness.ours.push(millis(due, at));
        }
    }
    sending.join().expect("the sender ends");
    lateness
}

/// Actions that are due every second.
pub fn every_second(session: &mut Session, count: i64) {
    session.execute(
        "SELECT count(recur.create('second ' || n, '* * * * * *', 'bench', 'noop'))
           FROM generate_series(1, $1::bigint) AS n",
        &[&count],
    );
}

/// So that they disturb nobody who measures on the same machine.
pub fn no_more_every_second(session: &mut Session) {
    session
        .batch("SELECT recur.delete(id) FROM recur.recurring_actions WHERE name LIKE 'second %'");
}

struct Pgbench(Child);

impl Pgbench {
    fn start(server: &Server, seconds: usize) -> Pgbench {
        let bin = std::env::var("PG_RECUR_BIN").expect("PG_RECUR_BIN");
        let run = |arguments: &[&str]| {
            let mut command = Command::new(format!("{bin}/pgbench"));
            command
                .arg("-h")
                .arg(server.sockets())
                .args(["-U", "postgres"])
                .args(arguments)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command
        };
        server.session("postgres").batch("CREATE DATABASE pgbench");
        let made = run(&["-i", "-s", "10", "-q", "pgbench"]).status();
        assert!(made.is_ok_and(|status| status.success()), "pgbench -i");
        let seconds = seconds.to_string();
        Pgbench(
            run(&["-c", "4", "-T", &seconds, "pgbench"])
                .spawn()
                .expect("pgbench"),
        )
    }
}

impl Drop for Pgbench {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn run(size: Size, report: &mut Report) {
    report.text(
        "Milliseconds from the due instant to the arrival of the NOTIFY in a listening client. The floor is a client
that sleeps until an instant and then sends the NOTIFY itself, half a second after ours in the same seconds; all share
the listener. Such a NOTIFY waits for no disk. A dispatch does, for its row: so there is a second floor, which inserts a
row as well. With 1,000 due in the same second the last one counts, and the floor sends 1,000 in one transaction.
Targets: p99 within 3 ms of the floor on an idle server, the last of 1,000 within 100 ms of the floor's.",
    );
    let seconds = if size.full { 120 } else { 20 };
    let server = Server::start("");
    let mut session = server.bench();
    let mut rows = Vec::new();
    progress("idle server, one per second");
    every_second(&mut session, 1);
    rows.extend(measure(&server, seconds, 1).row("idle, one per second"));
    progress("the same under pgbench");
    {
        let _load = Pgbench::start(&server, seconds + 20);
        rows.extend(measure(&server, seconds, 1).row("pgbench -c 4, one per second"));
    }
    progress("1,000 in the same second");
    every_second_more(&mut session, 1_000);
    rows.extend(measure(&server, seconds.min(30), 1_000).row("1,000 in every second, the last"));
    report.table(&["lateness, ms", "p50", "p99", "max"], &rows);
    cron(size, report);
}

fn every_second_more(session: &mut Session, count: i64) {
    session.execute(
        "SELECT count(recur.create('another ' || n, '* * * * * *', 'bench', 'noop'))
           FROM generate_series(2, $1::bigint) AS n",
        &[&count],
    );
}

/// Lateness of each of `jobs` that are due at the next full minute, as a listener hears them.
fn heard_of_minute(listener: &mut Session, jobs: usize) -> Samples {
    let due = next_minute();
    let mut samples = Samples::default();
    while samples.0.len() < jobs {
        let (at, _, payload) = next_notification(listener);
        let count = serde_json::from_str::<serde_json::Value>(&payload)
            .ok()
            .and_then(|message| message["count"].as_u64())
            .unwrap_or(1);
        if at >= due {
            for _ in 0..count {
                samples.push(millis(due, at));
            }
        }
    }
    samples
}

pub fn next_minute() -> DateTime<Utc> {
    let now = Utc::now();
    let minute = now.with_second(0).unwrap_or(now).trunc_subsecs(0);
    minute + TimeDelta::minutes(1)
}

/// The jobs are set up early in a minute: setting them up takes a few seconds.
pub fn wait_for_room() {
    if Utc::now().second() > 45 {
        sleep_until(next_minute());
    }
}

fn cron(size: Size, report: &mut Report) {
    let jobs = 1_000;
    let rounds = if size.full { 3 } else { 1 };
    let Some(cron) = cron_server() else {
        report.text("pg_cron is not installed: not compared.");
        return;
    };
    let ours = Server::start("");
    let (mut theirs_late, mut ours_late) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        progress(&format!(
            "pg_cron, {jobs} jobs at a full minute, round {round}"
        ));
        wait_for_room();
        let mut session = cron.bench();
        let mut listener = cron.bench();
        listener.batch("LISTEN recur");
        session.execute(
            "SELECT count(cron.schedule('job ' || n, '* * * * *', format('SELECT pg_notify(''recur'', %L)', n)))
               FROM generate_series(1, $1::bigint) AS n",
            &[&(jobs as i64)],
        );
        theirs_late.push(heard_of_minute(&mut listener, jobs));
        session.batch("SELECT cron.unschedule(jobid) FROM cron.job");
        progress("pg_recur, the same");
        wait_for_room();
        let mut session = ours.bench();
        let mut listener = ours.bench();
        listener.batch("LISTEN recur");
        session.execute(
            "SELECT count(recur.create('job ' || n, '* * * * *', 'bench', 'noop'))
               FROM generate_series(1, $1::bigint) AS n",
            &[&(jobs as i64)],
        );
        ours_late.push(heard_of_minute(&mut listener, jobs));
        session.batch("SELECT recur.delete(id) FROM recur.recurring_actions");
    }
    let of =
        |side: &[Samples], part: f64| Samples(side.iter().map(|one| one.quantile(part)).collect());
    let row = |name: &str, part: f64| {
        let (theirs, ours) = (of(&theirs_late, part), of(&ours_late, part));
        vec![
            name.to_owned(),
            short(ours.median()),
            short(theirs.median()),
            theirs.over(&ours).ratio(),
        ]
    };
    report.text(
        "pg_cron 1.4 (Debian's, default settings) with 1,000 jobs due at the same full minute, each of which sends a
NOTIFY; pg_recur with 1,000 actions due at the next one. Target: pg_cron at least 20 times later.",
    );
    report.table(
        &["of 1,000, ms", "pg_recur", "pg_cron", "pg_cron / pg_recur"],
        &[row("first", 0.0), row("half", 0.5), row("last", 1.0)],
    );
}

/// None where the extension is not there to be preloaded.
pub fn cron_server() -> Option<Server> {
    let bin = std::env::var("PG_RECUR_BIN").expect("PG_RECUR_BIN");
    let library = Command::new(format!("{bin}/pg_config"))
        .arg("--pkglibdir")
        .output()
        .ok()?;
    let library = format!(
        "{}/pg_cron.so",
        String::from_utf8_lossy(&library.stdout).trim()
    );
    if !std::path::Path::new(&library).exists() {
        return None;
    }
    let mut server = Server::plain("");
    server.session("postgres").batch("CREATE DATABASE bench");
    // It connects to the server as any client does.
    server.cluster.configure(&format!(
        "shared_preload_libraries = 'pg_cron'\ncron.database_name = 'bench'\ncron.host = '{}'",
        server.sockets().display()
    ));
    server.cluster.restart(pg_recur_tests::Shutdown::Fast);
    server.bench().batch("CREATE EXTENSION pg_cron");
    Some(server)
}
