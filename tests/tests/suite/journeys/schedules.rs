//! Actions that schedule a journey.

use super::{BILLING, schedule, set};
use pg_recur_tests::actions::row;
use pg_recur_tests::{Cluster, Session};
use serde_json::json;
use uuid::Uuid;

fn database(cluster: &Cluster) -> Session {
    let mut session = cluster.database("app");
    set(&mut session, "1", BILLING);
    session
}

#[test]
fn a_schedule_knows_its_journey() {
    let cluster = Cluster::quiet();
    let mut session = database(&cluster);
    let id: Uuid = session.value(&schedule(", max_runs => 3, subject => 'customer 42'"), &[]);
    let action = row(&mut session, id);
    for (column, value) in [
        ("name", json!("billing@1/charge")),
        ("journey", json!("billing")),
        ("journey_version", json!("1")),
        ("start_state", json!("charge")),
        ("subject", json!("customer 42")),
        ("provider", json!("journey")),
        ("action_type", json!("billing")),
        ("schedule", json!("1mo")),
        ("max_runs", json!(3)),
        ("context", json!({"n": 0})),
        ("overlap", json!("skip")),
        ("interactive_count", json!(0)),
    ] {
        assert_eq!(action[column], value, "{column}");
    }
    let event: serde_json::Value = session.value(
        "SELECT detail FROM recur.events WHERE kind = 'action.created' AND action_id = $1",
        &[&id],
    );
    assert_eq!(
        (
            &event["journey"],
            &event["journey_version"],
            &event["start_state"]
        ),
        (&json!("billing"), &json!("1"), &json!("charge"))
    );
    let found: Uuid = session.value(
        "SELECT recur.id_of('billing@1/charge', subject => 'customer 42')",
        &[],
    );
    assert_eq!(found, id);
    assert_eq!(set(&mut session, "1", BILLING), (false, 1));
    // Other actions have none of it.
    let other: Uuid = session.value("SELECT recur.create('n', '@daily', 'p', 'a')", &[]);
    assert_eq!(row(&mut session, other)["journey"], json!(null));
}

#[test]
fn a_start_from_which_a_run_could_wait_is_refused_with_the_way() {
    let cluster = Cluster::quiet();
    let mut session = database(&cluster);
    let mut refused = |start: &str| {
        session.error(&format!(
            "SELECT recur.schedule_journey('billing', '{start}', NULL, 'P1M', 1, NULL, '{{}}')"
        ))
    };
    assert_eq!(
        refused("start"),
        (
            "22023".to_owned(),
            "invalid start \"start\": a run could reach \"agree\", which is of type \"wait\": start → agree"
                .to_owned(),
            "A scheduled run has no one to ask. Start it behind that state, or give the journey a way around it."
                .to_owned()
        )
    );
    assert!(refused("agree").1.ends_with(": agree"));
    assert_eq!(
        refused("chrage"),
        (
            "22023".to_owned(),
            "invalid start \"chrage\": journey \"billing\" version \"1\" has no such state"
                .to_owned(),
            "Did you mean \"charge\"?".to_owned()
        )
    );
    assert_eq!(session.count("recur.recurring_actions"), 0);
}

#[test]
fn a_bound_and_a_context_are_required_for_good() {
    let cluster = Cluster::quiet();
    let mut session = database(&cluster);
    session.assert_error(
        &schedule(""),
        "22023",
        "invalid max_runs \"NULL\": a journey's schedule has a bound: max_runs, ends_at or both",
    );
    session.assert_error(
        "SELECT recur.schedule_journey('billing', 'charge', NULL, 'P1M', 1)",
        "22023",
        "invalid context \"NULL\": a journey's schedule has a context, which its first run starts with",
    );
    let id: Uuid = session.value(&schedule(", max_runs => 3"), &[]);
    for (changes, problem) in [
        (r#"{"max_runs": null}"#, "invalid max_runs"),
        (r#"{"context": null}"#, "invalid context"),
        (
            r#"{"name": "other"}"#,
            "invalid name \"other\": the name of a journey's schedule is its identity",
        ),
        (
            r#"{"start_state": "receipt"}"#,
            "invalid change \"start_state\": this column is maintained by pg_recur",
        ),
    ] {
        let (code, message, _) = session.error_with(
            "SELECT recur.update($1::uuid, $2::text::jsonb)",
            &[&id, &changes],
        );
        assert_eq!(code, "22023");
        assert!(message.starts_with(problem), "{message}");
    }
    session.assert_error(
        "UPDATE recur.recurring_actions SET max_runs = NULL",
        "22023",
        "invalid max_runs \"NULL\": a journey's schedule has a bound: max_runs, ends_at or both",
    );
    session.assert_error(
        "INSERT INTO recur.recurring_actions (name, schedule, provider, action_type, journey)
         VALUES ('n', '@daily', 'p', 'a', 'billing')",
        "22023",
        "invalid journey \"billing\": an INSERT makes no schedule of a journey",
    );
    // One bound may take the place of the other.
    session.execute(
        "SELECT recur.update($1::uuid, jsonb_build_object('max_runs', NULL, 'ends_at', now() + interval '1 year'))",
        &[&id],
    );
    session.batch(&schedule(
        ", ends_at => now() + interval '1 year', subject => 's'",
    ));
}

#[test]
fn the_arguments_in_their_order_take_any_schedule() {
    let cluster = Cluster::quiet();
    let mut session = database(&cluster);
    for (subject, interval, stored) in [
        ("a", "P1M", "1mo"),
        ("b", "@daily", "0 0 * * *"),
        ("c", "15 6 * * mon", "15 6 * * MON"),
    ] {
        let id: Uuid = session.value(
            "SELECT recur.schedule_journey('billing', 'charge', '2099-03-01Z', $1, 12, $2, '{}', 'fail')",
            &[&interval, &subject],
        );
        let action = row(&mut session, id);
        assert_eq!(
            (&action["schedule"], &action["max_runs"], &action["subject"]),
            (&json!(stored), &json!(12), &json!(subject))
        );
        let starts_at = action["starts_at"].as_str().unwrap_or_default();
        assert!(starts_at.starts_with("2099-03-01T"), "{action}");
    }
    let (code, message, _) = session
        .error("SELECT recur.schedule_journey('billing', 'charge', NULL, '31 feb', 1, NULL, '{}')");
    assert_eq!(code, "22023");
    assert!(
        message.starts_with("invalid schedule \"31 feb\": "),
        "{message}"
    );
    // The spelling of other systems is understood by recur.create as well.
    session.batch(
        "SELECT recur.create('n', '@daily', 'p', 't');
         SELECT recur.create('n', '@daily', 'p', 't', on_existing => 'addAnother')",
    );
    assert_eq!(session.count("recur.recurring_actions WHERE name = 'n'"), 2);
}

#[test]
fn journey_version_state_and_subject_are_the_identity() {
    let cluster = Cluster::quiet();
    let mut session = database(&cluster);
    let first: Uuid = session.value(&schedule(", max_runs => 3, subject => 's'"), &[]);
    let (code, message, _) = session.error(&schedule(", max_runs => 3, subject => 's'"));
    assert_eq!(code, "23505");
    assert_eq!(
        message,
        "action \"billing@1/charge\" already exists in namespace \"default\", tenant \"default\", subject \"s\""
    );
    // Another subject, state, tenant or version is another schedule.
    set(&mut session, "2", BILLING);
    for (start, more) in [
        ("charge", ", journey_version => '1'"),
        ("charge", ", journey_version => '1', subject => 't'"),
        ("receipt", ", journey_version => '1', subject => 's'"),
        ("charge", ", journey_version => '2', subject => 's'"),
        (
            "charge",
            ", journey_version => '1', subject => 's', tenant => 'acme'",
        ),
    ] {
        session.batch(&format!(
            "SELECT recur.schedule_journey('billing', '{start}', \"interval\" => 'P1M', context => '{{}}',
                                           max_runs => 3{more})"
        ));
    }
    assert_eq!(
        session.count("recur.recurring_actions WHERE journey = 'billing'"),
        6
    );
    assert_eq!(
        session.error(&schedule(", max_runs => 1")),
        (
            "P0003".to_owned(),
            "journey \"billing\" has several versions: 1, 2".to_owned(),
            "Say which, with journey_version.".to_owned()
        )
    );
    // An upsert changes schedule, bounds and context in place; another one stands beside.
    let again: Uuid = session.value(
        "SELECT recur.schedule_journey('billing', 'charge', NULL, 'P1W', 9, 's', '{\"n\": 7}', 'upsert',
                                       journey_version => '1')",
        &[],
    );
    assert_eq!(again, first);
    let action = row(&mut session, first);
    assert_eq!(
        (
            &action["schedule"],
            &action["max_runs"],
            &action["context"],
            &action["journey"]
        ),
        (&json!("1w"), &json!(9), &json!({"n": 7}), &json!("billing"))
    );
    let other: Uuid = session.value(
        &schedule(
            ", max_runs => 3, subject => 's', journey_version => '1', on_existing => 'addAnother'",
        ),
        &[],
    );
    assert_eq!(row(&mut session, other)["duplicate"], json!(true));
    assert_eq!(row(&mut session, other)["start_state"], json!("charge"));
}

#[test]
fn an_action_of_the_same_name_is_not_taken_over() {
    let cluster = Cluster::quiet();
    let mut session = database(&cluster);
    let id: Uuid = session.value(
        "SELECT recur.create('billing@1/charge', '@daily', 'p', 'a')",
        &[],
    );
    assert_eq!(
        session.error(&schedule(", max_runs => 3, on_existing => 'upsert'")),
        (
            "23505".to_owned(),
            "action \"billing@1/charge\" exists, and is no schedule of journey \"billing\""
                .to_owned(),
            "Rename or delete that action first.".to_owned()
        )
    );
    session.execute("SELECT recur.delete($1::uuid)", &[&id]);
    let id: Uuid = session.value(&schedule(", max_runs => 3, on_existing => 'upsert'"), &[]);
    // Nor does recur.create make an ordinary action of a schedule.
    let (code, message, _) = session.error(
        "SELECT recur.create('billing@1/charge', '@daily', 'p', 'a', on_existing => 'upsert')",
    );
    assert_eq!(code, "22023");
    assert!(message.starts_with("invalid max_runs"), "{message}");
    session.batch(
        "SELECT recur.create('billing@1/charge', '@daily', 'p', 'a', max_runs => 5, on_existing => 'upsert')",
    );
    assert_eq!(row(&mut session, id)["journey"], json!("billing"));
}

#[test]
fn an_unknown_journey_is_not_scheduled() {
    let cluster = Cluster::quiet();
    let mut session = database(&cluster);
    for (call, message) in [
        ("'bling', 'charge', NULL, 'P1M'", "no journey \"bling\""),
        (
            "'billing', 'charge', NULL, 'P1M', journey_version => '7'",
            "no journey \"billing\" version \"7\"",
        ),
    ] {
        session.assert_error(
            &format!("SELECT recur.schedule_journey({call})"),
            "P0002",
            message,
        );
    }
    session.assert_error(
        "SELECT recur.schedule_journey(NULL, 'charge', NULL, 'P1M')",
        "22023",
        "invalid journey \"NULL\": must have a value",
    );
    session.assert_error(
        "SELECT recur.schedule_journey('billing', NULL, NULL, 'P1M')",
        "22023",
        "invalid start \"NULL\": must have a value",
    );
    session.assert_error(
        "SELECT recur.schedule_journey('billing', 'charge', max_runs => 1, context => '{}')",
        "22023",
        "invalid interval \"NULL\": must have a value",
    );
}
