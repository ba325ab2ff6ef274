//! Actions that are created in bulk.

use pg_recur_tests::{Cluster, Session};
use serde_json::{Value, json};

fn create_many(session: &mut Session, definitions: &[Value]) -> Vec<String> {
    session.texts(
        "SELECT recur.create_many($1::jsonb[])::text",
        &[&definitions],
    )
}

/// The SQLSTATE, the message and the hint.
fn refused(session: &mut Session, definitions: &[Value]) -> (String, String, String) {
    session.error_with("SELECT recur.create_many($1::jsonb[])", &[&definitions])
}

fn action(name: &str, more: Value) -> Value {
    let mut definition =
        json!({"name": name, "schedule": "0 9 * * *", "provider": "p", "action_type": "a"});
    let (into, more) = (
        definition.as_object_mut().unwrap(),
        more.as_object().unwrap().clone(),
    );
    into.extend(more);
    definition
}

#[test]
fn many_are_what_create_makes_of_each() {
    let cluster = Cluster::quiet();
    let mut session = cluster.test_database("app");
    session.batch("SELECT recur.set_clock('2040-01-01 08:00:00+00')");
    let all = json!({
        "schedule": "90m", "payload": {"to": ["x"]}, "timezone": "Europe/Berlin", "namespace": "n", "tenant": "t",
        "subject": "s", "starts_at": "2040-02-01T00:00:00Z", "ends_at": "2041-01-01T00:00:00+01", "max_runs": 7,
        "count_runs": "completed", "description": "d", "labels": {"team": "x"}, "metadata": {"m": "1"},
        "context": {"c": 1}, "dedup_key": "k", "misfire": "all", "catchup_limit": 3, "overlap": "skip",
        "jitter": "5 s", "max_attempts": 2, "retry_backoff": {"base": "1 s", "factor": 2, "cap": "1 min"},
        "lease": "10 min", "priority": 4, "lock_group": "g", "notify_channel": "c", "primary_agent": "ann",
        "fallback_agent": "bob", "fallback_after": "1 min", "contact": "ops", "mute": true, "mute_interval": "1 h",
        "late_after": "1 h", "keep_history": "failures", "enabled": false, "paused_reason": "later"
    });
    let definitions = [
        action("plain", json!({"payload": null})),
        action("all", all.clone()),
        action(
            "ahead",
            json!({"horizon": "3 days", "horizon_count": 2, "record_events": "all"}),
        ),
    ];
    let ids = create_many(&mut session, &definitions);
    assert_eq!(
        ids,
        session.texts(
            "SELECT id::text FROM recur.recurring_actions ORDER BY array_position('{plain,all,ahead}', name)",
            &[]
        )
    );
    session.batch(
        "SELECT recur.create('plain', '0 9 * * *', 'p', 'a', on_existing => 'add_another');
         SELECT recur.create('ahead', '0 9 * * *', 'p', 'a', horizon => '3 days', horizon_count => 2,
                             record_events => 'all', on_existing => 'add_another')",
    );
    let arguments: Vec<String> = all
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| match value {
            Value::Object(_) => format!("{name} => '{value}'::jsonb"),
            Value::String(text) => format!("{name} => '{text}'"),
            other => format!("{name} => {other}"),
        })
        .collect();
    session.batch(&format!(
        "SELECT recur.create('all', provider => 'p', action_type => 'a', on_existing => 'add_another', {})",
        arguments.join(", ")
    ));
    let differing: i64 = session.value(
        "SELECT count(DISTINCT to_jsonb(a) - 'id' - 'duplicate') - 3 FROM recur.recurring_actions AS a",
        &[],
    );
    assert_eq!(differing, 0);
    for table in ["timers", "progress", "alarms"] {
        let differing: i64 = session.value(
            &format!(
                "SELECT count(DISTINCT (d.name, to_jsonb(t) - 'action_id')) - count(DISTINCT d.name)
                   FROM recur_internal.{table} AS t JOIN recur_internal.definitions AS d ON d.id = t.action_id"
            ),
            &[],
        );
        assert_eq!(differing, 0, "{table}");
    }
    let events: i64 = session.value(
        "SELECT count(*) - 2 * count(DISTINCT to_jsonb(e) - 'id' - 'action_id')
           FROM recur.events AS e WHERE kind = 'action.created'",
        &[],
    );
    assert_eq!(events, 0);
    assert_eq!(
        session.value::<i64>("SELECT dispatched FROM recur.tick()", &[]),
        4
    );
}

#[test]
fn an_error_names_the_element_and_nothing_is_created() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SELECT recur.create('taken', '@daily', 'p', 'a')");
    let good = || action("good", json!({}));
    let cases = [
        (
            json!([1]),
            "22023",
            "element 2: invalid definition \"[1]\": must be a JSON object",
        ),
        (
            action("x", json!({"schedule": "61 * * * *"})),
            "22023",
            "element 2: invalid schedule \"61 * * * *\"",
        ),
        (
            action("x", json!({"schedul": "@daily"})),
            "22023",
            "element 2: ",
        ),
        (
            action("x", json!({"owner": "postgres"})),
            "22023",
            "element 2: ",
        ),
        (
            action("x", json!({"lease": "soon"})),
            "22023",
            "element 2: invalid lease \"soon\"",
        ),
        (
            action("x", json!({"provider": null})),
            "22023",
            "element 2: ",
        ),
        (
            action("x", json!({"on_existing": "maybe"})),
            "22023",
            "element 2: invalid on_existing \"maybe\"",
        ),
        (
            action("taken", json!({})),
            "23505",
            "element 2: action \"taken\"",
        ),
        (
            action("good", json!({})),
            "23505",
            "element 2: action \"good\"",
        ),
    ];
    for (definition, code, message) in cases {
        let error = refused(&mut session, &[good(), definition.clone()]);
        assert_eq!(error.0, code, "{definition}: {error:?}");
        assert!(error.1.starts_with(message), "{definition}: {error:?}");
        assert_eq!(session.count("recur.recurring_actions"), 1);
    }
    session.assert_error(
        "SELECT recur.create_many(ARRAY[NULL]::jsonb[])",
        "22023",
        "element 1: invalid definition \"NULL\": must have a value",
    );
    session.assert_error(
        "SELECT recur.create_many(NULL)",
        "22023",
        "invalid definitions \"NULL\": must have a value",
    );
    assert_eq!(create_many(&mut session, &[]), [""; 0]);
}

#[test]
fn more_than_a_thousand_are_created_in_order() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut many: Vec<Value> = (0..1_500)
        .map(|n| action(&format!("n{n}"), json!({})))
        .collect();
    many[1_200] = action("n3", json!({}));
    let error = refused(&mut session, &many);
    assert!(
        error.1.starts_with("element 1201: action \"n3\""),
        "{error:?}"
    );
    many.remove(1_200);
    assert_eq!(create_many(&mut session, &many).len(), 1_499);
    assert_eq!(session.count("recur.recurring_actions"), 1_499);
    let newest: Vec<String> = session.texts(
        "SELECT name FROM recur.list(\"order\" => 'newest', \"limit\" => 3)",
        &[],
    );
    assert_eq!(newest, ["n1499", "n1498", "n1497"]);
}

#[test]
fn what_exists_may_be_changed_or_get_company() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SELECT recur.create('n', '@daily', 'p', 'a', priority => 1)");
    let before: String = session.value("SELECT recur.id_of('n')::text", &[]);
    let ids = create_many(
        &mut session,
        &[
            action("first", json!({})),
            action("n", json!({"priority": 2, "on_existing": "upsert"})),
            action("first", json!({"priority": 5, "on_existing": "upsert"})),
            action("n", json!({"on_existing": "add_another"})),
            action("last", json!({"on_existing": null})),
        ],
    );
    assert_eq!(ids[1], before);
    assert_eq!(ids[2], ids[0]);
    let found = session.texts(
        "SELECT concat_ws(' ', name, priority, duplicate) FROM recur.list() ORDER BY name, duplicate",
        &[],
    );
    assert_eq!(found, ["first 5 f", "last 0 f", "n 2 f", "n 0 t"]);
}

#[test]
fn quotas_hold_for_many() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SELECT recur.set_quota('small', 2)");
    let of = |n: usize| action(&format!("n{n}"), json!({"tenant": "small"}));
    assert_eq!(create_many(&mut session, &[of(1), of(2)]).len(), 2);
    let error = refused(&mut session, &[action("else", json!({})), of(3)]);
    assert_eq!(
        error.1,
        "element 2: tenant \"small\" has all of the 2 actions that it may have"
    );
    assert_eq!(session.count("recur.recurring_actions"), 2);
}
