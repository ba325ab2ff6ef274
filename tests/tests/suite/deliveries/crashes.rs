//! kill -9, a restarted database, an outage: nothing is lost, and nothing stays behind.

use super::Site;
use nix::sys::signal::Signal;
use pg_recur_tests::receiver::{Reaction, Receiver};
use pg_recur_tests::{Shutdown, eventually};
use std::collections::BTreeSet;
use std::time::Duration;

const WEBHOOKS: usize = 2000;

fn enqueue_all(site: &mut Site) -> BTreeSet<String> {
    site.session.batch("SET ROLE author");
    let ids = site.session.texts(
        "SELECT recur.enqueue_webhook(action_type => 'a', payload => '{}', max_attempts => 20)::text
           FROM generate_series(1, $1::int) AS n",
        &[&(WEBHOOKS as i32)],
    );
    site.session.batch("RESET ROLE");
    ids.into_iter().collect()
}

/// Each round ends in kill -9 while deliveries are under way.
#[test]
fn kill_9_during_deliveries_loses_none() {
    // Slow enough that some are always under way.
    let receiver = Receiver::start(|_| {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec();
        Reaction::AnswerSlowly(Vec::new(), Duration::from_millis(20), answer)
    });
    let mut site = Site::start();
    let endpoint = site.endpoint("all", &["*"], &receiver.url("/"));
    let config = site.config("", &endpoint);
    let ids = enqueue_all(&mut site);
    for round in 1..=4 {
        let mut recurd = site.deliver(&format!("recurd{round}"), &config, &[]);
        receiver.wait_for(round * WEBHOOKS / 5);
        recurd.signal(Signal::SIGKILL);
        recurd.wait();
    }
    let left = site
        .session
        .count("recur.dispatches WHERE status IN ('pending', 'running')");
    assert!(left > 0, "the kills came too late to prove anything");
    let _recurd = site.deliver("last", &config, &[]);
    eventually("all are delivered", || {
        site.session
            .count("recur.dispatches WHERE status = 'completed'")
            == WEBHOOKS as i64
    });
    assert_eq!(receiver.ids(), ids, "each at least once, under its id");
    assert_eq!(
        site.session
            .count("recur.dispatches WHERE status <> 'completed'"),
        0
    );
}

#[test]
fn deliveries_go_on_when_the_database_is_back() {
    let receiver = Receiver::start(|_| Reaction::ok());
    let mut site = Site::start();
    let mut recurd = site.deliver_to(&receiver);
    let before = site.enqueue("a", "{}", 5);
    site.wait_for(before, "completed");
    for shutdown in [Shutdown::Fast, Shutdown::Immediate] {
        site.cluster.restart(shutdown);
        site.session = site.cluster.session("app");
        let after = site.enqueue("a", "{}", 5);
        site.wait_for(after, "completed");
    }
    assert_eq!(receiver.count(), 3);
    recurd.signal(Signal::SIGTERM);
    assert!(recurd.wait().success(), "{}", recurd.log());
}

/// The receiver has answered, and the answer is reported to the server that comes back.
#[test]
fn an_answer_that_can_not_be_reported_at_once_is_reported_later() {
    let receiver = Receiver::start(|_| {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec();
        Reaction::AnswerSlowly(Vec::new(), Duration::from_secs(2), answer)
    });
    let mut site = Site::start();
    let endpoint = site.endpoint("all", &["*"], &receiver.url("/"));
    let endpoint = endpoint.replace("timeout_seconds = 2", "timeout_seconds = 60");
    let config = site.config("", &endpoint);
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(
        &config,
        text.replace("lease_seconds = 3", "lease_seconds = 120"),
    )
    .unwrap();
    let recurd = site.deliver("recurd", &config, &[]);
    let id = site.enqueue("a", "{}", 5);
    receiver.wait_for(1);
    site.cluster.stop(Shutdown::Fast);
    eventually("the report is tried", || {
        recurd.log().contains("webhook.report_delayed")
    });
    site.cluster.launch();
    site.session = site.cluster.session("app");
    site.wait_for(id, "completed");
    assert_eq!(receiver.count(), 1);
}

/// Somebody holds a dispatch: its report waits until the lock is gone, and the reports of others don't wait with it.
#[test]
fn a_report_that_meets_a_lock_is_repeated() {
    let receiver = Receiver::start(|_| {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec();
        Reaction::AnswerSlowly(Vec::new(), Duration::from_secs(1), answer)
    });
    let mut site = Site::start();
    let endpoint = site.endpoint("all", &["*"], &receiver.url("/"));
    let sections = format!("{endpoint}\n[database]\nlock_timeout_seconds = 0.2\n");
    let config = site.config("", &sections);
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(
        &config,
        text.replace("lease_seconds = 3", "lease_seconds = 120"),
    )
    .unwrap();
    let recurd = site.deliver("recurd", &config, &[]);
    let held = site.enqueue("a", "{}", 1);
    receiver.wait_for(1);
    let mut holder = site.cluster.session("app");
    holder.batch(&format!(
        "BEGIN; SELECT FROM recur_internal.live_dispatches WHERE id = '{held}' FOR UPDATE"
    ));
    eventually("the report is repeated", || {
        recurd.log().contains("webhook.report_delayed")
    });
    let other = site.enqueue("a", "{}", 1);
    site.wait_for(other, "completed");
    assert_eq!(site.status(held), "running");
    holder.batch("ROLLBACK");
    site.wait_for(held, "completed");
    assert_eq!(receiver.count(), 2);
}
