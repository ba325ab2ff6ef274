//! The overview, as psql shows it.

use pg_recur_tests::{Cluster, eventually};

const NARROW: [&str; 6] = [
    "state",
    "next_run",
    "ran_ago",
    "last_outcome",
    "failures",
    "runs",
];
const LONG_REASON: &str =
    "the invoices of last year are audited, and nobody may write into them until that is over";

fn shown(cluster: &Cluster, options: &str) -> String {
    let output = cluster.psql(
        "app",
        &format!("\\pset pager off\n{options}\nTABLE recur.overview;"),
    );
    String::from_utf8(output.stdout).unwrap()
}

/// As psql shows it, with names and schedules of any length.
#[test]
fn the_overview_cuts_nothing_and_starts_with_what_is_narrow() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    let name = "long name ".repeat(10);
    let name = name.trim();
    session.execute(
        "SELECT recur.create($1, '0 9 * * MON-FRI', 'p', 'a', tenant => 'Jupiter Mining Corporation',
                             subject => 'invoice 2027-000815', timezone => 'America/Argentina/ComodRivadavia')",
        &[&name],
    );
    session.batch(&format!(
        "SELECT recur.create('many',
                             '{{\"every\": 2, \"unit\": \"week\", \"days_of_week\": [\"tue\", \"thu\", \"sat\"]}}',
                                    'p', 'a');
         SELECT recur.create('far', '0 0 29 2 *', 'p', 'a', timezone => 'Asia/Kolkata');
         SELECT recur.pause(recur.create('paused', '@daily', 'p', 'a'), '{LONG_REASON}');
         SELECT recur.create('ends', '* * * * * *', 'p', 'a', max_runs => 1)"
    ));
    eventually("one has ended", || {
        session.value(
            "SELECT count(*) = 1 FROM recur.overview
              WHERE state = 'ended' AND last_outcome LIKE 'pending +%' AND reason = 'exhausted'",
            &[],
        )
    });
    assert_eq!(
        session.texts(
            "SELECT runs || ' ' || owner FROM recur.overview WHERE name = 'ends'",
            &[]
        ),
        ["1 postgres"]
    );
    let schedules = session.texts(
        "SELECT recur.describe(schedule) FROM recur.recurring_actions",
        &[],
    );
    for options in ["", "\\x on"] {
        let output = shown(&cluster, options);
        let wide = [
            name,
            LONG_REASON,
            "Jupiter Mining Corporation",
            "invoice 2027-000815",
            "America/Argentina/ComodRivadavia",
        ];
        for whole in wide.into_iter().chain(schedules.iter().map(String::as_str)) {
            assert!(output.contains(whole), "{whole}:\n{output}");
        }
        assert!(!output.contains('…'), "{output}");
    }
    // Whatever the others hold, a terminal of 80 columns shows these.
    let table = shown(&cluster, "");
    let header = table
        .lines()
        .find(|line| line.contains("last_outcome"))
        .unwrap();
    let columns: Vec<&str> = header.split('|').map(str::trim).collect();
    assert_eq!(columns[..NARROW.len()], NARROW);
    assert_eq!(
        columns[NARROW.len()..],
        [
            "name", "owner", "tenant", "subject", "timezone", "schedule", "reason"
        ]
    );
    let narrow: usize = header
        .split('|')
        .take(NARROW.len())
        .map(|one| one.len() + 1)
        .sum();
    assert!(narrow <= 80, "{narrow} columns:\n{table}");
}

#[test]
fn the_overview_says_how_often_and_why_an_action_fails() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SELECT recur.create('backup', '0 3 1 1 *', 'test', 'a', max_attempts => 1)");
    let shown = "SELECT concat_ws('|', state, failures, reason) FROM recur.overview";
    assert_eq!(session.texts(shown, &[]), ["active|0"]);
    for (report, expected) in [
        ("fail(c.id, c.attempt, 'disk full')", "failing|1|disk full"),
        ("fail(c.id, c.attempt, 'no disk')", "failing|2|no disk"),
        ("complete(c.id, c.attempt)", "active|0"),
    ] {
        session.batch("SELECT recur.trigger('backup')");
        session.batch(&format!(
            "SELECT recur.{report} FROM recur.claim(1, providers => '{{test}}') AS c"
        ));
        assert_eq!(session.texts(shown, &[]), [expected], "{report}");
    }
    session.batch("SELECT recur.pause('backup', 'a new disk is on its way')");
    assert_eq!(
        session.texts(shown, &[]),
        ["paused|0|a new disk is on its way"]
    );
}

#[test]
fn a_run_by_hand_is_a_run() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SELECT recur.create('yearly', '0 0 1 1 *', 'p', 'a')");
    let ran = "SELECT ran_ago IS NOT NULL FROM recur.overview";
    assert!(!session.value::<bool>(ran, &[]));
    session.batch("SELECT recur.trigger('yearly')");
    assert!(session.value::<bool>(ran, &[]));
}
