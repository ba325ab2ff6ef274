//! Changing an action: what changes, what stays, what is refused, by function and by plain UPDATE alike.

use chrono::{DateTime, Utc};
use pg_recur_tests::{Cluster, Session, database_error, eventually};
use serde_json::{Value, json};
use std::thread;
use uuid::Uuid;

fn action(session: &mut Session) -> Uuid {
    session.value(
        "SELECT id FROM recur.create('n', '0 9 * * *', 'p', 'a', '{\"k\": 1}', description => 'd',
                                     ends_at => now() + interval '1 year', contact => 'me', context => '{\"c\": 1}')",
        &[],
    )
}

fn row(session: &mut Session, id: Uuid) -> Value {
    session.value("SELECT to_jsonb(a) FROM recur.get($1) AS a", &[&id])
}

fn update(session: &mut Session, id: Uuid, changes: Value) -> Value {
    session.value(
        "SELECT to_jsonb(a) FROM recur.update($1, $2) AS a",
        &[&id, &changes],
    )
}

fn refused(session: &mut Session, id: Uuid, changes: Value) -> (String, String) {
    let before = row(session, id);
    let error = session.error_with("SELECT recur.update($1, $2)", &[&id, &changes]);
    assert_eq!(row(session, id), before, "a refused change changes nothing");
    (error.0, error.1)
}

#[test]
fn only_what_is_named_changes_and_null_clears() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    let id = action(&mut session);
    let before = row(&mut session, id);
    let after = update(
        &mut session,
        id,
        json!({"payload": {"k": 2}, "priority": 5, "contact": null, "context": null}),
    );
    let mut expected = before.clone();
    expected["payload"] = json!({"k": 2});
    expected["priority"] = json!(5);
    expected["contact"] = Value::Null;
    expected["context"] = Value::Null;
    expected["context_version"] = json!(2);
    expected["updated_at"] = after["updated_at"].clone();
    assert_eq!(after, expected);
    let moved: bool = session.value(
        "SELECT $1::text::timestamptz < $2::text::timestamptz",
        &[
            &before["updated_at"].as_str(),
            &after["updated_at"].as_str(),
        ],
    );
    assert!(moved, "updated_at moves");

    for key in [
        "description",
        "ends_at",
        "max_runs",
        "subject",
        "misfire_grace",
        "horizon",
        "horizon_count",
        "lock_group",
        "notify_channel",
        "primary_agent",
        "fallback_agent",
        "dedup_key",
        "mute_interval",
    ] {
        assert_eq!(
            update(&mut session, id, json!({key: null}))[key],
            Value::Null,
            "{key}"
        );
    }
    for key in [
        "name",
        "namespace",
        "tenant",
        "schedule",
        "timezone",
        "starts_at",
        "provider",
        "action_type",
        "payload",
        "labels",
        "metadata",
        "misfire",
        "overlap",
        "lease",
        "jitter",
        "max_attempts",
        "mute",
        "enabled",
    ] {
        assert_eq!(
            refused(&mut session, id, json!({key: null})),
            (
                "22023".to_owned(),
                format!("invalid {key} \"NULL\": must have a value")
            )
        );
    }
    // Nothing named, nothing changed.
    let before = row(&mut session, id);
    assert_eq!(update(&mut session, id, json!({})), before);
    // The value that it has is no change either.
    assert_eq!(
        update(
            &mut session,
            id,
            json!({"priority": 5, "schedule": "0  9 * * *"})
        )["next_run_at"],
        before["next_run_at"]
    );
}

#[test]
fn unknown_and_maintained_keys_are_refused_by_name() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    let id = action(&mut session);
    for key in [
        "id",
        "owner",
        "duplicate",
        "context_version",
        "ended_reason",
        "next_run_at",
        "last_run_at",
        "run_count",
        "completed_count",
        "failed_count",
        "error_count",
        "last_error",
        "last_error_at",
        "last_notified_at",
        "created_at",
        "updated_at",
    ] {
        assert_eq!(
            refused(&mut session, id, json!({"description": "x", key: "1"})),
            (
                "22023".to_owned(),
                format!("invalid change \"{key}\": this column is maintained by pg_recur")
            )
        );
    }
    // Every column is either the one or the other.
    let forgotten: i64 = session.value(
        "SELECT count(*) FROM pg_attribute WHERE attrelid = 'recur.recurring_actions'::regclass AND attnum > 0
            AND attname <> ALL (recur._writable_columns())",
        &[],
    );
    assert_eq!(forgotten, 16);
    for key in [
        "schedul",
        "Name",
        "name ",
        "",
        "id\"; DROP TABLE recur.timers; --",
    ] {
        assert_eq!(
            refused(&mut session, id, json!({key: "x"})),
            (
                "22023".to_owned(),
                format!("invalid change \"{key}\": an action has no such column")
            )
        );
    }
    let hint = session
        .error_with("SELECT recur.update($1, '{\"x\": 1}')", &[&id])
        .2;
    assert!(
        hint.starts_with("What can be changed: name, namespace, tenant, "),
        "{hint}"
    );
    for changes in [json!([]), json!("name"), Value::Null] {
        assert_eq!(
            refused(&mut session, id, changes.clone()),
            (
                "22023".to_owned(),
                format!("invalid changes \"{changes}\": must be a JSON object")
            )
        );
    }
    // A value of the wrong type names its key.
    assert_eq!(
        refused(&mut session, id, json!({"priority": "high"})),
        (
            "22023".to_owned(),
            "invalid priority \"high\": invalid input syntax for type integer: \"high\"".to_owned()
        )
    );
    assert_eq!(
        session
            .error("SELECT recur.update('00000000-0000-0000-0000-000000000000', '{}')")
            .1,
        "no action has the id 00000000-0000-0000-0000-000000000000"
    );
}

#[test]
fn next_run_at_follows_schedule_zone_and_bounds_and_nothing_else() {
    // No worker: it would make up for what is overdue.
    let cluster = Cluster::with("shared_preload_libraries = 'pg_recur'\nrecur.enabled = off");
    let mut session = cluster.database("app");
    let id = action(&mut session);
    let next = |session: &mut Session| -> DateTime<Utc> {
        session.value("SELECT next_run_at FROM recur.get($1)", &[&id])
    };
    // As if the action were behind: what is not recomputed stays so.
    session.batch("UPDATE recur.definitions SET starts_at = '2020-01-01Z'");
    let behind = "UPDATE recur.timers SET next_run_at = '2020-01-01 09:00Z', due_at = '2020-01-01 09:00Z', enabled = true";
    let far: DateTime<Utc> = "2020-01-01T09:00:00Z".parse().unwrap();
    for changes in [
        json!({"payload": {}}),
        json!({"name": "other"}),
        json!({"tenant": "other"}),
        json!({"misfire": "all"}),
        json!({"priority": 9}),
        json!({"context": {"a": 1}}),
        json!({"labels": {"a": "b"}}),
        json!({"lease": "1 hour"}),
    ] {
        session.batch(behind);
        update(&mut session, id, changes.clone());
        assert_eq!(next(&mut session), far, "{changes}");
    }
    for changes in [
        json!({"schedule": "0 10 * * *"}),
        json!({"timezone": "Asia/Tokyo"}),
        json!({"starts_at": "2021-01-01T00:00:00Z"}),
        json!({"ends_at": null}),
        json!({"max_runs": 99}),
        json!({"on_dst_gap": "skip"}),
        json!({"on_dst_fold": "both"}),
    ] {
        session.batch(behind);
        update(&mut session, id, changes.clone());
        let right: bool = session.value(
            "SELECT next_run_at > now() AND next_run_at = recur.next_occurrence(schedule, timezone, now(), starts_at, ends_at,
                                                                               NULL, on_dst_gap, on_dst_fold)
               FROM recur.get($1)",
            &[&id],
        );
        assert!(right, "{changes}");
    }
}

#[test]
fn the_same_is_refused_as_on_creation_and_of_paused_actions_too() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    let id = action(&mut session);
    for _paused in [false, true] {
        for (changes, message) in [
            (json!({"name": ""}), "invalid name \"\": must not be empty"),
            (
                json!({"payload": [1]}),
                "invalid payload \"[1]\": must be a JSON object",
            ),
            (
                json!({"labels": {"a": 1}}),
                "invalid labels \"{\"a\":1}\": must be a JSON object with only strings as values",
            ),
            (
                json!({"context": []}),
                "invalid context \"[]\": must be a JSON object",
            ),
            (
                json!({"timezone": "Mars"}),
                "invalid timezone \"Mars\": not an IANA time zone",
            ),
            (
                json!({"max_runs": 0}),
                "invalid max_runs \"0\": must be at least 1",
            ),
            (
                json!({"misfire": "x"}),
                "invalid misfire \"x\": must be once, skip or all",
            ),
            (
                json!({"subject": ""}),
                "invalid subject \"\": must not be empty",
            ),
            (
                json!({"schedule": "at 2020-01-01T00:00:00"}),
                "invalid schedule \"at 2020-01-01T00:00:00\": it has no occurrence within starts_at and ends_at",
            ),
            (
                json!({"starts_at": "2020-01-01T00:00:00Z", "ends_at": "2020-02-01T00:00:00Z"}),
                "invalid ends_at \"2020-02-01 00:00:00+00\": must lie in the future",
            ),
        ] {
            session.batch("SET timezone = 'UTC'");
            assert_eq!(
                refused(&mut session, id, changes.clone()),
                ("22023".to_owned(), message.to_owned()),
                "{changes}"
            );
        }
        let (code, message) = refused(&mut session, id, json!({"schedule": "soon"}));
        assert_eq!(code, "22023");
        assert!(
            message.starts_with("invalid schedule \"soon\": "),
            "{message}"
        );
        session.batch("SELECT recur.pause(id) FROM recur.recurring_actions WHERE enabled");
    }
    // Fewer runs than it has had.
    session.batch("UPDATE recur.timers SET run_count = 4");
    assert_eq!(
        refused(&mut session, id, json!({"max_runs": 4})).1,
        "invalid max_runs \"4\": the action has had 4 runs already"
    );
}

#[test]
fn pause_resume_and_delete() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    let id = action(&mut session);
    assert_eq!(
        session.error_with("SELECT recur.resume($1)", &[&id]),
        (
            "55000".to_owned(),
            "action \"n\" is not paused".to_owned(),
            String::new()
        )
    );
    session.execute("SELECT recur.pause($1, 'holidays')", &[&id]);
    let paused = row(&mut session, id);
    assert_eq!(paused["enabled"], json!(false));
    assert_eq!(paused["paused_reason"], json!("holidays"));
    assert_eq!(paused["next_run_at"], Value::Null);
    assert_eq!(
        session.error_with("SELECT recur.pause($1)", &[&id]),
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
    session.execute("SELECT recur.resume($1)", &[&id]);
    let resumed = row(&mut session, id);
    assert_eq!(resumed["enabled"], json!(true));
    assert_eq!(resumed["paused_reason"], Value::Null);
    assert_ne!(resumed["next_run_at"], Value::Null);
    let reason = refused(&mut session, id, json!({"paused_reason": "why"}));
    assert_eq!(
        reason.1,
        "invalid paused_reason \"why\": the action is not paused"
    );

    // At its end it can't be resumed until the end is moved.
    session.batch("SELECT recur.pause(id) FROM recur.recurring_actions; UPDATE recur.timers SET run_count = 4");
    update(&mut session, id, json!({"max_runs": 5}));
    session.batch("UPDATE recur.timers SET run_count = 5, ended_reason = 'exhausted'");
    assert_eq!(
        session.error_with("SELECT recur.resume($1)", &[&id]),
        (
            "55000".to_owned(),
            "action \"n\" has had all of its 5 runs".to_owned(),
            "Raise max_runs first.".to_owned()
        )
    );
    assert_eq!(
        session.error_with("SELECT recur.pause($1)", &[&id]).1,
        "action \"n\" has ended"
    );
    update(&mut session, id, json!({"max_runs": 6}));
    session.execute("SELECT recur.resume($1)", &[&id]);
    assert_eq!(row(&mut session, id)["ended_reason"], Value::Null);
    session.batch("SELECT recur.pause(id) FROM recur.recurring_actions");
    session
        .batch("UPDATE recur.definitions SET starts_at = '2020-01-01Z', ends_at = '2020-06-01Z'");
    assert_eq!(
        session.error_with("SELECT recur.resume($1)", &[&id]),
        (
            "55000".to_owned(),
            "action \"n\" has no occurrence left".to_owned(),
            "Change the schedule or ends_at first.".to_owned()
        )
    );

    let deleted: Value = session.value("SELECT to_jsonb(a) FROM recur.delete($1) AS a", &[&id]);
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
        "SELECT (SELECT count(*) FROM recur.definitions) + (SELECT count(*) FROM recur.timers)
              + (SELECT count(*) FROM recur.progress) + (SELECT count(*) FROM recur.contexts)",
        &[],
    );
    assert_eq!(left, 0);
}

#[test]
fn bulk_forms_return_what_they_touched() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    for (name, namespace, tenant, team) in [
        ("a", "x", "t1", "red"),
        ("b", "x", "t2", "red"),
        ("c", "y", "t1", "blue"),
        ("d", "y", "t2", "blue"),
    ] {
        session.execute(
            "SELECT recur.create($1, '@daily', 'p', 'a', namespace => $2, tenant => $3, labels => jsonb_build_object('team', $4::text))",
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
    // Those that have ended, or would have nothing to do, are left as they are.
    session.batch("UPDATE recur.timers SET ended_reason = 'expired' WHERE action_id = recur.id_of('a', 'x', 't1');
                   UPDATE recur.definitions SET starts_at = '2020-01-01Z', ends_at = '2020-06-01Z' WHERE name = 'b'");
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
        let row = &session.rows("SELECT count(*) FILTER (WHERE enabled), count(next_run_at) FROM recur.recurring_actions", &[])[0];
        (row.get(0), row.get(1))
    };
    assert_eq!((running, next), (2, 2));
    let events: i64 = session.value(
        "SELECT count(*) FROM recur.events WHERE kind = 'action.paused'",
        &[],
    );
    assert_eq!(events, 4);
}

/// What an admin does with plain SQL goes through the same door.
#[test]
fn plain_insert_update_and_delete() {
    let cluster = Cluster::start();
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
    eventually("it fires", || {
        session.value::<i64>("SELECT count(*) FROM recur.dispatches", &[]) > 0
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
            "run_count = 0",
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
            "invalid ends_at \"2001-01-01 00:00:00+00\": must not lie before starts_at, which is ",
        ),
    ] {
        let (code, text, _) =
            session.error(&format!("UPDATE recur.recurring_actions SET {change}"));
        assert_eq!(code, "22023", "{change}: {text}");
        assert!(text.starts_with(message), "{change}: {text}");
    }
    let given = session.error("INSERT INTO recur.recurring_actions (id, name, schedule, provider, action_type) VALUES (gen_random_uuid(), 'm', '@daily', 'p', 'a')");
    assert_eq!(
        given.1,
        "an action's id, counters and times can not be given: they are worked out"
    );
    // Even the tables behind the view, which only the extension's owner may touch, hold nothing that is invalid.
    for (change, code) in [
        ("definitions SET schedule = 'soon'", "22023"),
        ("definitions SET max_runs = 0", "22023"),
        (
            "definitions SET ends_at = starts_at - interval '1 day'",
            "22023",
        ),
        ("timers SET next_run_at = now()", "23514"),
        ("progress SET context = '[]'", "23514"),
    ] {
        assert_eq!(
            session.error(&format!("UPDATE recur.{change}")).0,
            code,
            "{change}"
        );
    }
    session.batch("DELETE FROM recur.recurring_actions");
    assert_eq!(
        session.error_with("SELECT recur.get($1)", &[&id]).0,
        "P0002"
    );
    let history: i64 = session.value("SELECT count(*) FROM recur.history($1)", &[&id]);
    assert!(history > 0, "history stays");
    let pending: i64 = session.value(
        "SELECT count(*) FROM recur.dispatches WHERE status = 'pending'",
        &[],
    );
    assert_eq!(pending, 0, "what was not claimed is cancelled");
}

/// Two who edit at the same time: neither loses what the other did, and who comes too late is told.
#[test]
fn concurrent_editors() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    let id = action(&mut session);
    let both = |first: &str, second: &str| -> Result<u64, (String, String, String)> {
        let (mut one, mut two) = (cluster.session("app"), cluster.session("app"));
        let mut observer = cluster.session("app");
        let waiting = two.pid();
        one.batch("BEGIN");
        one.batch(first);
        let second = second.to_owned();
        let other = thread::spawn(move || {
            two.0
                .execute(&second, &[])
                .map_err(|error| database_error(&error))
        });
        eventually("the second waits for the first", || {
            observer.value(
                "SELECT coalesce(cardinality(pg_blocking_pids($1)), 0) > 0",
                &[&waiting],
            )
        });
        one.batch("COMMIT");
        other.join().unwrap()
    };
    let update = |changes: &str| format!("SELECT recur.update('{id}', '{changes}')");

    both(
        &update("{\"priority\": 7}"),
        &update("{\"description\": \"two\"}"),
    )
    .unwrap();
    let both_are_there = row(&mut session, id);
    assert_eq!(
        (&both_are_there["priority"], &both_are_there["description"]),
        (&json!(7), &json!("two"))
    );

    let pause = format!("SELECT recur.pause('{id}')");
    let late = both(&pause, &pause).unwrap_err();
    assert_eq!(
        (late.0.as_str(), late.1.as_str()),
        ("55000", "action \"n\" is paused already")
    );
    let resume = format!("SELECT recur.resume('{id}')");
    let late = both(&resume, &resume).unwrap_err();
    assert_eq!(
        (late.0.as_str(), late.1.as_str()),
        ("55000", "action \"n\" is not paused")
    );
    let paused: i64 = session.value(
        "SELECT count(*) FROM recur.events WHERE kind = 'action.paused'",
        &[],
    );
    assert_eq!(paused, 1);

    let delete = format!("SELECT recur.delete('{id}')");
    let late = both(&delete, &delete).unwrap_err();
    assert_eq!(
        (late.0, late.1),
        ("P0002".to_owned(), format!("no action has the id {id}"))
    );
    let deleted: i64 = session.value(
        "SELECT count(*) FROM recur.events WHERE kind = 'action.deleted'",
        &[],
    );
    assert_eq!(deleted, 1);
}
