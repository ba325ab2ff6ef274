//! Ten thousand actions and more, due at one instant.

use super::lateness::{millis, next_notification, sleep_until};
use crate::Size;
use crate::actions;
use crate::measure::{Samples, grouped, short};
use crate::plot::Plot;
use crate::report::{Report, progress};
use crate::server::{self, Server};
use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use pg_recur_tests::Session;

struct Herd {
    /// How many were there, not yet available, just before the instant.
    staged: i64,
    /// Milliseconds after the instant: a consumer has claimed one; all can be claimed.
    first: f64,
    last: f64,
    /// The listener has heard of the first; of all.
    heard_first: f64,
    heard: f64,
}

fn herd(server: &Server, session: &mut Session, count: i64, ahead: i64) -> Herd {
    session.batch("TRUNCATE recur_internal.live_dispatches");
    server::each(session, "VACUUM ANALYZE recur_internal.timers");
    let mut listener = server.bench();
    listener.batch("LISTEN recur");
    let mut consumer = server.bench();
    let claim = consumer
        .0
        .prepare("SELECT id FROM recur.claim(1)")
        .expect("a plan");
    let _ = consumer.0.query(&claim, &[]);
    let can_be_claimed = session
        .0
        .prepare(
            "SELECT count(*), statement_timestamp() FROM recur_internal.live_dispatches AS l
              WHERE l.status = 'pending' AND l.available_at <= statement_timestamp()",
        )
        .expect("a plan");
    let before = server::dispatched(session);
    session.batch("BEGIN");
    let due = Utc::now().trunc_subsecs(0) + TimeDelta::seconds(ahead);
    session.execute(
        "UPDATE recur_internal.timers SET due_at = $1, next_run_at = $1, last_run_at = NULL",
        &[&due],
    );
    session.batch("COMMIT");
    assert!(
        Utc::now() < due - TimeDelta::seconds(1),
        "the herd was set up in time"
    );
    sleep_until(due - TimeDelta::milliseconds(100));
    let staged = server::dispatched(session) - before;
    let listening = std::thread::spawn(move || {
        let (mut first, mut told) = (None, 0);
        loop {
            let (at, _, payload) = next_notification(&mut listener);
            let message: serde_json::Value = serde_json::from_str(&payload).expect("JSON");
            told += message["count"].as_i64().unwrap_or(1);
            let first = *first.get_or_insert(millis(due, at));
            // The few that have been claimed already may be missing.
            if told >= count - 10 {
                return (first, millis(due, at));
            }
        }
    });
    sleep_until(due);
    let first = loop {
        if consumer
            .0
            .query(&claim, &[])
            .is_ok_and(|rows| !rows.is_empty())
        {
            break millis(due, Utc::now());
        }
    };
    // All are there, and those that have not been claimed yet could be when this statement began.
    while server::dispatched(session) - before < count {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let row = session.0.query_one(&can_be_claimed, &[]).expect("a count");
    let (claimable, at): (i64, DateTime<Utc>) = (row.get(0), row.get(1));
    assert_eq!(claimable, count - 1, "all but the one that was claimed");
    let last = millis(due, at);
    let (heard_first, heard) = listening.join().expect("the listener");
    Herd {
        staged,
        first,
        last,
        heard_first,
        heard,
    }
}

pub fn run(size: Size, report: &mut Report) {
    report.text(
        "This many actions are due at one instant. Milliseconds after it: until a consumer has claimed one, until all
can be claimed, until a listener has heard of the first, and of all. With `recur.lookahead` (5 s, the default) the
dispatches are staged ahead; with 0 they are not. Target with staging: all can be claimed within 50 ms.",
    );
    // How many, and how many seconds it takes to set them all to an instant.
    let sizes: &[(i64, i64)] = &[(1_000, 8), (10_000, 9), (100_000, 16)];
    let given = size
        .actions
        .map(|counts| counts.iter().map(|count| (*count, 30)).collect::<Vec<_>>());
    let sizes = given.as_deref().unwrap_or(sizes);
    let rounds = if size.full { 5 } else { 2 };
    let server = Server::start("");
    let mut session = server.bench();
    let mut rows = Vec::new();
    let mut lines = vec![
        ("staged".to_owned(), Vec::new()),
        ("not staged".to_owned(), Vec::new()),
    ];
    for (count, ahead) in sizes {
        server.enable(false, 1);
        actions::fill(&mut session, *count);
        server.enable(true, 1);
        for (number, lookahead) in ["5", "0"].iter().enumerate() {
            server.set("recur.lookahead", lookahead);
            let [mut first, mut last, mut heard_first, mut heard, mut staged] =
                [(); 5].map(|()| Samples::default());
            for round in 0..rounds {
                let one = herd(&server, &mut session, *count, *ahead);
                progress(&format!(
                    "{} at once, lookahead {lookahead}, round {round}: {} staged, last after {:.1} ms",
                    grouped(*count as f64),
                    grouped(one.staged as f64),
                    one.last
                ));
                first.push(one.first);
                last.push(one.last);
                heard_first.push(one.heard_first);
                heard.push(one.heard);
                staged.push(one.staged as f64);
            }
            lines[number]
                .1
                .push((*count as f64, last.median().max(heard.median()).max(0.1)));
            rows.push(vec![
                format!("{}, lookahead {lookahead} s", grouped(*count as f64)),
                grouped(staged.median()),
                short(first.median()),
                short(last.median()),
                short(heard_first.median()),
                short(heard.median()),
                short(heard.max()),
            ]);
        }
    }
    report.table(
        &[
            "actions",
            "staged",
            "first claimed, ms",
            "all can be claimed, ms",
            "first heard of, ms",
            "all heard of, ms",
            "at most",
        ],
        &rows,
    );
    report.plot(
        "herds",
        &Plot {
            title: "Until all can be claimed and have been heard of".to_owned(),
            x: "actions due at one instant",
            y: "milliseconds after the instant",
            log_y: true,
            lines,
        },
    );
}
