//! All operations at the same time, in every order: no deadlock, and counts that agree with the dispatches.

use pg_recur_tests::dice::Dice;
use pg_recur_tests::timers::set_due;
use pg_recur_tests::{Cluster, Session, database_error, eventually};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use uuid::Uuid;

/// What a session may do to an action. `$id` is the action, `$dispatch` one of its dispatches, which is running.
const OPERATIONS: [(&str, &str); 13] = [
    ("tick", "SELECT recur.tick()"),
    (
        "update",
        "SELECT recur.update('$id', '{\"payload\": {\"n\": 2}}')",
    ),
    (
        "reschedule",
        "SELECT recur.update('$id', '{\"schedule\": \"2h\"}')",
    ),
    ("pause", "SELECT recur.pause('$id')"),
    (
        "resume",
        "UPDATE recur.recurring_actions SET enabled = true WHERE id = '$id'",
    ),
    ("delete", "SELECT recur.delete('$id')"),
    ("claim", "SELECT recur.claim(10)"),
    ("complete", "SELECT recur.complete('$dispatch'::uuid, 1)"),
    ("fail", "SELECT recur.fail('$dispatch'::uuid, 1, 'no luck')"),
    ("trigger", "SELECT recur.trigger('$id')"),
    (
        "backfill",
        "SELECT recur.backfill('$id', now() - interval '5 hours', now() - interval '1 hour')",
    ),
    (
        "enqueue",
        "SELECT recur.enqueue('p', 't', dedup_key => 'k')",
    ),
    (
        "expire",
        "SELECT recur_internal.expire_leases(clock_timestamp() + interval '1 day')",
    ),
];

/// An action that is due, with policies that look at and change other dispatches, one of which runs and one is pending.
fn prepare(session: &mut Session, name: &str) -> (Uuid, Uuid) {
    let action: Uuid = session.value(
        "SELECT recur.create($1, '1h', 'p', 't', starts_at => now() - interval '1000 hours 30 minutes',
                                     overlap => 'cancel_previous', mute_interval => '1 hour')",
        &[&name],
    );
    session.execute(
        "SELECT recur.trigger($1::uuid, overlap => 'allow')",
        &[&action],
    );
    let running: Uuid = session.value("SELECT id FROM recur.claim(1, lease => '1 hour')", &[]);
    set_due(session, "now() - interval '90 minutes'", "");
    session.batch("SELECT recur.enqueue('p', 't', dedup_key => 'k')");
    session.execute(
        "SELECT recur.trigger($1::uuid, overlap => 'allow')",
        &[&action],
    );
    (action, running)
}

/// What must be true of every action whatever happened. Names the first that is not.
fn find_inconsistency(session: &mut Session) -> Option<String> {
    let wrong = session.texts(
        "SELECT format('%s: run_count %s, dispatches %s', a.name, a.run_count, count(d.id))
           FROM recur.recurring_actions AS a
           LEFT JOIN recur.dispatches AS d ON d.action_id = a.id AND d.trigger IN ('schedule', 'backfill')
          GROUP BY a.name, a.run_count HAVING a.run_count <> count(d.id)
         UNION ALL
         SELECT format('%s: completed_count %s', a.name, a.completed_count)
           FROM recur.recurring_actions AS a
          WHERE a.completed_count <> (SELECT count(*) FROM recur.dispatches AS d
                                       WHERE d.action_id = a.id AND d.status = 'completed')
             OR a.failed_count <> (SELECT count(*) FROM recur.dispatches AS d
                                    WHERE d.action_id = a.id AND d.status = 'failed')
         UNION ALL
         SELECT format('%s is dispatched twice at %s', d.action_id, d.scheduled_at)
           FROM recur.dispatches AS d WHERE d.trigger IN ('schedule', 'backfill')
          GROUP BY d.action_id, d.scheduled_at HAVING count(*) > 1
         UNION ALL
         SELECT format('%s is in both tables', l.id) FROM recur_internal.live_dispatches AS l
           JOIN recur_internal.finished_dispatches AS f USING (id)
         UNION ALL
         SELECT format('dispatch %s of a deleted action is pending', l.id) FROM recur_internal.live_dispatches AS l
          WHERE l.status = 'pending' AND l.action_id IS NOT NULL AND l.attempt = 0
            AND NOT EXISTS (SELECT FROM recur_internal.definitions AS d WHERE d.id = l.action_id)
         UNION ALL
         SELECT format('%s failed: %s', a.name, a.last_error) FROM recur.recurring_actions AS a
          WHERE a.error_count > 0",
        &[],
    );
    wrong.first().cloned()
}

/// Not in the way: what is gone, finished, paused or taken by the other.
fn is_expected(code: &str) -> bool {
    ["P0002", "55000", "RC001"].contains(&code)
}

#[test]
fn any_two_operations_at_once_keep_the_state_consistent() {
    let cluster = Cluster::quiet();
    let mut setup = cluster.database("pairs");
    let mut first = cluster.session("pairs");
    let mut second = cluster.session("pairs");
    let mut observer = cluster.session("pairs");
    let pid = second.pid();
    for (one, one_sql) in OPERATIONS {
        for (other, other_sql) in OPERATIONS {
            let name = format!("{one}, {other}");
            let (action, dispatch) = prepare(&mut setup, &name);
            let fill = |sql: &str| {
                sql.replace("$id", &action.to_string())
                    .replace("$dispatch", &dispatch.to_string())
            };
            first.batch("BEGIN");
            first
                .0
                .batch_execute(&fill(one_sql))
                .unwrap_or_else(|error| panic!("{name}: {error:?}"));
            let done = AtomicBool::new(false);
            let outcome = std::thread::scope(|scope| {
                let waiting = scope.spawn(|| {
                    let outcome = second.0.batch_execute(&fill(other_sql));
                    done.store(true, Ordering::SeqCst);
                    outcome
                });
                // The other is through, or waits for the first.
                eventually("it is through or waits", || {
                    done.load(Ordering::SeqCst) || observer.is_blocked(pid)
                });
                first.batch("COMMIT");
                waiting.join().unwrap()
            });
            if let Err(error) = outcome {
                let (code, message, _) = database_error(&error);
                assert!(is_expected(&code), "{name}: {code} {message}");
            }
            assert_eq!(find_inconsistency(&mut observer), None, "{name}");
            // The next pair begins without it, and with nothing left of it.
            setup.batch(
                "DELETE FROM recur.recurring_actions; DELETE FROM recur_internal.live_dispatches",
            );
        }
    }
    let deadlocks: i64 = observer.value(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
        &[],
    );
    assert_eq!(deadlocks, 0);
}

struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn all_operations_at_once_keep_the_state_consistent() {
    let cluster = Cluster::preloaded(
        "recur.dispatchers = 2\nrecur.batch_size = 7\ndeadlock_timeout = '100ms'",
    );
    let mut session = cluster.database("app");
    let policies = ["allow", "skip", "queue_one", "cancel_previous"];
    for number in 0..24 {
        session.execute(
            &format!(
                "SELECT recur.create($1, '* * * * * *', 'p', 't', overlap => '{}', misfire => '{}',
                                     mute_interval => '1 s'{})",
                policies[number % 4],
                ["once", "skip", "all"][number % 3],
                if number % 8 == 0 {
                    ", horizon => '3 seconds'"
                } else {
                    ""
                }
            ),
            &[&format!("a{number}")],
        );
    }
    let mut refused = BTreeMap::<String, usize>::new();
    // However fast the machine is, the schedules must have come into it.
    let have_run = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..=6u64)
            .map(|seed| {
                let mut session = cluster.session("app");
                let have_run = &have_run;
                scope.spawn(move || {
                    let mut dice = Dice::new(seed);
                    let mut refused = Vec::new();
                    let mut acts = 0;
                    while acts < 150 || !have_run.load(Ordering::Relaxed) {
                        acts += 1;
                        if let Err(error) = act(&mut session, &mut dice) {
                            refused.push(database_error(&error));
                        }
                    }
                    refused
                })
            })
            .collect();
        // Even if they do not run, the others come to an end.
        let stop = SetWhenDropped(&have_run);
        eventually("the schedules have run", || runs(&mut session) >= 48);
        drop(stop);
        for worker in workers {
            for (code, message, _) in worker.join().unwrap() {
                assert!(is_expected(&code), "{code} {message}");
                *refused.entry(code).or_default() += 1;
            }
        }
    });
    session.batch("SELECT recur.pause_all()");
    assert_eq!(find_inconsistency(&mut session), None);
    let deadlocks: i64 = session.value(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = 'app'",
        &[],
    );
    assert_eq!(deadlocks, 0, "{refused:?}");
}

fn runs(session: &mut Session) -> i64 {
    session.value(
        "SELECT sum(run_count)::bigint FROM recur.recurring_actions",
        &[],
    )
}

fn act(session: &mut Session, dice: &mut Dice) -> Result<(), postgres::Error> {
    let any = format!(
        "(SELECT id FROM recur.recurring_actions ORDER BY name OFFSET {} LIMIT 1)",
        dice.roll(24)
    );
    let statement = match dice.roll(12) {
        0 => format!("SELECT recur.update({any}, '{{\"payload\": {{\"n\": {}}}}}')", dice.roll(100)),
        1 => format!("SELECT recur.pause({any})"),
        2 | 3 => "SELECT recur.resume_all()".to_owned(),
        4 => "SELECT recur.tick()".to_owned(),
        5 => "SELECT recur.complete(id, attempt) FROM recur.claim(10)".to_owned(),
        6 => "WITH c AS MATERIALIZED (SELECT array_agg(id) AS ids, array_agg(attempt) AS attempts FROM recur.claim(10))
              SELECT recur.complete_many(ids, attempts) FROM c WHERE ids IS NOT NULL".to_owned(),
        7 => "SELECT recur.fail(id, attempt, 'no luck', false) FROM recur.claim(3)".to_owned(),
        8 => format!("SELECT recur.trigger({any})"),
        9 => format!("SELECT count(*) FROM recur.backfill({any}, now() - interval '10 seconds', now(), 5)"),
        10 => "SELECT recur.enqueue('p', 't', dedup_key => 'k')".to_owned(),
        _ => format!("SELECT recur.update({any}, '{{\"schedule\": \"*/{} * * * * *\"}}')", 1 + dice.roll(3)),
    };
    session.0.batch_execute(&statement)
}

#[test]
fn dispatchers_and_ticks_at_the_same_time_dispatch_each_occurrence_once() {
    let cluster = Cluster::preloaded("recur.dispatchers = 3\nrecur.batch_size = 25");
    let mut session = cluster.database("app");
    session.batch(
        "SELECT count(recur.create('a' || n, '* * * * * *', 'p', 't', misfire => 'all', max_runs => 20,
                                   tenant => 't' || n % 7))
           FROM generate_series(1, 300) AS n",
    );
    eventually("three dispatchers", || {
        session.count("recur.workers WHERE kind = 'dispatcher' AND database = 'app'") == 3
    });
    // Every round makes all of them due at once, with occurrences that are long over.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut session = cluster.session("app");
            scope.spawn(move || {
                loop {
                    session.batch("SELECT recur.tick()");
                    let left = session.count("recur.recurring_actions WHERE enabled");
                    if left == 0 {
                        break;
                    }
                }
            });
        }
        let mut session = cluster.session("app");
        scope.spawn(move || {
            for _ in 0..10 {
                set_due(
                    &mut session,
                    "t.next_run_at - interval '30 seconds'",
                    "t.enabled",
                );
            }
        });
    });
    assert_eq!(session.count("recur.recurring_actions AS a
          WHERE a.ended_reason IS DISTINCT FROM 'exhausted' OR a.run_count <> 20
             OR (SELECT count(DISTINCT d.scheduled_at) FROM recur.dispatches AS d WHERE d.action_id = a.id) <> 20"), 0);
    assert_eq!(session.count("recur.dispatches"), 300 * 20);
    let deadlocks: i64 = session.value(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = 'app'",
        &[],
    );
    assert_eq!(deadlocks, 0);
    let errors: i64 = session.value("SELECT sum(error_count) FROM recur.recurring_actions", &[]);
    assert_eq!(errors, 0);
}
