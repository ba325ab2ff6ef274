//! The plans of the queue's statements: each row is found through an index, whatever statistics say.

use pg_recur_tests::queue::{
    claim_this, enqueue, enqueue_many, idle_action, let_lease_run_out, queue_for,
};
use pg_recur_tests::{Cluster, Session, eventually};
use serde_json::Value;
use std::collections::HashMap;
use uuid::Uuid;

/// A server that logs the plan of every statement of the extension, those of its workers included.
fn logging_plans() -> Cluster {
    Cluster::with(
        "shared_preload_libraries = 'pg_recur, auto_explain'
         recur.check_interval = '200ms'
         auto_explain.log_min_duration = 0
         auto_explain.log_nested_statements = on
         auto_explain.log_format = json",
    )
}

/// A session whose own statements are not logged.
fn silent(mut session: Session) -> Session {
    session.batch("SET auto_explain.log_min_duration = -1");
    session
}

/// What a database without a home asks until it has one: whether tables have any row. Each scan ends at the first.
const ANY_ROW: &str = "-- Is there anything that could fire";

/// The logged plans of statements on this table: the text and the plan.
fn plans_on(log: &str, table: &str) -> Vec<(String, Value)> {
    let logged = log.split("  plan:\n").skip(1).filter_map(|text| {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        values.next()?.ok()
    });
    logged
        .map(|mut plan| {
            let text = plan["Query Text"].as_str().unwrap_or_default().to_owned();
            (text, plan["Plan"].take())
        })
        .filter(|(text, _)| text.contains(table) && !text.starts_with(ANY_ROW))
        .collect()
}

/// The node and all below it.
fn nodes(plan: &Value) -> Vec<&Value> {
    let below = plan["Plans"].as_array().into_iter().flatten();
    std::iter::once(plan).chain(below.flat_map(nodes)).collect()
}

fn text<'a>(node: &'a Value, key: &str) -> &'a str {
    node[key].as_str().unwrap_or_default()
}

/// Statements that read all that runs on purpose, from an index that holds nothing else.
const OF_ALL_RUNNING: [&str; 2] = [
    "-- All lock groups of which",
    "-- Locks running dispatches whose last sign of life",
];

/// Every table is read through an index, with a condition that finds the rows, or by the place of the rows.
#[track_caller]
fn check_indexed(statement: &str, plan: &Value) {
    let reads_all = OF_ALL_RUNNING
        .iter()
        .any(|start| statement.starts_with(start));
    for node in nodes(plan) {
        let kind = text(node, "Node Type");
        let is_scan = kind.ends_with("Scan") && !text(node, "Relation Name").is_empty();
        let is_indexed = match kind {
            "Tid Scan" => node["TID Cond"].is_string(),
            _ => kind.starts_with("Index") && (reads_all || node["Index Cond"].is_string()),
        };
        assert!(!is_scan || is_indexed, "{statement}\n{node:#}");
    }
}

/// How the queue looks when statements are planned, and what the planner knows of that.
const STATES: [(&str, &str); 4] = [
    ("never analyzed", ""),
    ("full", "ANALYZE recur_internal.live_dispatches"),
    (
        "full again after it was analyzed when it was empty",
        "BEGIN;
         CREATE TEMP TABLE kept ON COMMIT DROP AS SELECT * FROM recur_internal.live_dispatches;
         DELETE FROM recur_internal.live_dispatches;
         ANALYZE recur_internal.live_dispatches;
         INSERT INTO recur_internal.live_dispatches SELECT * FROM kept;
         COMMIT",
    ),
    (
        "nearly everything runs",
        "UPDATE recur_internal.live_dispatches
            SET status = 'running', lease_expires_at = now() + interval '1 day', attempt = 1
          WHERE payload ? 'n' AND (payload ->> 'n')::int % 100 <> 0;
         ANALYZE recur_internal.live_dispatches",
    ),
];

/// Brings the queue, which belongs to the role `app`, into each state in turn.
fn in_each_state(admin: &mut Session, mut check: impl FnMut(&mut Session, &str)) {
    admin.batch("CREATE ROLE app; SELECT recur.grant_access('app', 'author')");
    for (state, statements) in STATES {
        let arguments = "payload => jsonb_build_object('n', n), priority => n % 3";
        admin.batch("SET ROLE app");
        enqueue_many(admin, 3_000, arguments);
        admin.batch("RESET ROLE");
        for statement in statements.split(';') {
            admin.batch(statement);
        }
        check(admin, state);
    }
}

const CLAIMS: [&str; 10] = [
    "1",
    "100",
    "10, providers => '{test}'",
    "10, providers => '{test,other}'",
    "10, action_types => '{noop}'",
    "10, action_types => '{no*,other}'",
    "10, agent => 'a'",
    "10, namespaces => '{default,b}'",
    "10, tenants => '{default}'",
    "10, '{test}', '{noop}', '{default}', '{default}'",
];

/// The nodes on the way to the one that locks rows, from the statement that changes them.
fn above_locks<'a>(plan: &'a Value, way: &[&'a Value]) -> Option<Vec<&'a Value>> {
    if text(plan, "Node Type") == "LockRows" {
        return Some([way, &[plan]].concat());
    }
    let way = match text(plan, "Node Type") {
        "ModifyTable" => vec![],
        _ => [way, &[plan]].concat(),
    };
    let mut below = plan["Plans"].as_array().into_iter().flatten();
    below.find_map(|plan| above_locks(plan, &way))
}

/// The rows to lock come in order from the right index: of one owner and priority, and no further than the present. No
/// more rows are locked than are taken.
fn check_claim(statement: &str, plan: &Value) {
    let mut way = above_locks(plan, &[]).unwrap_or_else(|| panic!("nothing is locked: {plan:#}"));
    // It hands rows on as they come; some versions of the server leave it out.
    way.retain(|node| text(node, "Node Type") != "Subquery Scan");
    // What was taken of several owners is sorted after the limit.
    let sorted = usize::from(text(way[0], "Node Type") == "Sort");
    assert!(
        sorted == 0 || text(way[1], "Node Type") == "Limit",
        "{plan:#}"
    );
    // The update takes them in that order.
    let order = nodes(plan)
        .into_iter()
        .find(|node| text(node, "Node Type") == "Nested Loop");
    let first = order.map(|node| text(&node["Plans"][0], "Node Type"));
    assert_eq!(first, Some("Function Scan"), "{plan:#}");
    for node in &way[sorted..] {
        let kind = text(node, "Node Type");
        let is_lazy = [
            "Limit",
            "Nested Loop",
            "Subquery Scan",
            "Result",
            "LockRows",
        ]
        .contains(&kind);
        assert!(is_lazy, "{kind}: {plan:#}");
    }
    let of_one_provider = statement.contains("p.provider = $6");
    let index = match of_one_provider {
        true => "live_dispatches_claimable_of_provider",
        false => "live_dispatches_claimable",
    };
    // What is locked is not sorted before; at most it is asked once whether to begin at all.
    let below = &way.last().unwrap()["Plans"][0];
    let scan = match text(below, "Node Type") {
        "Result" => &below["Plans"][0],
        _ => below,
    };
    let is_claim = |node: &&Value| {
        let condition = text(node, "Index Cond");
        condition.contains("(owner_id = ")
            && condition.contains("(provider = $") == of_one_provider
            && condition.contains("(priority = $")
            && condition.contains("(ROW(available_at, created_at) >= ROW($")
            && condition.contains("(available_at <= $")
    };
    assert!(is_claim(&scan), "{plan:#}");
    assert_eq!(text(scan, "Index Name"), index, "{plan:#}");
    // What several owners have waiting is read through the same index, and so is whether anything is more urgent.
    let is_urgent = |node: &&Value| text(node, "Index Cond").contains("(priority > $");
    let all = nodes(plan);
    assert!(all.iter().copied().any(|node| is_urgent(&node)), "{plan:#}");
    for node in all {
        if is_claim(&node) || is_urgent(&node) {
            assert_eq!(text(node, "Index Name"), index, "{plan:#}");
        }
    }
    let of_several_owners = statement.contains("unnest($10)");
    let scans = nodes(plan).iter().filter(|node| is_claim(node)).count();
    assert_eq!(scans, if of_several_owners { 3 } else { 1 }, "{plan:#}");
}

#[test]
fn every_claim_reads_the_index_in_order() {
    let cluster = logging_plans();
    let mut admin = silent(cluster.database("app"));
    admin.batch("CREATE ROLE worker LOGIN; SELECT recur.grant_access('worker', 'consumer')");
    in_each_state(&mut admin, |admin, state| {
        admin.batch("GRANT app TO worker");
        // A second owner: one role sees both, the other sees one.
        enqueue(admin, "priority => -1");
        for role in ["postgres", "worker"] {
            for arguments in CLAIMS {
                let mut consumer = cluster.session_as(role, "app");
                consumer.batch("BEGIN");
                let sql = format!("SELECT FROM recur.claim({arguments})");
                assert!(!consumer.rows(&sql, &[]).is_empty(), "{state}: {sql}");
                consumer.batch("ROLLBACK");
            }
        }
    });
    let mut seen = HashMap::<bool, usize>::new();
    for (statement, plan) in plans_on(&cluster.log(), "live_dispatches") {
        check_indexed(&statement, &plan);
        if statement.starts_with("-- Takes pending dispatches of one priority") {
            check_claim(&statement, &plan);
            *seen
                .entry(statement.contains("p.owner_id = $10"))
                .or_default() += 1;
        }
    }
    for of_one_owner in [true, false] {
        assert!(
            seen[&of_one_owner] >= STATES.len() * CLAIMS.len(),
            "{seen:?}"
        );
    }
}

/// Takes dispatches through all that can happen to them by calls, each planned anew.
fn live_through(cluster: &Cluster, admin: &mut Session) {
    let mut consumer = cluster.session("app");
    let action = idle_action(admin, ", max_attempts => 1, priority => 9");
    let ids: Vec<Uuid> = (0..8).map(|_| queue_for(admin, action)).collect();
    consumer.batch("SELECT FROM recur.claim(8, lease => '1 hour', providers => '{test}', tenants => '{default}')");
    // As if it had been generated ahead.
    admin.execute(
        "UPDATE recur_internal.live_dispatches SET trigger = 'schedule', created_at = now() - interval '1 day'
          WHERE id = $1",
        &[&ids[0]],
    );
    let pending = enqueue(admin, "dedup_key => 'k'");
    let calls = [
        format!("complete('{}', 1)", ids[0]),
        format!("complete_many('{{{},{}}}', '{{1,1}}')", ids[0], ids[1]),
        format!("fail('{}', 1, 'x')", ids[2]),
        format!(
            "fail_many('{{{},{}}}', '{{1,1}}', '{{x,y}}')",
            ids[3], pending
        ),
        format!("extend('{}', 1)", ids[4]),
        format!("release('{}', 1)", ids[4]),
        format!("cancel('{}')", ids[4]),
        format!("cancel('{}')", ids[5]),
        format!("retry('{}')", ids[2]),
        "enqueue('test', 'noop', dedup_key => 'k')".to_owned(),
        "receive('test', 'noop', '', dedup_key => 'k', dedup_window => '1 hour')".to_owned(),
        "enqueue('test', 'noop')".to_owned(),
        format!("delete('{action}'::uuid)"),
        "recover('1 day')".to_owned(),
    ];
    for call in calls {
        consumer.batch(&format!("SELECT recur.{call}"));
    }
    let_lease_run_out(admin, ids[6]);
    let counted = idle_action(
        admin,
        ", count_runs => 'completed', max_runs => 1, priority => 9",
    );
    let only_run = queue_for(&mut consumer, counted);
    claim_this(&mut consumer, only_run);
    consumer.batch(&format!("SELECT recur.complete('{only_run}', 1)"));
    // Groups that run, and others that a claim passes over.
    admin.batch("SELECT recur.grant_access('app', 'consumer'); SET ROLE app");
    enqueue_many(admin, 60, "priority => 5, lock_group => 'g' || n % 20");
    admin.batch("RESET ROLE");
    consumer.batch("BEGIN; SET LOCAL ROLE app; SELECT FROM recur.claim(30); SELECT FROM recur.claim(100); ROLLBACK");
    // Claims that pass over all others remember where to begin.
    for provider in ["", "providers => '{test}', "] {
        enqueue_many(admin, 5, "action_type => 'rare'");
        for _ in 0..4 {
            consumer.batch(&format!(
                "SELECT FROM recur.claim({provider}action_types => '{{rare}}')"
            ));
        }
    }
    // One and many for the dispatcher to announce.
    enqueue(admin, "run_at => clock_timestamp() + interval '300 ms'");
    enqueue_many(admin, 1_000, "run_at => now() + interval '3 s'");
}

/// The first words of each statement of the queue, and of what happens to it other than by reports.
fn statements() -> Vec<String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../sql");
    let mut all = Vec::new();
    for folder in ["queue", "recovery"] {
        let files = std::fs::read_dir(format!("{root}/{folder}/queries")).unwrap();
        for path in files.map(|file| file.unwrap().path()) {
            let sql = std::fs::read_to_string(&path).unwrap();
            // A part of other statements begins without a comment.
            let is_statement = sql.starts_with("--");
            // The dispatcher asks it only after an error.
            if is_statement && !path.ends_with("expired_leases.sql") {
                all.push(sql.chars().take(40).collect());
            }
        }
    }
    all
}

#[test]
fn every_statement_of_the_queue_finds_its_rows_through_an_index() {
    let cluster = logging_plans();
    let mut admin = silent(cluster.database("app"));
    let every_second = "'* * * * * *', 'other', 'noop', overlap => 'cancel_previous'";
    admin.batch(&format!("SELECT recur.create('often', {every_second})"));
    // Limits are counted only where there are any.
    admin.batch("ALTER DATABASE app SET recur.max_pending_per_owner = 1000000");
    let mut admin = silent(cluster.session("app"));
    in_each_state(&mut admin, |admin, _| live_through(&cluster, admin));
    let plans = || plans_on(&cluster.log(), "recur_internal.");
    for start in statements() {
        eventually(&start, || {
            plans().iter().any(|(text, _)| text.starts_with(&start))
        });
    }
    for (statement, plan) in plans() {
        if statement.contains("live_dispatches") {
            check_indexed(&statement, &plan);
        }
        // Reports lock by id: no other index finds a dispatch as surely.
        if statement.contains("unnest($1,") {
            for node in nodes(&plan) {
                let index = text(node, "Index Name");
                let is_of_queue = index.starts_with("live_dispatches");
                assert!(
                    !is_of_queue || index == "live_dispatches_pkey",
                    "{statement}\n{node:#}"
                );
            }
        }
    }
}
