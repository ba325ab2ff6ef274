//! Commands of other sessions, which the extension's hooks see first.

use pg_recur_tests::workers::{dispatchers, starts_to_fire};
use pg_recur_tests::{Cluster, eventually};

#[test]
fn a_database_can_be_dropped_renamed_and_copied_while_its_dispatcher_sleeps() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    starts_to_fire(&mut session, "tick");
    drop(session);
    let mut admin = cluster.session("postgres");

    admin.batch("CREATE DATABASE copy TEMPLATE app");
    let mut copy = cluster.session("copy");
    let before = copy.count("recur.dispatches");
    copy.batch("SELECT recur.arm()");
    eventually("the copy fires once it is armed", || {
        copy.count("recur.dispatches") > before
    });
    drop(copy);

    admin.batch("ALTER DATABASE app RENAME TO renamed");
    let mut renamed = cluster.session("renamed");
    let before = renamed.count("recur.dispatches");
    eventually("the renamed one goes on", || {
        renamed.count("recur.dispatches") > before
    });
    drop(renamed);

    // Each of these waits 5 seconds for others to leave, and fails should a session stay.
    admin.batch("DROP DATABASE copy");
    admin.batch("DROP DATABASE renamed");
    eventually("no dispatcher is left", || {
        dispatchers(&mut admin, "copy").is_empty() && dispatchers(&mut admin, "renamed").is_empty()
    });
}

#[test]
fn a_command_that_fails_gives_the_database_back() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    starts_to_fire(&mut session, "tick");
    // We are connected to it ourselves: it can't be dropped.
    let mut admin = cluster.session("postgres");
    let (code, ..) = admin.error("DROP DATABASE app");
    assert_eq!(code, "55006");
    let before = session.count("recur.dispatches");
    eventually("it goes on", || session.count("recur.dispatches") > before);
}

/// An error that has nothing to do with pg_recur says all that it would say without pg_recur.
#[test]
fn the_errors_of_others_arrive_as_they_are() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("CREATE TABLE things (id int PRIMARY KEY)");
    let mut error = |statement: &str| {
        let error = session.0.batch_execute(statement).expect_err("an error");
        error.as_db_error().expect("the server's").clone()
    };
    let twice = error("DO $$ BEGIN INSERT INTO things VALUES (1), (1); END $$");
    assert_eq!(twice.detail(), Some("Key (id)=(1) already exists."));
    assert_eq!(twice.schema(), Some("public"));
    assert_eq!(twice.table(), Some("things"));
    assert_eq!(twice.constraint(), Some("things_pkey"));
    let whence = twice.where_().unwrap_or_default();
    assert!(whence.contains("inline_code_block line 1"), "{whence}");
    let unknown = error("CREATE TABLE others (id nothing)");
    assert_eq!(
        unknown.position(),
        Some(&postgres::error::ErrorPosition::Original(25))
    );
    // An error of the extension, inside a block of the user's: the context goes all the way.
    let ours = error("DO $$ BEGIN PERFORM recur.create('n', 'never', 'p', 't'); END $$");
    let whence = ours.where_().unwrap_or_default();
    assert!(whence.contains("inline_code_block line 1"), "{whence}");
}
