//! Creating what exists already, sessions that create the same action at the same time, and the quota of a tenant.

use pg_recur_tests::{Cluster, Session, database_error, overtake};
use std::thread;
use uuid::Uuid;

const CREATE: &str =
    "SELECT recur.create('n', '@daily', 'p', 'a', description => $1, on_existing => $2)";

fn create(session: &mut Session, description: &str, on_existing: &str) -> Uuid {
    session.value(CREATE, &[&description, &on_existing])
}

/// The SQLSTATE, message and hint of an error.
type Refused = (String, String, String);

/// Lets `first` create without committing, `second` try in another session, and `first` commit (or roll back) as
/// soon as the other waits for it. Returns what each of them got.
fn race(cluster: &Cluster, first: &str, second: &str, end: &str) -> (Uuid, Result<Uuid, Refused>) {
    let mut one = cluster.session("app");
    one.batch("BEGIN");
    let created = create(&mut one, "one", first);
    let two = |session: &mut Session| {
        let row = session.0.query_one(CREATE, &[&"two", &second]);
        row.map(|row| row.get(0))
            .map_err(|error| database_error(&error))
    };
    let other = overtake(cluster, "app", two, || one.batch(end));
    (created, other)
}

fn descriptions(session: &mut Session) -> Vec<String> {
    session.value(
        "SELECT coalesce(array_agg(description ORDER BY description), '{}') FROM recur.recurring_actions",
        &[],
    )
}

#[test]
fn on_existing_fails_changes_in_place_or_adds_another() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let first = create(&mut session, "one", "fail");
    let before: serde_json::Value =
        session.value("SELECT to_jsonb(a) FROM recur.recurring_actions AS a", &[]);
    assert_eq!(
        session.error_with(CREATE, &[&"two", &"fail"]),
        (
            "23505".to_owned(),
            "action \"n\" already exists in namespace \"default\", tenant \"default\"".to_owned(),
            "on_existing => 'upsert' changes it, 'add_another' puts another one beside it."
                .to_owned()
        )
    );
    let after: serde_json::Value =
        session.value("SELECT to_jsonb(a) FROM recur.recurring_actions AS a", &[]);
    assert_eq!(before, after, "a refused creation changes nothing");

    // An upsert changes in place. What the action has been through stays.
    session.batch("UPDATE recur_internal.timers SET run_count = 7, last_run_at = '2026-01-01Z'");
    assert_eq!(create(&mut session, "two", "upsert"), first);
    let row = &session.rows(
        "SELECT description, run_count, last_run_at IS NOT NULL, created_at < updated_at FROM recur.recurring_actions",
        &[],
    )[0];
    assert_eq!(row.get::<_, String>(0), "two");
    assert_eq!(row.get::<_, i64>(1), 7);
    assert!(row.get::<_, bool>(2) && row.get::<_, bool>(3));
    // It does not resume what an operator has paused.
    session.execute("SELECT recur.pause($1::uuid, 'holidays')", &[&first]);
    assert_eq!(create(&mut session, "three", "upsert"), first);
    let row = &session.rows(
        "SELECT enabled, paused_reason FROM recur.recurring_actions",
        &[],
    )[0];
    assert_eq!(
        (row.get(0), row.get(1)),
        (false, Some("holidays".to_owned()))
    );

    let second = create(&mut session, "four", "add_another");
    let third = create(&mut session, "five", "add_another");
    assert!(first != second && second != third);
    assert_eq!(descriptions(&mut session), ["five", "four", "three"]);
    // The name means the first of them; when that is gone, the next.
    assert_eq!(session.value::<Uuid>("SELECT recur.id_of('n')", &[]), first);
    session.execute("SELECT recur.delete($1::uuid)", &[&first]);
    assert_eq!(
        session.value::<Uuid>("SELECT recur.id_of('n')", &[]),
        second
    );
    // Renamed away, it leaves the name to the one beside it, and has its new one for itself.
    session.execute(
        "SELECT recur.update($1::uuid, '{\"name\": \"m\"}')",
        &[&second],
    );
    assert_eq!(session.value::<Uuid>("SELECT recur.id_of('n')", &[]), third);
    assert_eq!(
        session.value::<Uuid>("SELECT recur.id_of('m')", &[]),
        second
    );
    let taken = session.error_with(
        "SELECT recur.update($1::uuid, '{\"name\": \"n\"}')",
        &[&second],
    );
    assert_eq!(taken.0, "23505");
    assert_eq!(
        taken.1,
        "action \"n\" already exists in namespace \"default\", tenant \"default\""
    );
}

#[test]
fn an_action_is_identified_by_namespace_tenant_name_and_subject() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let make = "SELECT recur.create('n', '@daily', 'p', 'a', namespace => $1, tenant => $2, subject => $3)";
    for namespace in ["x", "y"] {
        for tenant in ["x", "y"] {
            for subject in [None, Some("x"), Some("y")] {
                session.execute(make, &[&namespace, &tenant, &subject]);
                let twice = session.error_with(make, &[&namespace, &tenant, &subject]);
                let of =
                    subject.map_or(String::new(), |subject| format!(", subject \"{subject}\""));
                assert_eq!(
                    (twice.0, twice.1),
                    (
                        "23505".to_owned(),
                        format!(
                            "action \"n\" already exists in namespace \"{namespace}\", tenant \"{tenant}\"{of}"
                        )
                    )
                );
            }
        }
    }
}

#[test]
fn of_two_sessions_that_create_the_same_action_the_second_sees_the_first() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");

    let (_, second) = race(&cluster, "fail", "fail", "COMMIT");
    assert_eq!(second.unwrap_err().0, "23505");
    assert_eq!(descriptions(&mut session), ["one"]);
    session.batch("DELETE FROM recur.recurring_actions");

    let (first, second) = race(&cluster, "fail", "fail", "ROLLBACK");
    assert_ne!(second.unwrap(), first);
    assert_eq!(descriptions(&mut session), ["two"]);
    session.batch("DELETE FROM recur.recurring_actions");

    let (first, second) = race(&cluster, "upsert", "upsert", "COMMIT");
    assert_eq!(second.unwrap(), first);
    assert_eq!(descriptions(&mut session), ["two"]);
    session.batch("DELETE FROM recur.recurring_actions");

    let (first, second) = race(&cluster, "add_another", "add_another", "COMMIT");
    assert_ne!(second.unwrap(), first);
    assert_eq!(descriptions(&mut session), ["one", "two"]);
    assert_eq!(
        session.count("recur_internal.definitions WHERE NOT duplicate"),
        1,
        "one of them holds the name"
    );
    session.batch("DELETE FROM recur.recurring_actions");

    let (_, second) = race(&cluster, "add_another", "fail", "COMMIT");
    assert_eq!(second.unwrap_err().0, "23505");
}

/// Many at once: exactly one of them creates, and every upsert finds it.
#[test]
fn of_many_sessions_that_create_the_same_action_exactly_one_creates_it() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for (on_existing, rows) in [("fail", 1), ("upsert", 1), ("add_another", 8)] {
        let attempts: Vec<_> = (0..8)
            .map(|number| {
                let mut session = cluster.session("app");
                thread::spawn(move || {
                    let outcome = session
                        .0
                        .query_one(CREATE, &[&number.to_string(), &on_existing]);
                    outcome.map_err(|error| database_error(&error).0).err()
                })
            })
            .collect();
        let errors: Vec<String> = attempts
            .into_iter()
            .filter_map(|attempt| attempt.join().unwrap())
            .collect();
        let expected = if on_existing == "fail" { 7 } else { 0 };
        assert_eq!(errors, vec!["23505"; expected], "{on_existing}");
        assert_eq!(
            session.count("recur.recurring_actions"),
            rows,
            "{on_existing}"
        );
        session.batch("DELETE FROM recur.recurring_actions");
    }
}

#[test]
fn a_tenant_has_no_more_than_its_quota() {
    let cluster = Cluster::preloaded("recur.max_actions_per_tenant = 3");
    let mut session = cluster.database("app");
    let make = "SELECT recur.create($1, '@daily', 'p', 'a', tenant => $2)";
    for name in ["a", "b", "c"] {
        session.execute(make, &[&name, &"t"]);
    }
    let full = (
        "53400".to_owned(),
        "tenant \"t\" has all of the 3 actions that it may have".to_owned(),
        "Delete an action, or raise recur.max_actions_per_tenant or the quota of the tenant."
            .to_owned(),
    );
    assert_eq!(session.error_with(make, &[&"d", &"t"]), full);
    // Another tenant has places of its own, and can't be emptied into this one.
    session.execute(make, &[&"d", &"other"]);
    assert_eq!(
        session.error("SELECT recur.update(id, '{\"tenant\": \"t\"}') FROM recur.recurring_actions WHERE name = 'd'"),
        full
    );
    // An upsert takes no place.
    session.execute(
        "SELECT recur.create('a', '@daily', 'p', 'a', tenant => 't', description => 'changed',
                             on_existing => 'upsert')",
        &[],
    );
    session.execute("SELECT recur.delete(recur.id_of('a', tenant => 't'))", &[]);
    session.execute(make, &[&"d", &"t"]);
}

#[test]
fn the_last_place_is_given_once_at_every_isolation_level() {
    let cluster = Cluster::preloaded("recur.max_actions_per_tenant = 3");
    let mut session = cluster.database("app");
    session.batch("SELECT recur.create('a', '@daily', 'p', 'a'); SELECT recur.create('b', '@daily', 'p', 'a')");
    for (isolation, expected) in [
        ("READ COMMITTED", "53400"),
        ("REPEATABLE READ", "40001"),
        ("SERIALIZABLE", "40001"),
    ] {
        let begin = format!(
            "BEGIN ISOLATION LEVEL {isolation}; SELECT count(*) FROM recur_internal.definitions"
        );
        let mut one = cluster.session("app");
        one.batch(&begin);
        one.batch("SELECT recur.create('c', '@daily', 'p', 'a')");
        let two = |session: &mut Session| {
            session.batch(&begin);
            let created = session
                .0
                .batch_execute("SELECT recur.create('d', '@daily', 'p', 'a')");
            created.map_err(|error| database_error(&error).0)
        };
        let other = overtake(&cluster, "app", two, || one.batch("COMMIT"));
        assert_eq!(other, Err(expected.to_owned()), "{isolation}");
        assert_eq!(session.count("recur.recurring_actions"), 3);
        session.batch("SELECT recur.delete(recur.id_of('c'))");
    }
}
