//! A journey belongs to the role that stored it.

use super::{BILLING, schedule, set};
use pg_recur_tests::{Cluster, Session};

fn prepare(cluster: &Cluster) -> Session {
    let mut admin = cluster.database("app");
    for author in ["author", "victim"] {
        admin.batch(&format!(
            "CREATE ROLE {author} LOGIN; SELECT recur.grant_access('{author}', 'author')"
        ));
    }
    admin
}

fn journeys(session: &mut Session) -> Vec<String> {
    session.texts(
        "SELECT owner || ' ' || name || ' ' || version FROM recur.journeys ORDER BY 1",
        &[],
    )
}

#[test]
fn others_neither_see_nor_change_a_journey() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    let (mut author, mut victim) = (
        cluster.session_as("author", "app"),
        cluster.session_as("victim", "app"),
    );
    set(&mut victim, "1", BILLING);
    victim.batch(&schedule(", max_runs => 3"));
    assert!(journeys(&mut author).is_empty());
    let unknown = "no journey \"billing\" version \"1\"";
    author.assert_error(
        "SELECT recur.drop_journey('billing', '1')",
        "P0002",
        unknown,
    );
    author.assert_error(
        &schedule(", max_runs => 3"),
        "P0002",
        "no journey \"billing\"",
    );
    // The same name is another journey, which has no schedules.
    assert_eq!(
        set(&mut author, "1", r#"{"charge": {"type": "wait"}}"#),
        (true, 0)
    );
    assert_eq!(journeys(&mut author), ["author billing 1"]);
    assert_eq!(author.error(&schedule(", max_runs => 3")).0, "22023");
    assert_eq!(set(&mut victim, "1", BILLING), (false, 1));
    assert_eq!(
        journeys(&mut admin),
        ["author billing 1", "victim billing 1"]
    );
    // An admin drops any, once it is clear whose.
    assert_eq!(
        admin.error("SELECT recur.drop_journey('billing', '1')").1,
        "several owners have a journey \"billing\" version \"1\": author, victim"
    );
    author.batch("SELECT recur.drop_journey('billing', '1')");
    assert_eq!(
        admin.error("SELECT recur.drop_journey('billing', '1')").0,
        "55006"
    );
    victim.batch("SELECT recur.delete('billing@1/charge')");
    admin.batch("SELECT recur.drop_journey('billing', '1')");
    assert!(journeys(&mut victim).is_empty());
}

#[test]
fn a_group_shares_its_journeys() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    admin.batch(
        "CREATE ROLE team; GRANT team TO author; SELECT recur.grant_access('team', 'author')",
    );
    let mut author = cluster.session_as("author", "app");
    author.batch("SET ROLE team");
    set(&mut author, "1", BILLING);
    author.batch("RESET ROLE");
    assert_eq!(journeys(&mut author), ["team billing 1"]);
    assert_eq!(
        author.error(&schedule(", max_runs => 3")),
        (
            "42501".to_owned(),
            "journey \"billing\" belongs to \"team\"".to_owned(),
            "SET ROLE to its owner first, or store a journey of your own.".to_owned()
        )
    );
    author.batch("SET ROLE team");
    author.batch(&schedule(", max_runs => 3"));
    assert_eq!(
        author.count("recur.recurring_actions WHERE owner = 'team'"),
        1
    );
}

#[test]
fn levels_say_who_may() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    admin.batch("CREATE ROLE looks LOGIN; SELECT recur.grant_access('looks', 'reader')");
    admin.batch("CREATE ROLE works LOGIN; SELECT recur.grant_access('works', 'consumer')");
    let mut looks = cluster.session_as("looks", "app");
    let mut works = cluster.session_as("works", "app");
    let mut author = cluster.session_as("author", "app");
    for session in [&mut looks, &mut works] {
        assert!(journeys(session).is_empty());
        for call in [
            "recur.set_journey('a', '1', '{}')",
            "recur.drop_journey('a', '1')",
            "recur.schedule_journey('a', 'a', NULL, 'P1D', 1, NULL, '{}')",
        ] {
            assert_eq!(
                session.error(&format!("SELECT {call}")).0,
                "42501",
                "{call}"
            );
        }
    }
    let fail = "SELECT recur.fail_interactive(gen_random_uuid(), 1, 'ask')";
    assert_eq!(works.error(fail).0, "P0002");
    assert_eq!(looks.error(fail).0, "42501");
    assert_eq!(author.error(fail).0, "42501");
}
