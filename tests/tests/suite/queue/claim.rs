//! Claiming: who gets what, in which order, and never twice.

use pg_recur_tests::Cluster;
use pg_recur_tests::queue::{NONE, claimed, enqueue, queue_many};
use std::collections::HashSet;
use std::thread;
use uuid::Uuid;

#[test]
fn priority_first_then_time_and_nothing_before_its_time() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let new = enqueue(&mut session, "run_at => now() - interval '1 hour'");
    let old = enqueue(&mut session, "run_at => now() - interval '2 hours'");
    let urgent = enqueue(&mut session, "priority => 5");
    let least = enqueue(&mut session, "priority => -2147483648");
    enqueue(
        &mut session,
        "priority => 9, run_at => now() + interval '1 hour'",
    );
    assert_eq!(claimed(&mut session, "2"), [urgent, old]);
    assert_eq!(claimed(&mut session, "10"), [new, least]);
    assert_eq!(claimed(&mut session, "10"), NONE);
}

#[test]
fn a_claim_meets_all_of_its_filters() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mail = enqueue(&mut session, "provider => 'mail', tenant => 'acme'");
    let sms = enqueue(
        &mut session,
        "provider => 'sms', tenant => 'acme', action_type => 'send', namespace => 'shop'",
    );
    assert_eq!(claimed(&mut session, "9, providers => '{none}'"), NONE);
    assert_eq!(
        claimed(
            &mut session,
            "9, providers => '{mail,sms}', action_types => '{other}'"
        ),
        NONE
    );
    assert_eq!(
        claimed(
            &mut session,
            "9, tenants => '{acme}', namespaces => '{default}'"
        ),
        [mail]
    );
    assert_eq!(
        claimed(
            &mut session,
            "9, providers => '{mail,sms}', action_types => '{send}', namespaces => '{shop}', tenants => '{acme}'"
        ),
        [sms]
    );
}

#[test]
fn a_claim_says_who_has_it_and_until_when() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for (lease, argument, seconds) in [
        ("NULL", "", 300),
        ("'1 hour'", "", 3600),
        ("'1 hour'", ", lease => '10 seconds'", 10),
    ] {
        enqueue(&mut session, &format!("lease => {lease}"));
        let row = &session.rows(
            &format!(
                "SELECT status, attempt, claimed_by, round(extract(epoch FROM lease_expires_at - started_at))::int,
                        cancel_requested
                   FROM recur.claim(1, consumer => 'me'{argument})"
            ),
            &[],
        )[0];
        assert_eq!(row.get::<_, String>(0), "running");
        assert_eq!(row.get::<_, i32>(1), 1);
        assert_eq!(row.get::<_, String>(2), "me");
        assert_eq!(row.get::<_, i32>(3), seconds);
        assert!(!row.get::<_, bool>(4));
    }
    // Without a name, the application's.
    enqueue(&mut session, "");
    let name: String = session.value("SELECT claimed_by FROM recur.claim()", &[]);
    assert_eq!(name, "pg_recur-tests");

    session.assert_error(
        "SELECT recur.claim(0)",
        "22023",
        "invalid limit \"0\": must be at least 1",
    );
    session.assert_error(
        "SELECT recur.claim(1, lease => '-1 s')",
        "22023",
        "invalid lease \"-00:00:01\": must be longer than nothing",
    );
}

#[test]
fn concurrent_claims_share_no_dispatch() {
    const EACH: i32 = 2000;
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    queue_many(&mut session, EACH);
    let claimants: Vec<_> = (0..8)
        .map(|number| {
            let mut session = cluster.session("app");
            thread::spawn(move || {
                let mut mine = Vec::new();
                loop {
                    let some = claimed(&mut session, &format!("{}", 1 + number * 3));
                    if some.is_empty() {
                        return mine;
                    }
                    mine.extend(some);
                }
            })
        })
        .collect();
    let all: Vec<Uuid> = claimants
        .into_iter()
        .flat_map(|c| c.join().unwrap())
        .collect();
    assert_eq!(all.len(), EACH as usize);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), EACH as usize);
    let attempts: i64 = session.value(
        "SELECT sum(attempt) FROM recur_internal.live_dispatches",
        &[],
    );
    assert_eq!(attempts, i64::from(EACH));
}

#[test]
fn a_rollback_gives_the_dispatch_back_at_once() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("CREATE TABLE invoices (dispatch uuid PRIMARY KEY)");
    let id = enqueue(&mut session, "");
    let work = "WITH claimed AS (SELECT id, attempt FROM recur.claim(1)),
                     written AS (INSERT INTO invoices SELECT id FROM claimed)
                SELECT recur.complete(id, attempt) FROM claimed";
    session.batch("BEGIN");
    session.batch("CREATE TEMP TABLE mine AS SELECT id, attempt FROM recur.claim(1)");
    session.batch("INSERT INTO invoices SELECT id FROM mine");
    session.batch("SELECT recur.complete(id, attempt) FROM mine");
    // Until it is decided no other session has it.
    let mut another = cluster.session("app");
    assert_eq!(claimed(&mut another, "1"), NONE);
    session.batch("ROLLBACK");
    assert_eq!(session.count("invoices"), 0);

    session.batch("BEGIN");
    session.batch(work);
    session.batch("COMMIT");
    let row = &session.rows(
        "SELECT d.status, d.attempt, i.dispatch FROM recur.dispatches AS d JOIN invoices AS i ON i.dispatch = d.id
          WHERE d.id = $1",
        &[&id],
    )[0];
    assert_eq!(row.get::<_, String>(0), "completed");
    assert_eq!(
        row.get::<_, i32>(1),
        1,
        "the attempt that was rolled back never was"
    );
}
