//! Changing an action: what changes, what stays, what is refused, by function and by plain UPDATE alike.

use chrono::{DateTime, Utc};
use pg_recur_tests::actions::{create_to_change, refused_update, row, update, writable_columns};
use pg_recur_tests::{Cluster, Session};
use serde_json::{Value, json};

#[test]
fn only_what_is_named_changes() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = create_to_change(&mut session);
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
fn null_clears_what_may_be_empty_and_is_refused_elsewhere() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = create_to_change(&mut session);
    for key in [
        "description",
        "starts_at",
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
        "dedup_window",
        "mute_interval",
        "error_threshold",
        "record_events",
        "late_after",
        "max_runtime",
        "max_silence",
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
            refused_update(&mut session, id, json!({key: null})),
            (
                "22023".to_owned(),
                format!("invalid {key} \"NULL\": must have a value")
            )
        );
    }
}

#[test]
fn columns_that_pg_recur_maintains_can_not_be_changed() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = create_to_change(&mut session);
    for key in [
        "id",
        "duplicate",
        "journey",
        "journey_version",
        "start_state",
        "context_version",
        "ended_reason",
        "next_run_at",
        "last_run_at",
        "run_count",
        "completed_count",
        "failed_count",
        "interactive_count",
        "failed_in_a_row",
        "failing_since",
        "last_run_error",
        "last_run_error_at",
        "error_count",
        "last_error",
        "last_error_at",
        "last_notified_at",
        "created_at",
        "updated_at",
    ] {
        assert_eq!(
            refused_update(&mut session, id, json!({"description": "x", key: "1"})),
            (
                "22023".to_owned(),
                format!("invalid change \"{key}\": this column is maintained by pg_recur")
            )
        );
    }
    // Every column is either the one or the other.
    let writable = writable_columns(&mut session);
    let maintained: i64 = session.value(
        "SELECT count(*) FROM pg_attribute
          WHERE attrelid = 'recur.recurring_actions'::regclass AND attnum > 0 AND attname <> ALL ($1)",
        &[&writable],
    );
    assert_eq!(maintained, 24);
}

#[test]
fn changes_that_are_none_are_refused_by_name() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = create_to_change(&mut session);
    for key in [
        "schedul",
        "Name",
        "name ",
        "",
        "id\"; DROP TABLE recur_internal.timers; --",
    ] {
        assert_eq!(
            refused_update(&mut session, id, json!({key: "x"})),
            (
                "22023".to_owned(),
                format!("invalid change \"{key}\": an action has no such column")
            )
        );
    }
    let hint = session
        .error_with("SELECT recur.update($1::uuid, '{\"x\": 1}')", &[&id])
        .2;
    assert!(
        hint.starts_with("What can be changed: name, namespace, tenant, "),
        "{hint}"
    );
    for changes in [json!([]), json!("name"), Value::Null] {
        assert_eq!(
            refused_update(&mut session, id, changes.clone()),
            (
                "22023".to_owned(),
                format!("invalid changes \"{changes}\": must be a JSON object")
            )
        );
    }
    // A value of the wrong type names its key.
    assert_eq!(
        refused_update(&mut session, id, json!({"priority": "high"})),
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
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = create_to_change(&mut session);
    let next = |session: &mut Session| -> DateTime<Utc> {
        session.value("SELECT next_run_at FROM recur.get($1::uuid)", &[&id])
    };
    // As if the action were behind: what is not recomputed stays so.
    session.batch("UPDATE recur_internal.definitions SET starts_at = '2020-01-01Z'");
    let behind =
        "UPDATE recur_internal.timers SET next_run_at = '2020-01-01 09:00Z', due_at = '2020-01-01 09:00Z',
                         enabled = true";
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
            "SELECT next_run_at > now()
                AND next_run_at = recur.next_occurrence(schedule, timezone, now(), starts_at, ends_at,
                                                                               NULL, on_dst_gap, on_dst_fold)
               FROM recur.get($1::uuid)",
            &[&id],
        );
        assert!(right, "{changes}");
    }
}

#[test]
fn the_same_is_refused_as_on_creation_and_of_paused_actions_too() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = create_to_change(&mut session);
    for _paused in [false, true] {
        for (changes, message) in [
            (json!({"name": ""}), "invalid name \"\": must not be empty"),
            (
                json!({"payload": [1]}),
                "invalid payload \"[1]\": must be a JSON object",
            ),
            (
                json!({"labels": {"a": 1}}),
                "invalid labels \"{\"a\": 1}\": must be a JSON object with only strings as values",
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
                "invalid schedule \"at 2020-01-01T00:00:00\": its time has passed, it was 2020-01-01 00:00:00+00",
            ),
            (
                json!({"starts_at": "2020-01-01T00:00:00Z", "ends_at": "2020-02-01T00:00:00Z"}),
                "invalid ends_at \"2020-02-01 00:00:00+00\": must lie in the future",
            ),
        ] {
            session.batch("SET timezone = 'UTC'");
            assert_eq!(
                refused_update(&mut session, id, changes.clone()),
                ("22023".to_owned(), message.to_owned()),
                "{changes}"
            );
        }
        let (code, message) = refused_update(&mut session, id, json!({"schedule": "soon"}));
        assert_eq!(code, "22023");
        assert!(
            message.starts_with("invalid schedule \"soon\": "),
            "{message}"
        );
        session.batch("SELECT recur.pause(id) FROM recur.recurring_actions WHERE enabled");
    }
    // Fewer runs than it has had.
    session.batch("UPDATE recur_internal.timers SET run_count = 4");
    assert_eq!(
        refused_update(&mut session, id, json!({"max_runs": 4})).1,
        "invalid max_runs \"4\": the action has had 4 runs already"
    );
}
