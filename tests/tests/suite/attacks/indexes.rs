//! A superuser has put something else in the place of an index that workers read without a query.

use super::field::Field;
use pg_recur_tests::{Cluster, eventually};

/// The index, its table, and the column that it is on.
const READ_BY_WORKERS: [(&str, &str, &str); 3] = [
    ("timers_due", "timers", "due_at"),
    ("live_dispatches_later", "live_dispatches", "available_at"),
    (
        "live_dispatches_leased",
        "live_dispatches",
        "lease_expires_at",
    ),
];

/// `{index}`, `{table}` and `{column}` are replaced. The first one was the attack that let 465 processes crash.
const REPLACEMENTS: [&str; 13] = [
    "CREATE INDEX {index} ON recur_internal.{table} ({text}) WHERE {column} IS NOT NULL",
    "CREATE INDEX {index} ON recur_internal.{table} ({uuid})",
    "CREATE INDEX {index} ON recur_internal.{table} USING hash ({column})",
    "CREATE INDEX {index} ON recur_internal.{table} USING brin ({column})",
    "CREATE INDEX {index} ON recur_internal.{table} ({column} DESC)",
    "CREATE INDEX {index} ON recur_internal.{table} (({column} AT TIME ZONE 'UTC'))",
    "CREATE INDEX {index} ON recur_internal.{table} (({uuid}::text))",
    "CREATE INDEX {index} ON recur_internal.owners (id)",
    "CREATE INDEX {index} ON recur_internal.events_0 (at)",
    "CREATE INDEX {index} ON recur_internal.events (at)",
    "CREATE VIEW recur_internal.{index} AS SELECT 1 AS one",
    "CREATE INDEX {index} ON recur_internal.{table} ({column});
     UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'recur_internal.{index}'::regclass",
    "CREATE INDEX {index} ON recur_internal.{table} ({column} own.instants)",
];

/// An operator class of another family, which says that every instant is the same.
const OPERATOR_CLASS: &str = "
    CREATE SCHEMA own;
    CREATE FUNCTION own.same(timestamptz, timestamptz) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 0';
    CREATE OPERATOR CLASS own.instants FOR TYPE timestamptz USING btree AS
        OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
        FUNCTION 1 own.same(timestamptz, timestamptz)";

/// Does the damage, lets workers of this database look, and waits for what they say of it. They may say it at once.
#[track_caller]
fn assert_reported(cluster: &Cluster, database: &str, damage: &str, statement: &str) {
    let from = cluster.log().len();
    cluster.session(database).batch(statement);
    let said = format!("database=\"{database}\"");
    cluster.reload();
    eventually(&format!("the log speaks of {damage}"), || {
        let log = cluster.log();
        let new = log.get(from..).unwrap_or_default();
        new.lines().any(|line| {
            line.contains(&said) && (line.contains("failed") || line.contains("leaving"))
        })
    });
}

#[test]
fn another_index_leads_to_an_error_in_the_log() {
    let mut field = Field::with("max_worker_processes = 100\nlog_min_messages = warning");
    for (number, (index, table, column)) in READ_BY_WORKERS.into_iter().enumerate() {
        let database = format!("damaged{number}");
        let mut root = field.cluster.database(&database);
        root.batch(OPERATOR_CLASS);
        root.batch(
            "SELECT recur.create('beat', '* * * * * *', 'p', 'a');
             SELECT recur.enqueue('p', 'a', run_at => now() + interval '1 day'); SELECT recur.enqueue('q', 'a');
             SELECT recur.claim(1, providers => '{q}')",
        );
        eventually("the database is served", || {
            root.count("recur.dispatches WHERE provider = 'p'") > 1
        });
        let (text, uuid) = match table {
            "timers" => ("last_error", "action_id"),
            _ => ("tenant", "id"),
        };
        let definition: String = root.value(
            "SELECT pg_get_indexdef(('recur_internal.' || $1::text)::regclass)",
            &[&index],
        );
        for replacement in REPLACEMENTS {
            let damage = replacement
                .replace("{index}", index)
                .replace("{table}", table)
                .replace("{column}", column)
                .replace("{text}", text)
                .replace("{uuid}", uuid);
            let statement = format!("BEGIN; DROP INDEX recur_internal.{index}; {damage}; COMMIT");
            assert_reported(&field.cluster, &database, &damage, &statement);
            field.assert_no_crash();
            let kind = if damage.starts_with("CREATE VIEW") {
                "VIEW"
            } else {
                "INDEX"
            };
            root.batch(&format!(
                "BEGIN; DROP {kind} recur_internal.{index}; {definition}; COMMIT"
            ));
        }
        // The table itself: a view, a table without rows, one with other columns.
        for replacement in [
            "CREATE VIEW recur_internal.{table} AS TABLE recur_internal.moved",
            "CREATE TABLE recur_internal.{table} (id bigint)",
            "CREATE MATERIALIZED VIEW recur_internal.{table} AS TABLE recur_internal.moved",
        ] {
            let damage = replacement.replace("{table}", table);
            let statement = format!(
                "BEGIN; ALTER TABLE recur_internal.{table} RENAME TO moved; {damage}; COMMIT"
            );
            assert_reported(&field.cluster, &database, &damage, &statement);
            field.assert_no_crash();
            let (_, rest) = damage.split_once("CREATE ").expect("a statement");
            let (kind, _) = rest.split_once(" recur_internal").expect("a kind");
            root.batch(&format!(
                "BEGIN; DROP {kind} recur_internal.{table}; ALTER TABLE recur_internal.moved RENAME TO {table}; COMMIT"
            ));
        }
        // Repaired, the database goes on by itself.
        field.cluster.reload();
        let before = root.count("recur.dispatches");
        eventually("the repaired database goes on", || {
            root.count("recur.dispatches") > before
        });
        drop(root);
        field
            .root
            .batch(&format!("DROP DATABASE {database} WITH (FORCE)"));
    }
    field.assert_victim_works();
}
