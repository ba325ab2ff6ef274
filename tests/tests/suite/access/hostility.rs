//! Names that mean something else, and texts that look like SQL.

use pg_recur_tests::{Cluster, Session};

/// Functions and operators that take the place of the server's own, in a session that has this schema in front.
const SHADOWS: &str = "
    CREATE SCHEMA evil;
    GRANT USAGE ON SCHEMA evil TO PUBLIC;
    CREATE FUNCTION evil.caught() RETURNS void LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'hijacked as %', current_user; END $$;
    DO $$
    DECLARE
        shadow record;
    BEGIN
        -- Every operator of the types that actions consist of.
        FOR shadow IN
            SELECT o.oid, o.oprname, o.oprleft::regtype AS l, o.oprright::regtype AS r, o.oprresult::regtype AS result
              FROM pg_operator AS o
             WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND o.oprkind = 'b'
               AND o.oprleft = ANY
                   ('{text,uuid,name,jsonb,timestamptz,interval,bool,int4,int8,\"char\",oid}'::regtype[])
               AND o.oprright = ANY
                   ('{text,uuid,name,jsonb,timestamptz,interval,bool,int4,int8,\"char\",oid}'::regtype[])
        LOOP
            EXECUTE format('CREATE FUNCTION evil.operator_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS
                            ''BEGIN PERFORM evil.caught(); RETURN NULL; END''',
                           shadow.oid, shadow.l, shadow.r, shadow.result);
            EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = evil.operator_%s)',
                           shadow.oprname, shadow.l, shadow.r, shadow.oid);
        END LOOP;
    END $$;";

const FUNCTIONS: &str = "
    DO $$
    DECLARE
        shadow record;
    BEGIN
        -- Every function that the extension's SQL could mean.
        FOR shadow IN
            SELECT p.proname, pg_get_function_identity_arguments(p.oid) AS arguments, p.prorettype::regtype AS result
              FROM pg_proc AS p
             WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND NOT p.proretset
               AND p.provariadic = 0
               AND p.proname IN ('now', 'clock_timestamp', 'format', 'length', 'left', 'octet_length', 'to_jsonb',
                                 'abs',
                                 'quote_literal', 'to_tsvector', 'to_tsquery', 'to_char', 'current_setting',
                                 'gen_random_uuid', 'pg_has_role', 'has_function_privilege', 'nextval',
                                 'array_to_string',
                                 'jsonb_populate_record', 'jsonb_strip_nulls', 'btrim', 'lower', 'replace', 'hashtext')
               AND p.prorettype NOT IN ('anyelement'::regtype, 'anyarray'::regtype, 'void'::regtype)
        LOOP
            EXECUTE format('CREATE FUNCTION evil.%I(%s) RETURNS %s LANGUAGE plpgsql AS
                            ''BEGIN PERFORM evil.caught(); RETURN NULL; END''',
                           shadow.proname, shadow.arguments, shadow.result);
        END LOOP;
    END $$";

/// Each of these would do something else if it looked a name up where its caller does.
const WORK: &str = "
    SELECT recur.create('n', '0 9 * * *', 'p', 'a', labels => '{\"a\": \"b\"}', context => '{}',
                        dedup_key => '{{execution_time}}');
    SELECT recur.create('n', '0 9 * * *', 'p', 'a', priority => 1, on_existing => 'upsert');
    SELECT recur.create('n', '0 9 * * *', 'p', 'a', on_existing => 'add_another');
    SELECT recur.update(recur.id_of('n'), '{\"schedule\": \"0 10 * * *\", \"description\": \"x\", \"name\": \"m\"}');
    SELECT recur.pause(recur.id_of('m')); SELECT recur.resume(recur.id_of('m'));
    SELECT recur.pause_all(labels => '{}'); SELECT recur.resume_all();
    SELECT recur.list('default', 'default', true, '{}', NULL, current_user, 'n m', 5);
    SELECT recur.history(recur.id_of('n')); SELECT recur.preview(recur.id_of('n'));
    SELECT recur.describe(recur.id_of('n'));
    SELECT recur.compare(recur.id_of('n'), '{\"schedule\": \"@hourly\"}'); SELECT recur.forecast();
    TABLE recur.overview; TABLE recur.recurring_actions; TABLE recur.dispatches; TABLE recur.events;
    INSERT INTO recur.recurring_actions (name, schedule, provider, action_type) VALUES ('i', '@daily', 'p', 'a');
    UPDATE recur.recurring_actions SET priority = 1, mute = true, context = NULL;
    SELECT recur.enqueue('p', 'a', '{}', subject => 's', dedup_key => 'k', lock_group => 'g',
                         labels => '{\"a\": \"b\"}');
    SELECT recur.enqueue('p', 'a', '{\"n\": 1}', subject => 's', dedup_key => 'k', dedup_window => '1 hour');
    SELECT recur.receive('p', 'a', '', dedup_key => 'r', dedup_window => '1 hour', lock_group => 'g');
    SELECT recur.receive('p', 'a', '', dedup_key => 'r', dedup_window => '1 hour', lock_group => 'g');
    SELECT recur.enqueue('p', 'a', max_attempts => 1) FROM generate_series(1, 5);
    SELECT recur.extend(id, attempt, '1 hour') FROM recur.claim(1, '{p}', '{a*,b}', '{default}', '{default}', '1 hour');
    SELECT recur.release(id, attempt) FROM recur.claim(1, agent => 'a');
    SELECT recur.complete(id, attempt, '{\"n\": 1}') FROM recur.claim(1);
    SELECT recur.fail(id, attempt, 'why') FROM recur.claim(1);
    SELECT recur.complete_many(ARRAY[id, id], ARRAY[attempt, attempt]) FROM recur.claim(1);
    SELECT recur.complete_many(ARRAY[id], ARRAY[attempt], ARRAY['{}'::pg_catalog.jsonb]) FROM recur.claim(1);
    SELECT recur.fail_many(ARRAY[id], ARRAY[attempt], '{why}') FROM recur.claim(1);
    SELECT recur.delete(recur.id_of('m'));
    DELETE FROM recur.recurring_actions;";

fn work_in_the_trap(session: &mut Session) {
    session.batch("SET search_path = evil, pg_catalog");
    session.batch(WORK);
}

#[test]
fn a_hostile_search_path_changes_nothing() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut admin = cluster.database("app");
    admin.batch(
        "CREATE ROLE alice LOGIN;
         SELECT recur.grant_access('alice', 'author'); SELECT recur.grant_access('alice', 'consumer');
         GRANT CREATE, TEMPORARY ON DATABASE app TO alice",
    );
    let mut alice = cluster.session_as("alice", "app");
    alice.batch(SHADOWS);
    alice.batch(FUNCTIONS);
    // The trap works.
    alice.batch("SET search_path = evil, pg_catalog");
    let (_, message, _) = alice.error("SELECT 'a'::text = 'b'::text");
    assert_eq!(message, "hijacked as alice");
    // Relations and types of the same names, temporary ones too.
    alice.batch(
        "SET search_path = evil, pg_catalog;
         CREATE TABLE evil.definitions (id uuid); CREATE TABLE evil.timers (id uuid);
         CREATE TABLE evil.pg_roles (rolname text);
         CREATE TEMPORARY TABLE definitions (id uuid); CREATE TEMPORARY TABLE pg_proc (proname text);
         CREATE TEMPORARY TABLE pg_roles (rolname text); CREATE DOMAIN evil.jsonb AS text;
         CREATE DOMAIN pg_temp.regclass AS text",
    );
    work_in_the_trap(&mut alice);
    // A superuser in the same trap, who would give away everything.
    work_in_the_trap(&mut admin);
    admin.batch(
        "SELECT recur.grant_access('alice', 'reader'); SELECT recur.tick();
         SELECT recur.revoke_access('alice')",
    );
}

/// Texts are data, in whatever column.
#[test]
fn what_is_stored_is_never_executed() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut admin = cluster.test_database("app");
    admin.batch(
        "CREATE TABLE public.canary (alive boolean); CREATE ROLE alice LOGIN;
         SELECT recur.grant_access('alice', 'author');
         CREATE ROLE boss LOGIN; SELECT recur.grant_access('boss', 'admin')",
    );
    let mut alice = cluster.session_as("alice", "app");
    for text in [
        "'; DROP TABLE public.canary; --",
        "\"; DROP TABLE public.canary; --",
        "$$; DROP TABLE public.canary; $$",
        "%s %I %L %1$s '||(DROP TABLE public.canary)||'",
        "{{recurring_id}}'); DROP TABLE public.canary; --",
    ] {
        alice.execute(
            "SELECT recur.create($1::text, '0 9 * * *', $1, $1, jsonb_build_object($1, $1), namespace => $1,
                                 tenant => $1, subject => $1,
                     description => $1, labels => jsonb_build_object($1, $1), metadata => jsonb_build_object($1, $1),
                     context => jsonb_build_object($1, $1), dedup_key => $1, lock_group => $1,
                     notify_channel => left($1, 60),
                     primary_agent => $1, fallback_agent => $1, contact => $1)",
            &[&text],
        );
    }
    for role in [&mut cluster.session_as("boss", "app"), &mut admin] {
        role.batch(
            "TABLE recur.overview; SELECT recur.list(search => name, labels => labels) FROM recur.recurring_actions;
             SELECT recur.update(id, jsonb_build_object('description', name || name, 'payload', payload))
               FROM recur.recurring_actions;
             SELECT recur.compare(id, '{\"schedule\": \"@hourly\"}') FROM recur.recurring_actions;
             SELECT recur.id_of(name, namespace, tenant, subject) FROM recur.recurring_actions;
             SELECT recur.pause(id, name) FROM recur.recurring_actions;
             SELECT recur.resume(id) FROM recur.recurring_actions;
             SELECT recur.forecast(); SELECT recur.tick(next_run_at) FROM recur.recurring_actions;
             TABLE recur.dispatches; TABLE recur.events",
        );
    }
    admin.batch("TABLE public.canary");
}

/// The functions of consumers pin names for the time of a call, also of one that fails.
#[test]
fn names_mean_the_same_after_a_call() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "CREATE SCHEMA own; CREATE TABLE own.mine (n int); SET search_path = own; INSERT INTO mine VALUES (1);
         SELECT recur.enqueue('p', 'a') FROM pg_catalog.generate_series(1, 3)",
    );
    let fails = "recur.complete('00000000-0000-0000-0000-000000000000', 1)";
    session.batch(&format!(
        "DO $$ BEGIN
             BEGIN
                 PERFORM {fails};
             EXCEPTION WHEN OTHERS THEN
                 PERFORM FROM mine;
             END;
             PERFORM FROM recur.claim(1);
             PERFORM FROM mine;
         END $$"
    ));
    assert_eq!(session.count("mine"), 1);
    assert_eq!(session.error(&format!("SELECT {fails}")).0, "P0002");
    assert_eq!(session.count("mine"), 1);
    session.batch("BEGIN; SAVEPOINT a; SELECT 1 FROM recur.claim(1)");
    assert_eq!(session.error(&format!("SELECT {fails}")).0, "P0002");
    session.batch(
        "ROLLBACK TO a; SELECT FROM mine; SELECT FROM recur.claim(1); SELECT FROM mine; COMMIT",
    );
    assert_eq!(session.count("mine"), 1);
}
