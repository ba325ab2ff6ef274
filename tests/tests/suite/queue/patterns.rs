//! Claims by patterns of action types.

use pg_recur_tests::Cluster;
use pg_recur_tests::queue::{NONE, claimed, enqueue};
use uuid::Uuid;

#[test]
fn a_pattern_claims_what_begins_with_it() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut of_type = |action_type: &str| -> Uuid {
        enqueue(&mut session, &format!("action_type => '{action_type}'"))
    };
    let created = of_type("subscription:created");
    let percent = of_type("subscription%");
    let mail = of_type("mail");
    let ended = of_type("subscription:ended");
    let other = of_type("Subscription:ended");
    let mut claim = |patterns: &str| {
        session.batch("BEGIN");
        let ids = claimed(&mut session, &format!("9, action_types => '{patterns}'"));
        session.batch("ROLLBACK");
        ids
    };
    assert_eq!(claim("{subscription:*}"), [created, ended]);
    assert_eq!(claim("{subscription*}"), [created, percent, ended]);
    assert_eq!(claim("{subscription%*}"), [percent]);
    assert_eq!(claim("{subscription:*,mail}"), [created, mail, ended]);
    assert_eq!(claim("{mail}"), [mail]);
    assert_eq!(claim("{subscription:created*,Sub*}"), [created, other]);
    assert_eq!(claim("{*}").len(), 5);
    assert_eq!(claim("{mail,*}").len(), 5);
    assert_eq!(claim("{subscription:}"), NONE);
    assert_eq!(claim("{task:*}"), NONE);
    assert_eq!(claim("{}"), NONE);
}

#[test]
fn a_wrong_pattern_is_refused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for (patterns, message) in [
        (
            "{*:created}",
            "invalid action_types \"*:created\": may have a * only at its end",
        ),
        (
            "{a,b**}",
            "invalid action_types \"b**\": may have a * only at its end",
        ),
        ("{\"\"}", "invalid action_types \"\": must not be empty"),
    ] {
        let sql = format!("SELECT FROM recur.claim(1, action_types => '{patterns}')");
        session.assert_error(&sql, "22023", message);
    }
}

/// Claims with and without a pattern remember different places in the queue.
#[test]
fn claims_by_pattern_have_cursors_of_their_own() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT count(recur.enqueue('p', CASE WHEN n <= 20000 THEN 'mail' ELSE 'task:' || n END))
           FROM generate_series(1, 20010) AS n",
    );
    // Expensive claims, so that the session remembers where tasks begin.
    for _ in 0..4 {
        assert_eq!(
            claimed(&mut session, "1, action_types => '{task:*}'").len(),
            1
        );
    }
    assert_eq!(
        claimed(&mut session, "3, action_types => '{mail}'").len(),
        3
    );
    assert_eq!(claimed(&mut session, "3, action_types => '{m*}'").len(), 3);
    assert_eq!(
        claimed(&mut session, "9, action_types => '{task:*}'").len(),
        6
    );
    let first: Uuid = enqueue(
        &mut session,
        "action_type => 'task:1', run_at => now() - interval '1 hour'",
    );
    assert_eq!(
        claimed(&mut session, "9, action_types => '{task:*}'"),
        [first]
    );
}
