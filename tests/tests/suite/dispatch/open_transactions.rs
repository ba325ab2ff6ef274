//! A transaction that stays open holds up its own action at most, and no other.

use pg_recur_tests::actions::{EVERY_SECOND, create, dispatch_count};
use pg_recur_tests::timers::set_due;
use pg_recur_tests::{Cluster, Session, eventually};
use uuid::Uuid;

/// What the session does to its action `a` before it stays open.
const OPERATIONS: [&str; 13] = [
    "SELECT recur.trigger('a')",
    "SELECT recur.backfill('a', now() - interval '1 minute', now())",
    "SELECT recur.enqueue('p', 't', dedup_key => 'k')",
    "SELECT recur.claim(10)",
    "SELECT recur.complete(id, attempt) FROM recur.claim(10)",
    "SELECT recur.fail(id, attempt, 'no luck') FROM recur.claim(10)",
    "SELECT recur.fail(id, attempt, 'no luck', false) FROM recur.claim(10)",
    "SELECT recur.update('a', '{\"payload\": {\"n\": 2}}')",
    "SELECT recur.update('a', '{\"schedule\": \"*/2 * * * * *\"}')",
    "SELECT recur.pause('a')",
    "SELECT recur.create('c', '* * * * * *', 'p', 't', on_existing => 'upsert')",
    "SELECT recur.cancel(id) FROM recur_internal.live_dispatches WHERE action_id = recur.id_of('a') LIMIT 1",
    "SELECT recur.delete('a')",
];

fn fires_on(session: &mut Session, action: Uuid, while_open: &str) {
    let before = dispatch_count(session, action);
    eventually(while_open, || dispatch_count(session, action) >= before + 2);
}

#[test]
fn an_open_transaction_holds_up_no_other_action() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    let other = create(&mut session, "b", EVERY_SECOND);
    let mut holder = cluster.session("app");
    for (number, operation) in OPERATIONS.iter().enumerate() {
        session.batch(
            "SELECT recur.create('a', '* * * * * *', 'p', 't', overlap => 'cancel_previous', mute_interval => '1 hour',
                                 starts_at => now() - interval '1 hour', on_existing => 'upsert');
             UPDATE recur.recurring_actions SET enabled = true WHERE name = 'a' AND NOT enabled;
             SELECT recur.trigger('a')",
        );
        eventually(operation, || {
            // The dispatcher may be quicker, and cancel the dispatch that the operation has found.
            let is_done = holder.0.batch_execute(&format!("BEGIN; {operation}"));
            if is_done.is_err() {
                holder.batch("ROLLBACK");
            }
            is_done.is_ok()
        });
        fires_on(&mut session, other, operation);
        holder.batch(["COMMIT", "ROLLBACK"][number % 2]);
    }
}

/// The dispatcher has to write a dispatch whose id an open transaction is about to give up.
#[test]
fn a_dispatch_that_must_wait_for_a_transaction_is_left_for_later() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT count(recur.create('a' || n, '1h', 'p', 't', starts_at => now() - interval '30 minutes'))
           FROM generate_series(1, 20) AS n",
    );
    set_due(
        &mut session,
        "(SELECT starts_at FROM recur_internal.definitions WHERE name = 'a1')",
        "",
    );
    eventually("they are dispatched", || {
        session.count("recur.dispatches") == 20
    });
    let mut holder = cluster.session("app");
    holder.batch("BEGIN; SELECT recur.complete(id, attempt) FROM recur.claim(20)");
    let other = create(&mut session, "b", EVERY_SECOND);
    // As after a clock that was set back.
    set_due(
        &mut session,
        "t.last_run_at",
        "t.last_run_at < now() - interval '1 minute'",
    );
    fires_on(&mut session, other, "reports that are not committed");
    let due =
        "SELECT count(*) FROM recur_internal.timers WHERE due_at < now() - interval '1 minute'";
    assert_eq!(session.value::<i64>(due, &[]), 20, "they are not through");
    holder.batch("COMMIT");
    eventually("they go on", || session.value::<i64>(due, &[]) == 0);
    assert_eq!(
        session.count(
            "recur.recurring_actions WHERE name LIKE 'a%' AND (run_count <> 1 OR error_count <> 0)"
        ),
        0,
        "no occurrence was repeated, and none has failed"
    );
}
