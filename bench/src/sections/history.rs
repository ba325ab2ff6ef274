//! The same with millions of finished dispatches behind it.

use super::consume::{self, Load, Side};
use super::lateness;
use super::throughput::drain_by_workers;
use crate::Size;
use crate::actions;
use crate::measure::{Samples, grouped, short};
use crate::report::{Report, progress};
use crate::server::{Server, each};
use pg_recur_tests::Session;
use std::time::Instant;

const ACTIONS: i64 = 10_000;

/// Finished dispatches of the actions that are there, all in the partition that is being written.
fn past(session: &mut Session, count: i64) {
    let mut from = 1;
    while from <= count {
        let until = (from + 999_999).min(count);
        progress(&format!("history {from}–{until}"));
        // In the order of their ids, as they come in reality.
        session.execute(
            "INSERT INTO recur_internal.finished_dispatches
                    (id, action_id, scheduled_at, trigger, provider, action_type, payload, metadata, status, attempt,
                     releases, max_attempts, lease, priority, namespace, tenant, owner_id, available_at, started_at,
                     finished_at, cancel_requested, created_at, partition)
             SELECT recur_internal.dispatch_id(a.id, u.at + n * interval '1 ms'), a.id, u.at,
                    'schedule', 'bench', 'noop',
                    jsonb_build_object('n', n, 'text', repeat('x', 270)), '{}', 'completed', 1,
                    0, 3, interval '5 minutes', 0, 'default', 'default', 1, u.at, u.at,
                    u.at, false, u.at, recur_internal.history_partition()
               FROM generate_series($1::bigint, $2) AS n
               JOIN (SELECT id, row_number() OVER () AS number FROM recur_internal.definitions) AS a
                 ON a.number = 1 + n % 10000,
                    (SELECT now() - interval '1 day' AS at) AS u",
            &[&from, &until],
        );
        from = until + 1;
    }
    each(
        session,
        "VACUUM ANALYZE recur_internal.finished_dispatches; CHECKPOINT",
    );
}

pub fn run(size: Size, report: &mut Report) {
    let count = size
        .finished
        .unwrap_or(if size.full { 50_000_000 } else { 10_000_000 });
    report.text(&format!(
        "Two clusters take turns: one without history, one with {} finished dispatches, all in the partition that
reports go to. Each figure is with history over without: dispatches per second of a drain of 10,000, claims with reports
per second (4 connections, batches of 10), and the median lateness of one action a second. Target: 0.9 or better.",
        grouped(count as f64)
    ));
    let rounds = if size.full { 7 } else { 3 };
    let servers = [Server::start(""), Server::start("")];
    let mut sessions = servers.each_ref().map(Server::bench);
    for (server, session) in servers.iter().zip(&mut sessions) {
        server.enable(false, 1);
        actions::fill(session, ACTIONS);
        each(session, consume::TABLES);
    }
    past(&mut sessions[1], count);
    let [mut dispatch, mut claims] = [(); 2].map(|()| [Samples::default(), Samples::default()]);
    for server in &servers {
        server.enable(true, 1);
    }
    for round in 0..=rounds {
        for side in 0..2 {
            let (server, session) = (&servers[side], &mut sessions[side]);
            let drain = drain_by_workers(server, session, ACTIONS);
            let load = Load::new(size, 4, 10);
            let consumed = Side::OursKept.measure(server, session, load);
            progress(&format!(
                "round {round}, {}: {} dispatched per s, {} consumed per s",
                ["without", "with history"][side],
                grouped(drain.per_second),
                grouped(consumed.per_second)
            ));
            if round > 0 {
                dispatch[side].push(drain.per_second);
                claims[side].push(consumed.per_second);
            }
        }
    }
    let mut late = [Samples::default(), Samples::default()];
    let (turns, seconds) = if size.full { (4, 20) } else { (2, 8) };
    for _ in 0..turns {
        for side in 0..2 {
            lateness::every_second(&mut sessions[side], 1);
            let measured = lateness::measure(&servers[side], seconds, 1).ours;
            lateness::no_more_every_second(&mut sessions[side]);
            late[side].0.extend(measured.0);
        }
    }
    let [without, with] = &dispatch;
    let [claims_without, claims_with] = &claims;
    report.table(
        &["", "without", "with history", "ratio"],
        &[
            vec![
                "dispatches/s".to_owned(),
                without.rate(),
                with.rate(),
                with.over(without).ratio(),
            ],
            vec![
                "claim and complete/s".to_owned(),
                claims_without.rate(),
                claims_with.rate(),
                claims_with.over(claims_without).ratio(),
            ],
            vec![
                "lateness p50, ms".to_owned(),
                short(late[0].median()),
                short(late[1].median()),
                short(late[0].median() / late[1].median()),
            ],
        ],
    );
    retention(report, &mut sessions[1], count);
}

/// Turns the ring until the full partition has been emptied.
fn retention(report: &mut Report, session: &mut Session, count: i64) {
    let bytes: i64 = session.value(
        "SELECT sum(pg_total_relation_size(relid))::bigint
           FROM pg_partition_tree('recur_internal.finished_dispatches') WHERE isleaf",
        &[],
    );
    let mut longest = 0f64;
    for turn in 1..=9i64 {
        let started = Instant::now();
        session.execute(
            "SELECT recur_internal.open_next_partition(
                        '7 days', now() + $1::bigint * interval '1 day' + interval '1 hour')",
            &[&turn],
        );
        longest = longest.max(started.elapsed().as_secs_f64() * 1000.0);
    }
    let left: i64 = session.value(
        "SELECT count(*) FROM recur_internal.finished_dispatches
          WHERE finished_at < now() - interval '12 hours'",
        &[],
    );
    report.text(&format!(
        "Retention empties a partition when its turn comes: with {} dispatches in it ({} MB with its indexes) that took
{} ms, and left {left} of them.",
        grouped(count as f64),
        grouped(bytes as f64 / 1e6),
        short(longest)
    ));
}
