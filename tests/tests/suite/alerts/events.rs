//! Events of dispatches: which are recorded, and what they say.

use pg_recur_tests::queue::{claim_this, enqueue, idle_action, queue_for};
use pg_recur_tests::{Cluster, Session, eventually};
use serde_json::Value;
use uuid::Uuid;

/// Kind and detail of the events of dispatches, oldest first.
fn recorded(session: &mut Session) -> Vec<(String, Value)> {
    let rows = session.rows(
        "SELECT kind, detail FROM recur.events WHERE dispatch_id IS NOT NULL AND kind LIKE 'dispatch.%' ORDER BY id",
        &[],
    );
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn kinds(session: &mut Session) -> String {
    let kinds: Vec<String> = recorded(session)
        .into_iter()
        .map(|(kind, _)| kind)
        .collect();
    kinds.join(" ").replace("dispatch.", "")
}

/// One dispatch is completed, one fails twice, one is cancelled.
fn live(session: &mut Session, action: Uuid) {
    let id = queue_for(session, action);
    claim_this(session, id);
    session.execute("SELECT recur.complete($1, 1)", &[&id]);
    let id = queue_for(session, action);
    claim_this(session, id);
    session.execute("SELECT recur.fail($1, 1, 'first')", &[&id]);
    session.batch("SELECT recur.set_clock('2040-01-02')");
    claim_this(session, id);
    session.execute("SELECT recur.fail($1, 2, 'second')", &[&id]);
    let id = queue_for(session, action);
    session.execute("SELECT recur.cancel($1, 'not needed')", &[&id]);
    session.batch("SELECT recur.set_clock('2040-01-01')");
}

#[test]
fn what_somebody_has_to_look_into_and_what_somebody_did_is_recorded_by_default() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SELECT recur.set_clock('2040-01-01')");
    let action = idle_action(&mut session, ", max_attempts => 2");
    live(&mut session, action);
    assert_eq!(kinds(&mut session), "triggered triggered failed triggered");
    let (_, failed) = recorded(&mut session).remove(2);
    assert_eq!(
        failed,
        serde_json::json!({"attempt": 2, "error": "second", "claimed_by": "pg_recur-tests"})
    );
}

#[test]
fn an_action_decides_for_itself() {
    for (wanted, expected) in [
        ("none", ""),
        ("failed", "failed"),
        (
            "all",
            "triggered completed triggered retrying failed triggered cancelled",
        ),
        ("completed, cancelled", "completed cancelled"),
    ] {
        let cluster = Cluster::quiet();
        let mut session = cluster.database("app");
        session.batch("SELECT recur.set_clock('2040-01-01')");
        let more = format!(", max_attempts => 2, record_events => '{wanted}'");
        let action = idle_action(&mut session, &more);
        live(&mut session, action);
        assert_eq!(kinds(&mut session), expected, "{wanted}");
        // The others are not silenced by it.
        let other = enqueue(&mut session, "max_attempts => 1");
        claim_this(&mut session, other);
        session.execute("SELECT recur.fail($1, 1, 'x')", &[&other]);
        let last = recorded(&mut session).pop().expect("an event").0;
        assert_eq!(last, "dispatch.failed");
    }
}

#[test]
fn a_database_decides_for_its_actions_and_for_what_is_enqueued() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SELECT recur.set_setting('record_events', 'completed, retrying')");
    let id = enqueue(&mut session, "");
    claim_this(&mut session, id);
    session.execute(
        "SELECT recur.fail_many(ARRAY[$1::uuid], ARRAY[1], ARRAY['x'])",
        &[&id],
    );
    session.batch("SELECT recur.set_clock('1 hour')");
    claim_this(&mut session, id);
    session.execute(
        "SELECT recur.complete_many(ARRAY[$1::uuid], ARRAY[2])",
        &[&id],
    );
    assert_eq!(kinds(&mut session), "retrying completed");
    let (_, retrying) = recorded(&mut session).remove(0);
    assert_eq!(
        (&retrying["error"], &retrying["attempt"]),
        (&"x".into(), &1.into())
    );
    let (code, message, _) = session.error("SELECT recur.set_setting('record_events', 'most')");
    assert_eq!(code, "22023", "{message}");
}

#[test]
fn an_unknown_kind_is_refused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let create = "SELECT recur.create('n', '@daily', 'p', 'a', record_events => 'dispatch.failed')";
    let (code, message, hint) = session.error(create);
    assert_eq!(
        (code.as_str(), message.as_str(), hint.as_str()),
        (
            "22023",
            "invalid record_events \"dispatch.failed\": must be all, none, or some of completed, failed, cancelled, \
             retrying, triggered, separated by commas",
            "Leave it out to use recur.record_events."
        )
    );
    session
        .batch("SELECT recur.create('n', '@daily', 'p', 'a', record_events => 'triggered,failed')");
    let stored: String = session.value("SELECT record_events FROM recur.recurring_actions", &[]);
    assert_eq!(stored, "failed, triggered");
}

#[test]
fn a_report_that_is_rolled_back_leaves_nothing() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur_events");
    let action = idle_action(&mut session, ", max_attempts => 1, error_threshold => 1");
    let id = queue_for(&mut session, action);
    claim_this(&mut session, id);
    listener.waiting_notifications();
    session.batch(&format!(
        "BEGIN; SELECT recur.fail('{id}', 1, 'x'); ROLLBACK"
    ));
    assert_eq!(kinds(&mut session), "triggered");
    let row =
        "SELECT failed_in_a_row::text || coalesce(last_run_error, '') FROM recur.recurring_actions";
    assert_eq!(session.texts(row, &[]), ["0"]);
    assert_eq!(listener.waiting_notifications(), Vec::<Value>::new());
}

#[test]
fn events_are_announced_with_ids_and_many_as_a_count() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur_events");
    let action = idle_action(
        &mut session,
        ", max_attempts => 1, contact => 'ops@example.com'",
    );
    let muted = idle_action(&mut session, ", max_attempts => 1, mute => true");
    for action in [action, muted] {
        let id = queue_for(&mut session, action);
        claim_this(&mut session, id);
        listener.waiting_notifications();
        session.execute("SELECT recur.fail($1, 1, 's3cret')", &[&id]);
        let heard = listener.waiting_notifications();
        match action == muted {
            true => assert_eq!(heard, Vec::<Value>::new()),
            false => {
                assert_eq!(heard.len(), 1);
                assert_eq!(heard[0]["kind"], "dispatch.failed");
                assert_eq!(heard[0]["dispatch_id"], id.to_string());
                assert_eq!(heard[0]["action_id"], action.to_string());
                assert_eq!(heard[0].as_object().map(|one| one.len()), Some(4));
            }
        }
    }
    session.batch("SELECT recur.set_setting('notify_each_max', '3')");
    session.batch(
        "SELECT count(recur.enqueue('p', 'a', max_attempts => 1)) FROM generate_series(1, 4)",
    );
    session.batch(
        "SELECT r.* FROM (SELECT array_agg(id) AS ids, array_agg(attempt) AS attempts FROM recur.claim(10)) AS c,
                LATERAL recur.fail_many(c.ids, c.attempts, ARRAY['a', 'b', 'c', 'd']) AS r",
    );
    assert_eq!(
        listener.waiting_notifications(),
        [serde_json::json!({"kind": "dispatch.failed", "count": 4})]
    );
}

#[test]
fn a_lease_that_runs_out_for_good_is_a_failure_like_any_other() {
    let cluster = Cluster::preloaded("recur.check_interval = '200ms'");
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, ", max_attempts => 1, error_threshold => 1");
    queue_for(&mut session, action);
    session.batch("SELECT recur.claim(1, lease => '10 milliseconds')");
    let events = "SELECT array_to_string(array_agg(kind ORDER BY id), ' ') FROM recur.events
                   WHERE action_id = $1 AND kind <> 'action.created'";
    let expected = "dispatch.triggered dispatch.failed owner.notified dispatch.recovered";
    eventually("the maintenance worker has seen it", || {
        let seen: Option<String> = session.value(events, &[&action]);
        seen.as_deref() == Some(expected)
    });
    let row: Value = session.value(
        "SELECT to_jsonb(a) FROM recur.get($1::uuid) AS a",
        &[&action],
    );
    assert_eq!(row["last_run_error"], "lease expired");
    assert_eq!(row["failed_in_a_row"], 1);
    assert_ne!(row["failing_since"], Value::Null);
    // The action itself was dispatched without an error.
    assert_eq!(
        (&row["last_error"], &row["error_count"]),
        (&Value::Null, &0.into())
    );
    let message: String = session.value(
        "SELECT detail ->> 'guidance' FROM recur.events WHERE kind = 'owner.notified' AND action_id = $1",
        &[&action],
    );
    assert!(
        message.contains("consumers of provider \"test\""),
        "{message}"
    );
}

#[test]
fn the_overview_shows_failing_runs_and_runs_by_hand() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, ", max_attempts => 1");
    let shown =
        "SELECT concat_ws(' ', state, split_part(last_outcome, ' ', 1)) FROM recur.overview";
    assert_eq!(session.texts(shown, &[]), ["active"]);
    for (report, expected) in [
        ("complete($1, 1)", "active completed"),
        ("fail($1, 1, 'disk full')", "failing failed"),
        ("complete($1, 1)", "active completed"),
    ] {
        let id = queue_for(&mut session, action);
        claim_this(&mut session, id);
        session.execute(&format!("SELECT recur.{report}"), &[&id]);
        assert_eq!(session.texts(shown, &[]), [expected], "{report}");
        let findings = session.texts(
            "SELECT finding FROM recur.doctor() WHERE severity = 'warning'",
            &[],
        );
        let is_found = findings
            .iter()
            .any(|one| one.contains("have failed 1 times in a row") && one.ends_with("disk full"));
        assert_eq!(is_found, expected == "failing failed", "{findings:?}");
    }
    // What went wrong last stays to be seen.
    let last: String = session.value("SELECT last_run_error FROM recur.recurring_actions", &[]);
    assert_eq!(last, "disk full");
}
