//! The functions by topic: what \df shows is more than a screen.

use pg_recur_tests::Cluster;

#[test]
fn each_topic_is_one_screen() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let shown = session.texts("SELECT DISTINCT topic FROM recur.help() ORDER BY 1", &[]);
    for topic in &shown {
        let rows = session.rows("SELECT call, purpose FROM recur.help($1)", &[&topic]);
        assert!(
            (1..=24).contains(&rows.len()),
            "{topic} has {} rows",
            rows.len()
        );
        for row in rows {
            let (call, purpose): (String, String) = (row.get(0), row.get(1));
            let width = call.chars().count() + purpose.chars().count();
            assert!(width <= 180, "{call} {purpose}");
        }
    }
    // Every function is there, once, and none of the internal ones.
    let missing = session.texts(
        "SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'recur'::regnamespace
         EXCEPT SELECT substring(call FROM '^recur\\.(\\w+)\\(') FROM recur.help()",
        &[],
    );
    assert_eq!(missing, Vec::<String>::new());
    let twice: i64 = session.value(
        "SELECT count(*) - count(DISTINCT split_part(call, '(', 1)) FROM recur.help()",
        &[],
    );
    assert_eq!(twice, 0);
    for (topic, call) in [
        (
            "define",
            "recur.create(name, schedule, provider, action_type, …)",
        ),
        ("define", "recur.pause(action, …)"),
        ("sql", "recur.create_sql(name, schedule, command, …)"),
        ("consume", "recur.release(id, attempt, …)"),
        ("operate", "recur.doctor()"),
        ("operate", "recur.arm()"),
        ("operate", "recur.set_quota(tenant, …)"),
    ] {
        let found: i64 = session.value(
            "SELECT count(*) FROM recur.help($1) WHERE call = $2",
            &[&topic, &call],
        );
        assert_eq!(found, 1, "{call}");
    }
    session.assert_error(
        "SELECT * FROM recur.help('cron')",
        "22023",
        "invalid topic \"cron\": must be one of define, look, run, sql, consume, journeys, webhooks, operate, more",
    );
}

/// Whatever a role may do, it may ask.
#[test]
fn every_level_is_helped() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    for level in [
        "reader",
        "author",
        "consumer",
        "sql",
        "monitor",
        "ticker",
        "deliverer",
        "admin",
    ] {
        session.batch(&format!(
            "CREATE ROLE {level} LOGIN; SELECT recur.grant_access('{level}', '{level}')"
        ));
        assert!(
            cluster.session_as(level, "app").count("recur.help()") > 40,
            "{level}"
        );
    }
}
