//! From a definition to a dispatch, as a client sees it.

use chrono::{DateTime, Timelike, Utc};
use pg_recur_tests::actions::{EVERY_SECOND, create, dispatch_count};
use pg_recur_tests::{Cluster, eventually};
use uuid::Uuid;

#[test]
fn a_due_action_becomes_a_dispatch_and_a_notification() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");

    let action = create(&mut session, "tick", EVERY_SECOND);
    let heard = listener.notification();
    let heard_at = Utc::now();

    assert_eq!(heard["action_id"], action.to_string());
    assert_eq!(heard["provider"], "test");
    assert_eq!(heard["action_type"], "noop");
    for left_out in ["namespace", "tenant", "payload"] {
        assert!(heard.get(left_out).is_none(), "{left_out} is not sent");
    }

    // The row is there when the notification is.
    let id: Uuid = heard["id"].as_str().unwrap().parse().unwrap();
    let row = &listener.rows("SELECT * FROM recur.dispatches WHERE id = $1", &[&id])[0];
    let scheduled_at: DateTime<Utc> = row.get("scheduled_at");
    let available_at: DateTime<Utc> = row.get("available_at");
    assert_eq!(scheduled_at.nanosecond(), 0, "due on the second");
    assert_eq!(available_at, scheduled_at, "never early");
    assert!(heard_at >= scheduled_at, "never announced early");
    assert_eq!(
        heard["scheduled_at"].as_str().unwrap(),
        scheduled_at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
    );
    assert_eq!(row.get::<_, String>("status"), "pending");
    assert_eq!(row.get::<_, String>("trigger"), "schedule");
    let metadata: serde_json::Value = row.get("metadata");
    assert_eq!(metadata["_recurring_dispatch"], "true");
    assert_eq!(metadata["_recurring_id"], action.to_string());

    // The action has moved on in the same transaction.
    let (last, next): (DateTime<Utc>, DateTime<Utc>) = {
        let row = &session.rows(
            "SELECT last_run_at, next_run_at FROM recur.recurring_actions WHERE id = $1",
            &[&action],
        )[0];
        (row.get(0), row.get(1))
    };
    assert!(last >= scheduled_at && next > last);
}

#[test]
fn a_paused_action_does_not_fire_until_it_is_resumed() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    let action = create(&mut session, "tick", EVERY_SECOND);
    eventually("it fires", || dispatch_count(&mut session, action) > 0);

    session.execute("SELECT recur.pause($1::uuid, 'maintenance')", &[&action]);
    let paused_at = dispatch_count(&mut session, action);
    let row = &session.rows(
        "SELECT enabled, next_run_at, paused_reason FROM recur.recurring_actions WHERE id = $1",
        &[&action],
    )[0];
    assert!(!row.get::<_, bool>(0));
    assert_eq!(row.get::<_, Option<DateTime<Utc>>>(1), None);
    assert_eq!(row.get::<_, String>(2), "maintenance");

    // Another action, created later, fires twice: by then the paused one would have fired too.
    let other = create(&mut session, "other", EVERY_SECOND);
    eventually("the other fires", || {
        dispatch_count(&mut session, other) >= 2
    });
    assert_eq!(dispatch_count(&mut session, action), paused_at);

    session.execute("SELECT recur.resume($1::uuid)", &[&action]);
    eventually("it fires again", || {
        dispatch_count(&mut session, action) > paused_at
    });
}

#[test]
fn what_is_rolled_back_never_fires() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    session.batch("BEGIN");
    create(&mut session, "never", EVERY_SECOND);
    session.batch("ROLLBACK");

    let kept = create(&mut session, "kept", EVERY_SECOND);
    eventually("the other fires", || {
        dispatch_count(&mut session, kept) >= 2
    });
    let others: i64 = session.value(
        "SELECT count(*) FROM recur.dispatches WHERE action_id <> $1",
        &[&kept],
    );
    assert_eq!(others, 0);
    assert_eq!(session.count("recur.recurring_actions"), 1);
}

#[test]
fn each_database_fires_its_own() {
    let cluster = Cluster::shared();
    let mut red = cluster.database("red");
    let mut blue = cluster.database("blue");
    let in_red = create(&mut red, "tick", EVERY_SECOND);
    let in_blue = create(&mut blue, "tick", EVERY_SECOND);
    eventually("red fires", || dispatch_count(&mut red, in_red) > 0);
    eventually("blue fires", || dispatch_count(&mut blue, in_blue) > 0);
    assert_eq!(dispatch_count(&mut red, in_blue), 0);
    assert_eq!(dispatch_count(&mut blue, in_red), 0);
}

#[test]
fn an_earlier_instant_wakes_a_sleeping_dispatcher() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    // It now sleeps for a year: the cluster's safety net is an hour wide.
    create(&mut session, "new year", "@yearly");
    let soon = create(&mut session, "tick", EVERY_SECOND);
    eventually("the new one fires", || {
        dispatch_count(&mut session, soon) > 0
    });
}

#[test]
fn runs_end_with_max_runs_and_with_ends_at() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    let counted: Uuid = session.value(
        "SELECT recur.create('counted', '* * * * * *', 'p', 'a', max_runs => 2)",
        &[],
    );
    let ending: Uuid = session.value(
        "SELECT recur.create('ending', '* * * * * *', 'p', 'a', ends_at => now() + interval '2 seconds')", &[]);
    for (action, reason) in [(counted, "exhausted"), (ending, "expired")] {
        eventually(reason, || {
            let ended: Option<String> = session.value(
                "SELECT ended_reason FROM recur.recurring_actions WHERE id = $1 AND NOT enabled
                               UNION ALL SELECT NULL LIMIT 1",
                &[&action],
            );
            ended.as_deref() == Some(reason)
        });
    }
    assert_eq!(dispatch_count(&mut session, counted), 2);
    assert_eq!(
        session.count(
            "recur.dispatches d JOIN recur.recurring_actions a ON a.id = d.action_id
              WHERE d.scheduled_at > a.ends_at"
        ),
        0
    );
}

#[test]
fn a_database_with_odd_settings_fires_all_the_same() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    session.batch(
        "CREATE SCHEMA evil;
         CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT '2001-01-01Z'::timestamptz $$;
         CREATE FUNCTION evil.never(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql AS 'SELECT false';
         CREATE OPERATOR evil.<= (FUNCTION = evil.never, LEFTARG = timestamptz, RIGHTARG = timestamptz);
         ALTER DATABASE app SET search_path = evil, pg_catalog;
         ALTER DATABASE app SET default_transaction_isolation = 'serializable';
         ALTER DATABASE app SET lock_timeout = '1ms';
         ALTER DATABASE app SET timezone = 'Pacific/Chatham';
         ALTER DATABASE app SET datestyle = 'German'",
    );
    // A new dispatcher reads them as it connects.
    session.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE backend_type = 'pg_recur dispatcher'",
        &[],
    );
    let action = create(&mut session, "tick", EVERY_SECOND);
    eventually("it fires", || dispatch_count(&mut session, action) >= 2);
    let sane: bool = session.value(
        "SELECT bool_and(available_at > '2020-01-01Z') FROM recur.dispatches",
        &[],
    );
    assert!(sane);
}
