//! Sessions that edit the same action at the same time.

use pg_recur_tests::actions::{create_to_change, row};
use pg_recur_tests::{Cluster, Session, database_error, overtake};
use serde_json::json;

#[test]
fn of_two_sessions_that_edit_an_action_neither_loses_a_change() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = create_to_change(&mut session);
    let both = |first: &str, second: &str| -> Result<u64, (String, String, String)> {
        let mut one = cluster.session("app");
        one.batch("BEGIN");
        one.batch(first);
        let two = |session: &mut Session| {
            let outcome = session.0.execute(second, &[]);
            outcome.map_err(|error| database_error(&error))
        };
        overtake(&cluster, "app", two, || one.batch("COMMIT"))
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
    assert_eq!(
        session.count("recur.events WHERE kind = 'action.paused'"),
        1
    );

    let delete = format!("SELECT recur.delete('{id}')");
    let late = both(&delete, &delete).unwrap_err();
    assert_eq!(
        (late.0, late.1),
        ("P0002".to_owned(), format!("no action has the id {id}"))
    );
    assert_eq!(
        session.count("recur.events WHERE kind = 'action.deleted'"),
        1
    );
}

/// Whoever was first has changed the action: the second decided by what it had read before.
#[test]
fn a_change_of_what_has_changed_is_refused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = create_to_change(&mut session);
    let read = "SELECT updated_at::text FROM recur.recurring_actions";
    let seen: String = session.value(read, &[]);
    let update = |changes: &str, seen: &str| {
        format!("SELECT recur.update('{id}'::uuid, '{changes}', if_updated_at => '{seen}')")
    };
    let by_name = |changes: &str, seen: &str| {
        format!("SELECT recur.update('n', '{changes}', if_updated_at => '{seen}')")
    };

    // Both have read the same; the second waits for the first.
    let mut one = cluster.session("app");
    one.batch("BEGIN");
    one.batch(&update("{\"priority\": 7}", &seen));
    let second = update("{\"priority\": 8}", &seen);
    let late = overtake(
        &cluster,
        "app",
        |two: &mut Session| database_error(&two.0.execute(&second, &[]).unwrap_err()),
        || one.batch("COMMIT"),
    );
    let message = format!("action \"n\" is not as it was at {seen}");
    let hint = "Read it again, and see whether the change still fits.";
    assert_eq!(late, ("RC011".to_owned(), message, hint.to_owned()));
    assert_eq!(row(&mut session, id)["priority"], json!(7));

    // Neither a change of nothing, nor one of the owner, nor one by name is let through.
    for call in [
        update("{}", &seen),
        update("{\"owner\": \"postgres\"}", &seen),
        by_name("{\"priority\": 9}", &seen),
    ] {
        assert_eq!(session.error(&call).0, "RC011", "{call}");
    }
    session.assert_error(
        &update("{}", "infinity"),
        "22023",
        "invalid if_updated_at \"infinity\": must be a finite point in time",
    );
    let seen: String = session.value(read, &[]);
    session.batch(&by_name("{\"priority\": 9}", &seen));
    assert_eq!(row(&mut session, id)["priority"], json!(9));
}

/// Also where the clock stands still: every change has an instant of its own.
#[test]
fn two_states_of_an_action_never_have_the_same_updated_at() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "CREATE ROLE updated_at_owner; SELECT recur.grant_access('updated_at_owner', 'author');
         SELECT recur.mark_test_database(); SELECT recur.set_clock('2030-01-01 00:00+00')",
    );
    session.batch("SELECT recur.create('n', '@daily', 'p', 'a')");
    let mut instants: Vec<String> = Vec::new();
    for change in [
        "SELECT",
        "SELECT recur.update('n', '{\"priority\": 1}')",
        "SELECT recur.update('n', '{\"priority\": 2}')",
        "SELECT recur.pause('n')",
        "SELECT recur.resume('n')",
        "SELECT recur.set_clock('2029-01-01 00:00+00')",
        "SELECT recur.update('n', '{\"priority\": 3}')",
        "SELECT recur.update('n', '{\"owner\": \"updated_at_owner\"}')",
    ] {
        session.batch(change);
        let read = "SELECT updated_at::text FROM recur.recurring_actions";
        let instant: String = session.value(read, &[]);
        if !change.contains("set_clock") {
            assert!(!instants.contains(&instant), "{change}: {instant}");
            instants.push(instant);
        }
    }
}
