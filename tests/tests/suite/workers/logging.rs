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

#[test]
fn the_log_has_what_operators_need_and_no_payload() {
    let cluster = Cluster::preloaded("log_min_messages = debug1");
    let mut session = cluster.database("app");
    session.batch(
        "ALTER TABLE recur_internal.live_dispatches ADD CONSTRAINT curse CHECK (action_type <> 'cursed');
         SELECT recur.create('cursed', '@yearly', 'p', 'cursed', payload => '{\"s3cret\": 1}');
         SELECT recur.create('expiring', '* * * * * *', 'p', 't', payload => '{\"s3cret\": 1}',
                             ends_at => now() + interval '2 seconds');
         SELECT recur.create('counted', '* * * * * *', 'p', 't', payload => '{\"s3cret\": 1}', max_runs => 1);
         SELECT recur.create('once',
                             'at ' || to_char((now() + interval '2 seconds') AT TIME ZONE 'UTC',
                                              'YYYY-MM-DD\"T\"HH24:MI:SS'), 'p', 't')",
    );
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
        let line =
            format!("{level}:  pg_recur dispatcher: action ended action={action} reason={reason}");
        eventually(&line, || lines(&cluster).contains(&line));
    }
    let line = format!(
        "WARNING:  pg_recur dispatcher: action failed action={cursed} sqlstate=23514 errors_in_a_row=1 paused=false \
         message=\"new row for relation \\\"live_dispatches\\\" violates check constraint \\\"curse\\\" (SQLSTATE \
         23514)\""
    );
    eventually(&line, || lines(&cluster).contains(&line));
    for start in [
        "LOG:  pg_recur launcher: started",
        "LOG:  pg_recur dispatcher: started database=\"app\"",
    ] {
        assert_eq!(count(&cluster, start), 1, "{start}");
    }
    assert!(count(&cluster, "DEBUG:  pg_recur dispatcher: batch dispatched=") > 0);

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
