//! The findings of recur.doctor.

use pg_recur_tests::{Cluster, eventually};

#[test]
fn the_doctor_finds_what_is_wrong() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.create('late', '@yearly', 'p', 't');
         UPDATE recur_internal.timers SET next_run_at = now() - interval '1 hour', due_at = now() - interval '1 hour'",
    );
    let findings = session.texts(
        "SELECT severity || ': ' || finding FROM recur.doctor()",
        &[],
    );
    assert_eq!(
        findings[0],
        "error: recur.enabled is off: nothing fires by itself"
    );
    assert!(
        findings[1]
            .starts_with("error: 1 actions are overdue by more than a minute, the oldest since "),
        "{findings:?}"
    );
    assert_eq!(findings.len(), 2);
    let live = Cluster::start();
    let mut session = live.database("app");
    session.batch("SELECT recur.create('fine', '@yearly', 'p', 't')");
    eventually("all is well", || {
        session.rows("SELECT FROM recur.doctor()", &[]).is_empty()
    });
}

/// Neither is a superuser: the doctor must need no right that only a superuser has.
#[test]
fn admins_and_the_owner_of_the_database_can_ask() {
    for (settings, finding) in [
        (
            "",
            "error: pg_recur is not preloaded: nothing fires by itself",
        ),
        (
            "shared_preload_libraries = 'pg_recur'\nrecur.enabled = off",
            "error: recur.enabled is off: nothing fires by itself",
        ),
    ] {
        let cluster = Cluster::with(settings);
        cluster
            .session("postgres")
            .batch("CREATE ROLE landlady LOGIN; CREATE ROLE boss LOGIN; CREATE ROLE alice LOGIN");
        cluster.empty_database("app", "OWNER landlady");
        let mut owner = cluster.session_as("landlady", "app");
        owner.batch(
            "CREATE EXTENSION pg_recur;
             SELECT recur.grant_access('boss', 'admin'); SELECT recur.grant_access('alice', 'author')",
        );
        let mut alice = cluster.session_as("alice", "app");
        alice.batch(
            "SELECT recur.create('broken', '@yearly', 'p', 't');
             SELECT recur.enqueue('nobody', 'waits', run_at => now() - interval '1 hour')",
        );
        let mut superuser = cluster.session("app");
        superuser.batch("UPDATE recur_internal.timers SET error_count = 1, last_error = 'no luck'");
        let id: uuid::Uuid = alice.value("SELECT recur.id_of('broken')", &[]);
        let expected = [
            finding.to_owned(),
            "warning: action \"broken\" fails: no luck".to_owned(),
            "warning: 1 dispatches of provider \"nobody\" and action type \"waits\" wait to be claimed, the oldest \
             since "
                .to_owned(),
        ];
        for role in ["landlady", "boss"] {
            let mut session = cluster.session_as(role, "app");
            let findings = session.texts(
                "SELECT severity || ': ' || finding FROM recur.doctor()",
                &[],
            );
            assert_eq!(findings.len(), 3, "{role}: {findings:?}");
            for (finding, expected) in findings.iter().zip(&expected) {
                assert!(finding.starts_with(expected), "{role}: {finding}");
            }
            let remedy: String = session.value(
                "SELECT remedy FROM recur.doctor() WHERE finding LIKE 'action %'",
                &[],
            );
            assert_eq!(remedy, format!("recur.update('{id}', …) mends it."));
        }
        assert_eq!(alice.error("SELECT recur.doctor()").0, "42501");
    }
}

#[test]
fn actions_whose_owner_was_dropped_are_found() {
    let cluster = Cluster::quiet();
    let mut admin = cluster.database("app");
    admin.batch("CREATE ROLE leaver LOGIN; SELECT recur.grant_access('leaver', 'author')");
    let mut leaver = cluster.session_as("leaver", "app");
    leaver.batch("SELECT recur.create('left behind', '@yearly', 'p', 't')");
    drop(leaver);
    admin.batch("SELECT recur.revoke_access('leaver'); DROP ROLE leaver");
    let orphans = "SELECT finding FROM recur.doctor() WHERE finding LIKE '%no longer exists'";
    assert_eq!(
        admin.texts(orphans, &[]),
        [
            "1 actions and 0 pending or running dispatches belong to role \"leaver\", which no longer exists"
        ]
    );
    // A new role of that name is another role.
    admin.batch("CREATE ROLE leaver LOGIN; SELECT recur.grant_access('leaver', 'author')");
    assert_eq!(admin.texts(orphans, &[]).len(), 1);
    let mut successor = cluster.session_as("leaver", "app");
    assert_eq!(successor.count("recur.recurring_actions"), 0);
}
