//! Giving up runs by hand, after a restart of their consumers.

use pg_recur_tests::Cluster;
use pg_recur_tests::queue::{enqueue, queue_many, status};

#[test]
fn recover_gives_up_what_is_old_and_nothing_else() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    queue_many(&mut session, 3);
    session.batch("SELECT count(*) FROM recur.claim(3, lease => '10 days')");
    session.batch(
        "UPDATE recur_internal.live_dispatches SET started_at = now() - interval '2 hours'
          WHERE payload ->> 'n' <> '3'",
    );
    let waiting = enqueue(&mut session, "");
    let recovered: i64 = session.value("SELECT recur.recover('1 hour')", &[]);
    assert_eq!(recovered, 2);
    let errors: Vec<String> = session.column("SELECT error FROM recur.dead_letters", &[]);
    assert_eq!(errors, ["recovered from restart"; 2]);
    assert_eq!(
        session.count(
            "recur.events
              WHERE kind = 'dispatch.recovered'
                AND detail ->> 'reason' = 'recovered from restart'"
        ),
        2
    );
    assert_eq!(status(&mut session, waiting), "pending");
    assert_eq!(
        session.count("recur.dispatches WHERE status = 'running'"),
        1
    );
    let again: i64 = session.value("SELECT recur.recover('1 hour')", &[]);
    assert_eq!(again, 0);
    session.assert_error(
        "SELECT recur.recover('-1 s')",
        "22023",
        "invalid max_age \"-00:00:01\": must be zero or longer",
    );
}
