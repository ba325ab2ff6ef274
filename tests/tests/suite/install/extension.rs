//! Where the extension can be created, and that it can be dropped and created again.

use pg_recur_tests::workers::{dispatchers, starts_to_fire};
use pg_recur_tests::{Cluster, eventually, overtake};

#[test]
fn the_extension_can_be_dropped_and_created_again() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    let mut observer = cluster.session("postgres");
    starts_to_fire(&mut session, "first");
    for _ in 0..3 {
        session.batch("DROP EXTENSION pg_recur CASCADE");
        eventually("the dispatcher leaves", || {
            dispatchers(&mut observer, "app").is_empty()
        });
        session.batch("CREATE EXTENSION pg_recur");
        starts_to_fire(&mut session, "again");
    }
    // In one transaction, too.
    session.batch("BEGIN; DROP EXTENSION pg_recur CASCADE; CREATE EXTENSION pg_recur; COMMIT");
    starts_to_fire(&mut session, "at once");
}

#[test]
fn without_preload_everything_works_but_the_worker() {
    let cluster = Cluster::with("");
    let mut session = cluster.test_database("app");
    assert!(
        cluster
            .log()
            .contains("WARNING:  pg_recur is not preloaded: nothing fires by itself")
    );
    session.execute("SELECT recur.create('tick', '* * * * * *', 'p', 'a')", &[]);
    let at = "(SELECT next_run_at FROM recur.recurring_actions)";
    let dispatched: i64 = session.value(&format!("SELECT dispatched FROM recur.tick({at})"), &[]);
    assert_eq!(dispatched, 1);
    assert_eq!(session.count("recur.dispatches"), 1);
}

#[test]
fn a_schema_that_exists_already_is_not_adopted() {
    let cluster = Cluster::quiet();
    cluster.empty_database("app", "");
    let mut session = cluster.session("app");
    session.batch("CREATE SCHEMA recur");
    let (code, ..) = session.error("CREATE EXTENSION pg_recur");
    assert_eq!(code, "42P06");
}

/// The role of the engine belongs to the whole server: of two installations that create it, one waits for the other.
#[test]
fn two_databases_can_create_the_extension_at_the_same_time() {
    let cluster = Cluster::with("");
    cluster.empty_database("first", "");
    cluster.empty_database("second", "");
    let mut first = cluster.session("first");
    first.batch("BEGIN; CREATE EXTENSION pg_recur");
    overtake(
        &cluster,
        "second",
        |second| second.batch("CREATE EXTENSION pg_recur"),
        || first.batch("COMMIT"),
    );
    for database in ["first", "second"] {
        let mut session = cluster.session(database);
        session.batch("SELECT recur.create('n', '@daily', 'p', 'a')");
    }
}

/// Texts go through Rust, whose strings are UTF-8.
#[test]
fn other_encodings_are_refused() {
    let cluster = Cluster::quiet();
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let database = encoding.to_lowercase();
        cluster.empty_database(
            &database,
            &format!("ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"),
        );
        let name = cluster.name_of(&database);
        assert_eq!(
            cluster
                .session(&database)
                .error("CREATE EXTENSION pg_recur"),
            (
                "0A000".into(),
                format!("pg_recur needs a database in UTF8, and \"{name}\" is in {encoding}"),
                "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0 makes one.".into()
            )
        );
    }
}
