//! How many deliveries an endpoint gets at once, and in a second.

use super::{claim, claimed_of_each, endpoint, report, send_to};
use pg_recur_tests::{Cluster, Session, eventually};

fn with_limits(cluster: &Cluster, limits: &str) -> Session {
    let mut session = cluster.database("app");
    endpoint(&mut session, "a", "{}");
    session.execute(
        "SELECT recur.update_endpoint('a', $1::text::jsonb)",
        &[&limits],
    );
    for _ in 0..20 {
        send_to(&mut session, "a");
    }
    session
}

#[test]
fn all_programs_together_keep_to_what_runs_at_once() {
    let cluster = Cluster::quiet();
    let mut session = with_limits(&cluster, "{\"concurrency\": 3}");
    let mut other = cluster.session("app");
    // A claim that is not committed leaves the endpoint to nobody else.
    session.batch("BEGIN");
    let first = claim(&mut session, 2);
    assert_eq!(first.len(), 2);
    assert!(claim(&mut other, 10).is_empty());
    session.batch("COMMIT");
    let second = claim(&mut other, 10);
    assert_eq!(second.len(), 1);
    assert!(claim(&mut session, 10).is_empty());
    let (id, attempt, _) = &second[0];
    report(&mut other, *id, *attempt, "delivered");
    assert_eq!(claim(&mut session, 10).len(), 1);
    // In a transaction that sees the past, the others' count.
    other.batch("BEGIN ISOLATION LEVEL REPEATABLE READ");
    other.count("recur.dispatches");
    let (id, attempt, _) = &first[0];
    report(&mut session, *id, *attempt, "delivered");
    assert_eq!(claim(&mut session, 10).len(), 1);
    assert!(
        other
            .0
            .query("SELECT id FROM recur.claim_webhooks(10)", &[])
            .map_or(true, |rows| rows.is_empty())
    );
    other.batch("ROLLBACK");
}

#[test]
fn many_programs_at_once_never_exceed_it() {
    let cluster = Cluster::quiet();
    let mut session = with_limits(&cluster, "{\"concurrency\": 4}");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut program = cluster.session("app");
                for _ in 0..50 {
                    let claimed = claim(&mut program, 3);
                    let running = program.count("recur.dispatches WHERE status = 'running'");
                    assert!(running <= 4, "{running}");
                    for (id, attempt, _) in claimed {
                        report(&mut program, id, attempt, "delivered");
                    }
                }
            });
        }
    });
    // Whatever the threads have left to each other.
    eventually("all are delivered", || {
        for (id, attempt, _) in claim(&mut session, 10) {
            report(&mut session, id, attempt, "delivered");
        }
        session.count("recur.dispatches WHERE status = 'completed'") == 20
    });
    let twice = "recur.dispatches WHERE attempt <> 1";
    assert_eq!(session.count(twice), 0);
}

#[test]
fn no_more_begin_in_a_second_than_its_rate() {
    let cluster = Cluster::quiet();
    let mut session = with_limits(&cluster, "{\"rate\": 2, \"concurrency\": 100}");
    session.batch("SELECT recur.set_clock('2031-01-01Z')");
    assert_eq!(claim(&mut session, 10).len(), 2);
    assert!(claim(&mut session, 10).is_empty());
    session.batch("SELECT recur.set_clock('2031-01-01T00:00:00.5Z')");
    assert_eq!(claim(&mut session, 10).len(), 1);
    assert!(claim(&mut session, 10).is_empty());
    // What was not used does not pile up.
    session.batch("SELECT recur.set_clock('2031-01-01T01:00:00Z')");
    assert_eq!(claimed_of_each(&mut session, 10), [("a".to_owned(), 2)]);
}

#[test]
fn owners_share_an_endpoint_of_the_operator() {
    let cluster = Cluster::quiet();
    let mut admin = cluster.database("app");
    admin.batch(
        "CREATE ROLE webhook_sharer LOGIN; SELECT recur.grant_access('webhook_sharer', 'author')",
    );
    let mut sharer = cluster.session_as("webhook_sharer", "app");
    let operator = serde_json::json!([{"name": "log", "patterns": ["*"], "concurrency": 4}]);
    for _ in 0..30 {
        super::send(&mut admin, "x");
    }
    for _ in 0..2 {
        super::send(&mut sharer, "x");
    }
    admin.execute("SELECT recur.route_webhooks($1)", &[&operator]);
    let claim = "SELECT owner FROM recur.claim_webhooks(10, operator => $1) ORDER BY 1";
    let owners: Vec<String> = admin.column(claim, &[&operator]);
    assert_eq!(
        owners,
        ["postgres", "postgres", "webhook_sharer", "webhook_sharer"]
    );
    assert!(admin.rows(claim, &[&operator]).is_empty());
    admin.batch("SELECT recur.revoke_access('webhook_sharer'); DROP ROLE webhook_sharer");
}
