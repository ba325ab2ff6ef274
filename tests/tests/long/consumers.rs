//! Eight consumers in three languages, while everything goes wrong.

use nix::sys::signal::Signal;
use pg_recur_tests::consumers::{Example, LANGUAGES, Language};
use pg_recur_tests::pooler::{POOLER_PORT, Pooler};
use pg_recur_tests::{Cluster, Session, Shutdown, eventually};
use uuid::Uuid;

/// An action that does not fire within any test, for what is sent to belong to. Its dispatches may be taken from any
/// number of consumers.
fn mails(session: &mut Session) -> Uuid {
    session.value(
        "SELECT recur.create('mails', 'at 2099-01-01T00:00:00', 'mailer', 'email', max_attempts => 100)",
        &[],
    )
}

/// Sent at a time.
const WAVE: i64 = 200;

fn send(session: &mut Session, action: Uuid, number: i64, seconds: f64) -> i64 {
    session.execute(
        "SELECT count(recur.trigger($1::uuid, jsonb_build_object('to', 'reader ' || n, 'seconds', $3::float8)))
           FROM generate_series(1, $2::bigint) AS n",
        &[&action, &number, &seconds],
    );
    number
}

fn finished(session: &mut Session) -> i64 {
    session.value(
        "SELECT count(*) FROM recur_internal.finished_dispatches",
        &[],
    )
}

fn held_by(session: &mut Session, consumer: &str) -> i64 {
    session.value(
        "SELECT count(*) FROM recur_internal.live_dispatches WHERE status = 'running' AND claimed_by = $1",
        &[&consumer],
    )
}

/// Keeps the stream from running dry; returns how many it sent.
fn refill(session: &mut Session, action: Uuid) -> i64 {
    let left = session.count("recur_internal.live_dispatches WHERE status = 'pending'");
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

struct Consumer {
    language: Language,
    name: String,
    example: Example,
}

impl Consumer {
    /// It is killed as soon as it has something, and another takes its place.
    fn kill_at_work(&mut self, cluster: &Cluster, session: &mut Session, action: Uuid) -> i64 {
        let mut sent = 0;
        eventually("it has something", || {
            sent += refill(session, action);
            held_by(session, &self.name) > 0
        });
        self.example.signal(Signal::SIGKILL);
        self.example.wait();
        self.name += ", its successor";
        self.example = start(cluster, self.language, &self.name);
        sent
    }

    /// It is stalled while it has something, until that is taken away; its report comes too late.
    fn stall_at_work(&self, session: &mut Session, action: Uuid) -> i64 {
        let mut sent = 0;
        eventually("it is stalled while it has something", || {
            sent += refill(session, action);
            if held_by(session, &self.name) == 0 {
                return false;
            }
            self.example.signal(Signal::SIGSTOP);
            eventually("nothing is left to it", || {
                held_by(session, &self.name) == 0
            });
            self.example.signal(Signal::SIGCONT);
            // Unless its last report was under way.
            let taken: i64 = session.value(
                "SELECT count(*) FROM recur.events WHERE kind = 'dispatch.recovered' AND detail ->> 'claimed_by' = $1",
                &[&self.name],
            );
            taken > 0
        });
        eventually("its report is refused", || {
            self.example.output().contains("is not running")
        });
        sent
    }
}

#[test]
fn every_dispatch_is_finished_once_and_every_attempt_accounted_for() {
    let mut cluster = Cluster::preloaded("recur.check_interval = '200ms'");
    let mut session = cluster.database("app");
    let action = mails(&mut session);
    let mut consumers: Vec<Consumer> = (0..8)
        .map(|number| {
            let language = LANGUAGES[number % 3];
            let name = format!("{language:?} {number}");
            let example = start(&cluster, language, &name);
            Consumer {
                language,
                name,
                example,
            }
        })
        .collect();
    let mut sent = send(&mut session, action, WAVE, 0.3);
    for consumer in &mut consumers[..2] {
        sent += consumer.kill_at_work(&cluster, &mut session, action);
    }
    sent += send(&mut session, action, WAVE, 0.3);
    // One of each language.
    for consumer in &consumers[2..5] {
        sent += consumer.stall_at_work(&mut session, action);
    }
    sent += send(&mut session, action, WAVE, 0.3);
    cluster.restart(Shutdown::Fast);
    let mut session = cluster.session("app");
    sent += send(&mut session, action, WAVE, 0.3);
    eventually("half is done", || finished(&mut session) > sent / 2);
    cluster.restart(Shutdown::Immediate);
    let mut session = cluster.session("app");
    eventually("everything is finished", || finished(&mut session) == sent);
    check(&mut session, action, sent);

    // All of them leave when they are asked to.
    for Consumer { name, example, .. } in &mut consumers {
        example.signal(Signal::SIGTERM);
        assert!(example.wait().success(), "{name}: {}", example.output());
    }
}

/// Each dispatch is completed once, and each attempt of it was completed, released, or has its error.
fn check(session: &mut Session, action: Uuid, sent: i64) {
    let row = &session.rows(
        "SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE status = 'completed'),
                bool_and(attempt = 1 + releases + coalesce(jsonb_array_length(errors), 0)),
                (SELECT completed_count FROM recur.recurring_actions WHERE id = $1)
           FROM recur_internal.finished_dispatches",
        &[&action],
    )[0];
    assert_eq!(row.get::<_, i64>(0), sent);
    assert_eq!(row.get::<_, i64>(1), sent, "none twice");
    assert_eq!(row.get::<_, i64>(2), sent, "all completed");
    assert!(row.get::<_, bool>(3), "an attempt is not accounted for");
    assert_eq!(row.get::<_, i64>(4), sent, "counted once each");
    assert_eq!(session.count("recur_internal.live_dispatches"), 0);
    let expired = session.count(
        "recur.events WHERE kind = 'dispatch.recovered' AND detail ->> 'reason' = 'lease expired'",
    );
    assert!(expired > 0, "a consumer was killed while it had something");
}

#[test]
fn polling_works_through_a_pooler_in_transaction_mode() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    let action = mails(&mut session);
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
            "SELECT max(attempt)::bigint FROM recur_internal.finished_dispatches WHERE status = 'completed'",
            &[],
        );
        assert_eq!(attempts, 1, "{language:?}");
        consumer.signal(Signal::SIGTERM);
        assert!(consumer.wait().success(), "{}", consumer.output());
        session.batch("DELETE FROM recur_internal.finished_dispatches");
    }
}
