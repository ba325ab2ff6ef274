//! A role that was granted nothing can do nothing.

use super::privileges::{calls, prepare, relations};
use pg_recur_tests::Cluster;

#[test]
fn the_public_can_do_nothing() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    let mut stranger = cluster.session_as("stranger", "app");
    // The domains are checked with these, also where a restore writes them. They read no table.
    let for_restores = [
        "recur_internal.canonical_schedule(text)",
        "recur_internal.canonical_timezone(text)",
    ];
    for (signature, call) in calls(&mut admin, "00000000-0000-0000-0000-000000000000") {
        let code = stranger.error(&call).0;
        let expected = match for_restores.contains(&signature.as_str()) {
            true => "22023",
            false => "42501",
        };
        assert_eq!(code, expected, "{signature}");
    }
    for relation in relations(&mut admin) {
        for statement in [
            format!("SELECT * FROM {relation}"),
            format!("INSERT INTO {relation} DEFAULT VALUES"),
            format!("DELETE FROM {relation}"),
            format!("TRUNCATE {relation}"),
        ] {
            let code = stranger.error(&statement).0;
            // No role at all can write a sequence, or a view that is a union.
            assert!(
                ["42501", "42809", "55000"].contains(&code.as_str()),
                "{statement}: {code}"
            );
        }
    }
    admin.batch("REVOKE USAGE ON SCHEMA recur, recur_internal FROM stranger");
    stranger.assert_error(
        "SELECT recur.tzdata_version()",
        "42501",
        "permission denied for schema recur",
    );
}

#[test]
fn public_has_no_rights() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    session.batch(
        "CREATE ROLE stranger; GRANT USAGE ON SCHEMA recur, recur_internal TO stranger; SET ROLE stranger",
    );
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
    // Nothing is granted to PUBLIC, not even what PostgreSQL grants by default, except what a restore needs.
    session.batch("RESET ROLE");
    let granted = session.texts(
        "SELECT 'function ' || p.oid::regprocedure
           FROM pg_proc AS p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
          WHERE p.pronamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace) AND a.grantee = 0
         UNION ALL
         SELECT 'relation ' || c.oid::regclass FROM pg_class AS c, aclexplode(c.relacl) AS a
          WHERE c.relnamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace) AND a.grantee = 0
         UNION ALL
         SELECT 'schema ' || n.nspname FROM pg_namespace AS n, aclexplode(n.nspacl) AS a
          WHERE n.nspname IN ('recur', 'recur_internal') AND a.grantee = 0
         ORDER BY 1",
        &[],
    );
    assert_eq!(
        granted,
        [
            "function recur_internal.canonical_schedule(text)",
            "function recur_internal.canonical_timezone(text)"
        ]
    );
}
