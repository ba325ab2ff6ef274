//! Changing and dropping journeys that actions schedule.

use super::{BILLING, schedule, set};
use pg_recur_tests::{Cluster, Session, database_error, overtake};
use uuid::Uuid;

/// From `charge` on it waits.
const WAITING: &str = r#"{
    "charge": {"type": "task", "next": "ask"},
    "ask":    {"type": "webhook", "next": "end"},
    "end":    {"type": "succeed"}
}"#;
const WITHOUT_CHARGE: &str = r#"{"receipt": {"type": "task"}}"#;

fn change(session: &mut Session, states: &str) -> Result<(), (String, String, String)> {
    let changed = session.0.query(
        "SELECT recur.set_journey('billing', '1', $1::text::jsonb)",
        &[&states],
    );
    changed.map(|_| ()).map_err(|error| database_error(&error))
}

#[test]
fn a_change_that_would_let_a_schedule_wait_is_refused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    set(&mut session, "1", BILLING);
    let id: Uuid = session.value(&schedule(", max_runs => 3"), &[]);
    let before: serde_json::Value =
        session.value("SELECT to_jsonb(j) FROM recur.journeys AS j", &[]);
    let hint = "Store the change as another version, or delete these schedules first.";
    let refused = change(&mut session, WAITING).unwrap_err();
    assert_eq!(
        refused,
        (
            "55006".to_owned(),
            "a schedule of journey \"billing\" version \"1\" starts in \"charge\", and could reach \"ask\", which is \
             of type \"webhook\": charge → ask"
                .to_owned(),
            hint.to_owned()
        )
    );
    // A schedule that is paused, or has ended, may go on.
    session.execute("SELECT recur.pause($1::uuid)", &[&id]);
    session.batch(&schedule(", max_runs => 3, subject => 's'"));
    let error = session.0.query(
        "SELECT recur.set_journey('billing', '1', $1::text::jsonb)",
        &[&WITHOUT_CHARGE],
    );
    let error = error.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(
        error.message(),
        "2 schedules of journey \"billing\" version \"1\" start in \"charge\", which would no longer be a state"
    );
    assert!(
        error.detail().unwrap().contains(&id.to_string()),
        "{error:?}"
    );
    let after: serde_json::Value =
        session.value("SELECT to_jsonb(j) FROM recur.journeys AS j", &[]);
    assert_eq!(
        before["states"], after["states"],
        "a refused change changes nothing"
    );
    // A change that harms no schedule is made.
    let harmless = BILLING.replace("\"wait\"", "\"webhook\"");
    assert_eq!(set(&mut session, "1", &harmless), (true, 2));
    assert_eq!(
        session.count("recur.events WHERE kind = 'journey.changed'"),
        1
    );
    // Another version has no schedules yet.
    assert_eq!(set(&mut session, "2", WAITING), (true, 0));
}

#[test]
fn a_journey_with_schedules_is_not_dropped() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    set(&mut session, "1", BILLING);
    let id: Uuid = session.value(&schedule(", max_runs => 3"), &[]);
    let drop = "SELECT recur.drop_journey('billing', '1')";
    assert_eq!(
        session.error(drop),
        (
            "55006".to_owned(),
            "a schedule uses journey \"billing\" version \"1\"".to_owned(),
            "Delete them first: recur.delete(id).".to_owned()
        )
    );
    session.execute("SELECT recur.delete($1::uuid)", &[&id]);
    session.batch(drop);
    assert_eq!(session.count("recur.journeys"), 0);
    assert_eq!(
        session.count("recur.events WHERE kind = 'journey.dropped'"),
        1
    );
    session.assert_error(drop, "P0002", "no journey \"billing\" version \"1\"");
}

/// Whoever is second waits for the first, and then knows what it did: also in a transaction whose snapshot is older.
#[test]
fn a_change_and_a_schedule_at_the_same_time_do_not_miss_each_other() {
    let cluster = Cluster::quiet();
    let mut one = cluster.database("app");
    set(&mut one, "1", BILLING);
    for isolation in ["READ COMMITTED", "REPEATABLE READ"] {
        let begin =
            format!("BEGIN ISOLATION LEVEL {isolation}; SELECT count(*) FROM recur.journeys");
        // The schedule is first: the change, and a drop, are refused.
        for second in ["change", "drop"] {
            one.batch("BEGIN");
            let id: Uuid = one.value(&schedule(", max_runs => 3"), &[]);
            let refused = overtake(
                &cluster,
                "app",
                |session| {
                    session.batch(&begin);
                    let result = match second {
                        "change" => change(session, WAITING),
                        _ => {
                            let dropped = session
                                .0
                                .query("SELECT recur.drop_journey('billing', '1')", &[]);
                            dropped.map(|_| ()).map_err(|error| database_error(&error))
                        }
                    };
                    session.batch("ROLLBACK");
                    result
                },
                || one.batch("COMMIT"),
            );
            assert_eq!(refused.unwrap_err().0, "55006", "{second}, {isolation}");
            one.execute("SELECT recur.delete($1::uuid)", &[&id]);
        }
        // The change is first: the schedule is refused.
        one.batch("BEGIN");
        change(&mut one, WAITING).unwrap();
        let refused = overtake(
            &cluster,
            "app",
            |session| {
                session.batch(&begin);
                let error = session.error(&schedule(", max_runs => 3"));
                session.batch("ROLLBACK");
                error.0
            },
            || one.batch("COMMIT"),
        );
        let expected = if isolation == "READ COMMITTED" {
            "22023"
        } else {
            "40001"
        };
        assert_eq!(refused, expected, "{isolation}");
        assert_eq!(one.count("recur.recurring_actions"), 0);
        change(&mut one, BILLING).unwrap();
    }
}
