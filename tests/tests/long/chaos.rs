//! Eight consumers in three languages, while everything goes wrong.

use nix::sys::signal::Signal;
use pg_recur_tests::consumers::{Example, LANGUAGES, Language};
use pg_recur_tests::pooler::{POOLER_PORT, Pooler};
use pg_recur_tests::queue::idle_action;
use pg_recur_tests::{Cluster, Session, Shutdown, eventually};

/// Sent at a time.
const WAVE: i64 = 200;

fn send(session: &mut Session, action: uuid::Uuid, number: i64, seconds: f64) -> i64 {
    session.execute(
        "INSERT INTO recur.live_dispatches (id, action_id, scheduled_at, trigger, provider, action_type, payload,
                                            max_attempts)
         SELECT gen_random_uuid(), $1, now(), 'schedule', 'mailer', 'email',
                jsonb_build_object('to', 'reader ' || n, 'seconds', $3::float8), 1000
           FROM generate_series(1, $2::bigint) AS n",
        &[&action, &number, &seconds],
    );
    session.batch("NOTIFY recur");
    number
}

fn finished(session: &mut Session) -> i64 {
    session.value("SELECT count(*) FROM recur.finished_dispatches", &[])
}

fn held_by(session: &mut Session, consumer: &str) -> i64 {
    session.value(
        "SELECT count(*) FROM recur.live_dispatches WHERE status = 'running' AND claimed_by = $1",
        &[&consumer],
    )
}

/// Keeps the stream from running dry; returns how many it sent.
fn refill(session: &mut Session, action: uuid::Uuid) -> i64 {
    let left = session.count("recur.live_dispatches WHERE status = 'pending'");
    if left > 0 {
        return 0;
    }
    send(session, action, WAVE / 4, 0.3)
}

fn start(cluster: &Cluster, language: Language, name: &str) -> Example {
    let settings = [
        ("CONSUMER", name),
        ("LEASE", "2"),
        ("POLL", "1"),
        ("CONCURRENCY", "4"),
    ];
    Example::start(language, cluster, "app", &settings)
}

#[test]
fn every_dispatch_is_finished_once_and_every_attempt_accounted_for() {
    let mut cluster = Cluster::preloaded("recur.check_interval = '200ms'");
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, "");
    let mut consumers: Vec<(Language, String, Example)> = (0..8)
        .map(|number| {
            let language = LANGUAGES[number % 3];
            let name = format!("{language:?} {number}");
            let example = start(&cluster, language, &name);
            (language, name, example)
        })
        .collect();
    let mut sent = send(&mut session, action, WAVE, 0.3);

    // Two are killed while they have something; others take their places.
    for number in [0, 1] {
        let (language, name, example) = &mut consumers[number];
        eventually("it has something", || {
            sent += refill(&mut session, action);
            held_by(&mut session, name) > 0
        });
        example.signal(Signal::SIGKILL);
        example.wait();
        let name = format!("{language:?} in place of {number}");
        *example = start(&cluster, *language, &name);
    }
    // Three are stalled, one of each language, until what they had was taken from them.
    sent += send(&mut session, action, WAVE, 0.3);
    let stalled = [2, 3, 4];
    for number in stalled {
        let (_, name, example) = &consumers[number];
        eventually("it is stalled with something in its hands", || {
            sent += refill(&mut session, action);
            if held_by(&mut session, name) == 0 {
                return false;
            }
            example.signal(Signal::SIGSTOP);
            eventually("nothing is left to it", || held_by(&mut session, name) == 0);
            example.signal(Signal::SIGCONT);
            // Unless its last report was under way.
            let taken: i64 = session.value(
                "SELECT count(*) FROM recur.events WHERE kind = 'dispatch.recovered' AND detail ->> 'claimed_by' = $1",
                &[name],
            );
            taken > 0
        });
        eventually("it is not believed", || {
            example.output().contains("is not running")
        });
    }
    sent += send(&mut session, action, WAVE, 0.3);
    cluster.restart(Shutdown::Fast);
    let mut session = cluster.session("app");
    sent += send(&mut session, action, WAVE, 0.3);
    eventually("half is done", || finished(&mut session) > sent / 2);
    cluster.restart(Shutdown::Immediate);
    let mut session = cluster.session("app");

    eventually("everything is finished", || finished(&mut session) == sent);
    let row = &session.rows(
        "SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE status = 'completed'),
                sum(attempt), sum(1 + releases + coalesce(jsonb_array_length(errors), 0)),
                sum((SELECT count(*) FROM jsonb_array_elements(errors) AS e WHERE e ->> 'reason' = 'lease expired')),
                bool_and(attempt = 1 + releases + coalesce(jsonb_array_length(errors), 0)),
                (SELECT count(*) FROM recur.live_dispatches),
                (SELECT count(*) FROM recur.events WHERE kind = 'dispatch.recovered'),
                (SELECT completed_count FROM recur.recurring_actions WHERE id = $1)
           FROM recur.finished_dispatches",
        &[&action],
    )[0];
    assert_eq!(row.get::<_, i64>(0), sent);
    assert_eq!(row.get::<_, i64>(1), sent, "none twice");
    assert_eq!(row.get::<_, i64>(2), sent, "all completed");
    assert_eq!(row.get::<_, i64>(3), row.get::<_, i64>(4));
    assert!(
        row.get::<_, bool>(6),
        "each attempt was completed, released, or has its error"
    );
    assert_eq!(row.get::<_, i64>(7), 0);
    let expired = session.count(
        "recur.events WHERE kind = 'dispatch.recovered' AND detail ->> 'reason' = 'lease expired'",
    );
    assert!(
        expired > 0,
        "somebody was killed with something in his hands"
    );
    assert_eq!(row.get::<_, i64>(9), sent, "counted once each");

    // All of them leave when they are asked to.
    for (_, name, consumer) in &mut consumers {
        consumer.signal(Signal::SIGTERM);
        assert!(consumer.wait().success(), "{name}: {}", consumer.output());
    }
}

#[test]
fn polling_works_through_a_pooler_in_transaction_mode() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, "");
    let pooler = Pooler::start(&cluster);
    let host = pooler.host().display().to_string();
    for language in LANGUAGES {
        let settings = [
            ("LISTEN", "no"),
            ("POLL", "0.1"),
            ("LEASE", "1"),
            ("CONCURRENCY", "8"),
        ];
        let mut consumer = Example::connect(language, &host, POOLER_PORT, "app", &settings);
        send(&mut session, action, 60, 0.01);
        // One that needs its lease to be renewed.
        send(&mut session, action, 1, 2.0);
        eventually("all are done", || finished(&mut session) == 61);
        let attempts: i64 = session.value(
            "SELECT max(attempt)::bigint FROM recur.finished_dispatches WHERE status = 'completed'",
            &[],
        );
        assert_eq!(attempts, 1, "{language:?}");
        consumer.signal(Signal::SIGTERM);
        assert!(consumer.wait().success(), "{}", consumer.output());
        session.batch("DELETE FROM recur.finished_dispatches");
    }
}
