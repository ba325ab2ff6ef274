//! A standby is promoted while schedules fire: it takes over by itself, and nothing is lost or doubled.

use pg_recur_tests::{Cluster, Shutdown, books, eventually, eventually_some};

#[test]
fn a_promoted_standby_goes_on_where_the_primary_was() {
    let mut primary = Cluster::preloaded("fsync = on\nrecur.dispatchers = 2");
    let mut session = primary.database("app");
    session.batch(
        "SELECT count(recur.create('a' || n, '* * * * * *', 'p', 't',
                                   misfire => (ARRAY['once', 'skip', 'all'])[1 + n % 3]))
           FROM generate_series(1, 300) AS n",
    );
    let standby = primary.standby();
    // From here on nothing is committed before the standby has it.
    primary.configure("synchronous_standby_names = '*'\nsynchronous_commit = remote_apply");
    primary.reload();
    eventually("the standby is synchronous", || {
        session.count("pg_stat_replication WHERE sync_state = 'sync'") == 1
            && session.value::<String>("SHOW synchronous_standby_names", &[]) == "*"
    });
    let mut replica = eventually_some("the standby has the database", || {
        standby.try_connect("app")
    });
    let runs = "SELECT sum(run_count)::bigint FROM recur.recurring_actions";
    let before: i64 = session.value(runs, &[]);
    eventually("they fire", || {
        session.value::<i64>(runs, &[]) > before + 600
    });
    // What a client of the primary has seen, and could have acted upon.
    let seen = session.texts("SELECT id::text FROM recur.dispatches", &[]);
    drop(session);
    primary.stop(Shutdown::Kill);

    standby.configure("synchronous_standby_names = ''");
    standby.reload();
    standby.promote();
    let before: i64 = replica.value(runs, &[]);
    eventually("the standby takes over by itself", || {
        replica.value::<i64>(runs, &[]) > before + 300
    });
    let missing: i64 = replica.value(
        "SELECT count(*) FROM unnest($1::text[]) AS s (id)
          WHERE NOT EXISTS (SELECT FROM recur.dispatches AS d WHERE d.id = s.id::uuid)",
        &[&seen],
    );
    assert_eq!(missing, 0);
    let (dispatched, _) = books::check(&mut replica);
    assert!(dispatched as i64 > before);
}
