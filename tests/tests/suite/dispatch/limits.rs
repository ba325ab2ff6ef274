//! Limits to what one action, one owner and one batch can produce, whatever actions say.

use pg_recur_tests::timers::{of_action, set_due};
use pg_recur_tests::{Cluster, Session, eventually};

/// Fails where a tick would go on and on.
fn impatient(cluster: &Cluster) -> Session {
    let mut session = cluster.database("app");
    session.batch("SET statement_timeout = '50s'");
    session
}

/// How many dispatches each batch wrote: what one statement inserts was written under one subtransaction.
fn batches(session: &mut Session) -> Vec<i64> {
    session.column(
        "SELECT count(*) FROM recur_internal.live_dispatches GROUP BY xmin::text ORDER BY min(created_at)",
        &[],
    )
}

#[test]
fn at_most_a_thousand_dispatches_of_an_action_lie_ahead() {
    let cluster = Cluster::quiet();
    let mut session = impatient(&cluster);
    session.batch(
        "SELECT recur.create('far', '* * * * * *', 'p', 't', starts_at => '2030-01-01Z', horizon => '10 years'),
                recur.create('many', '* * * * * *', 'p', 't', starts_at => '2030-01-01Z', horizon_count => 1000000)",
    );
    assert_eq!(session.tick("2030-01-01Z"), (2_002, 0, 0, 0));
    // As time passes, one for one.
    assert_eq!(session.tick("2030-01-01 00:00:10Z"), (20, 0, 0, 0));
    assert_eq!(session.tick("2030-01-01 00:00:10Z"), (0, 0, 0, 0));
    assert_eq!(
        session.count("recur_internal.timers WHERE next_run_at = '2030-01-01 00:16:51Z'"),
        2
    );
    assert_eq!(
        session.count("recur.recurring_actions WHERE next_run_at = '2030-01-01 00:00:11Z'"),
        2
    );
}

#[test]
fn the_actions_of_an_owner_share_what_may_lie_ahead() {
    let cluster = Cluster::quiet();
    let mut session = impatient(&cluster);
    session.batch(
        "CREATE ROLE other; SELECT recur.grant_access('other', 'author'); SET recur.max_ahead_per_owner = 100;
         SELECT count(recur.create('a' || n, '@daily', 'p', 't', starts_at => '2030-01-01Z', horizon => '5 years'))
           FROM generate_series(1, 4) AS n;
         SELECT recur.create('plain', '@daily', 'p', 't', starts_at => '2030-01-01Z');
         SET ROLE other;
         SELECT recur.create('theirs', '@daily', 'p', 't', starts_at => '2030-01-01Z', horizon_count => 200);
         RESET ROLE",
    );
    session.tick("2030-01-01 12:00Z");
    let ahead: Vec<String> = session.texts(
        "SELECT concat_ws(' ', d.name, count(*)) FROM recur_internal.live_dispatches AS l
           JOIN recur_internal.definitions AS d ON d.id = l.action_id
          WHERE l.scheduled_at > '2030-01-01 12:00Z' GROUP BY d.name ORDER BY d.name",
        &[],
    );
    assert_eq!(ahead, ["a1 25", "a2 25", "a3 25", "a4 25", "theirs 100"]);

    // Where there is none to share, dispatches are written at their instant.
    session.batch("SET recur.max_ahead_per_owner = 3; DELETE FROM recur_internal.live_dispatches");
    set_due(&mut session, "'2031-01-01Z'", "");
    assert_eq!(session.tick("2031-01-01Z").0, 6 + 3);
}

#[test]
fn a_horizon_beyond_ten_years_is_refused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let refused = |interval: &str| {
        format!("invalid horizon \"{interval}\": must not be longer than 10 years")
    };
    session.assert_error(
        "SELECT recur.create('a', '@daily', 'p', 't', horizon => '100 years')",
        "22023",
        &refused("100 years"),
    );
    session.batch("SELECT recur.create('a', '@daily', 'p', 't', horizon => '10 years')");
    session.assert_error(
        "SELECT recur.update('a', '{\"horizon\": \"10 years 1 day\"}')",
        "22023",
        &refused("10 years 1 day"),
    );
    session.assert_error(
        "UPDATE recur.recurring_actions SET horizon = '11 years'",
        "22023",
        &refused("11 years"),
    );
}

#[test]
fn a_batch_fires_a_bounded_number_of_missed_occurrences() {
    let cluster = Cluster::quiet();
    let mut session = impatient(&cluster);
    let all = "misfire => 'all', catchup_limit => 2147483647, starts_at => '2030-01-01Z'";
    session.batch(&format!(
        "SELECT recur.create('a', '* * * * * *', 'p', 't', {all})"
    ));
    assert_eq!(session.tick("2030-01-01 00:50Z"), (3_001, 0, 0, 0));
    assert_eq!(batches(&mut session), [1_000, 1_000, 1_000, 1]);

    // Of many actions, each has its share of a batch.
    session.batch(&format!(
        "DELETE FROM recur_internal.live_dispatches; DELETE FROM recur.recurring_actions;
         SELECT count(recur.create('a' || n, '* * * * * *', 'p', 't', {all})) FROM generate_series(1, 40) AS n"
    ));
    assert_eq!(session.tick("2030-01-01 00:05Z"), (40 * 301, 0, 0, 0));
    assert_eq!(batches(&mut session), [40 * 250, 40 * 51]);
}

/// A month of seconds was missed: no machine makes up for it while the test runs.
#[test]
fn an_action_that_catches_up_delays_no_other() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.create('late', '* * * * * *', 'p', 't', misfire => 'all', catchup_limit => 2147483647,
                             starts_at => now() - interval '40 days')",
    );
    set_due(
        &mut session,
        "date_trunc('second', now()) - interval '30 days'",
        &of_action("late"),
    );
    let runs = |session: &mut Session, name: &str| -> i64 {
        session.value(
            "SELECT run_count FROM recur.recurring_actions WHERE name = $1",
            &[&name],
        )
    };
    eventually("it catches up", || runs(&mut session, "late") > 0);
    session.batch("SELECT recur.create('tick', '* * * * * *', 'p', 't')");
    eventually("the other one fires", || runs(&mut session, "tick") >= 3);
    assert_eq!(
        session.count(
            "recur.recurring_actions WHERE name = 'late' AND next_run_at < now() - interval '1 hour'"
        ),
        1,
        "it still has to catch up"
    );
}

#[test]
fn a_tick_leaves_the_rest_to_the_next() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.create('a', '* * * * * *', 'p', 't', starts_at => '2030-01-01Z', misfire => 'all',
                             catchup_limit => 200000)",
    );
    // Thirty hours.
    let first = session.tick("2030-01-02 06:00Z").0;
    assert_eq!(first, 100_000);
    assert_eq!(session.tick("2030-01-02 06:00Z").0, 30 * 3_600 + 1 - first);
}

/// A million rows of a page each would be as much as eight of a thousand times that size.
#[test]
fn large_payloads_count_for_more_in_every_limit() {
    let cluster = Cluster::quiet();
    let mut session = impatient(&cluster);
    // Payloads that can't be compressed: 500 kB count as 63.
    let large = "(SELECT jsonb_build_object('k', string_agg(md5(n::text), '')) FROM generate_series(1, 16000) AS n)";
    session.batch(&format!(
        "SELECT recur.create('far', '* * * * * *', 'far', 't', {large}, starts_at => '2030-01-01Z',
                             horizon => '1 year');
         SELECT recur.create('late', '* * * * * *', 'late', 't', {large}, starts_at => '2030-01-01Z', misfire => 'all',
                             catchup_limit => 1000000)"
    ));
    let dispatches = |session: &mut Session, provider: &str| {
        session.count(&format!("recur.dispatches WHERE provider = '{provider}'"))
    };
    session.tick("2030-01-01Z");
    assert_eq!(dispatches(&mut session, "far"), 1 + 1_000 / 63);
    session.tick("2030-01-01 00:01:00Z");
    assert_eq!(dispatches(&mut session, "late"), 61, "all are made up for");
    let largest = batches(&mut session).into_iter().max();
    assert!(largest <= Some(2 * 1_000 / 63 + 2), "{largest:?}");
}

#[test]
fn a_batch_cancels_only_a_part_of_a_long_queue() {
    let cluster = Cluster::quiet();
    let mut session = impatient(&cluster);
    session.batch(
        "SELECT recur.create('a', '* * * * * *', 'p', 't', starts_at => '2030-01-01Z', overlap => 'cancel_previous');
         SELECT count(recur.trigger('a', overlap => 'allow')) FROM generate_series(1, 12000)",
    );
    let cancelled =
        |session: &mut Session| session.count("recur.dispatches WHERE status = 'cancelled'");
    session.tick("2030-01-01Z");
    assert_eq!(cancelled(&mut session), 10_000);
    session.tick("2030-01-01 00:00:01Z");
    assert_eq!(cancelled(&mut session), 12_001);
    // Those of another action in the same batch are not left out.
    session.batch(
        "SELECT recur.create('b', '* * * * * *', 'b', 't', starts_at => '2030-01-01 00:00:02Z',
                             overlap => 'cancel_previous');
         SELECT recur.trigger('b'::text);
         SELECT count(recur.trigger('a', overlap => 'allow')) FROM generate_series(1, 12000)",
    );
    session.tick("2030-01-01 00:00:02Z");
    assert_eq!(
        session.count("recur.dispatches WHERE status = 'cancelled' AND provider = 'b'"),
        1
    );
}
