//! Two-phase commit: the server prepares no transaction that has sent a notification.

use pg_recur_tests::Cluster;
use pg_recur_tests::queue::{claimed, enqueue, idle_action, status};

#[test]
fn what_notifies_can_not_be_prepared_and_the_rest_can() {
    let cluster = Cluster::preloaded("recur.enabled = off\nmax_prepared_transactions = 2");
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, "");
    let running = enqueue(&mut session, "");
    assert_eq!(claimed(&mut session, "1"), [running]);
    let cancelled = enqueue(&mut session, "");
    session.execute("SELECT recur.cancel($1)", &[&cancelled]);
    enqueue(&mut session, "");

    for call in [
        "enqueue('p', 't')".to_owned(),
        "receive('p', 't', '')".to_owned(),
        format!("trigger('{action}'::uuid)"),
        format!("release('{running}', 1)"),
        format!("retry('{cancelled}')"),
        // Changes of actions are announced on the channel of events.
        "create('n', '@daily', 'p', 'a')".to_owned(),
        format!("update('{action}'::uuid, '{{\"priority\": 1}}')"),
        format!("delete('{action}'::uuid)"),
    ] {
        session.batch(&format!("BEGIN; SELECT recur.{call}"));
        let (code, message, _) = session.error("PREPARE TRANSACTION 'it'");
        assert_eq!(code, "0A000", "{call}");
        assert!(message.contains("NOTIFY"), "{call}: {message}");
        session.batch("ROLLBACK");
        assert_eq!(session.count("pg_prepared_xacts"), 0);
    }
    for call in [
        "enqueue('p', 't', run_at => now() + interval '1 day')".to_owned(),
        "claim(1)".to_owned(),
        format!("fail('{running}', 1, 'x')"),
        format!("complete('{running}', 1)"),
    ] {
        session.batch(&format!(
            "BEGIN; SELECT FROM recur.{call}; PREPARE TRANSACTION 'it'"
        ));
        session.batch("ROLLBACK PREPARED 'it'");
    }
    session.batch(&format!(
        "BEGIN; SELECT recur.complete('{running}', 1); PREPARE TRANSACTION 'it'"
    ));
    assert_eq!(status(&mut session, running), "running");
    session.batch("COMMIT PREPARED 'it'");
    assert_eq!(status(&mut session, running), "completed");
}
