//! The plans of claims and reports: each row is found through an index.

use pg_recur_tests::Cluster;
use pg_recur_tests::queue::{queue, queue_many};

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
                "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = \
                 on;
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
