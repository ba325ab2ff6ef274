//! A role reads and touches only what belongs to its owners. What is tried here comes from the catalog: a function or
//! table that is added later is tried as well, and fails the test until it is granted to a level.

use pg_recur_tests::{Cluster, Session, database_error};
use std::collections::BTreeSet;

const LEVELS: [&str; 4] = ["reader", "author", "consumer", "admin"];

/// In what belongs to the victim, wherever a text can be.
const SECRET: &str = "TOP-SECRET";

/// What everybody is assumed to know of the victim's action: its name, and what it is for.
const KNOWN: &str = "known";

/// Relations whose rows belong to no owner: nothing in them needs to be hidden.
const WITHOUT_OWNER: [&str; 3] = ["history_turns", "stats", "workers"];

/// A database in which `victim` has rows in every table, and one login role for each level, named like it.
pub(super) fn prepare(cluster: &Cluster) -> Session {
    let mut admin = cluster.database("app");
    admin.batch("CREATE ROLE victim LOGIN; CREATE ROLE stranger LOGIN; GRANT USAGE ON SCHEMA recur TO stranger");
    admin.batch("SELECT recur.grant_access('victim', 'author'); SELECT recur.grant_access('victim', 'consumer')");
    for level in LEVELS {
        admin.batch(&format!(
            "CREATE ROLE {level} LOGIN; SELECT recur.grant_access('{level}', '{level}')"
        ));
    }
    let mut victim = cluster.session_as("victim", "app");
    victim.batch(&format!(
        "SELECT recur.create('{KNOWN}', '@yearly', '{KNOWN}', '{KNOWN}', '{{\"k\": \"{SECRET}\"}}',
                             description => '{SECRET}', subject => '{KNOWN}', contact => '{SECRET}',
                             labels => '{{\"k\": \"{SECRET}\"}}', context => '{{\"k\": \"{SECRET}\"}}');
         SELECT recur.update(id, '{{\"context\": {{\"k\": \"{SECRET} 2\"}}}}') FROM recur.recurring_actions"
    ));
    // Dispatches in every state, as the dispatcher and consumers leave them.
    for (table, status) in [
        ("live_dispatches", "pending"),
        ("live_dispatches", "running"),
        ("finished_dispatches", "completed"),
        ("finished_dispatches", "failed"),
    ] {
        admin.batch(&format!(
            "INSERT INTO recur.{table}
                    (id, action_id, scheduled_at, trigger, namespace, tenant, owner, provider, action_type, payload,
                     metadata, priority, status, attempt, releases, max_attempts, available_at, cancel_requested,
                     started_at, lease_expires_at, created_at, result, claimed_by)
             SELECT gen_random_uuid(), id, '2026-01-01Z', 'schedule', namespace, tenant, owner, provider, action_type,
                    payload, '{{}}', 0, '{status}', 1, 0, 3, '2026-01-01Z', false, '2026-01-01Z', '2026-01-01Z', now(),
                    '{{\"k\": \"{SECRET}\"}}', '{SECRET}'
               FROM recur.recurring_actions"
        ));
    }
    admin.batch(
        "INSERT INTO recur.contexts (action_id, version, context)
                 SELECT id, 100, context FROM recur.recurring_actions ON CONFLICT DO NOTHING",
    );
    admin.batch(
        "INSERT INTO recur_internal.history_partitions VALUES (0, now()) ON CONFLICT DO NOTHING",
    );
    admin
}

/// Tables, views and sequences; the partitions too.
pub(super) fn relations(session: &mut Session) -> Vec<String> {
    session.texts(
        "SELECT relname::text FROM pg_class
          WHERE relnamespace = 'recur'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S') ORDER BY 1",
        &[],
    )
}

/// A call of each function of the schema, with arguments that mean the victim's things wherever they can.
pub(super) fn calls(session: &mut Session, id: &str) -> Vec<(String, String)> {
    let rows = session.rows(
        "SELECT p.oid::regprocedure::text, p.proname::text,
                ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS a (t, n) ORDER BY n),
                p.prorettype = 'trigger'::regtype
           FROM pg_proc AS p WHERE p.pronamespace = 'recur'::regnamespace ORDER BY 1",
        &[],
    );
    rows.iter()
        .map(|row| {
            let (signature, name, types): (String, String, Vec<String>) =
                (row.get(0), row.get(1), row.get(2));
            let arguments: Vec<String> = types
                .iter()
                .map(|kind| match kind.as_str() {
                    "uuid" => format!("'{id}'::uuid"),
                    "uuid[]" => format!("ARRAY['{id}']::uuid[]"),
                    "text" | "name" => format!("'{KNOWN}'::{kind}"),
                    "jsonb" => "'{}'::jsonb".to_owned(),
                    "integer" | "bigint" | "smallint" => format!("1::{kind}"),
                    "timestamp with time zone" => "now()".to_owned(),
                    "interval" => "interval '1 hour'".to_owned(),
                    other => format!("NULL::{other}"),
                })
                .collect();
            let call = format!("recur.{name}({})", arguments.join(", "));
            if row.get(3) {
                (signature, format!("SELECT {call}"))
            } else {
                (
                    signature,
                    format!("SELECT to_jsonb(f)::text FROM {call} AS f"),
                )
            }
        })
        .collect()
}

/// A role of any level but admin sees no row of the victim in any table.
#[test]
fn every_table_hides_the_rows_of_others() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    let relations = relations(&mut admin);
    let empty: Vec<&String> = relations
        .iter()
        .filter(|relation| {
            // Partitions other than the one in use, and what needs a setting to be written.
            let spare = relation.ends_with(|c: char| c.is_ascii_digit()) || *relation == "tenants";
            let spare = spare || WITHOUT_OWNER.contains(&relation.as_str());
            !spare
                && admin.value::<i64>(&format!("SELECT count(*) FROM recur.{relation}"), &[]) == 0
        })
        .collect();
    assert!(
        empty.is_empty(),
        "no rows to hide: fill {empty:?} in this test"
    );
    for level in LEVELS {
        let mut session = cluster.session_as(level, "app");
        for relation in &relations {
            let query = format!("SELECT count(*) FROM recur.{relation}");
            let readable: bool = admin.value(
                "SELECT has_table_privilege($1::text, 'recur.' || quote_ident($2::text), 'SELECT')",
                &[&level, relation],
            );
            if !readable {
                assert_eq!(session.error(&query).0, "42501", "{level}: {relation}");
                continue;
            }
            let seen: i64 = session.value(&query, &[]);
            let all: i64 = admin.value(&query, &[]);
            let hidden = level != "admin" && !WITHOUT_OWNER.contains(&relation.as_str());
            assert_eq!(seen, if hidden { 0 } else { all }, "{level}: {relation}");
        }
        // What is granted to write is granted on what is the role's own, or on the view that checks.
        let writable: BTreeSet<String> = admin.texts(&format!(
                "SELECT relname::text FROM pg_class
                  WHERE relnamespace = 'recur'::regnamespace AND relkind IN ('r', 'p', 'v')
                    AND (has_table_privilege('{level}', oid, 'INSERT') OR has_table_privilege('{level}', oid, 'UPDATE')
                         OR has_table_privilege('{level}', oid, 'DELETE')
                         OR has_table_privilege('{level}', oid, 'TRUNCATE')
                         OR has_table_privilege('{level}', oid, 'TRIGGER')
                         OR has_table_privilege('{level}', oid, 'REFERENCES'))"
            ), &[])
        .into_iter()
        .collect();
        for relation in &writable {
            let protected: bool = admin.value(
                "SELECT relrowsecurity OR relname = 'recurring_actions' FROM pg_class
                  WHERE oid = ('recur.' || $1::text)::regclass",
                &[relation],
            );
            assert!(
                protected,
                "{level} may write recur.{relation}, which has no row-level security"
            );
        }
    }
}

/// With NULL for every argument, a function answers or refuses.
#[test]
fn no_function_fails_internally_on_null() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut admin = prepare(&cluster);
    let calls = admin.texts(
        "SELECT format('SELECT %I.%I(%s)', 'recur', p.proname,
                       (SELECT string_agg('NULL::' || format_type(t, NULL), ', ' ORDER BY n)
                          FROM unnest(p.proargtypes) WITH ORDINALITY AS a (t, n)))
           FROM pg_proc AS p
          WHERE p.pronamespace = 'recur'::regnamespace AND p.prorettype <> 'trigger'::regtype",
        &[],
    );
    for call in calls {
        if let Err(error) = admin.0.query(&call, &[]) {
            let (code, message, _) = database_error(&error);
            assert_ne!(code, "XX000", "{call}: {message}");
        }
    }
}

/// Everything of the victim, in all tables.
fn fingerprint(session: &mut Session, relations: &[String]) -> String {
    let parts: Vec<String> = relations
        .iter()
        .filter(|relation| !relation.starts_with("event_ids") && *relation != "overview")
        .map(|relation| {
            format!(
                "(SELECT coalesce(string_agg(r::text, E'\\n' ORDER BY r::text), '')
                    FROM recur.{relation} AS r WHERE r::text LIKE '%{SECRET}%')"
            )
        })
        .collect();
    session.value(&format!("SELECT concat_ws('|', {})", parts.join(", ")), &[])
}

/// Every function that a level may call, called with the ids and names of what belongs to another role.
#[test]
fn no_function_reads_or_changes_what_belongs_to_others() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut admin = prepare(&cluster);
    let relations: Vec<String> = relations(&mut admin);
    let before = fingerprint(&mut admin, &relations);
    assert!(before.contains(SECRET));
    let mut ids = admin.texts("SELECT id::text FROM recur.dispatches", &[]);
    ids.extend(admin.texts("SELECT id::text FROM recur.recurring_actions", &[]));
    for level in ["reader", "author", "consumer"] {
        let mut session = cluster.session_as(level, "app");
        let mut called = 0;
        for id in &ids {
            for (signature, call) in calls(&mut admin, id) {
                session.batch("BEGIN");
                match session.0.query(&call, &[]) {
                    Ok(rows) => {
                        called += 1;
                        for row in rows {
                            let text: Option<String> = row.get(0);
                            let text = text.unwrap_or_default();
                            assert!(!text.contains(SECRET), "{level}: {signature} says {text}");
                        }
                    }
                    Err(error) => {
                        let (code, message, _) = database_error(&error);
                        assert_ne!(code, "XX000", "{level}: {signature}: {message}");
                    }
                }
                // Committed: a change would stay.
                let failed = session.0.simple_query("SELECT 1").is_err();
                session.batch(if failed { "ROLLBACK" } else { "COMMIT" });
                admin.batch(&format!(
                    "DELETE FROM recur.recurring_actions WHERE owner = '{level}'"
                ));
            }
        }
        assert!(called > 0, "{level}");
        assert_eq!(
            fingerprint(&mut admin, &relations),
            before,
            "{level} has changed something"
        );
        for change in [
            "UPDATE recur.recurring_actions SET payload = '{}'",
            "DELETE FROM recur.recurring_actions",
            "UPDATE recur_internal.live_dispatches SET payload = '{}'",
            "DELETE FROM recur_internal.live_dispatches",
            "DELETE FROM recur_internal.timers",
            "UPDATE recur_internal.definitions SET owner = current_user",
            "UPDATE recur_internal.progress SET context = NULL",
        ] {
            match session.0.execute(change, &[]) {
                Ok(touched) => assert_eq!(touched, 0, "{level}: {change}"),
                Err(error) => assert_eq!(database_error(&error).0, "42501", "{level}: {change}"),
            }
        }
        assert_eq!(
            fingerprint(&mut admin, &relations),
            before,
            "{level} has changed something"
        );
    }
}

#[test]
fn every_public_function_belongs_to_a_level() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    // The owner of the database hands out the rights.
    let owners_own = ["grant_access", "revoke_access"];
    let forgotten: Vec<String> = admin.texts(
        "SELECT p.oid::regprocedure::text FROM pg_proc AS p
          WHERE p.pronamespace = 'recur'::regnamespace AND p.proname NOT LIKE '\\_%'
            AND NOT has_function_privilege('admin', p.oid, 'EXECUTE')",
        &[],
    );
    let forgotten: Vec<&String> = forgotten
        .iter()
        .filter(|name| {
            !owners_own
                .iter()
                .any(|own| name.starts_with(&format!("recur.{own}(")))
        })
        .collect();
    assert!(
        forgotten.is_empty(),
        "name {forgotten:?} in recur_internal.functions_of (sql/80_access.sql)"
    );
    // Only an admin is one, and no level may call an internal function that writes.
    for level in LEVELS {
        let is_admin: bool = cluster
            .session_as(level, "app")
            .value("SELECT recur_internal.sees_all()", &[]);
        assert_eq!(is_admin, level == "admin");
        let dangerous = admin.texts(&format!(
                "SELECT p.oid::regprocedure::text FROM pg_proc AS p
                  WHERE p.pronamespace = 'recur'::regnamespace AND p.proname LIKE '\\_%' AND p.proname <> '_admin'
                    AND (p.provolatile = 'v' OR p.prosecdef) AND p.proname <> ALL (recur_internal.functions_of('{level}'))
                    AND has_function_privilege('{level}', p.oid, 'EXECUTE')"
            ), &[]);
        assert_eq!(dangerous, Vec::<String>::new(), "{level}");
    }
}

/// What every level may do.
const LOOKING: &str = "
    SELECT recur.get(recur.id_of('mine')); SELECT * FROM recur.list(search => 'mine', labels => '{}');
    SELECT * FROM recur.history(recur.id_of('mine')); SELECT * FROM recur.preview(recur.id_of('mine'));
    SELECT recur.describe(recur.id_of('mine'));
    SELECT * FROM recur.compare(recur.id_of('mine'), '{\"schedule\": \"@hourly\"}');
    SELECT * FROM recur.forecast(); SELECT * FROM recur.preview('@daily'); SELECT recur.describe('@daily');
    SELECT recur.next_occurrence('@daily'); SELECT recur.is_valid_schedule('@daily'); SELECT recur.tzdata_version();
    TABLE recur.overview; TABLE recur.recurring_actions; TABLE recur.dispatches; TABLE recur.events;
    TABLE recur.contexts";

/// What each level is for works, from end to end, with nothing but grant_access.
#[test]
fn every_level_can_do_its_work() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut admin = prepare(&cluster);
    admin.batch("GRANT author TO reader; GRANT author TO consumer");
    let mut author = cluster.session_as("author", "app");
    author.batch(
        "SELECT recur.create('mine', '0 9 * * *', 'p', 'a', context => '{}');
         SELECT recur.update(recur.id_of('mine'), '{\"priority\": 3}');
         SELECT recur.pause(recur.id_of('mine'), 'why'); SELECT recur.resume(recur.id_of('mine'));
         SELECT recur.pause_all(); SELECT recur.resume_all();
         INSERT INTO recur.recurring_actions (name, schedule, provider, action_type)
         VALUES ('also mine', '@yearly', 'p', 'a');
         UPDATE recur.recurring_actions SET priority = 4 WHERE name = 'also mine';
         SELECT recur.create('short', '@yearly', 'p', 'a'); SELECT recur.delete(recur.id_of('short'))",
    );
    for level in LEVELS {
        let mut session = cluster.session_as(level, "app");
        session.batch(LOOKING);
        // A member of the role that owns it sees it; the victim's is for admins.
        assert_eq!(
            session.count("recur.recurring_actions"),
            if level == "admin" { 3 } else { 2 },
            "{level}"
        );
    }
    for statement in [
        "SELECT recur.create('x', '@daily', 'p', 'a')",
        "SELECT recur.pause(recur.id_of('mine'))",
        "SELECT recur.claim()",
        "SELECT recur.tick()",
    ] {
        admin.batch("REVOKE author FROM reader");
        assert_eq!(
            cluster.session_as("reader", "app").error(statement).0,
            "42501",
            "{statement}"
        );
    }
    assert_eq!(
        cluster
            .session_as("author", "app")
            .error("SELECT recur.tick()")
            .0,
        "42501"
    );
    cluster.session_as("admin", "app").batch(&format!(
        "SELECT recur.pause(id) FROM recur.list(search => '{KNOWN}'); SELECT recur.tick()"
    ));
    admin.batch("SELECT recur.revoke_access('author')");
    assert_eq!(
        cluster
            .session_as("author", "app")
            .error("SELECT * FROM recur.list()")
            .0,
        "42501"
    );
    assert_eq!(
        admin.error("SELECT recur.grant_access('nobody', 'reader')"),
        (
            "42704".into(),
            "invalid role \"nobody\": there is no such role".into(),
            "CREATE ROLE makes one.".into()
        )
    );
    assert_eq!(
        admin.error("SELECT recur.grant_access('reader', 'king')").1,
        "invalid level \"king\": must be reader, author, consumer or admin"
    );
}
