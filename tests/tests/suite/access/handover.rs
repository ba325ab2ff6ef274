//! Actions that get another owner.

use super::privileges::prepare;
use pg_recur_tests::{Cluster, Session, eventually};

const MEMBERS: &str = "CREATE ROLE red; CREATE ROLE blue; GRANT red, blue TO author;
                       SELECT recur.grant_access('red', 'author'); SELECT recur.grant_access('blue', 'author');
                       CREATE ROLE green; GRANT green TO author";

fn create_as(session: &mut Session, role: &str, name: &str) {
    session.batch(&format!(
        "SET ROLE {role}; SELECT recur.create('{name}', '@yearly', 'p', 'a'); RESET ROLE"
    ));
}

fn owners(session: &mut Session) -> Vec<String> {
    session.texts(
        "SELECT name || ' ' || owner FROM recur.recurring_actions ORDER BY name, owner",
        &[],
    )
}

#[test]
fn a_member_of_both_roles_gives_an_action_from_one_to_the_other() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    admin.batch(MEMBERS);
    let mut author = cluster.session_as("author", "app");
    create_as(&mut author, "red", "n");
    author.batch("SELECT recur.update('n', '{\"owner\": \"blue\", \"priority\": 3}')");
    assert_eq!(owners(&mut author), ["n blue"]);
    author.batch("UPDATE recur.recurring_actions SET owner = 'red'");
    assert_eq!(owners(&mut author), ["n red"]);
    let events: Vec<String> = author.texts(
        "SELECT concat_ws(' ', detail #>> '{old,owner}', detail #>> '{new,owner}') FROM recur.events
          WHERE kind = 'action.updated' AND detail #>> '{new,owner}' IS NOT NULL ORDER BY id",
        &[],
    );
    assert_eq!(events, ["red blue", "blue red"]);
    // To a role that one may not act as, or from one.
    for change in ["postgres", "victim", "nobody"] {
        author.assert_error(
            &format!("SELECT recur.update('n', '{{\"owner\": \"{change}\"}}')"),
            "42501",
            &format!("invalid owner \"{change}\": author may not SET ROLE to this role"),
        );
    }
    author.assert_error(
        "SELECT recur.update('n', '{\"owner\": null}')",
        "22023",
        "invalid owner \"NULL\": must have a value",
    );
    // The new owner has one of the same identity.
    create_as(&mut author, "blue", "n");
    let (code, ..) =
        author.error("UPDATE recur.recurring_actions SET owner = 'blue' WHERE owner = 'red'");
    assert_eq!(code, "23505");
    assert_eq!(owners(&mut author), ["n blue", "n red"]);
    // Seeing an action is not enough: what it does, it would do as another.
    admin.batch("CREATE ROLE viewer LOGIN; GRANT blue TO viewer; SELECT recur.grant_access('viewer', 'author')");
    let mut viewer = cluster.session_as("viewer", "app");
    viewer.batch("SELECT recur.update('n', '{\"owner\": \"viewer\"}')");
    viewer.assert_error(
        "SELECT recur.update('n', '{\"owner\": \"red\"}')",
        "42501",
        "invalid owner \"red\": viewer may not SET ROLE to this role",
    );
}

#[test]
fn an_action_takes_its_pending_dispatches_to_its_new_owner() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    admin.batch(MEMBERS);
    admin.batch(
        "SELECT recur.grant_access('red', 'consumer'); SELECT recur.grant_access('blue', 'consumer');
         SET ROLE red;
         SELECT recur.create('stays', '@yearly', 'p', 'a');
         SELECT recur.create('goes', '0 0 0 1 1 *', 'p', 'a', overlap => 'allow', horizon_count => 3);
         SELECT recur.trigger('stays'); SELECT recur.trigger('goes'); SELECT recur.claim(2, '{p}');
         SELECT recur.trigger('goes'); SELECT recur.trigger('goes'); RESET ROLE",
    );
    eventually("dispatches ahead of their time", || {
        let ahead = "SELECT count(*) = 3 FROM recur.dispatches WHERE trigger = 'schedule'";
        admin.value(ahead, &[])
    });
    admin.batch("SELECT recur.update('goes', '{\"owner\": \"blue\"}')");
    let dispatches = admin.texts(
        "SELECT concat_ws(' ', status, trigger, owner, count(*)) FROM recur.dispatches
          WHERE provider = 'p' GROUP BY status, trigger, owner ORDER BY 1",
        &[],
    );
    let moved = [
        "pending manual blue 2",
        "pending schedule blue 3",
        "running manual red 2",
    ];
    assert_eq!(dispatches, moved);
    let claimed = |admin: &mut Session, role: &str| -> i64 {
        admin.batch(&format!("SET ROLE {role}"));
        let count = admin.value("SELECT count(*) FROM recur.claim(10, '{p}')", &[]);
        admin.batch("RESET ROLE");
        count
    };
    assert_eq!(claimed(&mut admin, "red"), 0);
    assert_eq!(claimed(&mut admin, "blue"), 2);
}

#[test]
fn all_that_is_an_owners_goes_to_another_with_what_is_pending() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    admin.batch(MEMBERS);
    let mut author = cluster.session_as("author", "app");
    create_as(&mut author, "red", "a");
    create_as(&mut author, "red", "b");
    author.batch(
        "SET ROLE red;
         SELECT recur.trigger('a'); SELECT recur.trigger('a'); SELECT recur.enqueue('p', 'a'); RESET ROLE",
    );
    admin.batch("SELECT recur.claim(1, '{p}')");
    let moved = |session: &mut Session, to: &str| -> (i64, i64) {
        let row = &session.rows(
            "SELECT actions, dispatches FROM recur.reassign_owner('red', $1)",
            &[&to],
        )[0];
        (row.get(0), row.get(1))
    };
    assert_eq!(moved(&mut author, "blue"), (2, 2));
    assert_eq!(owners(&mut author), ["a blue", "b blue"]);
    let dispatches = author.texts(
        "SELECT status || ' ' || owner FROM recur.dispatches ORDER BY status, owner",
        &[],
    );
    assert_eq!(dispatches, ["pending blue", "pending blue", "running red"]);
    author.assert_error(
        "SELECT recur.reassign_owner('victim', 'blue')",
        "42501",
        "invalid owner \"victim\": author may not SET ROLE to this role",
    );
    author.assert_error(
        "SELECT recur.reassign_owner('blue', 'victim')",
        "42501",
        "invalid to \"victim\": author may not SET ROLE to this role",
    );
    // The doctor notices that a role is gone, and an admin gives its actions to another.
    admin.batch("CREATE ROLE gone; SELECT recur.grant_access('gone', 'author')");
    create_as(&mut admin, "gone", "left behind");
    admin.batch(
        "CREATE ROLE busy; SELECT recur.grant_access('busy', 'author');
         SET ROLE busy; SELECT recur.enqueue('q', 'a'); SELECT recur.enqueue('q', 'a'); RESET ROLE;
         SELECT recur.claim(1, '{q}');
         SELECT recur.revoke_access('gone'); DROP ROLE gone; SELECT recur.revoke_access('busy'); DROP ROLE busy",
    );
    let found = admin.texts(
        "SELECT finding || ' -- ' || remedy FROM recur.doctor() WHERE finding LIKE '%no longer exists'",
        &[],
    );
    assert_eq!(
        found,
        [
            "0 actions and 2 pending or running dispatches belong to role \"busy\", which no longer exists -- Admins \
             alone see and claim these dispatches. SELECT recur.reassign_owner('busy', …) gives actions and pending \
             dispatches to another role.",
            "1 actions and 0 pending or running dispatches belong to role \"gone\", which no longer exists -- Admins \
             alone see and claim these dispatches. SELECT recur.reassign_owner('gone', …) gives actions and pending \
             dispatches to another role."
        ]
    );
    admin.batch("SELECT recur.reassign_owner('gone', 'green')");
    assert_eq!(
        owners(&mut author),
        ["a blue", "b blue", "left behind green"]
    );
}

#[test]
fn a_monitor_sees_counts_of_all_owners_and_no_content() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    admin.batch(
        "SELECT recur.create('a', '@yearly', 'mailer', 'a', tenant => 'secret', payload => '{\"secret\": 1}');
         SELECT recur.create('b', '@yearly', 'mailer', 'a', tenant => 'secret', enabled => false);
         SELECT recur.trigger('a', tenant => 'secret'); SELECT recur.trigger('a', tenant => 'secret');
         SELECT recur.complete(id, attempt) FROM recur.claim(1, '{mailer}');
         SELECT recur.trigger('a', tenant => 'secret');
         SELECT recur.fail(id, attempt, 'secret', false) FROM recur.claim(1, '{mailer}');
         SELECT recur.trigger('a', tenant => 'secret');
         SELECT recur.claim(1, '{mailer}');
         SET ROLE victim; SELECT recur.create('secret', '@yearly', 'mailer', 'a', subject => 'secret'); RESET ROLE",
    );
    let mut monitor = cluster.session_as("monitor", "app");
    let seen = monitor.texts(
        "SELECT concat_ws(' ', owner, namespace, provider, active, failing, paused, ended, overdue, pending, running,
                          completed_runs, failed_runs)
           FROM recur.monitoring WHERE provider = 'mailer' ORDER BY 1",
        &[],
    );
    assert_eq!(
        seen,
        [
            "postgres default mailer 0 1 1 0 0 1 1 1 1",
            "victim default mailer 1 0 0 0 0 0 0 0 0"
        ]
    );
    let all: String = monitor.value(
        "SELECT string_agg(m::text, ' ') FROM recur.monitoring AS m",
        &[],
    );
    assert!(!all.contains("secret"), "{all}");
    for relation in [
        "recurring_actions",
        "dispatches",
        "events",
        "contexts",
        "overview",
        "quotas",
    ] {
        let (code, ..) = monitor.error(&format!("SELECT FROM recur.{relation}"));
        assert_eq!(code, "42501", "{relation}");
    }
    let late: bool = monitor.value(
        "SELECT bool_and(waiting_for > '0' AND running_for > '0') FROM recur.monitoring WHERE running > 0",
        &[],
    );
    assert!(late);
}
