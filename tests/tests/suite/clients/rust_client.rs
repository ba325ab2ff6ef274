//! The Rust client, against a real server.

use pg_recur_tests::queue::{enqueue, idle_action, let_lease_run_out, queue_for, status};
use pg_recur_tests::{Cluster, eventually};
use recur_client::{Claim, Completion, Consumer, Error, Failure, Session, Status};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

fn url(cluster: &Cluster) -> String {
    format!(
        "host={} user=postgres dbname={}",
        cluster.sockets().display(),
        cluster.name_of("app")
    )
}

async fn session(cluster: &Cluster) -> Session {
    let (client, connection) = tokio_postgres::connect(&url(cluster), tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    Session::new(client)
}

#[test]
fn errors_of_the_server_have_types() {
    let cluster = Cluster::quiet();
    let mut admin = cluster.database("app");
    let action = idle_action(&mut admin, ", context => '{\"n\": 1}'");
    let id = queue_for(&mut admin, action);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let session = runtime.block_on(session(&cluster));

    let claim = Claim {
        limit: 5,
        consumer: Some("me".to_owned()),
        lease: Some(Duration::from_secs(9)),
        ..Claim::default()
    };
    let dispatches = runtime.block_on(session.claim(&claim)).unwrap();
    assert_eq!(dispatches.len(), 1);
    let dispatch = &dispatches[0];
    assert_eq!(
        (dispatch.id, dispatch.attempt, dispatch.action_id),
        (id, 1, Some(action))
    );
    assert_eq!(dispatch.context, Some(json!({"n": 1})));
    assert_eq!(
        (dispatch.provider.as_str(), dispatch.action_type.as_str()),
        ("test", "noop")
    );

    admin.execute(
        "SELECT recur.update($1::uuid, '{\"context\": {\"n\": 5}}')",
        &[&action],
    );
    let changed = runtime
        .block_on(session.complete(id, 1, None, Some(&json!({"n": 2}))))
        .unwrap_err();
    assert!(matches!(changed, Error::ContextChanged(_)), "{changed}");
    let over = runtime
        .block_on(session.fail(id, 2, "x", true))
        .unwrap_err();
    assert!(matches!(over, Error::AttemptOver(_)), "{over}");
    assert_eq!(
        over.to_string(),
        format!("attempt 2 of dispatch {id} is not running")
    );
    let renewed = runtime.block_on(session.extend(id, 1, None)).unwrap();
    assert_eq!((renewed.status, renewed.attempt), (Status::Running, 1));
    assert!(!renewed.cancel_requested);
    let_lease_run_out(&mut admin, id);
    let over = runtime.block_on(session.release(id, 1)).unwrap_err();
    assert!(matches!(over, Error::AttemptOver(_)), "{over}");
    let unknown = runtime
        .block_on(session.release(uuid::Uuid::nil(), 1))
        .unwrap_err();
    assert!(matches!(unknown, Error::UnknownDispatch(_)), "{unknown}");
    assert!(!unknown.is_disconnected());

    admin.batch(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    let gone = runtime.block_on(session.claim(&claim)).unwrap_err();
    assert!(gone.is_disconnected(), "{gone}");
    let misconfigured = runtime
        .block_on(Consumer::builder("host=/tmp dbname=app").run())
        .unwrap_err();
    assert!(matches!(misconfigured, Error::Configuration(_)));
}

#[test]
fn a_session_says_when_the_next_attempt_makes_sense() {
    let cluster = Cluster::quiet();
    let mut admin = cluster.database("app");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let session = runtime.block_on(session(&cluster));
    let pause = Duration::from_secs(600);
    for fails in [true, false] {
        let later = enqueue(&mut admin, "");
        runtime.block_on(session.claim(&Claim::default())).unwrap();
        let report = match fails {
            true => runtime.block_on(session.fail_for(later, 1, "busy", pause)),
            false => runtime.block_on(session.release_for(later, 1, pause)),
        };
        let report = report.unwrap();
        assert_eq!(report.status, Status::Pending);
        let wait = report.available_at.unwrap() - chrono::Utc::now();
        assert!((590..=600).contains(&wait.num_seconds()), "{wait}");
    }
}

#[test]
fn handlers_complete_fail_panic_and_leave_contexts() {
    let cluster = Cluster::shared();
    let mut admin = cluster.database("app");
    let action = idle_action(&mut admin, ", context => '{\"n\": 1}'");
    let counting = queue_for(&mut admin, action);
    let [empty, failing, hopeless, panicking, foreign] =
        ["empty", "failing", "hopeless", "panicking", "foreign"]
            .map(|kind| enqueue(&mut admin, &format!("action_type => '{kind}'")));
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let consumer = Consumer::builder(url(&cluster))
        .handler("noop", |job| async move {
            let n = job
                .dispatch
                .context
                .as_ref()
                .and_then(|context| context["n"].as_i64())
                .ok_or(Failure::new("no context"))?;
            Ok::<_, Failure>(Completion::result(json!("done")).with_context(json!({ "n": n + 1 })))
        })
        .handler("empty", |_| async { Ok::<(), Failure>(()) })
        .handler("failing", |_| async { "x".parse::<i32>().map(drop) })
        .handler("hopeless", |_| async {
            Err::<(), _>(Failure::permanent("no way"))
        })
        .handler("panicking", |_| async {
            if true {
                panic!("oh no")
            } else {
                Ok::<(), Failure>(())
            }
        })
        .concurrency(2)
        .name("tester");
    let thread = std::thread::spawn(move || {
        tokio::runtime::Runtime::new()
            .unwrap()
            .block_on(consumer.run_until(async move { stopped.notified().await }))
    });
    let reached = |id, wanted: &str, admin: &mut pg_recur_tests::Session| {
        eventually(wanted, || status(admin, id) == wanted);
    };
    reached(counting, "completed", &mut admin);
    reached(empty, "completed", &mut admin);
    reached(hopeless, "failed", &mut admin);
    for (id, error) in [
        (failing, "invalid digit found in string"),
        (panicking, "the handler panicked"),
    ] {
        eventually(error, || {
            let found: Option<String> = admin.value(
                "SELECT error FROM recur.dispatches
                  WHERE id = $1 AND status = 'pending'
                 UNION ALL SELECT NULL LIMIT 1",
                &[&id],
            );
            found.as_deref() == Some(error)
        });
    }
    stop.notify_one();
    thread.join().unwrap().unwrap();
    let context: Value = admin.value(
        "SELECT context FROM recur.recurring_actions WHERE id = $1",
        &[&action],
    );
    assert_eq!(context, json!({"n": 2}));
    assert_eq!(
        status(&mut admin, foreign),
        "pending",
        "only what has a handler is claimed"
    );
    let who: String = admin.value(
        "SELECT claimed_by FROM recur.dispatches WHERE id = $1",
        &[&empty],
    );
    assert_eq!(who, "tester");
}
