//! The audit: what is recorded of an action's life, what is announced, and that no role can change it.

use chrono::{DateTime, Utc};
use pg_recur_tests::actions::{row, update};
use pg_recur_tests::{Cluster, Session, eventually};
use serde_json::{Value, json};
use uuid::Uuid;

/// Kind, actor and detail of the events of an action, oldest first.
fn events(session: &mut Session, action: Uuid) -> Vec<(String, String, Value)> {
    session
        .rows(
            "SELECT kind, actor::text, detail FROM recur.events WHERE action_id = $1 ORDER BY id",
            &[&action],
        )
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect()
}

/// What is recorded of the life of an action in `live`, but for the times of its next runs.
fn recorded_life() -> [(&'static str, Value); 7] {
    [
        (
            "action.created",
            json!({"name": "n", "namespace": "default", "tenant": "default", "subject": "s",
                   "schedule": "0 9 * * *", "timezone": "Europe/Berlin"}),
        ),
        (
            "action.updated",
            json!({"old": {"payload": {"v": 1}, "contact": null}, "new": {"payload": {"v": 2}, "contact": "me"}}),
        ),
        (
            "action.updated",
            json!({"old": {"schedule": "0 9 * * *"}, "new": {"schedule": "0 10 * * *"}}),
        ),
        ("action.paused", json!({"reason": "holidays"})),
        (
            "action.updated",
            json!({"old": {"paused_reason": "holidays"}, "new": {"paused_reason": "longer holidays"}}),
        ),
        ("action.resumed", json!({})),
        (
            "action.deleted",
            json!({"name": "n", "namespace": "default", "tenant": "default", "subject": "s",
                   "schedule": "0 10 * * *", "timezone": "Europe/Berlin", "cancelled_dispatches": 0}),
        ),
    ]
}

/// An action from its creation to its end; its id and its next runs, before and after its schedule was changed.
fn live(session: &mut Session) -> (Uuid, Value, Value) {
    session.batch("SET timezone = 'UTC'");
    let id: Uuid = session.value(
        "SELECT recur.create('n', '0 9 * * *', 'p', 'a', '{\"v\": 1}', subject => 's', timezone => 'Europe/Berlin')",
        &[],
    );
    let first_run = row(session, id)["next_run_at"].clone();
    update(
        session,
        id,
        json!({"payload": {"v": 2}, "contact": "me", "provider": "p"}),
    );
    update(session, id, json!({"schedule": "0 10 * * *"}));
    let second_run = row(session, id)["next_run_at"].clone();
    session.execute("SELECT recur.pause($1::uuid, 'holidays')", &[&id]);
    session.batch("UPDATE recur.recurring_actions SET paused_reason = 'longer holidays'");
    session.execute("SELECT recur.resume($1::uuid)", &[&id]);
    session.execute("SELECT recur.delete($1::uuid)", &[&id]);
    (id, first_run, second_run)
}

fn instant(value: &Value) -> Option<DateTime<Utc>> {
    value.as_str().map(|text| text.parse().expect("an instant"))
}

/// Takes the next run out of one side of an update, or out of the whole detail.
fn next_run(detail: &mut Value, side: Option<&str>) -> Option<Value> {
    let values = match side {
        Some(side) => detail.get_mut(side)?,
        None => detail,
    };
    values.as_object_mut()?.remove("next_run_at")
}

#[test]
fn every_change_of_an_action_is_recorded_with_who_and_what() {
    let cluster = Cluster::start();
    let mut admin = cluster.database("app");
    admin.batch(
        "CREATE ROLE alice LOGIN; CREATE ROLE team; GRANT team TO alice; SET timezone = 'UTC';
         SELECT recur.grant_access('alice', 'author'); SELECT recur.grant_access('team', 'author')",
    );
    // The actor is the role that alice acts as; who logged in stands beside it.
    let mut alice = cluster.session_as("alice", "app");
    alice.batch("SET ROLE team");
    let (id, first_run, second_run) = live(&mut alice);

    let recorded = events(&mut admin, id);
    assert!(recorded.iter().all(|(_, actor, _)| actor == "team"));
    let logins: Vec<String> = admin.column("SELECT DISTINCT login FROM recur.events", &[]);
    assert_eq!(logins, ["alice"]);
    let owners: Vec<String> = admin.column("SELECT DISTINCT owner::text FROM recur.events", &[]);
    assert_eq!(owners, ["team"]);
    let expected = recorded_life();
    assert_eq!(recorded.len(), expected.len(), "{recorded:?}");
    for ((kind, _, mut detail), (expected_kind, expected_detail)) in
        recorded.into_iter().zip(expected)
    {
        // Where the next run changed, that is recorded as well.
        for (side, run) in [("old", &first_run), ("new", &second_run)] {
            if let Some(next) = next_run(&mut detail, Some(side)) {
                assert_eq!(instant(&next), instant(run));
            }
        }
        let next = next_run(&mut detail, None);
        assert_eq!((kind.as_str(), &detail), (expected_kind, &expected_detail));
        match kind.as_str() {
            "action.created" => assert_eq!(instant(&next.unwrap()), instant(&first_run)),
            "action.resumed" => assert_eq!(instant(&next.unwrap()), instant(&second_run)),
            _ => assert_eq!(next, None),
        }
    }
    // What changes nothing is no event, and what is rolled back did not happen.
    alice.batch("BEGIN; SELECT recur.create('x', '@daily', 'p', 'a'); ROLLBACK");
    assert_eq!(admin.count("recur.events"), 7);
}

/// Mute is for what happens by itself: what people do is announced all the same.
#[test]
fn events_are_announced_when_they_are_committed() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur_events");
    session.batch("BEGIN");
    let id: Uuid = session.value(
        "SELECT recur.create('n', '@yearly', 'p', 'a', mute => true)",
        &[],
    );
    assert_eq!(listener.waiting_notifications(), Vec::<Value>::new());
    session.batch("COMMIT");
    let heard = listener.notification();
    assert_eq!(heard["kind"], "action.created");
    assert_eq!(heard["action_id"], id.to_string());
    // Every role that may connect can listen: no name, no payload.
    let said: Vec<&String> = heard.as_object().unwrap().keys().collect();
    assert_eq!(said, ["action_id", "id", "kind"]);
    let known: bool = session.value(
        "SELECT EXISTS (SELECT FROM recur.events WHERE id = $1 AND kind = 'action.created')",
        &[&heard["id"].as_i64().unwrap()],
    );
    assert!(known);
    for (statement, kind) in [
        (
            "SELECT recur.update($1::uuid, '{\"priority\": 1}')",
            "action.updated",
        ),
        ("SELECT recur.pause($1::uuid)", "action.paused"),
        ("SELECT recur.resume($1::uuid)", "action.resumed"),
        ("SELECT recur.delete($1::uuid)", "action.deleted"),
    ] {
        session.execute(statement, &[&id]);
        assert_eq!(listener.notification()["kind"], kind);
    }
}

/// Not by the owner of the action, not by an admin, and not by a superuser's slip.
#[test]
fn events_can_not_be_changed_or_deleted() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    session.batch(
        "CREATE ROLE alice LOGIN; SELECT recur.grant_access('alice', 'author');
         CREATE ROLE boss LOGIN; SELECT recur.grant_access('boss', 'admin')",
    );
    let mut alice = cluster.session_as("alice", "app");
    alice.batch("SELECT recur.create('n', '@daily', 'p', 'a')");
    let partition: String = session.value(
        "SELECT tableoid::regclass::text FROM recur_internal.events",
        &[],
    );
    let tables = ["recur.events", "recur_internal.events", &partition];
    let changes = |table: &str| {
        [
            format!("UPDATE {table} SET actor = 'somebody else'"),
            format!("DELETE FROM {table}"),
        ]
    };
    let insert = "INSERT INTO recur.events (kind, actor) VALUES ('action.created', 'alice')";
    for mut role in [alice, cluster.session_as("boss", "app")] {
        for statement in tables.iter().flat_map(|table| changes(table)) {
            assert_eq!(role.error(&statement).0, "42501", "{statement}");
        }
        for table in &tables[1..] {
            assert_eq!(role.error(&format!("TRUNCATE {table}")).0, "42501");
        }
        assert_eq!(role.error(insert).0, "42501");
        assert_eq!(role.count("recur.events"), 1);
    }
    let kept = (
        "42501".to_owned(),
        "events can not be changed or deleted".to_owned(),
        "They are removed by age, with recur.retention.".to_owned(),
    );
    for statement in tables.iter().flat_map(|table| changes(table)) {
        assert_eq!(session.error(&statement), kept, "{statement}");
    }
    assert_eq!(session.error("TRUNCATE recur_internal.events"), kept);
    assert_eq!(session.count("recur.events"), 1);
}

/// What happens by itself is recorded of a muted action as of any other, but not announced.
#[test]
fn mute_silences_what_happens_by_itself() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur_events");
    let [muted, loud] = [true, false].map(|mute| -> Uuid {
        session.value(
            "SELECT recur.create('muted ' || $1::boolean, '* * * * * *', 'p', 'a', max_runs => 1, mute => $1)",
            &[&mute],
        )
    });
    let ended = |session: &mut Session, action: Uuid| -> bool {
        session.value(
            "SELECT count(*) = 1 FROM recur.events WHERE action_id = $1 AND kind = 'action.exhausted'",
            &[&action],
        )
    };
    eventually("both have ended", || {
        ended(&mut session, muted) && ended(&mut session, loud)
    });
    let heard: Vec<(String, String)> = listener
        .waiting_notifications()
        .iter()
        .map(|event| {
            let text = |key: &str| event[key].as_str().unwrap().to_owned();
            (text("action_id"), text("kind"))
        })
        .collect();
    assert!(heard.contains(&(muted.to_string(), "action.created".to_owned())));
    assert!(
        heard.contains(&(loud.to_string(), "action.exhausted".to_owned())),
        "{heard:?}"
    );
    assert!(
        !heard.contains(&(muted.to_string(), "action.exhausted".to_owned())),
        "{heard:?}"
    );
}

/// The detail is put together from bytes: the server must find every key, and read the same as from the text.
#[test]
fn the_detail_of_a_large_change_is_sound() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id: Uuid = session.value(
        "SELECT recur.create('n', '@daily', 'p', 'a', '{\"k\": 1}')",
        &[],
    );
    // More than 32 keys, with values of every kind, nested, empty, and of lengths that need padding.
    let changes = json!({
        "description": "a \"text\" of 23 bytes ü", "labels": {"a": "b", "cc": "ddd"}, "schedule": "@hourly",
        "timezone": "Europe/Berlin", "ends_at": "2099-01-01T00:00:00Z", "max_runs": 1_000_000, "provider": "q",
        "payload": {"n": 12345678901234567890_u64, "list": [1, [2.5, {}], null, true, "x"], "empty": {}},
        "metadata": {"m": "n"}, "dedup_key": "{{execution_time}}", "misfire": "all", "misfire_grace": "1 hour",
        "catchup_limit": 7, "overlap": "skip", "jitter": "3 seconds", "max_attempts": 9, "lease": "1 minute",
        "priority": -5, "lock_group": "g", "notify_channel": "c", "primary_agent": "x", "fallback_agent": "y",
        "fallback_after": "1 minute",
        "contact": "z", "mute": true, "mute_interval": "1 day", "keep_history": "failures", "action_type": "b",
        "on_dst_gap": "skip", "on_dst_fold": "both", "retry_backoff": {"base": "1 s", "factor": 2, "cap": "1 h"},
        "subject": "s",
        "namespace": "ns", "tenant": "t", "name": "renamed"
    });
    assert!(changes.as_object().expect("an object").len() > 32);
    session.execute("SELECT recur.update($1::uuid, $2)", &[&id, &changes]);
    let sound = session.texts(
        "SELECT unnest(ARRAY[
                    e.detail = e.detail::text::jsonb, e.detail || '{}' = e.detail::text::jsonb,
                    NOT EXISTS (SELECT FROM jsonb_object_keys($1) AS k
                                 WHERE (e.detail -> 'new' -> k) IS NULL OR NOT e.detail -> 'old' ? k),
                    e.detail #> '{new,payload}' = $1 -> 'payload',
                    e.detail @> '{\"old\": {\"mute\": false}, \"new\": {\"priority\": -5, \"mute\": true}}'])::text
           FROM recur.events AS e WHERE e.kind = 'action.updated'",
        &[&changes],
    );
    assert_eq!(sound, ["true"; 5]);
}
