//! A role that was granted nothing can do nothing.

use super::privileges::{calls, prepare, relations};
use pg_recur_tests::Cluster;

#[test]
fn the_public_can_do_nothing() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    let mut stranger = cluster.session_as("stranger", "app");
    for (signature, call) in calls(&mut admin, "00000000-0000-0000-0000-000000000000") {
        assert_eq!(stranger.error(&call).0, "42501", "{signature}");
    }
    for relation in relations(&mut admin) {
        for statement in [
            format!("SELECT * FROM recur.{relation}"),
            format!("INSERT INTO recur.{relation} DEFAULT VALUES"),
            format!("DELETE FROM recur.{relation}"),
            format!("TRUNCATE recur.{relation}"),
        ] {
            let code = stranger.error(&statement).0;
            // No role at all can write a sequence, or a view that is a union.
            assert!(
                ["42501", "42809", "55000"].contains(&code.as_str()),
                "{statement}: {code}"
            );
        }
    }
    admin.batch("REVOKE USAGE ON SCHEMA recur FROM stranger");
    stranger.assert_error(
        "SELECT recur.tzdata_version()",
        "42501",
        "permission denied for schema recur",
    );
}

#[test]
fn public_has_no_rights_and_every_object_a_comment() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    session
        .batch("CREATE ROLE stranger; GRANT USAGE ON SCHEMA recur TO stranger; SET ROLE stranger");
    for statement in [
        "SELECT recur.create('a', '@daily', 'p', 't')",
        "SELECT recur.claim()",
        "SELECT recur.tick()",
        "SELECT * FROM recur.recurring_actions",
        "SELECT * FROM recur.dispatches",
        "SELECT * FROM recur_internal.timers",
    ] {
        assert_eq!(session.error(statement).0, "42501", "{statement}");
    }
    // Every function pins its search_path.
    session.batch("RESET ROLE");
    assert_eq!(
        session.count(
            "pg_proc WHERE pronamespace = 'recur'::regnamespace
            AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (proconfig), false)"
        ),
        0
    );
    // And every object says what it is.
    let silent = session.rows(
        "SELECT proname::text FROM pg_proc
          WHERE pronamespace = 'recur'::regnamespace AND obj_description(oid, 'pg_proc') IS NULL
         UNION ALL
         SELECT c.relname || '.' || a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
          WHERE c.relnamespace = 'recur'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
            AND col_description(c.oid, a.attnum) IS NULL
         UNION ALL
         SELECT relname::text FROM pg_class
          WHERE relnamespace = 'recur'::regnamespace AND relkind IN ('r', 'p', 'v', 'S')
            AND obj_description(oid, 'pg_class') IS NULL", &[]);
    let silent: Vec<String> = silent.iter().map(|row| row.get(0)).collect();
    assert!(silent.is_empty(), "no comment on {silent:?}");
}
