//! The cost of creating many actions in one statement.

use pg_recur_tests::{Cluster, Session};
use serde_json::Value;

/// Pages that the creation of this many actions reads and writes, for each of them.
fn pages_per_action(session: &mut Session, count: u32, statement: &str) -> f64 {
    let plan: Value = session.value(
        &format!("EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, FORMAT json) {statement}"),
        &[],
    );
    let plan = &plan[0]["Plan"];
    let pages = |kind: &str| plan[format!("Shared {kind} Blocks")].as_f64().unwrap();
    (pages("Hit") + pages("Read")) / f64::from(count)
}

fn insert(count: u32) -> String {
    format!(
        "INSERT INTO recur.recurring_actions (name, schedule, provider, action_type)
         SELECT 'inserted {count}: ' || i, '0 9 * * *', 'p', 'a' FROM generate_series(1, {count}) AS i"
    )
}

fn create_many(count: u32) -> String {
    format!(
        "SELECT recur.create_many(array_agg(jsonb_build_object(
                    'name', 'created {count}: ' || i, 'schedule', '0 9 * * *', 'provider', 'p', 'action_type', 'a')))
           FROM generate_series(1, {count}) AS i"
    )
}

/// Statistics of a time when there were few actions make no plan that reads all of them for each new one.
#[test]
fn many_actions_cost_as_much_each_as_few_also_after_an_early_analyze() {
    for statement in [insert, create_many] {
        let cluster = Cluster::quiet();
        let mut session = cluster.database("app");
        session.batch(&insert(25));
        session.batch("VACUUM ANALYZE");
        let few = pages_per_action(&mut session, 200, &statement(200));
        let many = pages_per_action(&mut session, 2_000, &statement(2_000));
        assert!(
            many < few * 1.5,
            "{many} pages for each of 2,000 actions, {few} for each of 200: {}",
            statement(200)
        );
    }
}
