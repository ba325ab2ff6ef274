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
