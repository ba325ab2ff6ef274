//! Bad input: the SQLSTATE, the sentence and the hint, and nothing stored.

use pg_recur_tests::Cluster;
use pg_recur_tests::actions::create_with;

/// An argument of recur.create, and how the message begins that refuses it.
const BAD_INPUT: [(&str, &str); 21] = [
    (
        "schedule => 'every now and then'",
        "invalid schedule \"every now and then\": ",
    ),
    (
        "schedule => '61 * * * *'",
        "invalid schedule \"61 * * * *\": ",
    ),
    (
        "schedule => NULL",
        "invalid schedule \"NULL\": must have a value",
    ),
    ("schedule => ''", "invalid schedule \"\": "),
    (
        "timezone => 'Mars/Olympus'",
        "invalid timezone \"Mars/Olympus\": not an IANA time zone",
    ),
    (
        "timezone => 'GMT+25'",
        "invalid timezone \"GMT+25\": not an IANA time zone",
    ),
    ("provider => ''", "invalid provider \"\": must not be empty"),
    (
        "provider => NULL",
        "invalid provider \"NULL\": must have a value",
    ),
    (
        "action_type => '  '",
        "invalid action_type \"  \": must not be empty",
    ),
    ("name => ''", "invalid name \"\": must not be empty"),
    ("tenant => repeat('x', 256)", "invalid tenant \"xxxxxxxx"),
    (
        "payload => '[1, 2]'",
        "invalid payload \"[1, 2]\": must be a JSON object",
    ),
    (
        "payload => 'null'",
        "invalid payload \"null\": must be a JSON object",
    ),
    (
        "metadata => '{\"a\": 1}'",
        "invalid metadata \"{\"a\": 1}\": must be a JSON object with only strings as values",
    ),
    (
        "max_runs => 0",
        "invalid max_runs \"0\": must be at least 1",
    ),
    (
        "on_dst_gap => 'maybe'",
        "invalid on_dst_gap \"maybe\": must be roll_forward or skip",
    ),
    (
        "on_dst_fold => 'third'",
        "invalid on_dst_fold \"third\": must be first, second or both",
    ),
    (
        "ends_at => '2001-01-01Z'",
        "invalid ends_at \"2001-01-01 00:00:00+00\": must lie in the future",
    ),
    (
        "ends_at => '2001-01-01Z', schedule => '1h'",
        "invalid ends_at \"2001-01-01 00:00:00+00\": must not lie before starts_at, which is ",
    ),
    (
        "ends_at => '2001-01-01Z', starts_at => '2001-01-02Z'",
        "invalid ends_at \"2001-01-01 00:00:00+00\": must not lie before starts_at, which is 2001-01-02 ",
    ),
    (
        "schedule => '0 0 30 2 *'",
        "invalid schedule \"0 0 30 2 *\": ",
    ),
];

#[test]
fn bad_input_is_refused_by_name_value_and_expectation() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SET timezone = 'UTC'");
    for (argument, expected) in BAD_INPUT {
        let (code, message, _) = session.error(&create_with(argument));
        assert_eq!(code, "22023", "{argument}: {message}");
        assert!(message.starts_with(expected), "{argument}: {message}");
    }
    assert_eq!(session.count("recur.recurring_actions"), 0);
}

#[test]
fn states_and_unknown_ids_have_their_own_errors() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.execute("SELECT recur.create('a', '@daily', 'p', 't')", &[]);
    let twice = session.error("SELECT recur.create('a', '@daily', 'p', 't')");
    assert_eq!(
        twice,
        (
            "23505".into(),
            "action \"a\" already exists in namespace \"default\", tenant \"default\"".into(),
            "on_existing => 'upsert' changes it, 'add_another' puts another one beside it.".into(),
        )
    );
    let id: uuid::Uuid = session.value("SELECT id FROM recur.recurring_actions", &[]);
    let running = session.error(&format!("SELECT recur.resume('{id}')"));
    assert_eq!(
        (running.0.as_str(), running.1.as_str()),
        ("55000", "action \"a\" is not paused")
    );
    session.execute("SELECT recur.pause($1::uuid)", &[&id]);
    let paused = session.error(&format!("SELECT recur.pause('{id}')"));
    assert_eq!(
        (paused.0.as_str(), paused.1.as_str()),
        ("55000", "action \"a\" is paused already")
    );
    for function in ["pause", "resume"] {
        let unknown = session.error(&format!(
            "SELECT recur.{function}('00000000-0000-0000-0000-000000000000')"
        ));
        assert_eq!(unknown.0, "P0002");
        assert_eq!(
            unknown.1,
            "no action has the id 00000000-0000-0000-0000-000000000000"
        );
    }
}

#[test]
fn a_plain_update_of_the_view_is_checked_too() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.execute("SELECT recur.create('a', '@daily', 'p', 't')", &[]);
    for (change, message) in [
        ("schedule = 'soon'", "invalid schedule \"soon\": "),
        (
            "timezone = 'Nowhere'",
            "invalid timezone \"Nowhere\": not an IANA time zone",
        ),
        ("provider = ''", "invalid provider \"\": must not be empty"),
    ] {
        let (code, text, _) =
            session.error(&format!("UPDATE recur.recurring_actions SET {change}"));
        assert_eq!(code, "22023");
        assert!(text.starts_with(message), "{text}");
    }
}
