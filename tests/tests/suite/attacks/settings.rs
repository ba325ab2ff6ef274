//! Settings: of sessions, of roles, and of the database, whose owner may set many for all of its sessions.

use super::field::{Field, assert_denied};
use pg_recur_tests::{Session, eventually};

/// A value of each setting that any role may set: another one than it has, as far from it as can be.
const HOSTILE: &str = "
    SELECT s.name,
           CASE WHEN s.name LIKE '%\\_timeout' THEN '1'
                WHEN s.vartype = 'bool' THEN CASE s.setting WHEN 'on' THEN 'off' ELSE 'on' END
                WHEN s.vartype IN ('integer', 'real')
                THEN CASE WHEN $1 AND s.min_val <> s.setting THEN s.min_val ELSE s.max_val END
                WHEN s.vartype = 'enum' THEN (SELECT e FROM unnest(s.enumvals) WITH ORDINALITY AS v (e, n)
                                             WHERE e <> s.setting
                                             ORDER BY CASE WHEN $1 THEN -n ELSE n END LIMIT 1)
                ELSE coalesce(('{\"DateStyle\": \"SQL, DMY\", \"TimeZone\": \"Asia/Kathmandu\",
                                           \"search_path\": \"own, pg_catalog\", \"client_encoding\": \"LATIN1\",
                                           \"timezone_abbreviations\": \"Australia\",
                                           \"default_text_search_config\": \"pg_catalog.simple\",
                                           \"default_table_access_method\": \"heap\",
                                           \"temp_tablespaces\": \"missing\", \"default_tablespace\": \"missing\",
                                           \"recur.default_timezone\": \"Asia/Tokyo\"}'::jsonb) ->> s.name, 'C') END
      FROM pg_settings AS s
     WHERE s.context = 'user' AND (s.vartype <> 'enum' OR cardinality(s.enumvals) > 1)";

/// Records the settings of the dispatcher, when it writes.
const RECORD: &str = "
    CREATE TABLE public.seen (pid int, name text, setting text);
    CREATE FUNCTION public.record() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
        IF (SELECT a.backend_type FROM pg_catalog.pg_stat_activity AS a WHERE a.pid = pg_catalog.pg_backend_pid())
           LIKE 'pg_recur%' THEN
            INSERT INTO public.seen
            SELECT pg_catalog.pg_backend_pid(), s.name, s.setting FROM pg_catalog.pg_settings AS s
             WHERE NOT EXISTS (SELECT FROM public.seen AS n WHERE n.pid = pg_catalog.pg_backend_pid());
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER record AFTER INSERT ON recur_internal.live_dispatches EXECUTE FUNCTION public.record()";

/// Sets what can be set; the names and values of what was.
fn set_all(dbo: &mut Session, hostile: &[(String, String)]) -> Vec<(String, String)> {
    let mut set = Vec::new();
    for (name, value) in hostile {
        let value = value.replace('\'', "''");
        let value = match name.as_str() {
            "search_path" => value.clone(),
            _ => format!("'{value}'"),
        };
        let statement = format!("ALTER DATABASE app SET {name} = {value}");
        if dbo.0.batch_execute(&statement).is_ok() {
            set.push((name.clone(), value.trim_matches('\'').to_owned()));
        }
    }
    set
}

/// The owner of the database sets everything that it may set, for all of its sessions.
#[test]
fn workers_ignore_the_settings_of_the_database() {
    let mut field = Field::new();
    field.root.batch(RECORD);
    // Sessions that were there before have the settings of before.
    let mut victim = field.session("victim");
    let mut dbo = field.session("dbo");
    for lowest in [true, false] {
        let rows = field.root.rows(HOSTILE, &[&lowest]);
        let hostile: Vec<(String, String)> =
            rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let set = set_all(&mut dbo, &hostile);
        assert!(set.len() > 80, "{} of {}", set.len(), hostile.len());
        for (name, value) in [
            ("role", "attacker"),
            ("session_authorization", "attacker"),
            ("role", "victim"),
        ] {
            let _ = dbo
                .0
                .batch_execute(&format!("ALTER DATABASE app SET {name} = '{value}'"));
        }
        field.root.batch("TRUNCATE public.seen");
        field.restart_workers();
        field.assert_works_in(&mut victim);
        eventually("a worker has written", || {
            field.root.count("public.seen") > 0
        });
        for (name, value) in &set {
            // What the workers set themselves may be what the owner of the database has set.
            let own = [
                "enable_seqscan",
                "enable_bitmapscan",
                "jit",
                "plan_cache_mode",
                "lock_timeout",
            ];
            let taken = field.root.count(&format!(
                "public.seen WHERE name = '{name}' AND setting = '{}'",
                value.replace('\'', "''")
            ));
            // timezone_abbreviations has no value of the server's own; no worker reads abbreviations.
            let as_before: bool = field.root.value(
                "SELECT coalesce(setting = $2 OR boot_val = $2, true) FROM pg_settings WHERE name = $1",
                &[name, value],
            );
            assert!(
                taken == 0 || as_before || own.contains(&name.as_str()),
                "workers have taken {name} = {value}"
            );
        }
        field.assert_no_crash();
    }
    // Leases expire as well.
    victim.batch(
        "SELECT recur.enqueue('leased', 'a', max_attempts => 5);
         SELECT recur.claim(1, '{leased}', lease => '1s')",
    );
    field.root.batch("SELECT pg_reload_conf()");
    eventually("the lease expires", || {
        field.root.batch("SELECT pg_reload_conf()");
        victim.count("recur.dispatches WHERE provider = 'leased' AND status = 'pending'") > 0
    });
}

/// The settings of the extension that bound what a role may take, and those of the server that a superuser sets.
#[test]
fn no_role_sets_what_bounds_it() {
    let mut field = Field::new();
    let bounding = field.root.texts(
        "SELECT format('%s = ''%s''', name, coalesce(boot_val, '')) FROM pg_settings
          WHERE name LIKE 'recur.%' AND context <> 'user'",
        &[],
    );
    assert!(bounding.len() > 12, "{bounding:?}");
    for role in ["attacker", "dbo", "victim"] {
        let mut session = field.session(role);
        for setting in &bounding {
            for statement in [
                format!("SET {setting}"),
                format!("SET LOCAL {setting}"),
                format!("ALTER ROLE {role} SET {setting}"),
                format!("ALTER ROLE {role} IN DATABASE app SET {setting}"),
                format!("ALTER DATABASE app SET {setting}"),
                format!(
                    "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql SET {setting} AS 'SELECT 1'"
                ),
                format!("ALTER SYSTEM SET {setting}"),
            ] {
                let (code, message, _) = session.error(&statement);
                // 55P02: only the configuration can set it, for no session alone.
                let refused = code == "42501" || code == "55P02" || code == "25001";
                assert!(refused, "{role}: {statement}: {code} {message}");
            }
        }
        for statement in [
            "SET session_replication_role = replica",
            "ALTER DATABASE app SET session_replication_role = replica",
            "ALTER ROLE recur_engine SET statement_timeout = 1",
            "ALTER ROLE postgres SET statement_timeout = 1",
            "ALTER ROLE postgres IN DATABASE app SET statement_timeout = 1",
            "ALTER ROLE ALL SET statement_timeout = 1",
        ] {
            assert_denied(&mut session, statement);
        }
    }
    // What a role may set is for its own actions only.
    field.session("attacker").batch(
        "SET recur.default_timezone = 'Asia/Tokyo';
         SELECT recur.create('n', '@daily', 'p', 'a')",
    );
    field.assert_victim_works();
}

/// A session with hostile settings of its own does its own work, or fails; nothing of it stays with others.
#[test]
fn settings_of_a_session_harm_only_that_session() {
    let field = Field::new();
    for setting in [
        "statement_timeout = 1",
        "lock_timeout = 1",
        "idle_in_transaction_session_timeout = 1",
        "default_transaction_read_only = on",
        "default_transaction_isolation = serializable",
        "default_transaction_deferrable = on",
        "work_mem = '64kB'",
        "enable_indexscan = off",
        "enable_indexonlyscan = off",
        "plan_cache_mode = force_custom_plan",
        "transform_null_equals = on",
        "standard_conforming_strings = off",
        "backslash_quote = off",
        "datestyle = 'SQL, DMY'",
        "intervalstyle = iso_8601",
        "timezone = 'Asia/Kathmandu'",
        "bytea_output = escape",
        "extra_float_digits = -15",
        "row_security = off",
        "from_collapse_limit = 1",
        "join_collapse_limit = 1",
        "geqo_threshold = 2",
        "constraint_exclusion = on",
        "quote_all_identifiers = on",
        "plpgsql.extra_errors = 'all'",
        "plpgsql.check_asserts = off",
        "max_parallel_workers_per_gather = 64",
        "client_encoding = 'LATIN1'",
        "check_function_bodies = off",
        "array_nulls = off",
        "debug_print_plan = on",
    ] {
        let mut attacker = field.session("attacker");
        attacker.batch(&format!("SET {setting}"));
        for statement in [
            "SELECT recur.create('n', '* * * * * *', 'mine', 'a', on_existing => 'upsert', context => '{\"n\": 1.50}')",
            "SELECT recur.enqueue('mine', 'a', '{\"n\": 12345678901234567890.123456789}', dedup_key => 'k')",
            "SELECT recur.complete(id, attempt, '{}', '{}') FROM recur.claim(3, '{mine}')",
            "SELECT recur.fail(id, attempt, 'why') FROM recur.claim(1, '{mine}')",
            "SELECT * FROM recur.list(search => 'n')",
            "TABLE recur.overview",
            "SELECT recur.delete(recur.id_of('n'))",
        ] {
            if let Err(error) = attacker.0.batch_execute(statement) {
                // The session may have been ended by its own timeout.
                let code = error.code().map_or("", |code| code.code());
                assert_ne!(code, "XX000", "{setting}: {statement}: {error:?}");
            }
        }
    }
    field.assert_victim_works();
}
