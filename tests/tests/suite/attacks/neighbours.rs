//! What roles with a level find beside the views and functions that are meant for them.

use super::field::Field;
use pg_recur_tests::eventually;

/// A function behind a view is called as the role that reads the view, and the role may call it by itself.
#[test]
fn a_monitor_hears_of_no_other_database() {
    let mut field = Field::new();
    field.root.batch(
        "CREATE ROLE watcher LOGIN; SELECT recur.grant_access('watcher', 'monitor');
         CREATE ROLE chief LOGIN IN ROLE pg_monitor; SELECT recur.grant_access('chief', 'monitor')",
    );
    let mut other = field.cluster.database("other");
    eventually("both databases have workers", || {
        let databases: i64 = other.value(
            "SELECT count(DISTINCT database) FROM recur_internal.workers()",
            &[],
        );
        databases >= 2
    });
    let others = "(SELECT database FROM recur_internal.workers() WHERE database <> (
                       SELECT oid FROM pg_database WHERE datname = current_database())
                   UNION ALL
                   SELECT 0 FROM recur.workers WHERE database <> current_database()) AS w";
    assert_eq!(field.session("watcher").count(others), 0);
    assert!(field.session("chief").count(others) >= 2);
    assert!(field.session("watcher").count("recur.workers") >= 1);
}

/// The doctor's answer is for a person, however many names a neighbour makes up.
#[test]
fn a_flood_of_names_does_not_flood_the_doctor() {
    let mut field = Field::with("recur.enabled = off");
    field.session("attacker").batch(
        "SELECT recur.enqueue('provider ' || n, 'a', run_at => now() - interval '1 hour')
           FROM generate_series(1, 200) AS n",
    );
    let findings = field
        .root
        .count("recur.doctor() WHERE finding LIKE '%wait to be claimed%'");
    assert_eq!(findings, 20);
}
