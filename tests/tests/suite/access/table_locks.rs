//! No role can lock what others read.

use pg_recur_tests::Cluster;

const MODES: [&str; 7] = [
    "ROW SHARE",
    "ROW EXCLUSIVE",
    "SHARE UPDATE EXCLUSIVE",
    "SHARE",
    "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
];

#[test]
fn no_level_can_lock_a_relation_of_the_extension() {
    let cluster = Cluster::start();
    let mut admin = cluster.database("app");
    let relations: Vec<String> = admin.column(
        "SELECT c.oid::regclass::text FROM pg_class AS c
          WHERE c.relnamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
            AND c.relkind IN ('r', 'p', 'v')",
        &[],
    );
    assert!(relations.len() > 20, "{relations:?}");
    for level in [
        "reader",
        "author",
        "consumer",
        "monitor",
        "ticker",
        "deliverer",
        "admin",
    ] {
        admin.batch(&format!(
            "CREATE ROLE {level} LOGIN; SELECT recur.grant_access('{level}', '{level}')"
        ));
        let mut session = cluster.session_as(level, "app");
        for (relation, mode) in relations
            .iter()
            .flat_map(|one| MODES.map(|mode| (one, mode)))
        {
            session.batch("BEGIN");
            let statement = format!("LOCK TABLE {relation} IN {mode} MODE");
            assert_eq!(session.error(&statement).0, "42501", "{level}: {statement}");
            session.batch("ROLLBACK");
        }
    }
}

/// A session that waits for an exclusive lock holds up every session that comes after it.
#[test]
fn a_view_of_an_author_is_no_way_to_lock_the_actions_of_others() {
    let cluster = Cluster::start();
    let mut admin = cluster.database("app");
    admin.batch(
        "CREATE ROLE attacker LOGIN; CREATE ROLE victim LOGIN;
         SELECT recur.grant_access('attacker', 'author'); SELECT recur.grant_access('victim', 'author');
         CREATE SCHEMA own AUTHORIZATION attacker",
    );
    let mut attacker = cluster.session_as("attacker", "app");
    // An operator of the attacker's own must not deceive the check.
    attacker.batch(
        "CREATE VIEW own.inner_view AS SELECT * FROM recur.recurring_actions;
         CREATE VIEW own.outer_view AS SELECT * FROM (SELECT id FROM own.inner_view) AS i;
         CREATE FUNCTION own.never(oid, oid) RETURNS boolean LANGUAGE sql AS 'SELECT false';
         CREATE OPERATOR own.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = own.never);
         SET search_path = own, pg_catalog, public",
    );
    for view in [
        "own.inner_view",
        "own.outer_view",
        "recur.recurring_actions",
    ] {
        let mut reader = cluster.session_as("attacker", "app");
        reader.batch("BEGIN; SELECT count(*) FROM recur.recurring_actions");
        attacker.batch("BEGIN; SET LOCAL lock_timeout = '30s'");
        let refused = attacker.error(&format!("LOCK TABLE {view} IN ACCESS EXCLUSIVE MODE"));
        assert_eq!(refused.0, "42501", "{view}: {}", refused.1);
        attacker.batch("ROLLBACK");
    }
    // Rows of the view can't be locked either: its owner may only read the tables.
    let locks_rows = "SELECT id FROM recur.recurring_actions FOR UPDATE";
    assert_eq!(attacker.error(locks_rows).0, "42501");
    let mut victim = cluster.session_as("victim", "app");
    victim.batch("SELECT recur.create('n', '@daily', 'p', 'a'); UPDATE recur.recurring_actions SET priority = 1");
    assert_eq!(
        victim.count("recur.recurring_actions WHERE priority = 1"),
        1
    );
}
