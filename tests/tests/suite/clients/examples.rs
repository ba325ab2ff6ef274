//! The consumers that people copy, each against a real server.

use nix::sys::signal::Signal;
use pg_recur_tests::consumers::{Example, LANGUAGES, Language};
use pg_recur_tests::{Cluster, Session, Shutdown, eventually};
use uuid::Uuid;

fn mail(session: &mut Session, payload: &str) -> Uuid {
    session.value(
        "SELECT recur.enqueue('mailer', 'email', $1::text::jsonb)",
        &[&payload],
    )
}

fn state(session: &mut Session, id: Uuid) -> String {
    session.value(
        "SELECT status || ' ' || attempt FROM recur.dispatches WHERE id = $1",
        &[&id],
    )
}

/// What takes a second may be over before a busy machine has seen it run.
fn has_begun(session: &mut Session, id: Uuid) -> bool {
    !state(session, id).starts_with("pending")
}

/// Polls so rarely that whatever happens was heard. A lease is renewed three times in its length, and this one leaves
/// a busy machine some seconds for it.
const HEARS: &[(&str, &str)] = &[("POLL", "3600"), ("LEASE", "6"), ("CONCURRENCY", "4")];

fn lives(language: Language) {
    let mut cluster = Cluster::preloaded("recur.check_interval = '200ms'");
    let mut session = cluster.database("app");
    let before = mail(&mut session, r#"{"to": "before"}"#);
    let mut consumer = Example::start(language, &cluster, "app", HEARS);
    eventually("what was there is done", || {
        state(&mut session, before) == "completed 1"
    });
    let result: String = session.value(
        "SELECT result ->> 'sent_to' FROM recur.dispatches WHERE id = $1",
        &[&before],
    );
    assert_eq!(result, "before");

    // A notification wakes it.
    let heard = mail(&mut session, r#"{"to": "heard"}"#);
    session.batch("NOTIFY recur");
    eventually("what was announced is done", || {
        state(&mut session, heard) == "completed 1"
    });

    // Several at once, for longer than their leases.
    let long: Vec<Uuid> = (0..3)
        .map(|_| mail(&mut session, r#"{"to": "long", "seconds": 8}"#))
        .collect();
    let stopped = mail(&mut session, r#"{"to": "stopped", "seconds": 3600}"#);
    session.batch("NOTIFY recur");
    eventually("all of them run", || {
        let running = session.count("recur.dispatches WHERE status = 'running'");
        running == 4
    });
    session.execute("SELECT recur.cancel($1)", &[&stopped]);
    eventually("it stops what is not wanted", || {
        state(&mut session, stopped) == "cancelled 1"
    });
    for id in long {
        eventually("it keeps its leases", || {
            state(&mut session, id) == "completed 1"
        });
    }
    let bad = mail(&mut session, "{}");
    session.batch("NOTIFY recur");
    eventually("it reports failures", || {
        state(&mut session, bad) == "failed 1"
    });
    let error: String = session.value("SELECT error FROM recur.dispatches WHERE id = $1", &[&bad]);
    assert!(error.contains("the payload has no \"to\""), "{error}");

    // The server goes and comes back: the consumer as well, with what it had.
    let through = mail(&mut session, r#"{"to": "through", "seconds": 1}"#);
    session.batch("NOTIFY recur");
    eventually("it has begun", || has_begun(&mut session, through));
    cluster.restart(Shutdown::Fast);
    let mut session = cluster.session("app");
    eventually("it reports to the new server", || {
        state(&mut session, through).starts_with("completed")
    });
    let after = mail(&mut session, r#"{"to": "after"}"#);
    eventually("it hears again", || {
        session.batch("NOTIFY recur");
        state(&mut session, after) == "completed 1"
    });

    // It finishes what it has begun, and claims nothing more.
    let last = mail(&mut session, r#"{"to": "last", "seconds": 1}"#);
    session.batch("NOTIFY recur");
    eventually("it has begun", || has_begun(&mut session, last));
    consumer.signal(Signal::SIGTERM);
    assert!(consumer.wait().success(), "{}", consumer.output());
    assert_eq!(state(&mut session, last), "completed 1");
    assert!(
        consumer.output().ends_with("stopped\n"),
        "{}",
        consumer.output()
    );
}

#[test]
fn the_rust_consumer_works_from_start_to_stop() {
    lives(Language::Rust);
}

#[test]
fn the_python_consumer_works_from_start_to_stop() {
    lives(Language::Python);
}

#[test]
fn the_node_consumer_works_from_start_to_stop() {
    lives(Language::Node);
}

#[test]
fn what_takes_too_long_to_finish_is_given_back() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    for language in LANGUAGES {
        let id = mail(&mut session, r#"{"to": "x", "seconds": 3600}"#);
        let settings = [("POLL", "3600"), ("GRACE", "0.1")];
        let mut consumer = Example::start(language, &cluster, "app", &settings);
        eventually("it runs", || state(&mut session, id) == "running 1");
        consumer.signal(Signal::SIGTERM);
        assert!(consumer.wait().success(), "{}", consumer.output());
        let row = &session.rows(
            "SELECT status, releases FROM recur.dispatches WHERE id = $1",
            &[&id],
        )[0];
        assert_eq!(
            (row.get::<_, String>(0).as_str(), row.get::<_, i32>(1)),
            ("pending", 1),
            "{language:?}"
        );
        session.execute("SELECT recur.cancel($1)", &[&id]);
    }
}

/// How often it has tried to connect, and failed.
fn attempts(consumer: &Example) -> usize {
    consumer.output().matches("no connection").count()
}

#[test]
fn a_stop_works_while_the_server_is_away() {
    let mut cluster = Cluster::start();
    let mut session = cluster.database("app");
    for language in LANGUAGES {
        let id = mail(&mut session, r#"{"to": "before"}"#);
        let mut consumer = Example::start(language, &cluster, "app", &[("POLL", "0.1")]);
        eventually("it runs", || state(&mut session, id) == "completed 1");
        cluster.stop(Shutdown::Fast);
        eventually("it tries to connect", || attempts(&consumer) >= 3);
        consumer.signal(Signal::SIGTERM);
        let tried = attempts(&consumer);
        assert!(consumer.wait().success(), "{}", consumer.output());
        // An attempt of each of its two connections may be under way when it is asked to stop.
        assert!(attempts(&consumer) <= tried + 2, "{language:?}");
        assert!(consumer.output().ends_with("stopped\n"), "{language:?}");
        cluster.launch();
        session = cluster.session("app");
    }
}

/// It can not report what it was doing: the lease will expire.
#[test]
fn a_stop_works_while_a_handler_runs_and_the_server_is_away() {
    let mut cluster = Cluster::start();
    let mut session = cluster.database("app");
    for language in LANGUAGES {
        let id = mail(&mut session, r#"{"to": "x", "seconds": 3600}"#);
        let settings = [("POLL", "0.1"), ("GRACE", "0.1"), ("LEASE", "3")];
        let mut consumer = Example::start(language, &cluster, "app", &settings);
        eventually("it runs", || state(&mut session, id) == "running 1");
        cluster.stop(Shutdown::Fast);
        eventually("it tries to connect", || attempts(&consumer) >= 3);
        consumer.signal(Signal::SIGTERM);
        assert!(consumer.wait().success(), "{}", consumer.output());
        let output = consumer.output();
        assert!(output.ends_with("stopped\n"), "{language:?}: {output}");
        cluster.launch();
        session = cluster.session("app");
        session.execute("SELECT recur.cancel($1)", &[&id]);
    }
}
