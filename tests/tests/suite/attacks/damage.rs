//! A superuser has damaged the catalog: another type, another relation, another function under a name that the
//! extension knows. Whatever stands there, the worst outcome is an error.

use super::field::{Field, try_and_undo};
use pg_recur_tests::Session;

/// Everything that reads and writes tables. `{action}`, `{pending}`, `{running}` and `{failed}` are ids.
const WORK: [&str; 33] = [
    "UPDATE recur_internal.timers SET due_at = next_run_at - interval '1 day'; SELECT recur.tick()",
    "SELECT recur.create('new', '@daily', 'p', 'a', '{\"k\": 1}', context => '{}', dedup_key => 'k', contact => 'c')",
    "SELECT recur.update('{action}'::uuid, '{\"priority\": 7, \"payload\": {\"a\": 2}, \"context\": {\"b\": 1}}')",
    "SELECT recur.pause('{action}'::uuid)",
    "SELECT recur.pause('{action}'::uuid); SELECT recur.resume('{action}'::uuid)",
    "SELECT recur.delete('{action}'::uuid)",
    "SELECT recur.pause_all(); SELECT recur.resume_all()",
    "UPDATE recur.recurring_actions SET description = 'd'",
    "DELETE FROM recur.recurring_actions",
    "SELECT recur.trigger('{action}'::uuid, overlap => 'allow')",
    "SELECT recur.backfill('{action}'::uuid, now() - interval '1 minute', now())",
    "SELECT recur.restore_context('{action}'::uuid, 1)",
    "SELECT recur.enqueue('p', 'a', '{}', dedup_key => 'k', lock_group => 'g')",
    "SELECT recur.receive('p', 'a', 'body')",
    "SELECT * FROM recur.claim(5)",
    "SELECT * FROM recur.claim(5, providers => '{known}', tenants => '{default}')",
    "SELECT recur.complete('{running}', 1, '{}', '{}')",
    "SELECT recur.complete_many('{{running}}', '{1}')",
    "SELECT recur.fail('{running}', 1, 'why')",
    "SELECT recur.fail_many('{{running}}', '{1}', '{why}', retry => false)",
    "SELECT recur.extend('{running}', 1)",
    "SELECT recur.release('{running}', 1)",
    "SELECT recur.cancel('{pending}')",
    "SELECT recur.cancel('{running}')",
    "SELECT recur.retry('{failed}')",
    "SELECT recur.recover('0')",
    "SELECT recur.purge('0')",
    "SELECT recur_internal.expire_leases(now() + interval '10 days')",
    "SELECT recur_internal.open_next_partition('1 minute', now() + interval '10 days')",
    "SELECT * FROM recur.list(search => 'known', labels => '{}')",
    "SELECT recur.explain('{action}'::uuid, now()); SELECT recur.history('{action}'::uuid); SELECT recur.forecast()",
    "SELECT recur.preview('{action}'::uuid); SELECT recur.compare('{action}'::uuid, '{\"schedule\": \"@hourly\"}')",
    "TABLE recur.overview; TABLE recur.dispatches; TABLE recur.events; TABLE recur.contexts; TABLE recur.dead_letters;
     TABLE recur.stats; TABLE recur.workers; SELECT recur.doctor()",
];

/// The statements, with the ids of what is there.
fn work(root: &mut Session) -> Vec<String> {
    root.batch(
        "SELECT recur.create('known', '* * * * * *', 'known', 'a', '{\"k\": 1}', context => '{\"k\": 1}',
                             labels => '{\"k\": \"v\"}', contact => 'c', description => 'known');
         SELECT recur.trigger(recur.id_of('known'), overlap => 'allow') FROM generate_series(1, 3);
         SELECT recur.fail(id, attempt, 'why', retry => false) FROM recur.claim(1, '{known}');
         SELECT recur.claim(1, '{known}')",
    );
    let mut id = |query: &str| root.value::<String>(query, &[]);
    let action = id("SELECT id::text FROM recur.recurring_actions WHERE name = 'known'");
    let mut of = |status: &str| {
        id(&format!(
            "SELECT id::text FROM recur.dispatches WHERE provider = 'known' AND status = '{status}' LIMIT 1"
        ))
    };
    let (pending, running, failed) = (of("pending"), of("running"), of("failed"));
    let fill = |statement: &str| {
        statement
            .replace("{action}", &action)
            .replace("{pending}", &pending)
            .replace("{running}", &running)
            .replace("{failed}", &failed)
    };
    WORK.map(fill).to_vec()
}

/// Damages the catalog, does all the work, and repairs the catalog. How many of the statements failed.
#[track_caller]
fn endure(root: &mut Session, damage: &str, work: &[String]) -> usize {
    root.batch("BEGIN; SET LOCAL lock_timeout = '10s'");
    if let Err(error) = root.0.batch_execute(damage) {
        panic!("{damage}: {error:?}");
    }
    let mut failed = 0;
    for statement in work {
        if let Err((code, message)) = try_and_undo(root, statement) {
            failed += 1;
            assert!(
                message.len() < 500,
                "{damage}: {statement}: {code} {message}"
            );
        }
    }
    root.batch("ROLLBACK");
    failed
}

/// Types that take the place of a type: one that is stored in another way, and one that is stored alike.
const REPLACEMENTS: &str = "
    SELECT a.attname::text, f.kind,
           (SELECT string_agg(CASE WHEN b.attnum = a.attnum
                                   THEN format('%s AS %I', CASE f.kind WHEN 'bigint' THEN '140737488351232::bigint'
                                                                       ELSE format('NULL::%s', f.kind) END, b.attname)
                                   ELSE quote_ident(b.attname) END, ', ' ORDER BY b.attnum)
              FROM pg_attribute AS b WHERE b.attrelid = a.attrelid AND b.attnum > 0 AND NOT b.attisdropped)
      FROM pg_attribute AS a,
           unnest(CASE WHEN a.atttypid IN ('text'::regtype, 'recur.schedule'::regtype, 'recur.timezone'::regtype)
                       THEN '{bigint,bytea}'::text[]
                       WHEN a.atttypid = 'jsonb'::regtype THEN '{bigint,json}'
                       WHEN a.atttypid = 'uuid'::regtype THEN '{bigint,text}'
                       WHEN a.atttypid = 'timestamptz'::regtype THEN '{bigint,timestamp}'
                       WHEN a.atttypid = 'interval'::regtype THEN '{bigint,uuid}'
                       ELSE '{text,float8}' END) AS f (kind)
     WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped
     ORDER BY a.attnum";

const TABLES: [&str; 9] = [
    "definitions",
    "timers",
    "progress",
    "contexts",
    "live_dispatches",
    "finished_dispatches",
    "events",
    "owners",
    "history_partitions",
];

/// A table in the place of a table, with one column of another type, for every column.
#[test]
fn a_column_of_another_type_leads_to_an_error() {
    let mut field = Field::with("recur.enabled = off");
    let work = work(&mut field.root);
    for statement in &work {
        field.root.batch(&format!("BEGIN; {statement}; ROLLBACK"));
    }
    for table in TABLES {
        let name = format!("recur_internal.{table}");
        let columns = field.root.rows(REPLACEMENTS, &[&name]);
        let mut failed = 0;
        for column in &columns {
            let list: String = column.get(2);
            let damage = format!(
                "ALTER TABLE {name} RENAME TO moved;
                 CREATE TABLE {name} AS SELECT {list} FROM recur_internal.moved;
                 GRANT ALL ON {name} TO recur_engine"
            );
            failed += endure(&mut field.root, &damage, &work);
        }
        assert!(failed > 0, "{table}: the damage is noticed");
        field.assert_no_crash();
    }
}

/// Something else than a table under the name of a table.
#[test]
fn another_relation_in_the_place_of_a_table_leads_to_an_error() {
    let mut field = Field::with("recur.enabled = off");
    let work = work(&mut field.root);
    for table in TABLES {
        let name = format!("recur_internal.{table}");
        for replacement in [
            "CREATE VIEW {} AS TABLE recur_internal.moved",
            "CREATE VIEW {} AS SELECT 140737488351232::bigint AS id",
            "CREATE MATERIALIZED VIEW {} AS TABLE recur_internal.moved",
            "CREATE SEQUENCE {}",
            "CREATE TABLE {} ()",
            "CREATE TABLE {} (LIKE recur_internal.moved, part int) PARTITION BY HASH (part)",
            "CREATE TYPE {} AS (id bigint)",
            "",
        ] {
            let damage = format!(
                "ALTER TABLE {name} RENAME TO moved; {}",
                replacement.replace("{}", &name)
            );
            let damage = match replacement {
                "" | "CREATE TYPE {} AS (id bigint)" => damage,
                _ => format!("{damage}; GRANT ALL ON {name} TO recur_engine"),
            };
            let failed = endure(&mut field.root, &damage, &work);
            let same_rows = replacement.contains("TABLE recur_internal.moved");
            assert!(failed > 0 || same_rows, "{damage}");
        }
        field.assert_no_crash();
    }
}

/// A function that returns something else, for every internal function.
#[test]
fn another_function_in_the_place_of_a_function_leads_to_an_error() {
    let mut field = Field::with("recur.enabled = off");
    let work = work(&mut field.root);
    let functions = field.root.rows(
        "SELECT p.oid::regprocedure::text, p.proname::text, pg_get_function_identity_arguments(p.oid),
                p.proretset
           FROM pg_proc AS p
          WHERE p.pronamespace = 'recur_internal'::regnamespace AND p.prorettype <> 'trigger'::regtype",
        &[],
    );
    for function in &functions {
        let (signature, name, arguments): (String, String, String) =
            (function.get(0), function.get(1), function.get(2));
        let set = if function.get(3) { "SETOF " } else { "" };
        let inputs: Vec<&str> = arguments
            .split(", ")
            .filter(|one| !one.starts_with("OUT "))
            .collect();
        for (kind, value) in [
            ("bigint", "140737488351232"),
            ("bytea", "'\\x00'::bytea"),
            ("text", "'x'::text"),
        ] {
            let damage = format!(
                "ALTER FUNCTION {signature} RENAME TO moved;
                 CREATE FUNCTION recur_internal.{name}({}) RETURNS {set}{kind} LANGUAGE sql AS $$ SELECT {value} $$;
                 GRANT EXECUTE ON FUNCTION recur_internal.{name} TO PUBLIC",
                inputs.join(", ")
            );
            endure(&mut field.root, &damage, &work);
        }
    }
    assert!(functions.len() > 30, "{}", functions.len());
    field.assert_no_crash();
}
