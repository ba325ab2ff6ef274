//! What operators see: recur.stats, recur.workers, recur.doctor.

use pg_recur_tests::faults::{fill_disk, free_disk};
use pg_recur_tests::{Cluster, Session, eventually};

fn stats(session: &mut Session) -> Vec<i64> {
    let rows = session.rows(
        "SELECT batches, dispatched, skipped, ended, errors, leases_expired FROM recur.stats
          WHERE database = current_database()",
        &[],
    );
    rows.first()
        .map(|row| (0..6).map(|column| row.get(column)).collect())
        .unwrap_or_default()
}

#[test]
fn every_tick_is_counted() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("counted");
    assert!(stats(&mut session).is_empty(), "nothing has happened");
    session.batch(
        "SELECT recur.create('a', '@hourly', 'p', 't', starts_at => '2030-01-01Z');
         SELECT recur.create('b', '@hourly', 'p', 't', starts_at => '2030-01-01Z', max_runs => 1);
         SELECT recur.create('c', '@hourly', 'p', 'cursed', starts_at => '2030-01-01Z');
         ALTER TABLE recur_internal.live_dispatches ADD CONSTRAINT curse CHECK (action_type <> 'cursed')",
    );
    session.tick("2029-12-31Z");
    assert!(stats(&mut session).is_empty(), "there was nothing to do");
    session.tick("2030-01-01 02:00Z");
    assert_eq!(stats(&mut session), [1, 2, 4, 1, 1, 0]);
    session.tick("2030-01-01 03:00Z");
    assert_eq!(stats(&mut session), [2, 3, 4, 1, 2, 0]);
    let row = &session.rows(
        "SELECT since <= last_tick, last_tick <= clock_timestamp(), lateness_p50_ms <= lateness_p99_ms,
                lateness_p99_ms <= lateness_max_ms FROM recur.stats",
        &[],
    )[0];
    assert!((0..4).all(|column| row.get::<_, bool>(column)));
    // Another database has numbers of its own.
    let mut other = cluster.database("uncounted");
    assert!(stats(&mut other).is_empty());
}

#[test]
fn lateness_is_from_due_to_dispatched() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT count(recur.create('a' || n, '@yearly', 'p', 't')) FROM generate_series(1, 100) AS n;
         UPDATE recur_internal.timers SET next_run_at = now() - interval '2 seconds',
                                          due_at = now() - interval '2 seconds';
         UPDATE recur_internal.timers SET next_run_at = now() - interval '10 minutes',
                                          due_at = now() - interval '10 minutes'
          WHERE action_id = (SELECT action_id FROM recur_internal.timers LIMIT 1);
         SELECT recur.tick()",
    );
    let row = &session.rows(
        "SELECT lateness_p50_ms, lateness_p99_ms, lateness_max_ms FROM recur.stats",
        &[],
    )[0];
    let (p50, p99, max): (f64, f64, f64) = (row.get(0), row.get(1), row.get(2));
    // Quantiles are right to a fifth, and the machine may have been busy.
    assert!((2_000.0..600_000.0).contains(&p50), "{p50}");
    assert!(p50 <= p99 && p99 < 600_000.0, "{p99}");
    assert!(max >= 600_000.0, "{max}");
}

/// It is late, if at all, when it is announced.
#[test]
fn what_is_written_ahead_of_its_time_is_not_late_yet() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("ahead");
    session.batch(
        "SELECT recur.create('ahead', '@yearly', 'p', 't', horizon_count => 2);
         SELECT recur.create('delayed', '@yearly', 'p', 't', jitter => '300 days');
         UPDATE recur_internal.timers SET next_run_at = now(), due_at = now() WHERE action_id = recur.id_of('delayed');
         SELECT recur.tick()",
    );
    let row = &session.rows(
        "SELECT dispatched, lateness_p50_ms, lateness_p99_ms, lateness_max_ms FROM recur.stats",
        &[],
    )[0];
    assert_eq!(row.get::<_, i64>(0), 3);
    let lateness: Vec<Option<f64>> = (1..4).map(|column| row.get(column)).collect();
    assert_eq!(lateness, [None; 3]);
}

#[test]
fn workers_show_what_they_do_and_wait_for() {
    let cluster = Cluster::preloaded("recur.dispatchers = 2");
    let mut session = cluster.database("app");
    session.batch("SELECT recur.create('a', '@yearly', 'p', 't')");
    let view = "SELECT kind || ' ' || state || ' ' || coalesce(waits_for, '-') FROM recur.workers
                 WHERE database = 'app' AND pid IN (SELECT pid FROM pg_stat_activity) ORDER BY 1";
    let asleep = "sleeping the next instant, or a change";
    eventually("all sleep", || {
        session.texts(view, &[])
            == [
                format!("dispatcher {asleep}"),
                format!("dispatcher {asleep}"),
            ]
    });
    let sane: bool = session.value(
        "SELECT bool_and(wakes_at > clock_timestamp() AND state_since <= clock_timestamp()) FROM recur.workers
          WHERE database = 'app'",
        &[],
    );
    assert!(sane);

    // One that waits for a lock says so.
    let mut blocker = cluster.session("app");
    blocker.batch("BEGIN; LOCK TABLE recur_internal.timers IN ACCESS EXCLUSIVE MODE");
    // After this it looks at the timers.
    session.batch("SELECT pg_reload_conf()");
    let mut observer = cluster.session("app");
    eventually("it waits for the lock", || {
        let rows = observer.texts(
            "SELECT waits_for FROM recur.workers WHERE state = 'working' AND waits_for IS NOT NULL",
            &[],
        );
        rows.iter().any(|waits| waits == "Lock: relation")
    });
    blocker.batch("ROLLBACK");
    eventually("all sleep again", || {
        session
            .texts(view, &[])
            .iter()
            .all(|worker| worker.ends_with(asleep))
    });
}

#[test]
fn a_worker_that_fails_backs_off_and_says_so() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    fill_disk(&mut session, "INSERT", "recur_internal.live_dispatches");
    session.batch("SELECT recur.create('a', '* * * * * *', 'p', 't')");
    eventually("it backs off", || {
        let waits = "SELECT waits_for FROM recur.workers
                      WHERE database = current_database() AND state = 'backing off' AND kind = 'dispatcher'";
        session.texts(waits, &[]) == ["the next try, after an error"]
    });
    let failed: i64 = session.value("SELECT failed_batches FROM recur.stats", &[]);
    assert!(failed > 0);
    free_disk(&mut session);
    eventually("it goes on by itself", || {
        session.value::<i64>("SELECT run_count FROM recur.recurring_actions", &[]) > 0
    });
    let errors: i32 = session.value("SELECT error_count FROM recur.recurring_actions", &[]);
    assert_eq!(errors, 0, "a full disk is no error of the action");
}
