//! What `dedup_key` and `dedup_window` mean for what is enqueued and received.

use pg_recur_tests::queue::{claim_this, claimed, enqueue, status};
use pg_recur_tests::{Cluster, Session};
use serde_json::{Value, json};
use uuid::Uuid;

/// payload, priority, metadata, and whether it may be claimed now
fn row(session: &mut Session, id: Uuid) -> (Value, i32, Value, bool) {
    let row = &session.rows(
        "SELECT payload, priority, metadata - '_recurring_dispatch' - '_recurring_id',
                available_at <= now() AND available_at = scheduled_at
           FROM recur.dispatches WHERE id = $1",
        &[&id],
    )[0];
    (row.get(0), row.get(1), row.get(2), row.get(3))
}

#[test]
fn a_merge_takes_over_what_is_given_and_leaves_the_rest() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let later = "run_at => now() + interval '1 day'";
    let first = enqueue(
        &mut session,
        &format!(
            "payload => '{{\"n\": 1}}', metadata => '{{\"m\": \"1\"}}', dedup_key => 'k', {later}"
        ),
    );
    let mut merge = |arguments: &str| {
        let id = enqueue(&mut session, &format!("dedup_key => 'k', {arguments}"));
        assert_eq!(id, first, "{arguments}");
        row(&mut session, id)
    };
    let (one, two, metadata) = (json!({"n": 1}), json!({"n": 2}), json!({"m": "1"}));
    let meta = || metadata.clone();
    assert_eq!(merge("priority => 7"), (one.clone(), 7, meta(), false));
    assert_eq!(
        merge("payload => '{\"n\": 2}'"),
        (two.clone(), 7, meta(), false)
    );
    assert_eq!(merge("run_at => now()"), (two.clone(), 7, meta(), true));
    assert_eq!(merge(later), (two.clone(), 7, meta(), false));
    assert_eq!(
        merge("priority => 0, metadata => '{\"m\": \"2\"}', run_at => now()"),
        (two, 0, json!({"m": "2"}), true)
    );
    assert_eq!(session.count("recur.dispatches"), 1);
}

#[test]
fn a_merge_names_what_it_does_not_take_over() {
    let cluster = Cluster::quiet();
    cluster.database("app");
    let call = |arguments: &str| {
        let call = format!("SELECT recur.enqueue('p', 't', dedup_key => 'k'{arguments})");
        cluster.run_script("app", &call)
    };
    let all = ", subject => 's', lock_group => 'g', notify_channel => 'c', max_attempts => 7, lease => '1 h',
               retry_backoff => '{\"base\": \"1 s\", \"factor\": 1, \"cap\": \"1 s\"}'";
    assert_eq!(call(", lock_group => 'g'"), "");
    assert_eq!(call(", lock_group => 'g', max_attempts => 3"), "");
    assert_eq!(
        call(", payload => '[]', priority => 1, run_at => now()"),
        ""
    );
    let said = call(all);
    let named = "which keeps its own subject, notify_channel, max_attempts, retry_backoff, lease\n";
    assert!(
        said.contains("NOTICE:  merged with a pending dispatch of the same dedup_key, ")
            && said.contains(named),
        "{said}"
    );
}

#[test]
fn a_merge_that_moves_a_dispatch_forward_wakes_its_consumer() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    let mut merge = |run_at: &str| {
        enqueue(
            &mut session,
            &format!("dedup_key => 'k', run_at => {run_at}"),
        )
    };
    let id = merge("now() + interval '1 hour'");
    assert_eq!(listener.waiting_notifications(), Vec::<Value>::new());
    // By the dispatcher, at its time.
    assert_eq!(merge("clock_timestamp() + interval '300 ms'"), id);
    assert_eq!(listener.notification()["id"], id.to_string());
    assert_eq!(merge("now() + interval '1 hour'"), id);
    // By the session itself.
    assert_eq!(merge("now()"), id);
    assert!(!listener.waiting_notifications().is_empty());
}

#[test]
fn a_window_without_a_key_is_refused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SELECT recur.create('a', '@daily', 'p', 't')");
    for call in [
        "enqueue('p', 't', dedup_window => '1 hour')",
        "enqueue('p', 't', dedup_window => '1 hour', dedup_key => NULL)",
        "receive('p', 't', '', dedup_window => '1 hour')",
        "create('b', '@daily', 'p', 't', dedup_window => '1 hour')",
        "update('a', '{\"dedup_window\": \"1 hour\"}')",
    ] {
        let (code, message, hint) = session.error(&format!("SELECT recur.{call}"));
        assert_eq!(
            [code.as_str(), &message, &hint],
            [
                "22023",
                "invalid dedup_window \"01:00:00\": means nothing without a dedup_key",
                "Give dedup_key as well, or leave dedup_window out."
            ],
            "{call}"
        );
    }
    session
        .batch("SELECT recur.update('a', '{\"dedup_key\": \"k\", \"dedup_window\": \"1 hour\"}')");
}

fn receive(session: &mut Session, arguments: &str) -> Uuid {
    let call = format!("SELECT recur.receive('shop', 'paid', 'body', dedup_key => 'd'{arguments})");
    session.value(&call, &[])
}

/// Claims what is pending, this dispatch among it, and reports on it.
fn finish(session: &mut Session, id: Uuid, how: &str) {
    assert!(claimed(session, "100").contains(&id));
    session.batch(&format!("SELECT recur.{how}"));
}

#[test]
fn a_delivery_is_done_once_within_its_window_also_after_it_is_done() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let day = ", dedup_window => '1 day'";
    let first = receive(&mut session, day);
    assert_eq!(receive(&mut session, day), first, "pending");
    claim_this(&mut session, first);
    assert_eq!(receive(&mut session, day), first, "running");
    session.execute("SELECT recur.complete($1, 1)", &[&first]);
    assert_eq!(receive(&mut session, day), first, "completed");
    assert_eq!(status(&mut session, first), "completed");
    assert_eq!(session.count("recur.dispatches"), 1);
    // Another owner, tenant, provider or action type, and what was enqueued, are other things.
    session
        .batch("CREATE ROLE other_shop; SELECT recur.grant_access('other_shop', 'author'); SET ROLE other_shop");
    assert_ne!(receive(&mut session, day), first);
    session.batch("RESET ROLE");
    for more in ["tenant => 'x'", "namespace => 'x'"] {
        assert_ne!(receive(&mut session, &format!("{day}, {more}")), first);
    }
    let enqueued: Uuid = session.value(
        "SELECT recur.enqueue('shop', 'paid', dedup_key => 'd', dedup_window => '1 day')",
        &[],
    );
    assert_ne!(enqueued, first);
    // Older than the window.
    session.batch(
        "UPDATE recur_internal.finished_dispatches SET created_at = now() - interval '2 days'",
    );
    let second = receive(&mut session, day);
    assert_ne!(second, first);
    finish(
        &mut session,
        second,
        &format!("fail('{second}', 1, 'no', retry => false)"),
    );
    assert_eq!(receive(&mut session, day), second, "failed for good");
}

#[test]
fn without_a_window_only_what_is_pending_stands_for_a_delivery() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let first = receive(&mut session, "");
    session
        .batch("UPDATE recur_internal.live_dispatches SET created_at = now() - interval '2 years'");
    assert_eq!(receive(&mut session, ""), first, "pending, of any age");
    claim_this(&mut session, first);
    let second = receive(&mut session, "");
    assert_ne!(second, first, "running");
    finish(&mut session, second, &format!("complete('{second}', 1)"));
    let third = receive(&mut session, "");
    assert!(![first, second].contains(&third), "completed");
    let zero = receive(&mut session, ", dedup_window => '0'");
    assert_ne!(zero, third, "a window of 0 has no duplicates");
}

#[test]
fn what_is_enqueued_again_after_it_was_done_is_done_again() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let arguments = "dedup_key => 'k', dedup_window => '1 day'";
    let first = enqueue(&mut session, arguments);
    finish(&mut session, first, &format!("complete('{first}', 1)"));
    assert_ne!(enqueue(&mut session, arguments), first);
}

#[test]
fn the_setting_is_the_window_of_calls_that_name_none() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.set_setting('dedup_window', '1h');
         SELECT recur.set_setting('dedup_window', '0', namespace => 'none')",
    );
    let pairs = |session: &mut Session, more: &str| {
        let call = format!("dedup_key => 'k'{more}");
        let first = enqueue(session, &call);
        session.batch(
            "UPDATE recur_internal.live_dispatches SET created_at = now() - interval '2 hours'",
        );
        first == enqueue(session, &call)
    };
    assert!(!pairs(&mut session, ""), "older than the setting");
    assert!(pairs(
        &mut session,
        ", tenant => 'x', dedup_window => '1 day'"
    ));
    assert!(pairs(&mut session, ", namespace => 'none'"), "of any age");
    // Deliveries that are done count as well.
    let first = receive(&mut session, "");
    finish(&mut session, first, &format!("complete('{first}', 1)"));
    assert_eq!(receive(&mut session, ""), first);
    let of_none = receive(&mut session, ", namespace => 'none'");
    finish(&mut session, of_none, &format!("complete('{of_none}', 1)"));
    assert_ne!(receive(&mut session, ", namespace => 'none'"), of_none);
}

/// Of the history, too, only rows of the key are read.
#[test]
fn a_delivery_is_looked_up_by_its_key() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT count(recur.receive('shop', 'paid', '', dedup_key => 'd' || n)) FROM generate_series(1, 2000) AS n;
         SELECT recur.complete(id, attempt) FROM recur.claim(2000);
         ANALYZE",
    );
    let plans = cluster.plans(
        "app",
        "postgres",
        "SELECT recur.receive('shop', 'paid', '', dedup_key => 'd7', dedup_window => '1 hour')",
    );
    assert!(plans.contains("finished_dispatches_0_dedup_key"), "{plans}");
    assert!(
        !plans.contains("Seq Scan on finished_dispatches_0"),
        "{plans}"
    );
    assert_eq!(session.count("recur.dispatches"), 2_000);
}
