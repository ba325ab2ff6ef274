//! Enqueueing: one dispatch and one notification a call, each in a transaction of its own.

use crate::Size;
use crate::measure::{Samples, cpu_seconds};
use crate::report::{Report, progress};
use crate::server::{Server, each};
use pg_recur_tests::Session;
use serde_json::{Value, json};
use std::time::Instant;

const OURS: &str = "SELECT recur.enqueue('bench', 'noop', $1)";
const BY_HAND: &str = "
WITH new AS (
    INSERT INTO bench.jobs (id, scheduled_at, trigger, provider, action_type, payload)
    VALUES (recur_internal.dispatch_id(gen_random_uuid(), clock_timestamp()), clock_timestamp(), 'enqueue',
            'bench', 'noop', $1)
    RETURNING id
)
SELECT pg_notify('bench', json_build_object('id', id, 'provider', 'bench')::text)::text FROM new";
const GRAPHILE: &str = "SELECT id FROM graphile_worker.add_job('noop', $1::jsonb::json)";

/// (Calls a second, microseconds of the servers' CPU for each.)
fn measure(server: &Server, statement: &str, connections: usize, calls: usize) -> (f64, f64) {
    let payload: Value = json!({ "n": 1, "text": "x".repeat(270) });
    let mut clients: Vec<_> = (0..connections)
        .map(|_| {
            let mut session = server.bench();
            let statement = session.0.prepare(statement).expect("a plan");
            for _ in 0..7 {
                session.0.query(&statement, &[&payload]).expect("a row");
            }
            (session, statement)
        })
        .collect();
    let pids: Vec<i32> = clients
        .iter_mut()
        .map(|(session, _)| session.value("SELECT pg_backend_pid()", &[]))
        .collect();
    let cpu = || pids.iter().map(|pid| cpu_seconds(*pid)).sum::<f64>();
    let (started, cpu_before) = (Instant::now(), cpu());
    std::thread::scope(|scope| {
        for (session, statement) in &mut clients {
            let payload = &payload;
            scope.spawn(move || {
                for _ in 0..calls / connections {
                    session.0.query(statement, &[payload]).expect("a row");
                }
            });
        }
    });
    let seconds = started.elapsed().as_secs_f64();
    let calls = calls as f64;
    (calls / seconds, (cpu() - cpu_before) * 1e6 / calls)
}

pub fn table(size: Size, report: &mut Report, server: &Server, session: &mut Session) {
    report.text(
        "Enqueueing, one a transaction with its NOTIFY: `recur.enqueue`, which checks its arguments and finds the owner;
an INSERT into the hand-written queue with a `pg_notify`; and graphile-worker's `add_job`, which notifies as well.",
    );
    let has_graphile: bool = session.value(
        "SELECT to_regclass('graphile_worker._private_jobs') IS NOT NULL",
        &[],
    );
    let sides = [OURS, BY_HAND, GRAPHILE];
    let sides = &sides[..if has_graphile { 3 } else { 2 }];
    let rounds = if size.full { 5 } else { 2 };
    let calls = if size.full { 8_000 } else { 2_400 };
    let mut rows = Vec::new();
    for connections in [1, 8] {
        let mut rates = vec![Samples::default(); 3];
        let mut cpu = rates.clone();
        for round in 0..=rounds {
            for (number, statement) in sides.iter().enumerate() {
                let (rate, micros) = measure(server, statement, connections, calls);
                if round > 0 {
                    rates[number].push(rate);
                    cpu[number].push(micros);
                }
            }
            each(
                session,
                "TRUNCATE recur_internal.live_dispatches; TRUNCATE bench.jobs",
            );
        }
        progress(&format!(
            "enqueueing on {connections}: {} of hand-written, {:.0} µs of CPU ({:.0})",
            rates[0].over(&rates[1]).ratio(),
            cpu[0].median(),
            cpu[1].median()
        ));
        let of_graphile = |text: String| if has_graphile { text } else { "–".to_owned() };
        rows.push(vec![
            connections.to_string(),
            rates[0].rate(),
            rates[1].rate(),
            rates[0].over(&rates[1]).ratio(),
            of_graphile(rates[2].rate()),
            of_graphile(rates[0].over(&rates[2]).ratio()),
        ]);
    }
    report.table(
        &[
            "connections",
            "ours/s",
            "by hand/s",
            "ratio",
            "graphile-worker/s",
            "ratio",
        ],
        &rows,
    );
}
