//! The server's log: one line for each event in the life of a worker or an action, and never a payload.

use pg_recur_tests::faults::fill_disk;
use pg_recur_tests::timers::{of_action, set_due};
use pg_recur_tests::{Cluster, eventually};

/// The lines of pg_recur, without what the server puts before them.
fn lines(cluster: &Cluster) -> Vec<String> {
    cluster
        .log()
        .lines()
        .filter_map(|line| {
            let at = ["WARNING:  pg_recur", "LOG:  pg_recur", "DEBUG:  pg_recur"]
                .iter()
                .find_map(|start| line.find(start))?;
            Some(line[at..].to_owned())
        })
        .collect()
}

fn count(cluster: &Cluster, start: &str) -> usize {
    lines(cluster)
        .iter()
        .filter(|line| line.starts_with(start))
        .count()
}

/// Statements of their own: the instants must lie ahead when the actions are created.
const ENDING: [&str; 2] = [
    "SELECT recur.create('expiring', '* * * * * *', 'p', 't', payload => '{\"s3cret\": 1}',
                         ends_at => clock_timestamp() + interval '3 seconds')",
    "SELECT recur.create('once', 'at ' || to_char((clock_timestamp() + interval '3 seconds') AT TIME ZONE 'UTC',
                                                 'YYYY-MM-DD\"T\"HH24:MI:SS'), 'p', 't')",
];

#[test]
fn the_log_has_what_operators_need_and_no_payload() {
    let cluster = Cluster::preloaded("log_min_messages = debug1");
    let mut session = cluster.database("app");
    session.batch(
        "ALTER TABLE recur_internal.live_dispatches ADD CONSTRAINT curse CHECK (action_type <> 'cursed');
         SELECT recur.create('cursed', '@yearly', 'p', 'cursed', payload => '{\"s3cret\": 1}');
         SELECT recur.create('counted', '* * * * * *', 'p', 't', payload => '{\"s3cret\": 1}', max_runs => 1)",
    );
    for create in ENDING {
        session.batch(create);
    }
    let id = |session: &mut pg_recur_tests::Session, name: &str| -> String {
        session.value(
            "SELECT id::text FROM recur_internal.definitions WHERE name = $1",
            &[&name],
        )
    };
    let cursed = id(&mut session, "cursed");
    set_due(&mut session, "now()", &of_action("cursed"));
    for (name, level, reason) in [
        ("expiring", "WARNING", "expired"),
        ("counted", "LOG", "exhausted"),
        ("once", "WARNING", "no_next"),
    ] {
        let action = id(&mut session, name);
        let line = format!("{level}:  pg_recur: recurring.{reason} name=\"{name}\" id={action}");
        eventually(&line, || lines(&cluster).contains(&line));
    }
    let line = format!(
        "WARNING:  pg_recur: recurring.dispatch_error name=\"cursed\" id={cursed} sqlstate=23514 \
         errors_in_a_row=1 paused=false message=\"new row for relation \\\"live_dispatches\\\" violates check \
         constraint \\\"curse\\\" (SQLSTATE 23514)\""
    );
    eventually(&line, || lines(&cluster).contains(&line));
    for start in [
        "LOG:  pg_recur launcher: started",
        "LOG:  pg_recur dispatcher: started database=\"app\"",
    ] {
        assert_eq!(count(&cluster, start), 1, "{start}");
    }
    assert!(count(&cluster, "DEBUG:  pg_recur dispatcher: batch dispatched=") > 0);

    let dispatched = format!(
        "DEBUG:  pg_recur: recurring.dispatch name=\"counted\" id={} dispatch=",
        id(&mut session, "counted")
    );
    assert_eq!(count(&cluster, &dispatched), 1);

    // The database's own circumstances.
    fill_disk(&mut session, "INSERT", "recur_internal.live_dispatches");
    session.batch(
        "SELECT recur.create('full', '* * * * * *', 'p', 't', payload => '{\"s3cret\": 1}')",
    );
    eventually("a failed batch", || {
        count(
            &cluster,
            "WARNING:  pg_recur dispatcher: batch failed database=\"app\" sqlstate=53100 retry_in=100ms message=\"no \
             room left\"",
        ) > 0
    });
    session.batch("DROP EXTENSION pg_recur CASCADE");
    eventually("it leaves", || {
        count(
            &cluster,
            "LOG:  pg_recur dispatcher: the extension is gone, leaving database=\"app\"",
        ) == 1
    });
    // Statements that clients sent are another matter; what we log has no payload.
    let log = cluster.log();
    let ours: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("s3cret") && !line.contains("STATEMENT"))
        .collect();
    assert!(ours.is_empty(), "{ours:?}");
}

/// The lines about actions, from `recurring.` on, without ids.
fn recurring(cluster: &Cluster) -> Vec<String> {
    let lines = lines(cluster).into_iter();
    let words = |line: String| {
        let words = line.split(' ').filter(|word| !word.starts_with("id="));
        words.collect::<Vec<_>>().join(" ")
    };
    lines
        .filter_map(|line| {
            line.strip_prefix("LOG:  pg_recur: recurring.")
                .map(str::to_owned)
        })
        .map(words)
        .collect()
}

#[test]
fn what_people_do_to_actions_is_logged_and_no_client_hears_it() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut session = cluster.database("app");
    session.batch(
        "CREATE ROLE ann;
         SELECT recur.grant_access('ann', level) FROM unnest('{author,consumer}'::text[]) AS level",
    );
    let script = "SET client_min_messages = debug1; SET ROLE ann;
        SELECT recur.create(E'nightly\\n', '@daily', 'p', 't', payload => '{\"s3cret\": 1}', starts_at => now() + '1d');
        SELECT recur.pause(E'nightly\\n', 'for s3cret reasons');
        SELECT recur.resume(E'nightly\\n');
        SELECT recur.update(E'nightly\\n', '{\"payload\": {\"s3cret\": 2}, \"name\": \"hourly\",
                                           \"max_attempts\": 1}');
        SELECT recur.trigger('hourly');
        SELECT recur.fail(id, attempt, 's3cret') FROM recur.claim(1);
        SELECT recur.delete('hourly');";
    let heard = cluster.run_script("app", script);
    assert!(!heard.contains("recurring."), "{heard}");
    let logged = recurring(&cluster);
    let expected = [
        r#"create name="nightly\n" role="ann""#,
        r#"pause name="nightly\n" role="ann""#,
        r#"resume name="nightly\n" role="ann""#,
        r#"update name="hourly" role="ann""#,
    ];
    assert_eq!(logged[..4], expected);
    assert!(
        logged[4].starts_with(r#"dispatch_error name="hourly" dispatch="#),
        "{}",
        logged[4]
    );
    assert!(logged[4].ends_with(" failed_in_a_row=1"), "{}", logged[4]);
    assert_eq!(logged[5..], [r#"delete name="hourly" role="ann""#]);
    // Not even as the statement to which a line belongs.
    assert!(!cluster.log().contains("s3cret"));
}

#[test]
fn a_statement_that_creates_thousands_does_not_flood_the_log() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut session = cluster.database("app");
    let many = "SELECT count(recur.create('a' || n, '@daily', 'p', 't')) FROM generate_series(1, 500) AS n";
    session.execute(many, &[]);
    assert_eq!(recurring(&cluster).len(), 10);
    let more = "LOG:  pg_recur: more actions of this statement are logged at debug1 only";
    assert_eq!(count(&cluster, more), 1);
    session.batch("SELECT recur.pause('a1')");
    assert_eq!(
        recurring(&cluster)[10..],
        [r#"pause name="a1" role="postgres""#]
    );
    session.batch("SET log_min_messages = debug1; SELECT recur.pause_all()");
    assert_eq!(recurring(&cluster).len(), 510);
}

#[test]
fn a_row_that_another_transaction_holds_is_logged_at_debug1() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.create('held', '1h', 'p', 't'), recur.create('free', '1h', 'p', 't'),
                recur.create('over', '1h', 'p', 't', max_runs => 1)",
    );
    let mut other = cluster.session("app");
    other.batch(
        "BEGIN; SELECT FROM recur_internal.timers WHERE action_id = recur.id_of('held') FOR UPDATE",
    );
    let before = recurring(&cluster).len();
    session.batch("SET log_min_messages = debug1; SELECT recur.tick()");
    let mut logged = recurring(&cluster).split_off(before);
    logged.sort();
    assert_eq!(logged.len(), 4, "{logged:?}");
    assert!(
        logged[0].starts_with(r#"dispatch name="free" dispatch="#),
        "{}",
        logged[0]
    );
    assert!(
        logged[0].contains(" trigger=schedule scheduled_at="),
        "{}",
        logged[0]
    );
    assert!(
        logged[1].starts_with(r#"dispatch name="over" dispatch="#),
        "{}",
        logged[1]
    );
    assert_eq!(
        logged[2..],
        [r#"exhausted name="over""#, r#"skip_locked name="held""#]
    );
}
