//! A role that may connect to the database, and nothing else.

use super::field::{Field, SECRET, assert_denied};
use pg_recur_tests::eventually;
use std::thread;

/// Every object, from the catalog.
#[test]
fn a_stranger_is_denied_every_object() {
    let mut field = Field::new();
    let mut stranger = field.session("stranger");
    let statements = field.root.texts(
        "SELECT format(s, c.oid::regclass) FROM pg_class AS c,
                unnest(CASE c.relkind WHEN 'S' THEN ARRAY['SELECT nextval(''%s'')', 'SELECT setval(''%s'', 1)',
                                                          'TABLE %s', 'SELECT currval(''%s'')']
                       ELSE ARRAY['TABLE %s', 'INSERT INTO %s DEFAULT VALUES', 'DELETE FROM %s',
                                  'SELECT count(*) FROM %s', 'COPY %s TO STDOUT',
                                  'DO ''BEGIN LOCK TABLE %s IN ACCESS SHARE MODE; END''',
                                  'TRUNCATE %s',
                                  'DO ''BEGIN CREATE TEMPORARY VIEW v AS TABLE %s; PERFORM FROM v; END''',
                                  'CREATE TEMPORARY TABLE t (LIKE %s)'] END) AS s
          WHERE c.relnamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
            AND c.relkind IN ('r', 'p', 'v', 'S')
         UNION ALL
         SELECT format('SELECT %s.%I(%s)', p.pronamespace::regnamespace, p.proname,
                       (SELECT string_agg('NULL::' || format_type(t, NULL), ', ') FROM unnest(p.proargtypes) AS t))
           FROM pg_proc AS p
          WHERE p.pronamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
         UNION ALL
         SELECT format('SELECT NULL::%s', t.oid::regtype) FROM pg_type AS t
          WHERE t.typnamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace) AND t.typtype = 'd'
         UNION ALL
         SELECT format('SET %s = ''%s''', s.name, coalesce(s.boot_val, '')) FROM pg_settings AS s
          WHERE s.name LIKE 'recur.%' AND s.context <> 'user'
         UNION ALL
         SELECT format('ALTER ROLE stranger SET %s = ''%s''', s.name, coalesce(s.boot_val, '')) FROM pg_settings AS s
          WHERE s.name LIKE 'recur.%' AND s.context <> 'user'",
        &[],
    );
    assert!(statements.len() > 400, "{}", statements.len());
    for statement in statements {
        let (code, message, _) = stranger.error(&statement);
        // Settings that need a reload can't be changed in a session at all.
        let refused = code == "42501" || (code == "55P02" && statement.contains("recur."));
        assert!(refused, "{statement}: {code} {message}");
    }
    field.assert_victim_works();
}

/// Keys are computable, and any role may take any advisory lock.
#[test]
fn advisory_locks_of_a_stranger_block_no_one() {
    let field = Field::with("max_locks_per_transaction = 1000\nrecur.retention = '1min'");
    let mut stranger = field.session("stranger");
    // The keys of small numbers, of the objects' oids and of the hashes of names, in both key spaces.
    stranger.batch(
        "BEGIN;
         SELECT pg_advisory_lock(n) FROM generate_series(-1100, 1100) AS n;
         SELECT pg_advisory_lock(n, m) FROM generate_series(0, 60) AS n, generate_series(0, 60) AS m;
         SELECT pg_advisory_lock(c.oid::bigint), pg_advisory_lock(c.oid::int, 0), pg_advisory_lock(0, c.oid::int)
           FROM pg_class AS c WHERE c.relname LIKE '%dispatch%' OR c.relname IN ('timers', 'definitions', 'owners');
         SELECT pg_advisory_lock(hashtext(k)), pg_advisory_lock(hashtextextended(k, 0)),
                pg_advisory_lock(hashtext(k), 0), pg_advisory_lock(0, hashtext(k))
           FROM unnest('{group,key,recur,pg_recur,recur.claim,recur_internal}'::text[]) AS k",
    );
    let mut victim = field.session("victim");
    victim.batch("SET lock_timeout = '5s'");
    victim.batch(
        "SELECT recur.enqueue('grouped', 'a', lock_group => 'group', dedup_key => 'key');
         SELECT recur.enqueue('grouped', 'a', lock_group => 'group', dedup_key => 'key');
         SELECT recur.enqueue('grouped', 'a', lock_group => 'group')",
    );
    for _ in 0..2 {
        let done = victim.rows(
            "SELECT recur.complete(id, attempt) FROM recur.claim(10, providers => '{grouped}')",
            &[],
        );
        assert_eq!(done.len(), 1, "one of the group at a time");
    }
    let mut root = field.cluster.session("app");
    root.batch("SET lock_timeout = '5s'");
    root.batch(
        "SELECT recur.purge('0');
         SELECT recur_internal.open_next_partition('1 minute', now() + interval '1 day')",
    );
    field.assert_victim_works();
}

/// Notifications are hints: forged ones lead to nothing, and a flood of them delays nothing but itself.
#[test]
fn a_flood_of_notifications_stops_no_one() {
    let field = Field::new();
    let mut listener = field.session("stranger");
    // Listens in a transaction that it never ends: the queue can't be emptied beyond this session.
    listener.batch("LISTEN recur; LISTEN recur_events; BEGIN; SELECT 1");
    thread::scope(|scope| {
        for mut flooder in [field.session("stranger"), field.session("stranger")] {
            scope.spawn(move || {
                flooder.batch(
                    "DO $$ BEGIN FOR n IN 1 .. 20 LOOP
                         PERFORM pg_notify(c, repeat('x', 7000) || m)
                            FROM unnest('{recur,recur_events}'::text[]) AS c, generate_series(1, 100) AS m;
                         COMMIT;
                     END LOOP; END $$",
                );
            });
        }
        field.assert_victim_works();
    });
    field.assert_victim_works();
    // Of the victim's work a stranger hears ids and names that are no secret.
    listener.batch("COMMIT");
    let mut heard = 0;
    eventually("notifications are heard", || {
        listener.batch("SELECT 1");
        let mut client = listener.0.notifications();
        let mut all = client.iter();
        while let Some(message) =
            postgres::fallible_iterator::FallibleIterator::next(&mut all).expect("a connection")
        {
            assert!(!message.payload().contains(SECRET), "{}", message.payload());
            heard += usize::from(message.payload().contains("beat"));
        }
        heard > 0
    });
}

/// Temporary objects, and objects in schemas of the stranger's own, around what others call.
#[test]
fn objects_of_a_stranger_are_called_by_no_one() {
    let mut field = Field::new();
    field.root.batch(
        "GRANT CREATE ON SCHEMA public TO stranger;
         ALTER DATABASE app SET search_path = public, pg_catalog",
    );
    let mut stranger = field.session("stranger");
    stranger.batch(
        "CREATE FUNCTION public.caught() RETURNS boolean LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'hijacked as %', current_user; END $$;
         CREATE TYPE public.trap AS (n int)",
    );
    for kind in [
        "text",
        "uuid",
        "jsonb",
        "timestamptz",
        "interval",
        "int",
        "bigint",
        "oid",
        "name",
        "boolean",
    ] {
        stranger.batch(&format!(
            "CREATE FUNCTION public.caught({kind}, {kind}) RETURNS boolean LANGUAGE sql AS 'SELECT public.caught()'"
        ));
        for operator in ["=", "<>", "<", ">", "<=", ">="] {
            stranger.batch(&format!(
                "CREATE OPERATOR public.{operator} (LEFTARG = {kind}, RIGHTARG = {kind}, FUNCTION = public.caught)"
            ));
        }
    }
    stranger.batch(
        "CREATE FUNCTION public.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT public.caught()::text::timestamptz';
         CREATE FUNCTION public.unnest(uuid[]) RETURNS SETOF uuid LANGUAGE sql AS 'SELECT public.caught()::text::uuid';
         CREATE FUNCTION public.count(uuid) RETURNS bigint LANGUAGE sql AS 'SELECT public.caught()::int::bigint';
         CREATE VIEW public.pg_class AS SELECT public.caught();
         CREATE VIEW public.pg_roles AS SELECT public.caught()",
    );
    field.restart_workers();
    assert_denied(
        &mut stranger,
        "CREATE CAST (text AS jsonb) WITH INOUT AS IMPLICIT",
    );
    let mut victim = field.session("victim");
    let (_, message, _) = victim.error("SELECT 1 = 2");
    assert_eq!(message, "hijacked as victim", "the trap works");
    victim.batch(
        "SELECT recur.create('trap', '@daily', 'trap', 'a', dedup_key => 'k', lock_group => 'g', context => '{}');
         SELECT recur.update(recur.id_of('trap'), '{\"schedule\": \"@hourly\", \"context\": {\"n\": 1}}');
         SELECT recur.pause(recur.id_of('trap')); SELECT recur.resume(recur.id_of('trap'));
         SELECT recur.trigger(recur.id_of('trap'));
         SELECT recur.backfill(recur.id_of('trap'), pg_catalog.now() - interval '2 hours', pg_catalog.now());
         SELECT recur.enqueue('trap', 'a', dedup_key => 'k', lock_group => 'g');
         SELECT recur.complete(id, attempt, '{}', '{}') FROM recur.claim(1, '{trap}');
         SELECT recur.fail(id, attempt, 'why') FROM recur.claim(1, '{trap}');
         SELECT recur.extend(id, attempt), recur.release(id, attempt) FROM recur.claim(1, '{trap}');
         SELECT recur.complete_many(array_agg(id), array_agg(attempt)) FROM recur.claim(1, '{trap}');
         SELECT recur.list(search => 'trap'); SELECT recur.history(recur.id_of('trap'));
         SELECT recur.explain(recur.id_of('trap'), pg_catalog.now());
         SELECT recur.forecast(); SELECT recur.preview(recur.id_of('trap'));
         TABLE recur.recurring_actions; TABLE recur.dispatches; TABLE recur.events; TABLE recur.contexts;
         TABLE recur.dead_letters; TABLE recur.overview;
         SELECT recur.delete(recur.id_of('trap'))",
    );
    let mut root = field.cluster.session("app");
    root.batch(
        "SELECT recur.tick(); SELECT recur.doctor(); SELECT recur.recover('1 day'); SELECT recur.purge();
         SELECT recur.grant_access('stranger', 'reader'); SELECT recur.revoke_access('stranger'); TABLE recur.workers",
    );
    // The workers go on in the trap; the query that asks does not.
    root.batch("ALTER DATABASE app RESET search_path");
    field.assert_victim_works();
}
