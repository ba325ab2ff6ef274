//! What happens to dispatches other than by their consumers' reports; contexts; history.

use pg_recur_tests::Cluster;
use pg_recur_tests::queue::{queue, queue_many, status};

#[test]
fn recover_gives_up_what_is_old_and_nothing_else() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    queue_many(&mut session, 3);
    session.batch("SELECT count(*) FROM recur.claim(3, lease => '10 days')");
    session.batch("UPDATE recur.live_dispatches SET started_at = now() - interval '2 hours' WHERE payload ->> 'n' <> '3'");
    let waiting = queue(&mut session, "");
    let recovered: i64 = session.value("SELECT recur.recover('1 hour')", &[]);
    assert_eq!(recovered, 2);
    let errors: Vec<String> = session
        .rows("SELECT error FROM recur.dead_letters", &[])
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(errors, ["recovered from restart"; 2]);
    let events: i64 = session.value("SELECT count(*) FROM recur.events WHERE kind = 'dispatch.recovered' AND detail ->> 'reason' = 'recovered from restart'", &[]);
    assert_eq!(events, 2);
    assert_eq!(status(&mut session, waiting), "pending");
    let running: i64 = session.value(
        "SELECT count(*) FROM recur.dispatches WHERE status = 'running'",
        &[],
    );
    assert_eq!(running, 1);
    let again: i64 = session.value("SELECT recur.recover('1 hour')", &[]);
    assert_eq!(again, 0);
    let (state, message, _) = session.error("SELECT recur.recover('-1 s')");
    assert_eq!(
        (state.as_str(), message.as_str()),
        (
            "22023",
            "invalid max_age \"-00:00:01\": must be zero or longer"
        )
    );
}
