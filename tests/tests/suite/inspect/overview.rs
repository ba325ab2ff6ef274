//! The overview, as psql shows it.

use pg_recur_tests::{Cluster, eventually};

/// As psql shows it, with names and schedules of any length, in a terminal of 120 columns.
#[test]
fn the_overview_fits_a_terminal() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.create(repeat('long name ', 10), '0 9 * * MON-FRI', 'p', 'a',
                             timezone => 'America/Argentina/ComodRivadavia');
         SELECT recur.create('many',
                             '{\"every\": 2, \"unit\": \"week\", \"days_of_week\": [\"tue\", \"thu\", \"sat\"]}',
                                    'p', 'a');
         SELECT recur.create('far', '0 0 29 2 *', 'p', 'a', timezone => 'Asia/Kolkata');
         SELECT recur.pause(recur.create('paused', '@daily', 'p', 'a'));
         SELECT recur.create('ends', '* * * * * *', 'p', 'a', max_runs => 1)",
    );
    eventually("one has ended", || {
        session.value(
            "SELECT count(*) = 1 FROM recur.overview
              WHERE state = 'ended' AND last_outcome LIKE 'pending +%'",
            &[],
        )
    });
    let output = cluster.psql("app", "\\pset pager off\nTABLE recur.overview;");
    let table = String::from_utf8(output.stdout).unwrap();
    let widest = table
        .lines()
        .map(|line| line.chars().count())
        .max()
        .unwrap();
    assert!(widest <= 120, "{widest} columns:\n{table}");
    for expected in ["active", "paused", "ended", "long name"] {
        assert!(table.contains(expected), "{expected}:\n{table}");
    }
    let header = table
        .lines()
        .find(|line| line.contains("last_outcome"))
        .unwrap();
    for column in [
        "name",
        "schedule",
        "timezone",
        "state",
        "next_run",
        "ran_ago",
        "last_outcome",
    ] {
        assert!(header.contains(column));
    }
}
