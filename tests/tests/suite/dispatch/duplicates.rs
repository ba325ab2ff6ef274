//! Occurrences whose key is that of a pending dispatch.

use pg_recur_tests::queue::{claim_this, status};
use pg_recur_tests::timers::set_due;
use pg_recur_tests::{Cluster, Session, eventually};
use serde_json::{Value, json};
use std::time::Instant;
use uuid::Uuid;

/// An action that fires only when a test says so; its payload has its name.
fn create(session: &mut Session, name: &str, more: &str) -> Uuid {
    session.value(
        &format!(
            "SELECT recur.create($1, '@yearly', 'p', 't', jsonb_build_object('of', $1::text){more})"
        ),
        &[&name],
    )
}

const KEYED: &str = ", dedup_key => 'same', dedup_window => '1 hour'";

fn trigger(session: &mut Session, name: &str) -> Uuid {
    session.value("SELECT recur.trigger($1::text)", &[&name])
}

fn pending(session: &mut Session) -> i64 {
    session.count("recur.dispatches WHERE status = 'pending'")
}

fn payload(session: &mut Session, id: Uuid) -> Value {
    session.value("SELECT payload FROM recur.dispatches WHERE id = $1", &[&id])
}

/// (action, reason, count, dispatch) of what was skipped
fn skips(session: &mut Session) -> Vec<String> {
    session.texts(
        "SELECT concat_ws(' ', a.name, e.detail ->> 'reason', e.detail ->> 'count',
                          d.id IS NOT NULL)
           FROM recur.events AS e
           JOIN recur.recurring_actions AS a ON a.id = e.action_id
           LEFT JOIN recur.dispatches AS d ON d.id = (e.detail ->> 'dispatch_id')::uuid
          WHERE e.kind = 'occurrence.skipped' ORDER BY e.id",
        &[],
    )
}

fn tick(session: &mut Session) -> (i64, i64) {
    let row = &session.rows("SELECT dispatched, skipped FROM recur.tick()", &[])[0];
    (row.get(0), row.get(1))
}

#[test]
fn without_a_window_each_occurrence_has_a_dispatch() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for name in ["a", "b"] {
        create(&mut session, name, ", dedup_key => 'same'");
        trigger(&mut session, name);
    }
    set_due(&mut session, "now()", "");
    assert_eq!(tick(&mut session), (2, 0));
    assert_eq!(pending(&mut session), 4);
    // Nor with a window of 0, whatever the setting.
    session.batch("SELECT recur.set_setting('dedup_window', '1h')");
    create(
        &mut session,
        "c",
        ", dedup_key => 'same', dedup_window => '0'",
    );
    trigger(&mut session, "c");
    assert_eq!(pending(&mut session), 5);
    // The setting is the window of actions that have none.
    trigger(&mut session, "a");
    assert_eq!(pending(&mut session), 5);
}

#[test]
fn a_triggered_duplicate_is_merged_or_skipped() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create(&mut session, "a", KEYED);
    create(&mut session, "b", KEYED);
    create(
        &mut session,
        "quiet",
        &format!("{KEYED}, on_duplicate => 'skip'"),
    );
    let first = trigger(&mut session, "a");
    assert_eq!(trigger(&mut session, "b"), first);
    assert_eq!(payload(&mut session, first), json!({"of": "b"}));
    assert_eq!(trigger(&mut session, "quiet"), first);
    assert_eq!(payload(&mut session, first), json!({"of": "b"}));
    let given: Uuid = session.value("SELECT recur.trigger('a', '{\"n\": 1}')", &[]);
    assert_eq!(given, first);
    assert_eq!(payload(&mut session, first), json!({"n": 1}));
    assert_eq!(pending(&mut session), 1);
    assert_eq!(
        skips(&mut session),
        ["b merged 1 t", "quiet duplicate 1 t", "a merged 1 t"]
    );
    let runs: i64 = session.value(
        "SELECT sum(run_count)::bigint FROM recur.recurring_actions",
        &[],
    );
    assert_eq!(runs, 0);
    let said = cluster.run_script("app", "SELECT recur.trigger('quiet')");
    let notice = "NOTICE:  a dispatch with the same dedup_key is pending: it stays as it is, and its id is returned";
    assert!(said.contains(notice), "{said}");
    // What runs is no longer pending.
    claim_this(&mut session, first);
    assert_ne!(trigger(&mut session, "a"), first);
}

#[test]
fn a_scheduled_duplicate_is_merged_or_skipped_and_explained() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let [merging, skipping] = [
        create(&mut session, "merging", KEYED),
        create(
            &mut session,
            "skipping",
            &format!("{KEYED}, on_duplicate => 'skip'"),
        ),
    ];
    let first: Uuid = session.value(
        "SELECT recur.enqueue('p', 't', dedup_key => 'same', run_at => now() + interval '1 minute')",
        &[],
    );
    set_due(&mut session, "date_trunc('second', now())", "");
    assert_eq!(tick(&mut session), (0, 2));
    assert_eq!(payload(&mut session, first), json!({"of": "merging"}));
    assert_eq!(pending(&mut session), 1);
    let mut seen = skips(&mut session);
    seen.sort();
    assert_eq!(seen, ["merging merged 1 t", "skipping duplicate 1 t"]);
    for (action, words) in [
        (merging, "and took over the payload"),
        (skipping, "and the occurrence was skipped"),
    ] {
        let row = &session.rows(
            "SELECT x.verdict, x.explanation, x.dispatch_id
               FROM recur.events AS e, recur.explain($1::uuid, (e.detail ->> 'from')::timestamptz) AS x
              WHERE e.action_id = $1 AND e.kind = 'occurrence.skipped'",
            &[&action],
        )[0];
        assert_eq!(
            (row.get::<_, String>(0), row.get::<_, String>(1)),
            (
                "skipped".to_owned(),
                format!("a dispatch with the same dedup_key, {first}, was pending, {words}")
            )
        );
        assert_eq!(row.get::<_, Uuid>(2), first);
    }
    // No run was had.
    let runs: bool = session.value(
        "SELECT bool_and(run_count = 0 AND last_run_at IS NULL AND next_run_at > now())
           FROM recur.recurring_actions",
        &[],
    );
    assert!(runs);
    // Older than the window.
    session
        .batch("UPDATE recur_internal.live_dispatches SET created_at = now() - interval '2 hours'");
    set_due(&mut session, "now()", "");
    assert_eq!(tick(&mut session), (1, 1));
}

#[test]
fn of_one_batch_the_first_stands_for_the_others() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for name in ["a", "b", "c"] {
        create(&mut session, name, KEYED);
    }
    for (name, due) in [("a", 3), ("b", 2), ("c", 1)] {
        set_due(
            &mut session,
            &format!("now() - interval '{due} seconds'"),
            &pg_recur_tests::timers::of_action(name),
        );
    }
    assert_eq!(tick(&mut session), (1, 2));
    let id: Uuid = session.value("SELECT id FROM recur.dispatches", &[]);
    assert_eq!(payload(&mut session, id), json!({"of": "c"}), "the latest");
    assert_eq!(skips(&mut session), ["b merged 1 t", "c merged 1 t"]);
}

#[test]
fn the_occurrences_of_an_outage_have_one_dispatch_or_keys_of_their_own() {
    for (key, expected) in [("same", (1, 5)), ("at {{execution_time}}", (6, 0))] {
        let cluster = Cluster::quiet();
        let mut session = cluster.database("app");
        session.batch(&format!(
            "SELECT recur.create('a', '* * * * *', 'p', 't', misfire => 'all', dedup_key => '{key}',
                                 dedup_window => '1 day')"
        ));
        set_due(
            &mut session,
            "date_trunc('minute', now()) - interval '5 minutes'",
            "",
        );
        // By the clock at the start of the call: a minute may begin meanwhile.
        let (dispatched, skipped) = tick(&mut session);
        let is_next_minute = i64::from(dispatched + skipped > 6);
        let (fired, dropped) = expected;
        let more = [
            (fired > 1) as i64 * is_next_minute,
            (dropped > 0) as i64 * is_next_minute,
        ];
        assert_eq!(
            (dispatched, skipped),
            (fired + more[0], dropped + more[1]),
            "{key}"
        );
    }
}

#[test]
fn a_key_belongs_to_an_owner_a_namespace_and_a_tenant() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session
        .batch("CREATE ROLE keys_apart; SELECT recur.grant_access('keys_apart', 'author'); SET ROLE keys_apart");
    create(&mut session, "other", KEYED);
    session.batch("RESET ROLE");
    create(&mut session, "plain", KEYED);
    create(
        &mut session,
        "namespace",
        &format!("{KEYED}, namespace => 'x'"),
    );
    create(&mut session, "tenant", &format!("{KEYED}, tenant => 'x'"));
    create(
        &mut session,
        "key",
        ", dedup_key => 'else', dedup_window => '1 hour'",
    );
    set_due(&mut session, "now()", "");
    assert_eq!(tick(&mut session), (5, 0));
}

/// The payload of one provider or action type is nothing for the other's consumer.
#[test]
fn a_dispatch_of_another_kind_takes_over_no_payload() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create(&mut session, "a", KEYED);
    let received: Uuid = session.value(
        "SELECT recur.receive('p', 't', 'body', dedup_key => 'same')",
        &[],
    );
    let before = payload(&mut session, received);
    assert_eq!(trigger(&mut session, "a"), received);
    assert_eq!(payload(&mut session, received), before);
    session.batch(&format!(
        "SELECT recur.create('b', '@yearly', 'elsewhere', 't'{KEYED})"
    ));
    assert_eq!(trigger(&mut session, "b"), received);
    assert_eq!(skips(&mut session), ["a duplicate 1 t", "b duplicate 1 t"]);
}

#[test]
fn a_backfill_drops_duplicates_too() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(&format!(
        "SELECT recur.create('a', '0 * * * *', 'p', 't', starts_at => now() - interval '20 hours'{KEYED});
         SELECT recur.create('own', '0 * * * *', 'p', 't', starts_at => now() - interval '20 hours',
                             dedup_key => '{{{{recurring_id}}}} {{{{execution_time}}}}', dedup_window => '1 hour')"
    ));
    let backfill = "SELECT recur.backfill('{}', now() - interval '10 hours', now())";
    let said = cluster.run_script("app", &backfill.replace("{}", "a"));
    assert_eq!(pending(&mut session), 1);
    assert!(
        said.contains("NOTICE:  9 occurrences have the dedup_key of a pending dispatch")
            || said.contains("NOTICE:  10 occurrences have"),
        "{said}"
    );
    assert_eq!(skips(&mut session).len(), 1);
    assert_eq!(
        cluster.run_script("app", &backfill.replace("{}", "own")),
        ""
    );
    assert!(pending(&mut session) >= 10);
}

#[test]
fn of_concurrent_duplicates_one_is_written() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for name in ["a", "b"] {
        create(&mut session, name, KEYED);
    }
    std::thread::scope(|scope| {
        for number in 0..6 {
            let mut session = cluster.session("app");
            scope.spawn(move || {
                for _ in 0..15 {
                    match number {
                        0 | 1 => {
                            session.batch("SELECT recur.tick()");
                            set_due(&mut session, "now()", "");
                        }
                        2 | 3 => _ = trigger(&mut session, "a"),
                        _ => _ = trigger(&mut session, "b"),
                    }
                }
            });
        }
    });
    assert_eq!(pending(&mut session), 1);
}

/// The dispatcher, and `recur.tick`, wait for no lock: what is not decided now is decided a little later.
#[test]
fn a_key_that_a_transaction_holds_is_decided_later() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut other = cluster.session("app");
    create(&mut session, "a", KEYED);
    create(
        &mut session,
        "free",
        ", dedup_key => 'free', dedup_window => '1 hour'",
    );
    set_due(&mut session, "now()", "");
    other.batch("BEGIN; SELECT recur.enqueue('p', 't', dedup_key => 'same')");
    let begun = Instant::now();
    assert_eq!(tick(&mut session), (1, 0), "the free one");
    assert_eq!(tick(&mut session), (0, 0));
    assert!(begun.elapsed().as_secs() < 20);
    other.batch("COMMIT");
    assert_eq!(tick(&mut session), (0, 1), "merged");
    // A claim that is not committed holds the dispatch that an occurrence would be merged into.
    set_due(
        &mut session,
        "now()",
        &pg_recur_tests::timers::of_action("a"),
    );
    other.batch("BEGIN; SELECT recur.claim(10)");
    assert_eq!(tick(&mut session), (0, 0));
    other.batch("ROLLBACK");
    assert_eq!(tick(&mut session), (0, 1), "merged");
    set_due(
        &mut session,
        "now()",
        &pg_recur_tests::timers::of_action("a"),
    );
    other.batch("BEGIN; SELECT recur.claim(10)");
    assert_eq!(tick(&mut session), (0, 0));
    other.batch("COMMIT");
    assert_eq!(tick(&mut session), (1, 0), "running, no longer pending");
}

/// A session that triggers does wait.
#[test]
fn a_trigger_waits_for_the_other_one() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create(&mut session, "a", KEYED);
    session.batch("BEGIN");
    let first = trigger(&mut session, "a");
    let second = pg_recur_tests::overtake(
        &cluster,
        "app",
        |waiting: &mut Session| trigger(waiting, "a"),
        || session.batch("COMMIT"),
    );
    assert_eq!(second, first);
}

#[test]
fn more_keys_than_one_transaction_locks_take_several() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT count(recur.create('a' || n, '@yearly', 'p', 't', dedup_key => 'k' || n, dedup_window => '1 hour'))
           FROM generate_series(1, 600) AS n",
    );
    set_due(&mut session, "now()", "");
    let ticks = [1, 2, 3, 4].map(|_| tick(&mut session).0);
    assert_eq!(ticks, [256, 256, 88, 0]);
    // The dispatcher goes on by itself.
    let served = Cluster::shared();
    let mut session = served.database("app");
    session.batch(
        "SELECT count(recur.create('a' || n, '@yearly', 'p', 't', dedup_key => 'k' || n, dedup_window => '1 hour'))
           FROM generate_series(1, 600) AS n",
    );
    set_due(&mut session, "now()", "");
    eventually("all of them are dispatched", || {
        pending(&mut session) == 600
    });
}

/// What is about to be cancelled stands for nothing.
#[test]
fn an_occurrence_that_cancels_the_previous_one_is_no_duplicate_of_it() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create(
        &mut session,
        "a",
        &format!("{KEYED}, overlap => 'cancel_previous'"),
    );
    let first = trigger(&mut session, "a");
    set_due(&mut session, "now()", "");
    assert_eq!(tick(&mut session), (1, 0));
    assert_eq!(status(&mut session, first), "cancelled");
    // Nor by hand.
    trigger(&mut session, "a");
    assert_eq!(pending(&mut session), 1);
    assert_eq!(skips(&mut session), Vec::<String>::new());
}

/// A run that did not take place is still to come.
#[test]
fn duplicates_do_not_use_up_max_runs() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create(&mut session, "a", &format!("{KEYED}, max_runs => 1"));
    let first: Uuid = session.value("SELECT recur.enqueue('p', 't', dedup_key => 'same')", &[]);
    set_due(&mut session, "now()", "");
    assert_eq!(tick(&mut session), (0, 1));
    claim_this(&mut session, first);
    set_due(&mut session, "now()", "");
    assert_eq!(tick(&mut session), (1, 0));
    let ended: String = session.value("SELECT ended_reason FROM recur.recurring_actions", &[]);
    assert_eq!(ended, "exhausted");
}

/// Others pay nothing for it: no statement is run for an action without a window, neither by the schedule nor by hand.
#[test]
fn an_action_without_a_window_takes_no_statement_more() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create(&mut session, "plain", "");
    create(&mut session, "keyed", ", dedup_key => 'same'");
    let mut is_asked = |call: &str| {
        set_due(&mut session, "now()", "");
        let plans = cluster.plans("app", "postgres", &format!("SELECT {call}"));
        assert!(
            plans.contains("INSERT INTO recur_internal.live_dispatches"),
            "{plans}"
        );
        plans.contains("The keys of occurrences")
            || plans.contains("The pending dispatches that stand")
    };
    assert!(!is_asked("recur.tick()"));
    assert!(!is_asked("recur.trigger('plain')"));
    assert!(!is_asked("recur.trigger('keyed')"));
    cluster.run_script(
        "app",
        "SELECT recur.update('keyed', '{\"dedup_key\": \"other\", \"dedup_window\": \"1 hour\"}')",
    );
    assert!(is_asked("recur.tick()"));
}
