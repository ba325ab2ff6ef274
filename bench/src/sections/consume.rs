//! Claiming and completing no-op dispatches, beside what one would write by hand and beside two job queues.

use super::enqueue;
use crate::Size;
use crate::measure::{Samples, cpu_seconds, grouped};
use crate::plot::Plot;
use crate::report::{Report, progress};
use crate::server::{Server, each};
use pg_recur_tests::Session;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use uuid::Uuid;

pub const TABLES: &str = "
DROP TABLE IF EXISTS bench.jobs, bench.messages, bench.archive;
CREATE TABLE bench.jobs (LIKE recur_internal.live_dispatches INCLUDING ALL);
ALTER TABLE bench.jobs
    ADD COLUMN finished_at timestamptz, ADD COLUMN result jsonb, ALTER namespace SET DEFAULT 'default',
    ALTER tenant SET DEFAULT 'default', ALTER owner_id SET DEFAULT 1, ALTER metadata SET DEFAULT '{}',
    ALTER priority SET DEFAULT 0, ALTER max_attempts SET DEFAULT 3, ALTER lease SET DEFAULT '5 minutes',
    ALTER available_at SET DEFAULT now();
-- As many indexes as ours, but in the order of its own claims, which know no owners.
DROP INDEX bench.jobs_owner_id_priority_available_at_created_at_idx;
CREATE INDEX ON bench.jobs (priority DESC, available_at, created_at) WHERE status = 'pending';
CREATE TABLE bench.messages (
    msg_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, read_ct int NOT NULL DEFAULT 0,
    enqueued_at timestamptz NOT NULL DEFAULT now(), vt timestamptz NOT NULL DEFAULT now(), message jsonb
);
CREATE INDEX ON bench.messages (vt);
CREATE TABLE bench.archive (
    msg_id bigint PRIMARY KEY, read_ct int NOT NULL, enqueued_at timestamptz NOT NULL,
    archived_at timestamptz NOT NULL DEFAULT now(), vt timestamptz NOT NULL, message jsonb
);
CREATE INDEX ON bench.archive (archived_at);
";

/// Who is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Ours,
    /// The same; the history that is there stays there.
    OursKept,
    /// The same; what is dead stays in the way, too.
    OursOnTop,
    /// The same, with the filter that the shipped consumers send.
    OursFiltered,
    /// FOR UPDATE SKIP LOCKED on the same columns and indexes, the status changed in place.
    ByHand,
    ByHandOnTop,
    /// Read with a visibility timeout, archive: as pgmq does it, in SQL.
    ReadArchive,
}

impl Side {
    fn empty(self) -> &'static str {
        match self {
            Side::Ours => {
                "TRUNCATE recur_internal.live_dispatches; TRUNCATE recur_internal.finished_dispatches_0;
                 VACUUM ANALYZE recur_internal.live_dispatches"
            }
            Side::OursKept => {
                "TRUNCATE recur_internal.live_dispatches; VACUUM ANALYZE recur_internal.live_dispatches"
            }
            Side::ByHand => "TRUNCATE bench.jobs; VACUUM ANALYZE bench.jobs",
            Side::OursOnTop | Side::OursFiltered | Side::ByHandOnTop => "",
            Side::ReadArchive => {
                "TRUNCATE bench.messages, bench.archive; VACUUM ANALYZE bench.messages"
            }
        }
    }

    /// Every side is planned for what it has to do.
    fn analyze(self) -> &'static str {
        match self {
            Side::Ours | Side::OursKept | Side::OursOnTop | Side::OursFiltered => {
                "ANALYZE recur_internal.live_dispatches"
            }
            Side::ByHand | Side::ByHandOnTop => "ANALYZE bench.jobs",
            Side::ReadArchive => "ANALYZE bench.messages",
        }
    }

    /// All become available at the same time, as a herd does.
    fn fill(self) -> &'static str {
        match self {
            Side::Ours | Side::OursKept | Side::OursOnTop | Side::OursFiltered => {
                "SELECT count(recur.enqueue('bench', 'noop', jsonb_build_object('n', n, 'text', repeat('x', 270)),
                                            run_at => now()))
                   FROM generate_series(1, $1::bigint) AS n"
            }
            Side::ByHand | Side::ByHandOnTop => {
                "INSERT INTO bench.jobs (id, scheduled_at, trigger, provider, action_type, payload)
                 SELECT recur_internal.dispatch_id(gen_random_uuid(), now()), now(), 'enqueue', 'bench', 'noop',
                        jsonb_build_object('n', n, 'text', repeat('x', 270))
                   FROM generate_series(1, $1::bigint) AS n"
            }
            Side::ReadArchive => {
                "INSERT INTO bench.messages (message)
                 SELECT jsonb_build_object('n', n, 'text', repeat('x', 270)) FROM generate_series(1, $1::bigint) AS n"
            }
        }
    }

    fn claim(self) -> &'static str {
        match self {
            Side::Ours | Side::OursKept | Side::OursOnTop => "SELECT id, attempt, payload FROM recur.claim($1)",
            Side::OursFiltered => {
                "SELECT id, attempt, payload FROM recur.claim($1, providers => '{bench}', action_types => '{noop}')"
            }
            Side::ByHand | Side::ByHandOnTop => {
                "UPDATE bench.jobs AS j
                    SET status = 'running', attempt = j.attempt + 1, claimed_by = 'bench',
                        started_at = clock_timestamp(),
                        lease_expires_at = clock_timestamp() + interval '5 minutes'
                  WHERE j.id = ANY (ARRAY(SELECT p.id FROM bench.jobs AS p
                                           WHERE p.status = 'pending' AND p.available_at <= now()
                                           ORDER BY p.priority DESC, p.available_at LIMIT $1 FOR UPDATE SKIP LOCKED))
                 RETURNING j.id, j.attempt, j.payload"
            }
            Side::ReadArchive => {
                "WITH next AS (
                     SELECT m.msg_id FROM bench.messages AS m
                      WHERE m.vt <= now() ORDER BY m.msg_id LIMIT $1 FOR UPDATE SKIP LOCKED
                 )
                 UPDATE bench.messages AS m SET vt = clock_timestamp() + interval '5 minutes', read_ct = m.read_ct + 1
                   FROM next WHERE m.msg_id = next.msg_id
                 RETURNING m.msg_id, m.read_ct, m.message"
            }
        }
    }

    fn complete(self, batch: i32) -> &'static str {
        match self {
            Side::Ours | Side::OursKept | Side::OursOnTop | Side::OursFiltered => match batch {
                1 => "SELECT id FROM recur.complete($1, $2)",
                _ => "SELECT id, accepted FROM recur.complete_many($1, $2)",
            },
            // "Not pending", because with "running" the planner reads all that run, each time: half as fast in batches
            // of 100.
            Side::ByHand | Side::ByHandOnTop => {
                "UPDATE bench.jobs AS j
                    SET status = 'completed', finished_at = clock_timestamp(), lease_expires_at = NULL
                   FROM unnest($1::uuid[], $2::int[]) AS u (id, attempt)
                  WHERE j.id = u.id AND j.attempt = u.attempt AND j.status <> 'pending'
                    AND j.lease_expires_at > clock_timestamp()
                 RETURNING j.id"
            }
            Side::ReadArchive => {
                "WITH gone AS (
                     DELETE FROM bench.messages AS m WHERE m.msg_id = ANY ($1::bigint[])
                     RETURNING m.msg_id, m.vt, m.read_ct, m.enqueued_at, m.message
                 )
                 INSERT INTO bench.archive (msg_id, vt, read_ct, enqueued_at, message)
                 SELECT msg_id, vt, read_ct, enqueued_at, message FROM gone RETURNING msg_id"
            }
        }
    }

    /// Claims and completes until the time is over or nothing is left; returns how many.
    fn consume(self, consumer: &mut Consumer, batch: i32, turns: usize, until: Instant) -> usize {
        let Consumer {
            session,
            claim,
            complete,
        } = consumer;
        let mut done = 0;
        for _ in 0..turns {
            let limit: &(dyn postgres::types::ToSql + Sync) = match self {
                Side::Ours | Side::OursKept | Side::OursOnTop | Side::OursFiltered => &batch,
                _ => &i64::from(batch),
            };
            let rows = session.0.query(claim, &[limit]).expect("a claim");
            if rows.is_empty() {
                return done;
            }
            let is_over = Instant::now() > until;
            done += match self {
                Side::ReadArchive => {
                    let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
                    session.0.query(complete, &[&ids])
                }
                Side::Ours | Side::OursKept | Side::OursOnTop | Side::OursFiltered
                    if batch == 1 =>
                {
                    let (id, attempt): (Uuid, i32) = (rows[0].get(0), rows[0].get(1));
                    session.0.query(complete, &[&id, &attempt])
                }
                _ => {
                    let ids: Vec<Uuid> = rows.iter().map(|row| row.get(0)).collect();
                    let attempts: Vec<i32> = rows.iter().map(|row| row.get(1)).collect();
                    session.0.query(complete, &[&ids, &attempts])
                }
            }
            .expect("a report")
            .len();
            if is_over {
                return done;
            }
        }
        done
    }

    pub fn measure(self, server: &Server, session: &mut Session, load: Load) -> Consumed {
        let Load {
            count,
            connections,
            batch,
            time,
        } = load;
        each(session, self.empty());
        session.execute(self.fill(), &[&count]);
        each(session, self.analyze());
        session.batch("CHECKPOINT");
        let mut clients: Vec<_> = (0..connections)
            .map(|_| Consumer::new(server, self, batch))
            .collect();
        let far = Instant::now() + Duration::from_secs(3600);
        for client in &mut clients {
            // A consumer lives for days: what its first calls cost is not of interest.
            self.consume(client, batch, 7, far);
        }
        let pids: Vec<i32> = clients
            .iter_mut()
            .map(|client| client.session.value("SELECT pg_backend_pid()", &[]))
            .collect();
        let cpu = || pids.iter().map(|pid| cpu_seconds(*pid)).sum::<f64>();
        let done = AtomicUsize::new(0);
        let (started, cpu_before) = (Instant::now(), cpu());
        let until = started + time;
        std::thread::scope(|scope| {
            for client in &mut clients {
                scope.spawn(|| {
                    done.fetch_add(
                        self.consume(client, batch, usize::MAX, until),
                        Ordering::Relaxed,
                    )
                });
            }
        });
        let seconds = started.elapsed().as_secs_f64();
        let done = done.into_inner() as f64;
        Consumed {
            per_second: done / seconds,
            cpu: (cpu() - cpu_before) * 1e6 / done,
        }
    }
}

/// A connection with its statements prepared.
struct Consumer {
    session: Session,
    claim: postgres::Statement,
    complete: postgres::Statement,
}

impl Consumer {
    fn new(server: &Server, side: Side, batch: i32) -> Consumer {
        let mut session = server.bench();
        let claim = session.0.prepare(side.claim()).expect("a plan");
        let complete = session.0.prepare(side.complete(batch)).expect("a plan");
        Consumer {
            session,
            claim,
            complete,
        }
    }
}

/// What is asked of a side: this many connections consume from a backlog of `count`, for at most this time.
#[derive(Clone, Copy)]
pub struct Load {
    pub count: i64,
    pub connections: usize,
    pub batch: i32,
    pub time: Duration,
}

impl Load {
    pub fn new(size: Size, connections: usize, batch: i32) -> Load {
        let count = match batch {
            1 => 5_000,
            10 => 20_000,
            _ => 50_000,
        };
        Load {
            count: if size.full { 3 * count } else { count },
            connections,
            batch,
            time: Duration::from_millis(if size.full { 2_500 } else { 800 }),
        }
    }
}

pub struct Consumed {
    pub per_second: f64,
    /// Microseconds that the sessions' servers spent on each.
    pub cpu: f64,
}

/// A peer from npm: runs its script, which prints jobs per second.
fn peer(server: &Server, script: &str, arguments: &[String]) -> Option<f64> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/peers");
    let output = Command::new("node")
        .arg(format!("{folder}/{script}"))
        .arg(server.sockets())
        .args(arguments)
        .current_dir(folder)
        .output()
        .ok()?;
    if !output.status.success() {
        eprintln!("{script}: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    String::from_utf8_lossy(&output.stdout)
        .trim()
        .lines()
        .last()?
        .parse()
        .ok()
}

pub fn run(size: Size, report: &mut Report) {
    report.text(
        "Claim and complete of no-op dispatches with payloads of 300 bytes, until a backlog is gone; a claim and a
report are one statement and one transaction each. Beside it, in turns: FOR UPDATE SKIP LOCKED written by hand on the
same columns and indexes, with the status changed in place (its table keeps what is done; ours moves it to the history);
and read and archive as pgmq does them, on its few columns. Target: 0.9 of the hand-written at each batch size.",
    );
    let rounds = if size.full { 5 } else { 2 };
    let connections: &[usize] = if size.full { &[1, 2, 4, 8] } else { &[1, 8] };
    let server = Server::start("");
    let mut session = server.bench();
    each(&mut session, TABLES);
    let mut rows = Vec::new();
    let mut lines = Vec::new();
    for batch in [1, 10, 100] {
        let mut line = Vec::new();
        for connections in connections {
            let mut sides = [Samples::default(), Samples::default(), Samples::default()];
            let mut cpu = sides.clone();
            for round in 0..=rounds {
                for (number, side) in [Side::Ours, Side::ByHand, Side::ReadArchive]
                    .iter()
                    .enumerate()
                {
                    let load = Load::new(size, *connections, batch);
                    let consumed = side.measure(&server, &mut session, load);
                    if round > 0 {
                        sides[number].push(consumed.per_second);
                        cpu[number].push(consumed.cpu);
                    }
                }
            }
            let [ours, by_hand, archive] = &sides;
            progress(&format!(
                "batch {batch}, {connections} connections: {} per s, {} of hand-written, by CPU time {} ({:.1} µs)",
                grouped(ours.median()),
                ours.over(by_hand).ratio(),
                cpu[1].over(&cpu[0]).ratio(),
                cpu[0].median()
            ));
            line.push((*connections as f64, ours.median()));
            rows.push(vec![
                format!("{batch}, {connections}"),
                ours.rate(),
                by_hand.rate(),
                ours.over(by_hand).ratio(),
                cpu[1].over(&cpu[0]).ratio(),
                archive.rate(),
                ours.over(archive).ratio(),
            ]);
        }
        lines.push((format!("batches of {batch}"), line));
    }
    report.table(
        &[
            "batch, connections",
            "ours/s",
            "by hand/s",
            "ratio",
            "by CPU time",
            "read and archive/s",
            "ratio",
        ],
        &rows,
    );
    report.plot(
        "consume",
        &Plot {
            title: "Claimed and completed per second".to_owned(),
            x: "connections",
            y: "dispatches per second",
            log_y: true,
            lines,
        },
    );
    peers(size, report, &server, &mut session);
    enqueue::table(size, report, &server, &mut session);
}

/// Name, script, its arguments, and the batch of ours that it is compared with.
const PEERS: [(&str, &str, &[&str], i32); 5] = [
    (
        "graphile-worker, 8 at a time",
        "graphile-worker.mjs",
        &["8", "none"],
        1,
    ),
    (
        "graphile-worker, local queue of 100",
        "graphile-worker.mjs",
        &["8", "100"],
        100,
    ),
    ("pg-boss, batch 1", "pg-boss.mjs", &["8", "1"], 1),
    ("pg-boss, batch 10", "pg-boss.mjs", &["8", "10"], 10),
    ("pg-boss, batch 100", "pg-boss.mjs", &["8", "100"], 100),
];

fn peers(size: Size, report: &mut Report, server: &Server, session: &mut Session) {
    report.text(
        "Job queues from npm, each with its own client on 8 connections, in turns with ours:",
    );
    let rounds = if size.full { 5 } else { 2 };
    let mut rows = Vec::new();
    for (name, script, arguments, batch) in PEERS {
        let load = Load::new(size, 8, batch);
        let (mut ours, mut theirs) = (Samples::default(), Samples::default());
        for _ in 0..rounds {
            let mut arguments: Vec<String> =
                arguments.iter().map(|word| (*word).to_owned()).collect();
            arguments.push((load.count / 2).to_string());
            let Some(rate) = peer(server, script, &arguments) else {
                break;
            };
            theirs.push(rate);
            ours.push(Side::Ours.measure(server, session, load).per_second);
        }
        progress(&format!("{name}: {} per s", grouped(theirs.median())));
        rows.push(vec![
            name.to_owned(),
            theirs.rate(),
            format!("{} (batch {batch})", ours.rate()),
            ours.over(&theirs).ratio(),
        ]);
    }
    report.table(&["queue", "jobs/s", "ours/s", "ours / theirs"], &rows);
}
