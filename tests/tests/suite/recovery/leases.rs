//! Leases that have expired: the dispatcher gives the dispatches back, or up.

use pg_recur_tests::queue::{
    claim_this, claimed, enqueue, enqueue_many, idle_action, let_lease_run_out, queue_for,
    queue_many, status,
};
use pg_recur_tests::{Cluster, Session, eventually};
use serde_json::{Value, json};
use uuid::Uuid;

#[test]
fn expired_leases_come_back_or_end() {
    // The dispatcher looks as often as this: a claim does not wake it.
    let cluster = Cluster::preloaded("recur.check_interval = '200ms'");
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    let action = idle_action(&mut session, ", max_attempts => 2");
    let id = queue_for(&mut session, action);
    assert_eq!(listener.notification()["id"], id.to_string());
    for attempt in 1..=2 {
        eventually("it can be claimed", || {
            session
                .rows("SELECT FROM recur.claim(1, consumer => 'lost')", &[])
                .len()
                == 1
        });
        let_lease_run_out(&mut session, id);
        let wanted = if attempt == 1 { "pending" } else { "failed" };
        eventually("the worker takes it back", || {
            status(&mut session, id) == wanted
        });
        if attempt == 1 {
            assert_eq!(
                listener.notification(),
                json!({"provider": "test", "count": 1})
            );
        }
    }
    let row = &session.rows(
        "SELECT error, errors FROM recur.dispatches WHERE id = $1",
        &[&id],
    )[0];
    assert_eq!(row.get::<_, String>(0), "lease expired");
    let errors: Value = row.get(1);
    assert_eq!(
        (&errors[0]["attempt"], &errors[1]["attempt"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(errors[1]["reason"], "lease expired");
    let events: Vec<Value> = session.column(
        "SELECT detail FROM recur.events
          WHERE kind = 'dispatch.recovered' AND dispatch_id = $1
          ORDER BY id",
        &[&id],
    );
    assert_eq!(
        events[0],
        json!({"reason": "lease expired", "attempt": 1, "status": "pending", "claimed_by": "lost"})
    );
    assert_eq!(events[1]["status"], "failed");
    let failed: i64 = session.value(
        "SELECT failed_count FROM recur.recurring_actions WHERE id = $1",
        &[&action],
    );
    assert_eq!(failed, 1);
}

/// Lets all leases be over at the same moment, but for those of what is just being reported.
fn expire_together(session: &mut Session) {
    session.batch(
        "UPDATE recur_internal.live_dispatches SET lease_expires_at = clock_timestamp() - interval '1 second'
          WHERE id IN (SELECT id FROM recur_internal.live_dispatches WHERE status = 'running' FOR UPDATE SKIP LOCKED)",
    );
}

fn of_provider(session: &mut Session, provider: &str, wanted: &str) -> i64 {
    session.value(
        "SELECT count(*) FROM recur.dispatches WHERE provider = $1 AND status = $2",
        &[&provider, &wanted],
    )
}

/// A consumer may report within a transaction of its own that takes its time. Then its action can't be counted for.
#[test]
fn an_open_report_keeps_only_its_own_action_waiting() {
    let cluster = Cluster::preloaded("recur.check_interval = '200ms'");
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, ", max_attempts => 1");
    let reported = queue_for(&mut session, action);
    claim_this(&mut session, reported);
    let mut consumer = cluster.session("app");
    consumer.batch("BEGIN");
    consumer.execute("SELECT recur.complete($1, 1)", &[&reported]);

    // Of the same action: one that has no attempt left, one that has, and one that is to be cancelled.
    let [last, unwanted] = [(); 2].map(|()| queue_for(&mut session, action));
    session.execute(
        "SELECT recur.update($1::uuid, '{\"max_attempts\": 2}')",
        &[&action],
    );
    let again = queue_for(&mut session, action);
    // Of others, the last attempts of which fail, too; one of them has been deleted since.
    let of_others = "provider => 'other', max_attempts => 1";
    enqueue_many(&mut session, 20, of_others);
    let other = idle_action(&mut session, ", max_attempts => 1");
    let of_other = queue_for(&mut session, other);
    let deleted = idle_action(&mut session, ", max_attempts => 1");
    let of_deleted = queue_for(&mut session, deleted);
    session.batch("SELECT FROM recur.claim(100, lease => '1 hour')");
    session.execute("SELECT recur.cancel($1)", &[&unwanted]);
    session.execute("SELECT recur.delete($1::uuid)", &[&deleted]);
    expire_together(&mut session);

    eventually("the others are given up", || {
        of_provider(&mut session, "other", "failed") == 20
    });
    for (id, wanted) in [
        (again, "pending"),
        (unwanted, "cancelled"),
        (of_other, "failed"),
        (of_deleted, "failed"),
    ] {
        assert_eq!(status(&mut session, id), wanted);
    }
    assert_eq!(status(&mut session, last), "running");
    consumer.batch("COMMIT");
    eventually("what was left is given up, too", || {
        status(&mut session, last) == "failed"
    });
    let row = &session.rows(
        "SELECT completed_count, failed_count FROM recur.recurring_actions WHERE id = $1",
        &[&action],
    )[0];
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1, 1));
}

#[test]
fn a_lease_that_can_not_expire_keeps_no_other_from_expiring() {
    let cluster = Cluster::preloaded("recur.check_interval = '200ms'");
    let mut session = cluster.database("app");
    queue_many(&mut session, 20);
    let bad = enqueue(&mut session, "provider => 'bad'");
    session.batch("SELECT FROM recur.claim(100, lease => '1 hour')");
    session.execute(
        &format!(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                 $$BEGIN IF NEW.id = '{bad}' AND NEW.status = 'pending' THEN RAISE 'not this one'; END IF;
             RETURN NEW; END$$"
        ),
        &[],
    );
    session.batch(
        "CREATE TRIGGER refuse BEFORE UPDATE ON recur_internal.live_dispatches FOR EACH ROW
                   EXECUTE FUNCTION refuse()",
    );
    expire_together(&mut session);
    eventually("the others are given back", || {
        of_provider(&mut session, "test", "pending") == 20
    });
    assert_eq!(status(&mut session, bad), "running");
    let warning = format!("lease expiry of {bad} failed database=\"app\" sqlstate=P0001");
    eventually("it is warned of", || cluster.log().contains(&warning));
    // Nor does it keep those whose leases expire later.
    session.batch("SELECT FROM recur.claim(20, providers => '{test}', lease => '1 second')");
    eventually("these come back, too", || {
        of_provider(&mut session, "test", "pending") == 20
    });
    session.batch("DROP TRIGGER refuse ON recur_internal.live_dispatches");
    eventually("it is given back in the end", || {
        status(&mut session, bad) == "pending"
    });
}

#[test]
fn claims_go_on_while_leases_expire() {
    const EXPIRED: i32 = 10_000;
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let arguments = "max_attempts => CASE WHEN n % 10 = 0 THEN 1 ELSE 3 END";
    enqueue_many(&mut session, EXPIRED, arguments);
    session.batch("SELECT count(*) FROM recur.claim(10000)");
    expire_together(&mut session);
    queue_many(&mut session, 100);
    let mut claimant = cluster.session("app");
    claimant.batch("SET lock_timeout = '30s'");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");

    session.batch("BEGIN");
    let recovered: i64 = session.value(
        "SELECT recur_internal.expire_leases(clock_timestamp(), 10000)",
        &[],
    );
    assert_eq!(recovered, i64::from(EXPIRED));
    // It has not committed; a claim neither waits for it nor sees less.
    let (id, attempt): (Uuid, i32) = {
        let row = &claimant.rows("SELECT id, attempt FROM recur.claim(1)", &[])[0];
        (row.get(0), row.get(1))
    };
    assert_eq!(claimed(&mut claimant, "1000").len(), 99);
    claimant.execute("SELECT recur.complete($1, $2)", &[&id, &attempt]);
    session.batch("COMMIT");

    eventually("the recovered ones are available", || {
        claimed(&mut claimant, "10000").len() == 9000
    });
    let heard: i64 = listener
        .waiting_notifications()
        .iter()
        .map(|message| message["count"].as_i64().unwrap())
        .sum();
    assert_eq!(heard, 9000);
    assert_eq!(
        session.count("recur.dead_letters WHERE error = 'lease expired'"),
        1000
    );
    let events: i64 = session.value(
        "SELECT count(DISTINCT dispatch_id) FROM recur.events WHERE kind = 'dispatch.recovered'",
        &[],
    );
    assert_eq!(events, i64::from(EXPIRED));
}

/// Lease expiry waits for a moment in which nothing is due, but not for ever.
#[test]
fn leases_expire_while_something_is_due_at_every_moment() {
    let cluster = Cluster::preloaded("recur.check_interval = '200ms'");
    let mut session = cluster.database("app");
    session.batch(
        "SELECT count(recur.create('busy ' || n, '* * * * * *', 'busy', 't', jitter => '1 second', overlap => 'allow'))
           FROM generate_series(1, 200) AS n",
    );
    eventually("they fire", || session.count("recur.dispatches") > 1_000);
    let id = enqueue(&mut session, "provider => 'leased'");
    session.batch("SELECT FROM recur.claim(1, providers => '{leased}', lease => '10 ms')");
    eventually("it comes back", || status(&mut session, id) == "pending");
}
