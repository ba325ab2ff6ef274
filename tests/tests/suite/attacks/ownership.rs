//! Becoming another owner: by a name, by SET ROLE, by functions that run as their owner.

use super::field::{Field, SECRET, assert_denied};
use pg_recur_tests::{Cluster, Session, eventually};
use uuid::Uuid;

/// Everything that a role may see of rows.
const VIEWS: [&str; 6] = [
    "recur.recurring_actions",
    "recur.dispatches",
    "recur.events",
    "recur.contexts",
    "recur.dead_letters",
    "recur.overview",
];

/// How many rows the role sees, in all views and by the functions.
fn seen(session: &mut Session) -> Vec<i64> {
    let mut counts: Vec<i64> = VIEWS.iter().map(|view| session.count(view)).collect();
    counts.push(session.count("recur.list()"));
    counts.push(session.count("recur.forecast('2030-01-01', '2030-01-02')"));
    counts
}

fn grant(root: &mut Session, role: &str) {
    for level in ["author", "consumer"] {
        root.execute(
            "SELECT recur.grant_access($1::text::name, $2)",
            &[&role, &level],
        );
    }
}

#[test]
fn a_role_that_is_created_again_inherits_nothing() {
    let mut field = Field::new();
    let before: i64 = field.root.count("recur.dispatches");
    field
        .root
        .batch("SELECT recur.revoke_access('victim'); DROP ROLE victim; CREATE ROLE victim LOGIN");
    let mut impostor = field.session("victim");
    assert_denied(&mut impostor, "TABLE recur.dispatches");
    grant(&mut field.root, "victim");
    assert_eq!(seen(&mut impostor), [0; 8], "the new role sees nothing");
    assert!(impostor.rows("SELECT recur.claim(100)", &[]).is_empty());
    // The name is free: it is another owner's.
    impostor.batch(&format!(
        "SELECT recur.create('{SECRET}', '@daily', 'p', 'a'); SELECT recur.delete(recur.id_of('{SECRET}'))"
    ));
    let events = impostor.count("recur.events");
    assert_eq!(events, 2, "of the new role's own action");
    // What the dropped role has left fires on, and admins are warned.
    eventually("orphans fire", || {
        field.root.count("recur.dispatches") > before
    });
    let findings = field.root.texts("SELECT finding FROM recur.doctor()", &[]);
    assert!(
        findings
            .iter()
            .any(|finding| finding.contains("\"victim\"") && finding.contains("no longer")),
        "{findings:?}"
    );
    field.assert_no_crash();
}

#[test]
fn a_role_that_is_renamed_keeps_everything() {
    let mut field = Field::new();
    let mut victim = field.session("victim");
    let before = seen(&mut victim);
    field.root.batch("ALTER ROLE victim RENAME TO renamed");
    let mut renamed = field.session("renamed");
    for session in [&mut victim, &mut renamed] {
        let now = seen(session);
        assert!(
            now.iter().zip(&before).all(|(now, before)| now >= before),
            "{now:?} {before:?}"
        );
        let owners = session.texts(
            "SELECT DISTINCT owner::text FROM recur.recurring_actions",
            &[],
        );
        assert_eq!(owners, ["renamed"]);
    }
    // A role that takes the free name gets nothing with it.
    field.root.batch("CREATE ROLE victim LOGIN");
    grant(&mut field.root, "victim");
    assert_eq!(seen(&mut field.session("victim")), [0; 8]);
    field.root.batch("DROP OWNED BY victim; DELETE FROM recur_internal.levels WHERE name = 'victim'; DROP ROLE victim;
                      ALTER ROLE renamed RENAME TO victim");
    field.assert_victim_works();
}

#[test]
fn names_of_roles_are_only_names() {
    let long = "n".repeat(63);
    let names = [
        "100%",
        "%s %I %L %1$s",
        "o'neil; DROP SCHEMA recur CASCADE; --",
        "a \"b\" c",
        " spaces ",
        "$$ $1 \\",
        "UPPER lower",
        "Ünïcödé 🚀",
        "current_user ",
        "postgres,attacker",
        &long,
    ];
    let cluster = Cluster::start();
    let mut postgres = cluster.session("postgres");
    for (number, name) in names.iter().enumerate() {
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        postgres.batch(&format!("CREATE ROLE {quoted} LOGIN"));
        let database = format!("app{number}");
        cluster.empty_database(&database, &format!("OWNER {quoted}"));
        let mut owner = cluster.session_as(name, &database);
        owner.batch("CREATE EXTENSION pg_recur");
        for level in [
            "reader",
            "author",
            "consumer",
            "sql",
            "monitor",
            "ticker",
            "deliverer",
            "admin",
        ] {
            owner.execute(
                "SELECT recur.grant_access($1::text::name, $2)",
                &[name, &level],
            );
        }
        owner.batch(
            "SELECT recur.create('n', '* * * * * *', 'p', 'a'); SELECT recur.enqueue('q', 'a');
             SELECT recur.complete(id, attempt) FROM recur.claim(1, '{q}');
             SELECT recur.list(owner => current_user); SELECT recur.doctor()",
        );
        let shown: String = owner.value("SELECT owner::text FROM recur.recurring_actions", &[]);
        assert_eq!(shown, *name);
        eventually("the action of this owner fires", || {
            owner.count("recur.dispatches WHERE provider = 'p'") > 0
        });
        let actors = owner.texts(
            "SELECT DISTINCT actor FROM recur.events WHERE kind = 'action.created'",
            &[],
        );
        assert_eq!(actors, [*name]);
        // The objects belong to a superuser, whatever the installer is called.
        let owners: Vec<String> = owner.texts(
            "SELECT DISTINCT pg_get_userbyid(relowner)::text FROM pg_class
              WHERE relnamespace = 'recur_internal'::regnamespace",
            &[],
        );
        assert_eq!(owners, ["postgres"]);
        owner.execute("SELECT recur.revoke_access($1::text::name)", &[name]);
        assert_denied(&mut owner, "SELECT recur.claim(1)");
        drop(owner);
        postgres.batch(&format!("DROP DATABASE {database} WITH (FORCE)"));
    }
}

/// A function of the attacker's own in a WHERE, which would see rows before the filter of the view.
#[test]
fn a_leaky_function_sees_no_row_of_another_owner() {
    let mut field = Field::with("recur.enabled = off");
    field.root.batch("CREATE SCHEMA own AUTHORIZATION attacker");
    let mut attacker = field.session("attacker");
    attacker.batch(&format!(
        "CREATE FUNCTION own.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$
         BEGIN
             IF $1 LIKE '%{SECRET}%' THEN RAISE EXCEPTION 'leaked %', $1; END IF;
             RETURN true;
         END $$;
         CREATE OPERATOR own.!! (RIGHTARG = text, FUNCTION = own.leak)"
    ));
    attacker.batch("SELECT recur.create('mine', '@daily', 'p', 'a')");
    let (_, message, _) = attacker.error(&format!("SELECT own.leak('{SECRET}')"));
    assert!(message.starts_with("leaked"), "the trap works");
    for view in VIEWS {
        for statement in [
            format!("SELECT count(*) FROM {view} AS v WHERE own.leak(v::text)"),
            format!("SELECT count(*) FROM {view} AS v WHERE OPERATOR(own.!!) v::text"),
            format!(
                "SELECT count(*) FROM {view} AS v JOIN pg_class AS c ON own.leak(v::text || c.relname)"
            ),
            format!(
                "SELECT max(v::text) FROM {view} AS v HAVING own.leak(coalesce(max(v::text), ''))"
            ),
            format!("SELECT DISTINCT own.leak(v::text) FROM {view} AS v"),
            format!("EXPLAIN (ANALYZE, VERBOSE) SELECT FROM {view} AS v WHERE own.leak(v::text)"),
            format!(
                "CREATE TEMPORARY TABLE t AS SELECT * FROM {view} AS v WHERE own.leak(v::text); DROP TABLE t"
            ),
        ] {
            for plan in [
                "",
                "SET enable_hashjoin = off; SET enable_seqscan = off",
                "SET enable_indexscan = off",
            ] {
                attacker.batch(&format!("RESET ALL; {plan}"));
                attacker.batch(&statement);
            }
        }
    }
    for statement in [
        "UPDATE recur.recurring_actions AS a SET priority = 1 WHERE own.leak(a::text) RETURNING own.leak(a::text)",
        "DELETE FROM recur.recurring_actions AS a WHERE own.leak(a::text) RETURNING own.leak(a::text)",
    ] {
        attacker.batch(statement);
    }
    // Statistics of the tables show samples of values.
    let samples = attacker.count("pg_stats WHERE schemaname = 'recur_internal'");
    assert_eq!(samples, 0);
    assert!(
        field.root.count(&format!(
            "recur.dispatches WHERE payload::text LIKE '%{SECRET}%'"
        )) >= 3
    );
}

/// A pooled login that acts for one owner and then for another: nothing is kept from one to the other.
#[test]
fn nothing_of_one_role_is_left_for_the_next() {
    let mut field = Field::with("recur.enabled = off");
    field
        .root
        .batch("CREATE ROLE pool LOGIN NOINHERIT; GRANT attacker, victim TO pool");
    field
        .session("attacker")
        .batch("SELECT recur.create('mine', '@daily', 'p', 'a'); SELECT recur.enqueue('p', 'a')");
    let mut pool = field.session("pool");
    assert_denied(&mut pool, "TABLE recur.dispatches");
    pool.batch("SET ROLE victim");
    let actions = pool
        .0
        .prepare("SELECT name FROM recur.recurring_actions")
        .expect("a statement");
    let dispatches = pool
        .0
        .prepare("SELECT id FROM recur.dispatches")
        .expect("a statement");
    let listed = pool
        .0
        .prepare("SELECT id FROM recur.list()")
        .expect("a statement");
    pool.batch(
        "PREPARE claim AS SELECT id FROM recur.claim(1000);
         CREATE FUNCTION pg_temp.names() RETURNS SETOF text LANGUAGE plpgsql AS
             'BEGIN RETURN QUERY SELECT name FROM recur.recurring_actions; END';
         GRANT EXECUTE ON FUNCTION pg_temp.names() TO PUBLIC",
    );
    let victims: i64 = pool.count("recur.dispatches");
    // Often enough for every plan to become a generic one.
    for _ in 0..8 {
        pool.batch("SET ROLE victim");
        assert!(pool.0.query(&actions, &[]).expect("rows").len() == 2);
        assert_eq!(
            pool.0.query(&dispatches, &[]).expect("rows").len() as i64,
            victims
        );
        assert_eq!(pool.texts("SELECT * FROM pg_temp.names()", &[]).len(), 2);
        assert_eq!(pool.0.query(&listed, &[]).expect("rows").len(), 2);
        pool.batch("SET ROLE attacker");
        let names: Vec<String> = pool
            .0
            .query(&actions, &[])
            .expect("rows")
            .iter()
            .map(|row| row.get(0))
            .collect();
        assert_eq!(names, ["mine"]);
        assert_eq!(pool.0.query(&dispatches, &[]).expect("rows").len(), 1);
        assert_eq!(pool.texts("SELECT * FROM pg_temp.names()", &[]), ["mine"]);
        assert_eq!(pool.0.query(&listed, &[]).expect("rows").len(), 1);
        pool.batch("SET ROLE pool");
        assert!(
            pool.0.query(&actions, &[]).is_err(),
            "without SET ROLE, no rights"
        );
    }
    // Claims remember where the queue begins: for each role by itself.
    pool.batch("SET ROLE attacker");
    assert_eq!(pool.column::<Uuid>("EXECUTE claim", &[]).len(), 1);
    assert_eq!(pool.column::<Uuid>("EXECUTE claim", &[]).len(), 0);
    assert_cursors_show_known_rows(&mut pool);
    // A role that loses its membership loses the rows in the same session, at once.
    pool.batch("SET ROLE victim");
    field
        .root
        .batch("ALTER ROLE attacker INHERIT; GRANT victim TO attacker");
    let mut attacker = field.session("attacker");
    assert!(attacker.count("recur.recurring_actions") > 1);
    field.root.batch("REVOKE victim FROM attacker");
    assert_eq!(attacker.count("recur.recurring_actions"), 1);
    field.assert_no_crash();
}

/// A cursor shows the rows of the role that reads it, or of the role that opened it: to that role only its own.
fn assert_cursors_show_known_rows(pool: &mut Session) {
    for first in ["attacker", "victim"] {
        for second in ["attacker", "victim"] {
            pool.batch(&format!(
                "SET ROLE {first}; BEGIN; DECLARE c CURSOR FOR SELECT owner::text FROM recur.dispatches"
            ));
            let opener = pool.texts("FETCH 1 FROM c", &[]);
            assert_eq!(opener, [first]);
            pool.batch(&format!("SET LOCAL ROLE {second}"));
            let reader = pool.texts("FETCH ALL FROM c", &[]);
            pool.batch("COMMIT");
            let known = |owner: &String| owner == first || owner == second;
            assert!(reader.iter().all(known), "{first}, {second}: {reader:?}");
        }
    }
}

/// Functions that run as their owner, and errors that are caught in the middle of a call.
#[test]
fn a_call_leaves_the_caller_what_the_caller_was() {
    let mut field = Field::with("recur.enabled = off");
    field.root.batch(
        "CREATE SCHEMA own AUTHORIZATION attacker; GRANT USAGE ON SCHEMA own TO victim;
         CREATE SCHEMA theirs AUTHORIZATION victim; GRANT USAGE ON SCHEMA theirs TO attacker",
    );
    let mut attacker = field.session("attacker");
    attacker.batch(
        "CREATE FUNCTION own.spy() RETURNS SETOF text LANGUAGE sql SECURITY DEFINER AS
             'SELECT d::text FROM recur.dispatches AS d';
         CREATE FUNCTION own.steal() RETURNS SETOF uuid LANGUAGE sql SECURITY DEFINER AS
             'SELECT id FROM recur.claim(1000)';
         CREATE FUNCTION own.after_error(statement text) RETURNS text LANGUAGE plpgsql AS $$
         BEGIN
             BEGIN
                 EXECUTE statement;
             EXCEPTION WHEN others THEN
                 RETURN concat_ws(' ', current_user, has_table_privilege('recur_internal.definitions', 'SELECT'));
             END;
             RETURN concat_ws(' ', current_user, has_table_privilege('recur_internal.definitions', 'SELECT'));
         END $$",
    );
    let mut victim = field.session("victim");
    assert_eq!(
        victim.texts("SELECT * FROM own.spy()", &[]).len(),
        0,
        "as the attacker, who has none"
    );
    assert_eq!(
        victim
            .column::<Uuid>("SELECT * FROM own.steal()", &[])
            .len(),
        0
    );
    // A view of the victim over its own rows shows another role that role's rows.
    victim.batch(
        "CREATE VIEW theirs.shared AS SELECT * FROM recur.dispatches; GRANT SELECT ON theirs.shared TO attacker",
    );
    assert_eq!(attacker.count("theirs.shared"), 0);
    let unknown = Uuid::new_v4();
    for statement in [
        "SELECT recur.create('', '', '', '')".to_owned(),
        "SELECT recur.create('ok', '@daily', 'p', 'a')".to_owned(),
        "SELECT recur.create('bad', '@daily', 'p', 'a', '[]')".to_owned(),
        "SELECT recur.create('bad', '30 30 30 30 30', 'p', 'a')".to_owned(),
        "SELECT recur.create('ok', '@daily', 'p', 'a')".to_owned(),
        format!("SELECT recur.complete('{unknown}', 1)"),
        format!("SELECT recur.update('{unknown}'::uuid, '{{}}')"),
        "SELECT recur.enqueue('p', 'a', lease => '-1 day')".to_owned(),
        "SELECT recur.enqueue('p', 'a', run_at => 'infinity')".to_owned(),
        "SELECT 1 / (SELECT count(*) - count(*) FROM recur.claim(5))".to_owned(),
        "INSERT INTO recur.recurring_actions (name, owner) VALUES ('x', 'victim')".to_owned(),
        "INSERT INTO recur.recurring_actions (name, schedule, provider, action_type, owner)
         VALUES ('x', '@daily', 'p', 'a', 'victim')".to_owned(),
        "UPDATE recur.recurring_actions SET owner = 'victim'".to_owned(),
        "DO 'BEGIN PERFORM recur.create(''deep'', ''@daily'', ''p'', ''a''); RAISE division_by_zero; END'".to_owned(),
    ] {
        let then: String = attacker.value("SELECT own.after_error($1)", &[&statement]);
        assert_eq!(then, "attacker f", "{statement}");
        assert_denied(&mut attacker, "TABLE recur_internal.definitions");
    }
    let forged = field
        .root
        .count("recur.recurring_actions WHERE owner = 'victim'");
    assert_eq!(forged, 2, "nothing was written in the victim's name");
    field.assert_no_crash();
}

/// Parallel workers of a query act as the role that asks.
#[test]
fn a_parallel_query_shows_no_more() {
    let field = Field::with("recur.enabled = off");
    let (mut attacker, mut victim) = (field.session("attacker"), field.session("victim"));
    let expected = seen(&mut victim);
    for session in [&mut attacker, &mut victim] {
        // The setting was renamed in 16.
        let new = session.0.batch_execute("SET debug_parallel_query = on");
        if new.is_err() {
            session.batch("SET force_parallel_mode = on");
        }
        session.batch("SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0");
    }
    assert_eq!(seen(&mut attacker), [0; 8]);
    assert_eq!(seen(&mut victim), expected);
    field.assert_no_crash();
}

/// Names, keys, lock groups and places in a tenant are of one owner: another one who takes them first, and who leaves a
/// transaction open that takes more of them, takes nothing away.
#[test]
fn what_the_attacker_takes_first_is_left_for_the_victim() {
    let mut field = Field::with("recur.enabled = off");
    field
        .root
        .batch("SELECT recur.set_quota('t', max_actions => 2)");
    let mut attacker = field.session("attacker");
    attacker.batch(
        "SELECT recur.create('n', '@daily', 'p', 'a', tenant => 't', subject => 's');
         SELECT recur.create('m', '@daily', 'p', 'a', tenant => 't');
         SELECT recur.enqueue('p', 'a', dedup_key => 'k', lock_group => 'g');
         SELECT recur.claim(1, '{p}', lease => '1 day');
         BEGIN;
         SELECT recur.create('o', '@daily', 'p', 'a', tenant => 'u');
         SELECT recur.enqueue('p', 'a', dedup_key => 'l', lock_group => 'h')",
    );
    let mut victim = field.session("victim");
    victim.batch("SET lock_timeout = '20s'");
    victim.batch(
        "SELECT recur.create('n', '@daily', 'p', 'a', tenant => 't', subject => 's');
         SELECT recur.create('o', '@daily', 'p', 'a', tenant => 'u');
         SELECT recur.enqueue('p', 'a', dedup_key => 'k', lock_group => 'g');
         SELECT recur.enqueue('p', 'a', dedup_key => 'l', lock_group => 'h')",
    );
    assert_eq!(victim.count("recur.claim(9, '{p}')"), 2);
    // A namesake that is deleted makes no room for that of another owner.
    attacker.batch(
        "COMMIT; SELECT recur.create('n', '@daily', 'p', 'a', tenant => 'v', on_existing => 'add_another')
                   FROM generate_series(1, 2)",
    );
    victim.batch(
        "SELECT recur.create('n', '@daily', 'p', 'a', tenant => 'v');
         SELECT recur.delete('n', tenant => 'v')",
    );
    assert_eq!(
        victim.error("SELECT recur.id_of('n', tenant => 'v')").0,
        "P0002"
    );
}
