//! Claiming: who gets what, in which order, and never twice.

use pg_recur_tests::queue::{queue, queue_many};
use pg_recur_tests::{Cluster, Session, eventually};
use std::collections::HashSet;
use std::thread;
use uuid::Uuid;

const NONE: [Uuid; 0] = [];

fn claimed(session: &mut Session, arguments: &str) -> Vec<Uuid> {
    session
        .rows(&format!("SELECT id FROM recur.claim({arguments})"), &[])
        .iter()
        .map(|row| row.get(0))
        .collect()
}

#[test]
fn priority_first_then_time_and_nothing_before_its_time() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let old = queue(&mut session, "available_at = now() - interval '2 hours'");
    let new = queue(&mut session, "available_at = now() - interval '1 hour'");
    let urgent = queue(&mut session, "priority = 5");
    let least = queue(&mut session, "priority = -2147483648");
    queue(
        &mut session,
        "priority = 9, available_at = now() + interval '1 hour'",
    );
    assert_eq!(claimed(&mut session, "2"), [urgent, old]);
    assert_eq!(claimed(&mut session, "10"), [new, least]);
    assert_eq!(claimed(&mut session, "10"), NONE);
}

#[test]
fn filters_hold_together() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mail = queue(&mut session, "provider = 'mail', tenant = 'acme'");
    let sms = queue(
        &mut session,
        "provider = 'sms', tenant = 'acme', action_type = 'send', namespace = 'shop'",
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
        queue(
            &mut session,
            &format!("lease = {lease}, cancel_requested = true"),
        );
        let row = &session.rows(
            &format!(
                "SELECT status, attempt, claimed_by, round(extract(epoch FROM lease_expires_at - started_at))::int, cancel_requested
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
    queue(&mut session, "");
    let name: String = session.value("SELECT claimed_by FROM recur.claim()", &[]);
    assert_eq!(name, "pg_recur-tests");

    let (state, message, _) = session.error("SELECT recur.claim(0)");
    assert_eq!(
        (state.as_str(), message.as_str()),
        ("22023", "invalid limit \"0\": must be at least 1")
    );
    let (state, message, _) = session.error("SELECT recur.claim(1, lease => '-1 s')");
    assert_eq!(
        (state.as_str(), message.as_str()),
        (
            "22023",
            "invalid lease \"-00:00:01\": must be longer than nothing"
        )
    );
}

#[test]
fn many_claimants_share_none() {
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
    let attempts: i64 = session.value("SELECT sum(attempt) FROM recur.live_dispatches", &[]);
    assert_eq!(attempts, i64::from(EACH));
}

#[test]
fn of_a_group_one_runs_at_a_time() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let first = queue(
        &mut session,
        "lock_group = 'g', available_at = now() - interval '3 hours'",
    );
    let second = queue(
        &mut session,
        "lock_group = 'g', available_at = now() - interval '2 hours'",
    );
    let third = queue(
        &mut session,
        "lock_group = 'g', available_at = now() - interval '1 hour'",
    );
    let free = queue(&mut session, "");
    let other = queue(&mut session, "lock_group = 'h'");
    // The batch is filled from behind the group.
    assert_eq!(claimed(&mut session, "3"), [first, free, other]);
    assert_eq!(claimed(&mut session, "3"), NONE);
    session.execute("SELECT recur.complete($1, 1)", &[&first]);
    assert_eq!(claimed(&mut session, "1"), [second]);
    // Within one transaction as well.
    session.batch("BEGIN");
    session.execute("SELECT recur.complete($1, 1)", &[&second]);
    assert_eq!(claimed(&mut session, "1"), [third]);
    // Nobody else may, before this transaction ends, either.
    let mut another = cluster.session("app");
    assert_eq!(claimed(&mut another, "5"), NONE);
    session.batch("ROLLBACK");
    assert_eq!(claimed(&mut another, "5"), NONE);
}

#[test]
fn of_a_group_the_next_runs_while_somebody_holds_the_first() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let first = queue(
        &mut session,
        "lock_group = 'g', available_at = now() - interval '2 s'",
    );
    let second = queue(
        &mut session,
        "lock_group = 'g', available_at = now() - interval '1 s'",
    );
    queue(&mut session, "lock_group = 'g'");
    let mut holder = cluster.session("app");
    holder.batch("BEGIN");
    holder.execute(
        "UPDATE recur.live_dispatches SET payload = '{}' WHERE id = $1",
        &[&first],
    );
    assert_eq!(claimed(&mut session, "10"), [second]);
    holder.batch("COMMIT");
    assert_eq!(claimed(&mut session, "10"), NONE, "one runs");
    session.execute("SELECT recur.complete($1, 1)", &[&second]);
    assert_eq!(claimed(&mut session, "10"), [first]);
}

#[test]
fn groups_hold_under_concurrency() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.execute(
        "INSERT INTO recur.live_dispatches (id, scheduled_at, trigger, provider, action_type, lock_group)
         SELECT gen_random_uuid(), now(), 'enqueue', 'test', 'noop', 'g' || n % 5 FROM generate_series(1, 400) AS n",
        &[],
    );
    // The unique index is the referee: whoever starts a second one of a group gets an error, and fails the test.
    let consumers: Vec<_> = (0..6)
        .map(|number| {
            let mut session = cluster.session("app");
            if number == 0 {
                session.batch("SET default_transaction_isolation = 'repeatable read'");
            }
            thread::spawn(move || {
                eventually("all are done", || {
                    match session
                        .0
                        .query("SELECT id, attempt FROM recur.claim(3)", &[])
                    {
                        Ok(rows) => {
                            for row in rows {
                                let (id, attempt): (Uuid, i32) = (row.get(0), row.get(1));
                                session.execute("SELECT recur.complete($1, $2)", &[&id, &attempt]);
                            }
                        }
                        // What an old snapshot can't see is for the client to try again.
                        Err(error) => {
                            assert_eq!(number, 0);
                            assert_eq!(pg_recur_tests::database_error(&error).0, "40001");
                        }
                    }
                    let left: i64 =
                        session.value("SELECT count(*) FROM recur.live_dispatches", &[]);
                    left == 0
                });
            })
        })
        .collect();
    for consumer in consumers {
        consumer.join().unwrap();
    }
    let done: i64 = session.value(
        "SELECT count(*) FROM recur.dispatches WHERE status = 'completed' AND attempt = 1",
        &[],
    );
    assert_eq!(done, 400);
}

#[test]
fn a_rollback_gives_the_dispatch_back_at_once() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("CREATE TABLE invoices (dispatch uuid PRIMARY KEY)");
    let id = queue(&mut session, "");
    let work = "WITH claimed AS (SELECT id, attempt FROM recur.claim(1)),
                     written AS (INSERT INTO invoices SELECT id FROM claimed)
                SELECT recur.complete(id, attempt) FROM claimed";
    session.batch("BEGIN");
    session.batch("CREATE TEMP TABLE mine AS SELECT id, attempt FROM recur.claim(1)");
    session.batch("INSERT INTO invoices SELECT id FROM mine");
    session.batch("SELECT recur.complete(id, attempt) FROM mine");
    // Until it is decided nobody else has it.
    let mut another = cluster.session("app");
    assert_eq!(claimed(&mut another, "1"), NONE);
    session.batch("ROLLBACK");
    let invoices: i64 = session.value("SELECT count(*) FROM invoices", &[]);
    assert_eq!(invoices, 0);

    session.batch("BEGIN");
    session.batch(work);
    session.batch("COMMIT");
    let row = &session.rows(
        "SELECT d.status, d.attempt, i.dispatch FROM recur.dispatches AS d JOIN invoices AS i ON i.dispatch = d.id WHERE d.id = $1",
        &[&id],
    )[0];
    assert_eq!(row.get::<_, String>(0), "completed");
    assert_eq!(
        row.get::<_, i32>(1),
        1,
        "the attempt that was rolled back never was"
    );
}

/// The plan of the statement in which claim chooses, as this role gets it.
fn plan_of_claim(cluster: &Cluster, role: &str, arguments: &str) -> String {
    let output = cluster.psql(
        "app",
        &format!(
            "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;
             SET client_min_messages = log; SET ROLE {role}; SELECT count(*) FROM recur.claim({arguments});"
        ),
    );
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let start = log
        .find("WITH claimed")
        .unwrap_or_else(|| panic!("no plan in {log}"));
    let end = log[start + 1..]
        .find("LOG:")
        .map_or(log.len(), |end| start + 1 + end);
    log[start..end].to_owned()
}

#[test]
fn every_claim_reads_the_index_in_order() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    session.batch("CREATE ROLE app; CREATE ROLE worker IN ROLE app; SELECT recur.grant_access('worker', 'consumer')");
    for (number, statistics) in [
        // Never analyzed, as on the first day.
        (0, ""),
        // Full.
        (3_000, "ANALYZE recur.live_dispatches"),
        // Nearly all of them are running, and of different priorities.
        (
            30_000,
            "UPDATE recur.live_dispatches
                SET priority = (payload ->> 'n')::int % 3,
                    status = CASE WHEN (payload ->> 'n')::int % 100 = 0 THEN 'pending' ELSE 'running' END
              WHERE payload ? 'n';
             VACUUM ANALYZE recur.live_dispatches",
        ),
    ] {
        queue_many(&mut session, number);
        session.batch("UPDATE recur.live_dispatches SET owner = 'app'");
        for statement in statistics.split(';') {
            session.batch(statement);
        }
        for role in ["postgres", "worker"] {
            for arguments in [
                "1",
                "100",
                "10, providers => '{test}'",
                "10, providers => '{test,other}'",
                "10, action_types => '{noop}'",
                "10, namespaces => '{a,b}'",
                "10, tenants => '{a}'",
                "10, '{a}', '{b}', '{c}', '{d}'",
            ] {
                // Where nothing is pending, nothing is chosen from.
                queue(&mut session, "owner = 'app'");
                queue(&mut session, "owner = 'app', provider = 'a'");
                let plan = plan_of_claim(&cluster, role, arguments);
                let of_one_provider = arguments.contains("providers => '{test}'")
                    || arguments.contains("'{a}', '{b}'");
                let index = match of_one_provider {
                    true => "Index Scan using live_dispatches_claimable_of_provider on",
                    false => "Index Scan using live_dispatches_claimable on",
                };
                let locking = &plan[plan.find("LockRows").unwrap()
                    ..plan.find("using live_dispatches_pkey").unwrap()];
                // One provider, one priority, and no further than the present.
                let condition = locking
                    .lines()
                    .find(|line| line.contains("Index Cond:"))
                    .unwrap();
                assert!(
                    condition.contains("(provider = $") == of_one_provider
                        && condition.contains("(priority = ")
                        && condition.contains("(ROW(available_at, created_at) >= ROW($")
                        && condition.contains("(available_at <= $"),
                    "{role} {arguments}: {plan}"
                );
                assert!(plan.contains(index), "{role} {arguments}: {plan}");
                // Whether there is anything more urgent is asked of the same index, from its beginning on.
                let urgent = plan
                    .lines()
                    .find(|line| line.ends_with("live_dispatches h") || line.contains("live_dispatches h "));
                let asked = index.trim_start_matches("Index Scan ");
                assert!(
                    urgent.is_some_and(|line| line.contains(asked)),
                    "{role} {arguments}: {plan}"
                );
                assert!(
                    !plan.contains("Seq Scan") && !plan.contains("Bitmap"),
                    "{role} {arguments}: {plan}"
                );
                // However long the history is, nobody looks at it.
                assert!(!plan.contains("finished"), "{role} {arguments}: {plan}");
                // The rows are not sorted before they are locked.
                assert!(!locking.contains("Sort"), "{role} {arguments}: {plan}");
            }
        }
    }
}

#[test]
fn every_report_finds_its_dispatch_by_its_id() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    queue_many(&mut session, 500);
    // By the numbers that the planner has, nothing runs.
    session.batch("ANALYZE recur.live_dispatches; CREATE TABLE mine AS SELECT id, attempt FROM recur.claim(500)");
    for report in [
        "complete_many(array_agg(id), array_agg(attempt))",
        "fail_many(array_agg(id), array_agg(attempt), array_agg('x'::text))",
        "complete((array_agg(id))[1], (array_agg(attempt))[1])",
        "fail((array_agg(id))[1], (array_agg(attempt))[1], 'x')",
        "extend((array_agg(id))[1], (array_agg(attempt))[1])",
        "release((array_agg(id))[1], (array_agg(attempt))[1])",
    ] {
        let output = cluster.psql(
            "app",
            &format!(
                "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;
                 SET client_min_messages = log; SELECT (recur.{report}).status FROM (SELECT * FROM mine LIMIT 100) AS m;
                 DELETE FROM mine USING recur.dispatches AS d WHERE d.id = mine.id AND d.status <> 'running';"
            ),
        );
        assert!(output.status.success(), "{report}");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(
            log.contains("using live_dispatches_pkey"),
            "{report}: {log}"
        );
        assert!(!log.contains("live_dispatches_leased"), "{report}: {log}");
    }
}

#[test]
fn claims_go_on_while_leases_expire() {
    const EXPIRED: i32 = 10_000;
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    queue_many(&mut session, EXPIRED);
    session.batch("SELECT count(*) FROM recur.claim(10000)");
    session.batch("UPDATE recur.live_dispatches SET lease_expires_at = now() - interval '1 s', max_attempts = CASE WHEN (payload ->> 'n')::int % 10 = 0 THEN 1 ELSE 3 END");
    queue_many(&mut session, 100);
    let mut claimant = cluster.session("app");
    claimant.batch("SET lock_timeout = '1ms'");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");

    session.batch("BEGIN");
    let recovered: i64 =
        session.value("SELECT recur._expire_leases(clock_timestamp(), 10000)", &[]);
    assert_eq!(recovered, i64::from(EXPIRED));
    // It has not committed; a claim neither waits for it nor sees less.
    let (id, attempt): (Uuid, i32) = {
        let row = &claimant.rows("SELECT id, attempt FROM recur.claim(1)", &[])[0];
        (row.get(0), row.get(1))
    };
    assert_eq!(claimed(&mut claimant, "1000").len(), 99);
    claimant.execute("SELECT recur.complete($1, $2)", &[&id, &attempt]);
    session.batch("COMMIT");

    eventually("the recovered ones are available", || {
        claimed(&mut claimant, "10000").len() == 9000
    });
    let heard: i64 = listener
        .waiting_notifications()
        .iter()
        .map(|message| message["count"].as_i64().unwrap())
        .sum();
    assert_eq!(heard, 9000);
    let failed: i64 = session.value(
        "SELECT count(*) FROM recur.dead_letters WHERE error = 'lease expired'",
        &[],
    );
    assert_eq!(failed, 1000);
    let events: i64 = session.value(
        "SELECT count(DISTINCT dispatch_id) FROM recur.events WHERE kind = 'dispatch.recovered'",
        &[],
    );
    assert_eq!(events, i64::from(EXPIRED));
}
