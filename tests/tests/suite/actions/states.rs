//! The states of an action: paused, resumed, ended, deleted; one at a time, in bulk, by plain SQL, and by two at once.

use chrono::{DateTime, Utc};
use pg_recur_tests::actions::{create_to_change, refused_update, row, update};
use pg_recur_tests::timers::{of_action, set_due};
use pg_recur_tests::{Cluster, Session, eventually};
use serde_json::{Value, json};
use uuid::Uuid;

#[test]
fn what_is_paused_can_be_resumed_and_what_runs_can_not() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = create_to_change(&mut session);
    assert_eq!(
        session.error_with("SELECT recur.resume($1::uuid)", &[&id]),
        (
            "55000".to_owned(),
            "action \"n\" is not paused".to_owned(),
            String::new()
        )
    );
    session.execute("SELECT recur.pause($1::uuid, 'holidays')", &[&id]);
    let paused = row(&mut session, id);
    assert_eq!(paused["enabled"], json!(false));
    assert_eq!(paused["paused_reason"], json!("holidays"));
    assert_eq!(paused["next_run_at"], Value::Null);
    assert_eq!(
        session.error_with("SELECT recur.pause($1::uuid)", &[&id]),
        (
            "55000".to_owned(),
            "action \"n\" is paused already".to_owned(),
            "recur.resume starts it again.".to_owned()
        )
    );
    // A change while paused stays paused.
    assert_eq!(
        update(&mut session, id, json!({"schedule": "@hourly"}))["next_run_at"],
        Value::Null
    );
    session.execute("SELECT recur.resume($1::uuid)", &[&id]);
    let resumed = row(&mut session, id);
    assert_eq!(resumed["enabled"], json!(true));
    assert_eq!(resumed["paused_reason"], Value::Null);
    assert_ne!(resumed["next_run_at"], Value::Null);
    let reason = refused_update(&mut session, id, json!({"paused_reason": "why"}));
    assert_eq!(
        reason.1,
        "invalid paused_reason \"why\": the action is not paused"
    );
}

#[test]
fn what_has_ended_is_resumed_only_after_its_end_was_moved() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = create_to_change(&mut session);
    session.batch(
        "SELECT recur.pause(id) FROM recur.recurring_actions;
         UPDATE recur_internal.timers SET run_count = 4",
    );
    update(&mut session, id, json!({"max_runs": 5}));
    session.batch("UPDATE recur_internal.timers SET run_count = 5, ended_reason = 'exhausted'");
    assert_eq!(
        session.error_with("SELECT recur.resume($1::uuid)", &[&id]),
        (
            "55000".to_owned(),
            "action \"n\" has had all of its 5 runs".to_owned(),
            "Raise max_runs first.".to_owned()
        )
    );
    assert_eq!(
        session.error_with("SELECT recur.pause($1::uuid)", &[&id]).1,
        "action \"n\" has ended"
    );
    let revived = update(&mut session, id, json!({"max_runs": 6}));
    assert_eq!(
        (&revived["enabled"], &revived["ended_reason"]),
        (&json!(true), &Value::Null)
    );
    session.batch("SELECT recur.pause(id) FROM recur.recurring_actions");
    session.batch(
        "UPDATE recur_internal.definitions SET starts_at = '2020-01-01Z', ends_at = '2020-06-01Z'",
    );
    assert_eq!(
        session.error_with("SELECT recur.resume($1::uuid)", &[&id]),
        (
            "55000".to_owned(),
            "action \"n\" has no occurrence left".to_owned(),
            "Change the schedule or ends_at first.".to_owned()
        )
    );
}

#[test]
fn a_deleted_action_is_unknown_to_every_function() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = create_to_change(&mut session);
    let deleted: Value = session.value(
        "SELECT to_jsonb(a) FROM recur.delete($1::uuid) AS a",
        &[&id],
    );
    assert_eq!(deleted["id"], json!(id.to_string()));
    for function in ["get", "pause", "resume", "delete", "describe", "preview"] {
        let (code, message, hint) =
            session.error_with(&format!("SELECT recur.{function}($1::uuid)"), &[&id]);
        assert_eq!(
            (code.as_str(), message),
            ("P0002", format!("no action has the id {id}")),
            "{function}"
        );
        assert_eq!(hint, "recur.list() shows the actions that you can see.");
    }
    let left: i64 = session.value(
        "SELECT (SELECT count(*) FROM recur_internal.definitions) + (SELECT count(*) FROM recur_internal.timers)
              + (SELECT count(*) FROM recur_internal.progress) + (SELECT count(*) FROM recur.contexts)",
        &[],
    );
    assert_eq!(left, 0);
}

#[test]
fn bulk_forms_return_what_they_touched() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for (name, namespace, tenant, team) in [
        ("a", "x", "t1", "red"),
        ("b", "x", "t2", "red"),
        ("c", "y", "t1", "blue"),
        ("d", "y", "t2", "blue"),
    ] {
        session.execute(
            "SELECT recur.create($1, '@daily', 'p', 'a', namespace => $2, tenant => $3,
                                 labels => jsonb_build_object('team', $4::text))",
            &[&name, &namespace, &tenant, &team],
        );
    }
    let names = |session: &mut Session, call: &str| -> String {
        session.value(
            &format!("SELECT coalesce(string_agg(name, ',' ORDER BY name), '') FROM recur.{call}"),
            &[],
        )
    };
    assert_eq!(
        names(
            &mut session,
            "pause_all(namespace => 'x', reason => 'move')"
        ),
        "a,b"
    );
    assert_eq!(names(&mut session, "list(enabled => false)"), "a,b");
    assert_eq!(names(&mut session, "pause_all(tenant => 't1')"), "c");
    assert_eq!(
        names(&mut session, "pause_all(labels => '{\"team\": \"blue\"}')"),
        "d"
    );
    assert_eq!(names(&mut session, "pause_all()"), "");
    let reason: String = session.value(
        "SELECT paused_reason FROM recur.get(recur.id_of('a', 'x', 't1'))",
        &[],
    );
    assert_eq!(reason, "move");
    // What was paused by itself stays so, and edits do not make it one of many.
    session.batch(
        "SELECT recur.create('e', '@daily', 'p', 'a'); SELECT recur.pause('e', 'by itself');
         SELECT recur.update(id, '{\"paused_reason\": \"edited\", \"schedule\": \"@hourly\"}')
           FROM recur.recurring_actions WHERE name IN ('c', 'e')",
    );
    // Those that have ended, or would have nothing to do, are left as they are.
    session.batch(
        "UPDATE recur_internal.timers SET ended_reason = 'expired'
          WHERE action_id = recur.id_of('a', 'x', 't1');
         UPDATE recur_internal.definitions SET starts_at = '2020-01-01Z', ends_at = '2020-06-01Z' WHERE name = 'b'",
    );
    assert_eq!(names(&mut session, "resume_all(namespace => 'x')"), "");
    assert_eq!(
        names(
            &mut session,
            "resume_all(tenant => 't2', labels => '{\"team\": \"blue\"}')"
        ),
        "d"
    );
    assert_eq!(names(&mut session, "resume_all()"), "c");
    let (running, next): (i64, i64) = {
        let row = &session.rows(
            "SELECT count(*) FILTER (WHERE enabled), count(next_run_at)
               FROM recur.recurring_actions",
            &[],
        )[0];
        (row.get(0), row.get(1))
    };
    assert_eq!((running, next), (2, 2));
    assert_eq!(
        session.count("recur.events WHERE kind = 'action.paused'"),
        5
    );
}

/// What an admin does with plain SQL has the same effects as the functions.
#[test]
fn plain_insert_update_and_delete_work_like_the_functions() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    session.batch("SET timezone = 'UTC'");
    let id: Uuid = session.value(
        "INSERT INTO recur.recurring_actions (name, schedule, provider, action_type)
         VALUES ('n', '@yearly', 'p', 'a') RETURNING id",
        &[],
    );
    // It is recomputed, and the dispatcher is woken: it slept until next year, and its safety net is an hour wide.
    session.execute(
        "UPDATE recur.recurring_actions SET schedule = '* * * * * *' WHERE id = $1",
        &[&id],
    );
    // Not merely staged: that would be withdrawn.
    eventually("it fires", || {
        let fired = "SELECT count(*) FROM recur.dispatches WHERE available_at <= now()";
        session.value::<i64>(fired, &[]) > 0
    });
    session.execute(
        "UPDATE recur.recurring_actions SET enabled = false, paused_reason = 'by hand'",
        &[],
    );
    let paused = row(&mut session, id);
    assert_eq!(
        (&paused["next_run_at"], &paused["paused_reason"]),
        (&Value::Null, &json!("by hand"))
    );

    session.batch("DELETE FROM recur.recurring_actions");
    assert_eq!(
        session.error_with("SELECT recur.get($1::uuid)", &[&id]).0,
        "P0002"
    );
    let history: i64 = session.value("SELECT count(*) FROM recur.history($1::uuid)", &[&id]);
    assert!(history > 0, "history stays");
    assert_eq!(
        session.count("recur.dispatches WHERE status = 'pending'"),
        0,
        "what was not claimed is cancelled"
    );
}

#[test]
fn plain_sql_can_not_store_what_the_functions_refuse() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SET timezone = 'UTC'");
    session.batch("SELECT recur.create('n', '@yearly', 'p', 'a', enabled => false)");
    for (change, message) in [
        ("schedule = 'soon'", "invalid schedule \"soon\": "),
        (
            "timezone = 'Nowhere'",
            "invalid timezone \"Nowhere\": not an IANA time zone",
        ),
        ("provider = ''", "invalid provider \"\": must not be empty"),
        (
            "payload = '[]'",
            "invalid payload \"[]\": must be a JSON object",
        ),
        (
            "tenant = NULL",
            "invalid tenant \"NULL\": must have a value",
        ),
        (
            "run_count = 7",
            "invalid change \"run_count\": this column is maintained by pg_recur",
        ),
        (
            "next_run_at = now()",
            "invalid change \"next_run_at\": this column is maintained by pg_recur",
        ),
        (
            "id = gen_random_uuid()",
            "invalid change \"id\": this column is maintained by pg_recur",
        ),
        (
            "overlap = 'maybe'",
            "invalid overlap \"maybe\": must be allow, skip, queue_one or cancel_previous",
        ),
        (
            "ends_at = '2001-01-01Z'",
            "invalid ends_at \"2001-01-01 00:00:00+00\": must lie in the future",
        ),
        (
            "ends_at = '2001-01-01Z', starts_at = '2001-01-02Z'",
            "invalid ends_at \"2001-01-01 00:00:00+00\": must not lie before starts_at, which is ",
        ),
    ] {
        let (code, text, _) =
            session.error(&format!("UPDATE recur.recurring_actions SET {change}"));
        assert_eq!(code, "22023", "{change}: {text}");
        assert!(text.starts_with(message), "{change}: {text}");
    }
    let given = session.error(
        "INSERT INTO recur.recurring_actions (id, name, schedule, provider, action_type)
         VALUES (gen_random_uuid(), 'm', '@daily', 'p', 'a')",
    );
    assert_eq!(
        given.1,
        "an action's id, counters and times can not be given: they are worked out"
    );
    // The tables behind the view, which only superusers may touch, refuse what would stop an action without a trace.
    for (change, code) in [
        ("definitions SET schedule = 'soon'", "22023"),
        ("definitions SET timezone = 'Nowhere'", "22023"),
        ("timers SET next_run_at = now(), due_at = now()", "23514"),
        ("timers SET enabled = true, next_run_at = now()", "23514"),
    ] {
        assert_eq!(
            session.error(&format!("UPDATE recur_internal.{change}")).0,
            code,
            "{change}"
        );
    }
}

/// Superusers can write anything into the tables. A value that no function would have stored is an error of its action.
#[test]
fn what_is_invalid_in_the_tables_is_an_error_of_its_action_alone() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SET timezone = 'UTC'");
    for columns in [
        "misfire = 'maybe'",
        "overlap = 'maybe'",
        "on_dst_gap = 'maybe'",
        "max_runs = 0",
        "ends_at = starts_at - interval '1 day'",
        "jitter = '-1 day'",
        "retry_backoff = '[]'",
        "metadata = '[]'",
        "payload = '[]'",
    ] {
        let id: Uuid = session.value("SELECT recur.create($1, '@hourly', 'p', 'a')", &[&columns]);
        session.execute(
            &format!("UPDATE recur_internal.definitions SET {columns} WHERE id = $1"),
            &[&id],
        );
    }
    session.batch("SELECT recur.create('sound', '@hourly', 'p', 'a')");
    session.batch("SELECT recur.tick(max(next_run_at)) FROM recur.recurring_actions");
    // Each was dispatched, has ended, or says what is wrong.
    let silent = session.texts(
        "SELECT a.name FROM recur.recurring_actions AS a
          WHERE a.run_count = 0 AND a.ended_reason IS NULL AND a.last_error IS NULL",
        &[],
    );
    assert_eq!(silent, Vec::<String>::new());
    let policies = session.texts(
        "SELECT last_error FROM recur.recurring_actions WHERE name LIKE '%maybe%' ORDER BY name",
        &[],
    );
    for (error, column) in policies.iter().zip(["misfire", "on_dst_gap", "overlap"]) {
        assert!(error.contains(&format!("{column} \"maybe\"")), "{error}");
    }
    assert_eq!(policies.len(), 3);
    assert_eq!(
        session.count("recur.dispatches WHERE action_id = recur.id_of('sound')"),
        1
    );
}

/// recur_internal.timers is internal, but an operator in need may set a timer.
#[test]
fn a_timer_that_is_set_by_hand_is_followed() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.create('a', '@yearly', 'p', 't');
         SELECT recur.create('b', '@yearly', 'p', 't', horizon => '2 years')",
    );
    eventually("what lies ahead has been dispatched", || {
        session.value("SELECT run_count > 0 FROM recur.get('b')", &[])
    });
    // It shall run now: the dispatcher, which sleeps until next year, is woken.
    let next: DateTime<Utc> = session.value("SELECT next_run_at FROM recur.get('a')", &[]);
    set_due(&mut session, "date_trunc('second', now())", &of_action("a"));
    eventually("it runs, and then again at its next occurrence", || {
        session.value(
            "SELECT run_count = 1 AND last_run_at <= now() AND next_run_at = $1 FROM recur.get('a')",
            &[&next],
        )
    });
    // It can't run without being due, nor while it is paused.
    for change in [
        "due_at = NULL",
        "enabled = false",
        "enabled = false, due_at = NULL",
    ] {
        let (code, message, _) =
            session.error(&format!("UPDATE recur_internal.timers SET {change}"));
        assert_eq!(code, "23514", "{change}: {message}");
    }
    // Paused by hand, after errors.
    session.batch(
        "UPDATE recur_internal.timers SET enabled = false, next_run_at = NULL, due_at = NULL, error_count = 5",
    );
    assert_eq!(session.count("recur.list(enabled => false)"), 2);
    session.batch("SELECT recur.resume(id) FROM recur.recurring_actions");
    let resumed: DateTime<Utc> = session.value("SELECT next_run_at FROM recur.get('a')", &[]);
    assert_eq!(resumed, next);
    assert_eq!(
        session.count("recur.recurring_actions WHERE error_count = 0"),
        2,
        "forgiven"
    );
}
