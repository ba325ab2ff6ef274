//! A listener hears of every dispatch, and of no payload.

use pg_recur_tests::faults::{fill_disk, free_disk};
use pg_recur_tests::timers::set_due;
use pg_recur_tests::{Cluster, Session, eventually, eventually_some};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

fn ids(messages: &[Value]) -> HashSet<String> {
    messages
        .iter()
        .filter_map(|message| Some(message["id"].as_str()?.to_owned()))
        .collect()
}

#[test]
fn a_message_has_ids_and_routing_and_fits() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    // The longest names there can be, of characters that JSON must escape, or that take the most bytes.
    for (number, letter) in ["\u{1}", "\"", "\u{1F600}"].iter().enumerate() {
        let name = letter.repeat(255);
        let action: Uuid = session.value(
            "SELECT recur.create('n', '@daily', provider => $1, action_type => $1, namespace => $1, tenant => $1,
                                 payload => '{\"secret\": 1}', starts_at => '2030-01-01Z')",
            &[&name],
        );
        let day = format!("2030-01-{:02}", number + 1);
        assert_eq!(session.tick(&format!("{day} 00:00Z")).0, 1 + number as i64);
        let heard = listener.waiting_notifications();
        let mine = heard
            .iter()
            .find(|heard| heard["action_id"] == action.to_string())
            .unwrap();
        assert_eq!(mine["scheduled_at"], format!("{day}T00:00:00Z"));
        assert_eq!(mine["provider"], name);
        // Names of tenants are for those who may see the dispatch.
        assert!(mine.get("namespace").is_none() && mine.get("tenant").is_none());
        assert!(!mine.to_string().contains("secret"));
        // By hand, too.
        session.execute("SELECT recur.trigger($1::uuid)", &[&action]);
        let heard = listener.waiting_notifications();
        assert_eq!(heard.len(), 1);
        assert_eq!(heard[0]["action_type"], name);
    }
}

#[test]
fn a_setting_says_how_much_a_message_tells() {
    let names = |message: &serde_json::Value| {
        ["provider", "action_type", "namespace", "tenant"]
            .into_iter()
            .filter(|name| message.get(name).is_some())
            .count()
    };
    for (detail, expected) in [("ids", 1), ("routing", 2), ("full", 4)] {
        let cluster = Cluster::preloaded(&format!("recur.notify_detail = {detail}"));
        let mut session = cluster.database("app");
        session.batch("LISTEN recur");
        session.batch("SELECT recur.enqueue('p', 'a')");
        assert_eq!(names(&session.notification()), expected, "{detail}");
        session.batch("SELECT recur.create('n', '* * * * * *', 'p', 'a')");
        assert_eq!(names(&session.notification()), expected, "{detail}");
        let unknown = "ALTER SYSTEM SET recur.notify_detail = 'everything'";
        assert_eq!(session.error(unknown).0, "22023");
    }
}

#[test]
fn many_are_announced_as_a_count_for_each_provider_and_channel() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    let mut elsewhere = cluster.session("app");
    listener.batch("LISTEN recur");
    elsewhere.batch("LISTEN elsewhere");
    session.batch(
        "SELECT count(recur.create('a' || n, '@daily', CASE WHEN n <= 60 THEN 'p' ELSE 'q' END, 't',
                                   starts_at => '2030-01-01Z',
                                   notify_channel => CASE WHEN n > 90 THEN 'elsewhere' END))
           FROM generate_series(1, 100) AS n",
    );
    assert_eq!(session.tick("2030-01-01Z").0, 100);
    assert_eq!(
        ids(&listener.waiting_notifications()).len(),
        90,
        "a hundred are announced one by one"
    );
    assert_eq!(ids(&elsewhere.waiting_notifications()).len(), 10);

    session
        .batch("SELECT recur.create('one more', '@daily', 'p', 't', starts_at => '2030-01-01Z')");
    assert_eq!(session.tick("2030-01-02Z").0, 101);
    let mut heard: Vec<String> = listener
        .waiting_notifications()
        .iter()
        .map(Value::to_string)
        .collect();
    heard.sort();
    assert_eq!(
        heard,
        [
            r#"{"count":30,"provider":"q"}"#,
            r#"{"count":61,"provider":"p"}"#
        ]
    );
    let heard: Vec<String> = elsewhere
        .waiting_notifications()
        .iter()
        .map(Value::to_string)
        .collect();
    assert_eq!(heard, [r#"{"count":10,"provider":"q"}"#]);
}

/// To count a herd takes a while: listeners need not wait for it.
#[test]
fn the_first_of_a_herd_are_announced_before_all_are_counted() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut session = cluster.database("app");
    session.batch(
        "SELECT count(recur.enqueue(CASE WHEN n % 5 = 0 THEN 'p' ELSE 'q' END, 't')) FROM generate_series(1, 2500) AS n;
         -- As if each had been written long before it became available.
         UPDATE recur_internal.live_dispatches SET created_at = created_at - interval '1 hour'",
    );
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    cluster.configure("recur.enabled = on");
    cluster.reload();
    let mut heard = HashMap::<String, Vec<i64>>::new();
    for _ in 0..4 {
        let message = listener.notification();
        let provider = message["provider"].as_str().expect("a provider");
        let count = message["count"].as_i64().expect("a count");
        heard.entry(provider.to_owned()).or_default().push(count);
    }
    let (p, q) = (&heard["p"], &heard["q"]);
    assert_eq!((p.len(), q.len()), (2, 2), "{heard:?}");
    assert_eq!((p[0] + q[0], p[1] + q[1]), (2_000, 500), "{heard:?}");
    assert_eq!((p[0] + p[1], q[0] + q[1]), (500, 2_000), "{heard:?}");
}

#[test]
fn a_listener_and_a_poller_see_every_dispatch() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    session.batch(
        "SELECT count(recur.create('a' || n, '* * * * * *', 'p', 't', max_runs => 3,
                                   jitter => (n % 3) * interval '300 ms'))
           FROM generate_series(1, 30) AS n;
         SELECT recur.enqueue('p', 'once'), recur.enqueue('p', 'later', run_at => now() + interval '1500 ms');
         SELECT recur.trigger(id) FROM recur.recurring_actions LIMIT 1",
    );
    let expected = 30 * 3 + 3;
    let mut heard = HashSet::new();
    while heard.len() < expected {
        heard.extend(ids(&[listener.notification()]));
    }
    // One that only asks sees the same. (What it claims before it is announced needs no announcement any more.)
    let mut polled = HashSet::new();
    eventually("the poller has all", || {
        let rows = session.rows("SELECT id::text FROM recur.claim(100)", &[]);
        polled.extend(rows.iter().map(|row| row.get::<_, String>(0)));
        polled.len() == expected
    });
    assert_eq!(heard, polled);
}

#[test]
fn what_is_available_later_is_announced_then() {
    // The worker that announces is the first dispatcher; others write as well, and sessions do.
    let cluster = Cluster::preloaded("recur.dispatchers = 3\nrecur.notify_each_max = 1000");
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    // Jittered dispatches of a session's own tick, whose actions are due behind the dispatchers' backs.
    let created: chrono::DateTime<chrono::Utc> = session.value(
        "SELECT clock_timestamp()
           FROM (SELECT count(recur.create('a' || n, '@yearly', 'p', 't', jitter => '2 seconds')) AS created
                                          FROM generate_series(1, 20) AS n) AS all_of_them WHERE created = 20",
        &[],
    );
    let asleep = "SELECT count(*) FROM recur.workers
                   WHERE database = 'app' AND kind = 'dispatcher' AND state = 'sleeping' AND state_since > $1";
    eventually("all three have seen them and sleep", || {
        session.value::<i64>(asleep, &[&created]) == 3
    });
    session.batch("BEGIN");
    set_due(&mut session, "date_trunc('second', now())", "");
    let dispatched: i64 = session.value("SELECT dispatched FROM recur.tick()", &[]);
    session.batch("COMMIT");
    assert_eq!(dispatched, 20);
    let mut heard = HashSet::new();
    while heard.len() < 20 {
        heard.extend(ids(&[listener.notification()]));
    }
    // A retry after its pause.
    session.batch(
        "SELECT recur.enqueue('p', 'retried',
                              retry_backoff => '{\"base\": \"1 second\", \"factor\": 1, \"cap\": \"1 second\"}')",
    );
    let first = listener.notification();
    assert_eq!(first["action_type"], "retried");
    session.batch("SELECT recur.fail(id, attempt, 'not yet') FROM recur.claim(1, action_types => '{retried}')");
    let again = listener.notification();
    assert_eq!(again["id"], first["id"]);
    let claimed = session.rows(
        "SELECT FROM recur.claim(1, action_types => '{retried}')",
        &[],
    );
    assert_eq!(
        claimed.len(),
        1,
        "announced when it can be claimed, not before"
    );
}

#[test]
fn a_dispatch_that_is_committed_after_its_instant_is_announced_too() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    // The first dispatch of a role adds an owner, for which the role's other sessions wait.
    session.batch("SELECT recur.enqueue('p', 'first')");
    assert_eq!(listener.notification()["action_type"], "first");
    session.batch("BEGIN");
    let late: Uuid = session.value(
        "SELECT recur.enqueue('p', 'late', run_at => clock_timestamp() + interval '100 ms')",
        &[],
    );
    // Meanwhile the dispatcher announces everything up to a later instant.
    let mut other = cluster.session("app");
    other.batch(
        "SELECT recur.enqueue('p', 'other', run_at => clock_timestamp() + interval '1 second')",
    );
    assert_eq!(listener.notification()["action_type"], "other");
    session.batch("COMMIT");
    assert_eq!(listener.notification()["id"], late.to_string());
}

#[test]
fn mute_keeps_automated_events_quiet_and_human_ones_loud() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur_events");
    let skipping = ", misfire => 'skip', starts_at => '2030-01-01Z'";
    let mut create = |name: &str, more: &str| -> Uuid {
        session.value(
            &format!("SELECT recur.create($1, '@hourly', 'p', 't'{skipping}{more})"),
            &[&name],
        )
    };
    let loud = create("loud", "");
    let muted = create("muted", ", mute => true");
    let rare = create("rare", ", mute_interval => '1 hour'");
    assert_eq!(
        listener.waiting_notifications().len(),
        3,
        "creating is a human edit"
    );

    let skipped = |session: &mut Session, listener: &mut Session, at: &str| -> Vec<String> {
        assert_eq!(session.tick(at).0, 0);
        let mut heard: Vec<String> = listener
            .waiting_notifications()
            .iter()
            .map(|heard| heard["action_id"].as_str().unwrap().to_owned())
            .collect();
        heard.sort();
        heard
    };
    let mut both = [loud.to_string(), rare.to_string()];
    both.sort();
    assert_eq!(
        skipped(&mut session, &mut listener, "2030-01-01 03:30Z"),
        both
    );
    assert_eq!(
        skipped(&mut session, &mut listener, "2030-01-01 05:30Z"),
        [loud.to_string()]
    );
    session
        .batch("UPDATE recur_internal.progress SET announced_at = now() - interval '61 minutes'");
    assert_eq!(
        skipped(&mut session, &mut listener, "2030-01-01 07:30Z"),
        both
    );
    // All of it is recorded all the same.
    assert_eq!(
        session.count("recur.events WHERE kind = 'occurrence.skipped'"),
        9
    );
    for action in [muted, rare] {
        session.execute("SELECT recur.pause($1::uuid)", &[&action]);
        let heard = listener.waiting_notifications();
        assert_eq!(heard.len(), 1);
        assert_eq!(heard[0]["kind"], "action.paused");
    }
}

#[test]
fn an_open_report_of_a_consumer_does_not_block_the_dispatcher() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.create('a', '@hourly', 'p', 't', overlap => 'skip', mute_interval => '1 hour',
                             starts_at => '2030-01-01Z')",
    );
    session.tick("2030-01-01 00:00Z");
    let mut consumer = cluster.session("app");
    consumer.batch("BEGIN; SELECT recur.complete(id, attempt) FROM recur.claim(1)");
    // It has the action's progress locked; the dispatcher has an event to record.
    session.batch("SET lock_timeout = '10s'");
    assert_eq!(session.tick("2030-01-01 01:00Z"), (0, 1, 0, 0));
    consumer.batch("COMMIT");
    let completed: i64 = eventually_some("it is counted", || {
        Some(session.value("SELECT completed_count FROM recur.recurring_actions", &[]))
    });
    assert_eq!(completed, 1);
}

#[test]
fn a_batch_that_fails_repeats_no_announcement() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    session.batch(
        "SELECT recur.enqueue('later', 't', run_at => clock_timestamp() + interval '1 second')",
    );
    assert_eq!(listener.notification()["provider"], "later");
    session.batch("BEGIN; SELECT recur.create('tick', '* * * * * *', 'p', 't')");
    fill_disk(&mut session, "UPDATE", "recur_internal.timers");
    session.batch("COMMIT");
    eventually("several batches fail", || {
        session.value::<i64>(
            "SELECT coalesce(max(failed_batches), 0) FROM recur.stats",
            &[],
        ) >= 3
    });
    let repeated = listener.waiting_notifications();
    let repeated = repeated
        .iter()
        .filter(|message| message["provider"] == "later");
    assert_eq!(repeated.count(), 0);
    free_disk(&mut session);
    assert_eq!(listener.notification()["provider"], "p");
}

#[test]
fn a_dispatch_that_can_not_be_announced_keeps_no_other_from_it() {
    // One by one, and as counts.
    for each_max in [100, 1] {
        let cluster = Cluster::preloaded(&format!("recur.notify_each_max = {each_max}"));
        let mut session = cluster.database("app");
        let mut listener = cluster.session("app");
        listener.batch("LISTEN recur; LISTEN elsewhere");
        for (scheduled_at, channel) in [("infinity", "elsewhere"), ("now", &"x".repeat(64))] {
            // They become available at the same instant, the one that can't be announced among the others.
            session.batch(
                "BEGIN;
                 SELECT recur.enqueue(provider, 't', run_at => now() + interval '1 second', notify_channel => channel)
                   FROM (VALUES ('a', NULL), ('bad', NULL), ('b', NULL), ('b', 'elsewhere'))
                        AS given (provider, channel)",
            );
            // No function writes such a row.
            session.execute(
                "UPDATE recur_internal.live_dispatches SET scheduled_at = $1::text::timestamptz, notify_channel = $2
                  WHERE provider = 'bad'",
                &[&scheduled_at, &channel],
            );
            session.batch("COMMIT");
            let mut heard = Vec::new();
            while heard.len() < 3 {
                heard.push(listener.notification()["provider"].clone());
                // Where they are counted, the time of schedule is not read.
                heard.retain(|provider| provider != "bad");
            }
            heard.sort_by_key(Value::to_string);
            assert_eq!(heard, ["a", "b", "b"]);
            session.batch("DELETE FROM recur_internal.live_dispatches");
        }
        let warning = "WARNING:  pg_recur dispatcher: announcement failed";
        let warnings = if each_max == 1 { 1 } else { 2 };
        eventually("it is warned of", || {
            cluster.log().matches(warning).count() == warnings
        });
    }
}
