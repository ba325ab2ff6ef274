//! Giving up runs by hand, after a restart of their consumers.

use pg_recur_tests::queue::{enqueue, queue_many, status};
use pg_recur_tests::workers::starts_to_fire;
use pg_recur_tests::{Cluster, Shutdown, eventually};

#[test]
fn recover_gives_up_what_is_old_and_nothing_else() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    queue_many(&mut session, 4);
    session.batch("SELECT count(*) FROM recur.claim(4, lease => '10 days')");
    session.batch(
        "UPDATE recur_internal.live_dispatches SET started_at = now() - interval '2 hours'
          WHERE payload ->> 'n' <> '3'",
    );
    // A sign of life.
    session.batch(
        "SELECT recur.extend(id, attempt) FROM recur.dispatches WHERE payload ->> 'n' = '4'",
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
        2
    );
    let again: i64 = session.value("SELECT recur.recover('1 hour')", &[]);
    assert_eq!(again, 0);
    session.assert_error(
        "SELECT recur.recover('-1 s')",
        "22023",
        "invalid max_age \"-00:00:01\": must be zero or longer",
    );
}

#[test]
fn workers_recover_at_their_start_where_a_setting_says_so() {
    let mut cluster = Cluster::start();
    let mut session = cluster.database("app");
    queue_many(&mut session, 2);
    session.batch("SELECT count(*) FROM recur.claim(2, lease => '10 days')");
    session.batch(
        "UPDATE recur_internal.live_dispatches SET started_at = now() - interval '2 hours'
          WHERE payload ->> 'n' = '1'",
    );
    let statuses = "SELECT string_agg(status, ' ' ORDER BY payload ->> 'n') FROM recur.dispatches";
    // Off by default.
    cluster.restart(Shutdown::Immediate);
    let mut session = cluster.session("app");
    starts_to_fire(&mut session, "canary");
    assert_eq!(
        session.value::<String>(&format!("{statuses} WHERE payload ? 'n'"), &[]),
        "running running"
    );
    cluster.configure("recur.recover_after = '1 h'");
    cluster.restart(Shutdown::Immediate);
    let mut session = cluster.session("app");
    let sql = format!("{statuses} WHERE payload ? 'n'");
    eventually("the run that is too old fails", || {
        session.value::<String>(&sql, &[]) == "failed running"
    });
    eventually("the log says so", || {
        cluster.log().contains("runs given up")
    });
}
