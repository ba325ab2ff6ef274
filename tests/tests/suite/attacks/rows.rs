//! Rows that the owner of the database adds, as a restore does: with values that no function of the extension writes.

use super::field::Field;
use pg_recur_tests::{Session, database_error};

/// Values of a column's type that are as far out as can be.
const EXTREMES: &str = "
    SELECT a.attname::text, v
      FROM pg_attribute AS a,
           unnest(CASE a.atttypid::regtype::text
                  WHEN 'integer' THEN '{-2147483648,2147483647}'::text[]
                  WHEN 'bigint' THEN '{-9223372036854775808,9223372036854775807}'
                  WHEN 'smallint' THEN '{-32768,32767}'
                  WHEN 'boolean' THEN '{true,false}'
                  WHEN 'interval' THEN '{-178000000 years,178000000 years,-1 microsecond}'
                  WHEN 'timestamp with time zone'
                  THEN '{infinity,-infinity,4713-01-01 BC,294276-12-31}'
                  WHEN 'jsonb' THEN ARRAY['[]', '\"text\"', 'null', '{\"base\": -1, \"factor\": \"x\"}', '[[[1e1000]]]']
                  WHEN 'text' THEN ARRAY['', repeat('x', 100000), '🚀 %s {{recurring_id}}']
                  WHEN 'bytea' THEN ARRAY[repeat('x', 100000)]
                  WHEN 'uuid' THEN ARRAY['00000000-0000-0000-0000-000000000000']
                  WHEN 'recur.schedule' THEN ARRAY['at 0001-01-01T00:00:00', '* * * * * *']
                  ELSE '{}' END) AS v
     WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped";

const TABLES: [(&str, &str); 7] = [
    ("definitions", "id"),
    ("timers", "action_id"),
    ("progress", "action_id"),
    ("live_dispatches", "id"),
    ("contexts", "action_id"),
    ("owners", "id"),
    ("history_partitions", "partition"),
];

/// An action or a dispatch that is like the victim's, except for one column of one of its rows.
fn insert(dbo: &mut Session, table: &str, column: &str, value: &str) -> Result<(), String> {
    let mut copy = |of: &str, key: &str, from: &str| {
        let changed = match of == table {
            true => {
                "|| jsonb_build_object($2::text, CASE WHEN $4 THEN $3::text::jsonb ELSE to_jsonb($3::text) END)"
            }
            false => "",
        };
        let is_json = [
            "payload",
            "metadata",
            "labels",
            "retry_backoff",
            "context",
            "errors",
        ]
        .contains(&column);
        let sql = format!(
            "INSERT INTO recur_internal.{of}
             SELECT (jsonb_populate_record(NULL::recur_internal.{of},
                        to_jsonb(t) || jsonb_build_object('{key}', $1::text) {changed})).*
               FROM recur_internal.{of} AS t {from} LIMIT 1"
        );
        let id = "11111111-1111-7111-8111-111111111111";
        let outcome = match of == table {
            true => dbo.0.execute(&sql, &[&id, &column, &value, &is_json]),
            false => dbo.0.execute(&sql, &[&id]),
        };
        outcome.map(drop).map_err(|error| {
            let (code, message, _) = database_error(&error);
            format!("{code} {message}")
        })
    };
    let of_action =
        "WHERE t.action_id IN (SELECT id FROM recur_internal.definitions WHERE name = 'heartbeat')";
    match table {
        "live_dispatches" => copy("live_dispatches", "id", ""),
        "owners" => copy("owners", "name", ""),
        "history_partitions" => copy("history_partitions", "partition", ""),
        _ => {
            copy("definitions", "id", "WHERE t.name = 'heartbeat'")?;
            copy("timers", "action_id", of_action)?;
            copy("progress", "action_id", of_action)?;
            if table == "contexts" {
                copy("contexts", "action_id", "")?;
            }
            Ok(())
        }
    }
}

/// Whatever is in a row, the dispatcher, the maintenance process and every function that reads it go on.
#[test]
fn rows_with_extreme_values_crash_nothing() {
    let mut field = Field::with("recur.enabled = off\nlog_min_messages = error");
    let mut dbo = field.session("dbo");
    let mut stored = 0;
    for (table, _) in TABLES {
        let name = format!("recur_internal.{table}");
        for row in field.root.rows(EXTREMES, &[&name]) {
            let (column, value): (String, String) = (row.get(0), row.get(1));
            // In a transaction of the owner of the database first: what may be stored at all?
            dbo.batch("BEGIN");
            let outcome = insert(&mut dbo, table, &column, &value);
            dbo.batch(if outcome.is_ok() {
                "COMMIT"
            } else {
                "ROLLBACK"
            });
            if outcome.is_err() {
                continue;
            }
            stored += 1;
            for statement in [
                "SELECT recur.tick()",
                "SELECT recur.tick(now() + interval '1 hour')",
                "SELECT recur_internal.expire_leases(now() + interval '1 year')",
                "SELECT recur_internal.open_next_partition('1 minute', now() + interval '1 year')",
                "SELECT recur.complete(id, attempt) FROM recur.claim(3)",
                "SELECT recur.fail(id, attempt, 'why') FROM recur.claim(3)",
                "SELECT recur.trigger(id) FROM recur.recurring_actions",
                "SELECT recur.explain(id, now()), recur.preview(id), recur.history(id) FROM recur.recurring_actions",
                "UPDATE recur.recurring_actions SET priority = 1",
                "SELECT recur.pause_all(); SELECT recur.resume_all()",
                "SELECT recur.retry(id) FROM recur.dead_letters",
                "SELECT recur.recover('0'); SELECT recur.purge('0')",
                "TABLE recur.overview; TABLE recur.dispatches; SELECT recur.list(); SELECT recur.forecast();
                 SELECT recur.doctor()",
            ] {
                field.root.batch("BEGIN");
                if let Err(error) = field.root.0.batch_execute(statement) {
                    let (code, message, _) = database_error(&error);
                    assert!(code != "XX000", "{table}.{column} = {value:.50}: {statement}: {message}");
                }
                field.root.batch("ROLLBACK");
            }
            field.root.batch(
                "DELETE FROM recur_internal.definitions WHERE id = '11111111-1111-7111-8111-111111111111';
                 DELETE FROM recur_internal.live_dispatches WHERE id = '11111111-1111-7111-8111-111111111111'",
            );
        }
    }
    assert!(stored > 100, "{stored}");
    field.assert_no_crash();
}
