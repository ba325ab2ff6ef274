//! A role reads and touches only what belongs to its owners. What is tried here comes from the catalog: a function or
//! table that is added later is tried as well, and fails the test until it is granted to a level.

use pg_recur_tests::{Cluster, Session, database_error};

/// All levels, in the order in which the documentation lists them.
pub(super) const LEVELS: [&str; 8] = [
    "reader",
    "author",
    "consumer",
    "sql",
    "monitor",
    "ticker",
    "deliverer",
    "admin",
];

/// In what belongs to the victim, wherever a text can be.
const SECRET: &str = "TOP-SECRET";

/// What everybody is assumed to know of the victim's action: its name, and what it is for.
const KNOWN: &str = "known";

/// Views whose rows belong to no owner: nothing in them needs to be hidden.
const WITHOUT_OWNER: [&str; 4] = [
    "recur.monitoring",
    "recur.settings",
    "recur.stats",
    "recur.workers",
];

/// A database in which `victim` has rows in every table, and one login role for each level, named like it. `stranger`
/// has no level, and may look up names in both schemas.
pub(super) fn prepare(cluster: &Cluster) -> Session {
    let mut admin = cluster.database("app");
    admin.batch(
        "CREATE ROLE victim LOGIN; CREATE ROLE stranger LOGIN;
         GRANT USAGE ON SCHEMA recur, recur_internal TO stranger;
         SELECT recur.grant_access('victim', 'author'); SELECT recur.grant_access('victim', 'consumer');
         SELECT recur.grant_access('victim', 'sql');
         CREATE FUNCTION handle(jsonb) RETURNS void LANGUAGE sql AS '';
         ALTER ROLE victim SET recur.max_actions_per_tenant = 10",
    );
    for level in LEVELS {
        admin.batch(&format!(
            "CREATE ROLE {level} LOGIN; SELECT recur.grant_access('{level}', '{level}')"
        ));
    }
    let mut victim = cluster.session_as("victim", "app");
    victim.batch(&format!(
        "SELECT recur.create('{KNOWN}', 'at 2099-01-01T00:00:00', '{KNOWN}', '{KNOWN}', '{{\"k\": \"{SECRET}\"}}',
                             description => '{SECRET}', subject => '{KNOWN}', contact => '{SECRET}',
                             labels => '{{\"k\": \"{SECRET}\"}}', context => '{{\"k\": \"{SECRET}\"}}');
         SELECT recur.update(id, '{{\"context\": {{\"k\": \"{SECRET} 2\"}}}}') FROM recur.recurring_actions;
         SELECT recur.set_handler('{SECRET}', 'handle(jsonb)');
         SELECT recur.set_journey('{KNOWN}', '1', '{{\"{SECRET}\": {{\"type\": \"{SECRET}\"}}}}');
         SELECT recur.create_endpoint('{KNOWN}', 'https://x/{SECRET}', '{{{SECRET}}}', description => '{SECRET}',
                                      headers => '{{\"k\": \"{SECRET}\"}}')"
    ));
    // Dispatches in every state: pending, running, completed and failed.
    victim.batch(&format!(
        "SELECT recur.trigger(id, overlap => 'allow') FROM recur.recurring_actions, generate_series(1, 4);
         SELECT recur.complete(id, attempt, '{{\"k\": \"{SECRET}\"}}') FROM recur.claim(consumer => '{SECRET}');
         SELECT recur.fail(id, attempt, '{SECRET}', retry => false) FROM recur.claim(consumer => '{SECRET}');
         SELECT recur.claim(consumer => '{SECRET}')"
    ));
    admin.batch(
        "INSERT INTO recur_internal.history_partitions
         SELECT 0, now() WHERE NOT EXISTS (SELECT FROM recur_internal.history_partitions)",
    );
    let states = admin.texts(
        "SELECT status FROM recur.dispatches WHERE payload::text LIKE '%' || $1 || '%' ORDER BY 1",
        &[&SECRET],
    );
    assert_eq!(states, ["completed", "failed", "pending", "running"]);
    admin
}

/// Tables, views and sequences of both schemas; the partitions too.
pub(super) fn relations(session: &mut Session) -> Vec<String> {
    session.texts(
        "SELECT oid::regclass::text FROM pg_class
          WHERE relnamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
            AND relkind IN ('r', 'p', 'v', 'm', 'S') ORDER BY 1",
        &[],
    )
}

/// A call of each function of both schemas, with arguments that mean the victim's things wherever they can.
pub(super) fn calls(session: &mut Session, id: &str) -> Vec<(String, String)> {
    let rows = session.rows(
        "SELECT p.oid::regprocedure::text, format('%s.%I', p.pronamespace::regnamespace, p.proname),
                ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS a (t, n) ORDER BY n),
                p.prorettype = 'trigger'::regtype
           FROM pg_proc AS p
          WHERE p.pronamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace) ORDER BY 1",
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
                    "integer[]" => "ARRAY[1]".to_owned(),
                    "text[]" => format!("ARRAY['{KNOWN}']"),
                    "text" | "name" => format!("'{KNOWN}'::{kind}"),
                    "jsonb" => "'{}'::jsonb".to_owned(),
                    "integer" | "bigint" | "smallint" => format!("1::{kind}"),
                    "timestamp with time zone" => "now()".to_owned(),
                    "interval" => "interval '1 hour'".to_owned(),
                    other => format!("NULL::{other}"),
                })
                .collect();
            let call = format!("{name}({})", arguments.join(", "));
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

/// A role of any level but admin sees no row of the victim in any view, and no role any table.
#[test]
fn every_table_hides_the_rows_of_others() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    admin.batch(
        "INSERT INTO recur_internal.test_clock (ahead) VALUES ('0');
         SELECT recur.set_setting('retention', '1d'); SELECT recur.set_quota('t', 5);
         SELECT recur.create('watched', '@daily', 'p', 'a', max_silence => '1 day');
         SELECT recur.begin_request('k', 'f');
         UPDATE recur_internal.live_dispatches SET in_database = true WHERE status = 'running';
         INSERT INTO recur_internal.endpoint_health (owner_id, endpoint)
         SELECT e.owner_id, e.name FROM recur_internal.endpoints AS e;
         INSERT INTO recur_internal.owners (name) VALUES ('stranger');
         INSERT INTO recur_internal.handlers (owner_id, pattern, function, function_owner)
         SELECT o.id, 'unarmed', 'f(jsonb)', 'f' FROM recur_internal.owners AS o WHERE o.name = 'stranger'",
    );
    let relations = relations(&mut admin);
    let empty: Vec<&String> = relations
        .iter()
        .filter(|relation| {
            // Partitions other than the one in use.
            let spare = relation.ends_with(|c: char| c.is_ascii_digit());
            let spare = spare || WITHOUT_OWNER.contains(&relation.as_str());
            !spare && admin.count(relation) == 0
        })
        .collect();
    assert!(
        empty.is_empty(),
        "no rows to hide: fill {empty:?} in this test"
    );
    for level in LEVELS {
        let mut session = cluster.session_as(level, "app");
        let mut seen_by_level = Vec::new();
        for relation in &relations {
            let readable: bool = admin.value(
                "SELECT CASE relkind WHEN 'S' THEN has_sequence_privilege($1::text, oid, 'USAGE, SELECT, UPDATE')
                                     ELSE has_any_column_privilege($1::text, oid, 'SELECT') END
                   FROM pg_class WHERE oid = $2::text::regclass",
                &[&level, relation],
            );
            if !readable {
                let query = format!("SELECT count(*) FROM {relation}");
                assert_eq!(session.error(&query).0, "42501", "{level}: {relation}");
                continue;
            }
            seen_by_level.push(relation.as_str());
            let without_owner = WITHOUT_OWNER.contains(&relation.as_str());
            let (seen, all) = (session.count(relation), admin.count(relation));
            let hidden = level != "admin" && !without_owner;
            assert_eq!(seen, if hidden { 0 } else { all }, "{level}: {relation}");
        }
        let of_owners: &[&str] = &[
            "recur.contexts",
            "recur.dead_letters",
            "recur.dispatches",
            "recur.events",
            "recur.handlers",
            "recur.journeys",
            "recur.overview",
            "recur.recurring_actions",
            "recur.runs",
            "recur.webhook_endpoints",
        ];
        let mut expected = match level {
            "ticker" | "deliverer" => Vec::new(),
            "monitor" => WITHOUT_OWNER.to_vec(),
            "admin" => [of_owners, &WITHOUT_OWNER, &["recur.quotas"]].concat(),
            _ => [of_owners, &["recur.settings"]].concat(),
        };
        expected.sort_unstable();
        assert_eq!(seen_by_level, expected, "{level}");
        let writable = writable(&mut admin, level);
        let expected: &[&str] = match level {
            "author" | "sql" | "admin" => &["recur.recurring_actions"],
            _ => &[],
        };
        assert_eq!(writable, expected, "{level}");
    }
}

/// The relations that a role may change, or make others run code with.
fn writable(admin: &mut Session, role: &str) -> Vec<String> {
    admin.texts(
        "SELECT oid::regclass::text FROM pg_class
          WHERE relnamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
            AND CASE relkind WHEN 'S' THEN has_sequence_privilege($1::text, oid, 'USAGE, UPDATE')
                ELSE relkind IN ('r', 'p', 'v', 'm')
                     AND (has_table_privilege($1::text, oid, 'DELETE, TRUNCATE, TRIGGER')
                          OR has_any_column_privilege($1::text, oid, 'INSERT, UPDATE, REFERENCES')) END
          ORDER BY 1",
        &[&role],
    )
}

/// With NULL for every argument, a function answers or refuses.
#[test]
fn no_function_fails_internally_on_null() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut admin = prepare(&cluster);
    let calls = admin.texts(
        "SELECT format('SELECT %s.%I(%s)', p.pronamespace::regnamespace, p.proname,
                       (SELECT string_agg('NULL::' || format_type(t, NULL), ', ' ORDER BY n)
                          FROM unnest(p.proargtypes) WITH ORDINALITY AS a (t, n)))
           FROM pg_proc AS p
          WHERE p.pronamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
            AND p.prorettype <> 'trigger'::regtype",
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
        // What the overview says depends on the time, and sequences have no rows.
        .filter(|relation| {
            *relation != "recur.overview"
                && !relation.ends_with("_ids")
                && !relation.ends_with("_seq")
        })
        .map(|relation| {
            format!(
                "(SELECT coalesce(string_agg(r::text, E'\\n' ORDER BY r::text), '')
                    FROM {relation} AS r WHERE r::text LIKE '%{SECRET}%')"
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
    for level in LEVELS.into_iter().filter(|level| *level != "admin") {
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
                        let (code, message, hint) = database_error(&error);
                        assert_ne!(code, "XX000", "{level}: {signature}: {message}");
                        let text = format!("{message} {hint}");
                        assert!(!text.contains(SECRET), "{level}: {signature}: {text}");
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
            "UPDATE recur_internal.definitions SET owner_id = 1",
            "UPDATE recur_internal.progress SET context = NULL",
            "UPDATE recur_internal.owners SET role = 10",
            "INSERT INTO recur_internal.owners (role, name) VALUES (10, 'postgres')",
            "TRUNCATE recur_internal.events",
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
    let forgotten: Vec<String> = admin.texts(
        "SELECT p.oid::regprocedure::text FROM pg_proc AS p
          WHERE p.pronamespace = 'recur'::regnamespace AND NOT has_function_privilege('admin', p.oid, 'EXECUTE')",
        &[],
    );
    assert!(
        forgotten.is_empty(),
        "name {forgotten:?} in recur_internal.functions_of (sql/access/levels.sql)"
    );
    for level in LEVELS {
        let is_admin: bool = admin.value(
            "SELECT has_function_privilege($1::text, 'recur_internal.admin()', 'EXECUTE')",
            &[&level],
        );
        assert_eq!(is_admin, level == "admin");
        // What a level may call is what the table of levels says, and what restores need: nothing internal that writes.
        let others: Vec<String> = admin.texts(
            "SELECT p.oid::regprocedure::text FROM pg_proc AS p
              WHERE p.pronamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
                AND has_function_privilege($1::text, p.oid, 'EXECUTE')
                AND p.proname <> ALL (recur_internal.functions_of($1::text))
                AND p.proname NOT IN ('canonical_schedule', 'canonical_timezone')",
            &[&level],
        );
        assert_eq!(others, Vec::<String>::new(), "{level}");
        let dangerous: Vec<String> = admin.texts(
            "SELECT p.proname::text FROM pg_proc AS p
              WHERE p.pronamespace = 'recur_internal'::regnamespace
                AND (p.provolatile = 'v' OR p.prosecdef OR p.prorettype = 'trigger'::regtype)
                AND has_function_privilege($1::text, p.oid, 'EXECUTE') ORDER BY 1",
            &[&level],
        );
        // What the views of operators read is in no table, so it is not the same twice.
        let expected: &[&str] = match level {
            "monitor" | "admin" => &["stats", "workers"],
            _ => &[],
        };
        assert_eq!(dangerous, expected, "{level}");
    }
}

/// What every level may do that sees rows of owners.
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
    for level in ["reader", "author", "consumer", "admin"] {
        let mut session = cluster.session_as(level, "app");
        session.batch(LOOKING);
        // A member of the role that owns it sees it; the victim's is for admins.
        assert_eq!(
            session.count("recur.recurring_actions"),
            if level == "admin" { 3 } else { 2 },
            "{level}"
        );
    }
    cluster.session_as("admin", "app").batch(&format!(
        "SELECT recur.pause(id) FROM recur.list(search => '{KNOWN}'); SELECT recur.tick();
         SELECT recur.recover('1 day');
         SELECT recur.purge(); SELECT recur.doctor(); TABLE recur.stats; TABLE recur.workers;
         SELECT recur.grant_access('stranger', 'reader'); SELECT recur.revoke_access('stranger')"
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
        "invalid level \"king\": must be reader, author, consumer, sql, monitor, ticker, deliverer or admin"
    );
}

/// Work of one level each. Admins may do all of it.
const WORK: [(&str, &str); 12] = [
    ("reader", "SELECT recur.explain(recur.id_of('mine'), now())"),
    ("author", "SELECT recur.create('x', '@daily', 'p', 'a')"),
    ("author", "SELECT recur.trigger(recur.id_of('mine'))"),
    ("author", "SELECT recur.enqueue('p', 'a')"),
    (
        "consumer",
        "SELECT recur.complete(id, attempt) FROM recur.claim()",
    ),
    (
        "sql",
        "SELECT recur.create_sql('x', '@daily', 'SELECT 1'), recur.enqueue_sql('SELECT 1')",
    ),
    ("sql", "SELECT FROM recur.arm_sql()"),
    ("monitor", "SELECT FROM recur.stats, recur.workers"),
    ("ticker", "SELECT recur.tick()"),
    ("deliverer", "SELECT FROM recur.claim_webhooks()"),
    ("admin", "SELECT recur.recover('1 day')"),
    ("admin", "SELECT recur.grant_access('stranger', 'admin')"),
];

/// Each level can do its own work, and none but admins the work of another.
#[test]
fn every_level_is_refused_the_work_of_the_others() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut admin = prepare(&cluster);
    // All of them see what belongs to the author: what they may do with it differs.
    admin.batch(
        "CREATE ROLE team; GRANT team TO reader, author, consumer, sql, monitor, ticker, deliverer;
         INSERT INTO recur.recurring_actions (name, schedule, provider, action_type, owner)
         VALUES ('mine', '@yearly', 'p', 'a', 'team')",
    );
    for level in LEVELS {
        let mut session = cluster.session_as(level, "app");
        for (needed, statement) in WORK {
            let looks = needed == "reader" && ["author", "consumer", "sql"].contains(&level);
            // What an author may do, belongs to the level sql.
            let looks = looks || (needed == "author" && level == "sql");
            if level == needed || level == "admin" || looks {
                session.batch(&format!("BEGIN; {statement}; ROLLBACK"));
            } else {
                assert_eq!(session.error(statement).0, "42501", "{level}: {statement}");
            }
        }
    }
}
