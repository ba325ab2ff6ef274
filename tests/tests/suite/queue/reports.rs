//! Reporting: complete, fail, extend, release, and who is not believed.

use chrono::{DateTime, Utc};
use pg_recur_tests::queue::{claim_this, idle_action, let_lease_run_out, queue, queue_for, status};
use pg_recur_tests::{Cluster, Session};
use serde_json::{Value, json};
use uuid::Uuid;

/// The error of a report: SQLSTATE, message and detail.
fn refused(session: &mut Session, sql: &str) -> (String, String, String) {
    let Err(error) = session.0.query(sql, &[]) else {
        panic!("{sql}: no error");
    };
    let error = error.as_db_error().expect("an error of the server").clone();
    (
        error.code().code().to_owned(),
        error.message().to_owned(),
        error.detail().unwrap_or("").to_owned(),
    )
}

/// Every kind of report on this attempt is refused alike, and changes nothing.
#[track_caller]
fn all_refused(session: &mut Session, id: Uuid, attempt: i32, detail: &str) {
    let row = "SELECT to_jsonb(d) FROM recur.dispatches AS d WHERE id = $1";
    let before: Value = session.value(row, &[&id]);
    for report in [
        format!("SELECT recur.complete('{id}', {attempt})"),
        format!("SELECT recur.complete('{id}', {attempt}, '{{}}', '{{\"a\": 1}}')"),
        format!("SELECT recur.fail('{id}', {attempt}, 'no')"),
        format!("SELECT recur.extend('{id}', {attempt})"),
        format!("SELECT recur.release('{id}', {attempt})"),
    ] {
        let (state, message, why) = refused(session, &report);
        assert_eq!(state, "RC001", "{report}");
        assert_eq!(
            message,
            format!("attempt {attempt} of dispatch {id} is not running")
        );
        assert_eq!(why, detail, "{report}");
    }
    for batch in [
        format!(
            "SELECT accepted, status, problem FROM recur.complete_many(ARRAY['{id}'::uuid], ARRAY[{attempt}])"
        ),
        format!(
            "SELECT accepted, status, problem FROM recur.fail_many(ARRAY['{id}'::uuid], ARRAY[{attempt}], ARRAY['no'])"
        ),
    ] {
        let row = &session.rows(&batch, &[])[0];
        assert!(!row.get::<_, bool>(0));
        assert_eq!(row.get::<_, String>(1), before["status"].as_str().unwrap());
        assert_eq!(
            row.get::<_, String>(2),
            format!("attempt {attempt} of dispatch {id} is not running: {detail}")
        );
    }
    let after: Value = session.value(row, &[&id]);
    assert_eq!(before, after);
}

#[test]
fn an_attempt_that_is_over_can_not_report() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = queue(&mut session, "");
    all_refused(
        &mut session,
        id,
        1,
        "It is pending and has not been claimed yet.",
    );
    claim_this(&mut session, id);
    all_refused(&mut session, id, 2, "It is running, at attempt 1.");
    let_lease_run_out(&mut session, id);
    let end: String = session.value(
        "SELECT lease_expires_at::text FROM recur.dispatches WHERE id = $1",
        &[&id],
    );
    all_refused(&mut session, id, 1, &format!("Its lease expired at {end}."));
    session.batch("SELECT recur._expire_leases(clock_timestamp(), 10)");
    all_refused(&mut session, id, 1, "It is pending again, after attempt 1.");
    assert_eq!(claim_this(&mut session, id), 2);
    all_refused(&mut session, id, 1, "It is running, at attempt 2.");
    session.execute("SELECT recur.complete($1, 2)", &[&id]);
    all_refused(&mut session, id, 2, "It is completed, at attempt 2.");
    let cancelled = queue(&mut session, "");
    session.execute("SELECT recur.cancel($1)", &[&cancelled]);
    all_refused(&mut session, cancelled, 0, "It is cancelled, at attempt 0.");

    for report in [
        "complete(%, 1)",
        "fail(%, 1, 'x')",
        "extend(%, 1)",
        "release(%, 1)",
        "cancel(%)",
        "retry(%)",
    ] {
        for (id, shown) in [
            (
                "'00000000-0000-0000-0000-000000000000'::uuid",
                "00000000-0000-0000-0000-000000000000",
            ),
            ("NULL::uuid", "NULL"),
        ] {
            let (state, message, _) = refused(
                &mut session,
                &format!("SELECT recur.{}", report.replace('%', id)),
            );
            assert_eq!(
                (state.as_str(), message.as_str()),
                ("P0002", format!("no dispatch has the id {shown}").as_str())
            );
        }
    }
}

#[test]
fn exactly_max_attempts_with_pauses_that_grow() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(
        &mut session,
        ", retry_backoff => '{\"base\": \"10 seconds\", \"factor\": 3, \"cap\": \"1 minute\"}'",
    );
    let id = queue_for(&mut session, action);
    session.execute(
        "UPDATE recur.live_dispatches SET max_attempts = 5 WHERE id = $1",
        &[&id],
    );
    let mut pauses = Vec::new();
    for attempt in 1..=4 {
        assert_eq!(claim_this(&mut session, id), attempt);
        let row = &session.rows(
            "SELECT status, extract(epoch FROM available_at - clock_timestamp())::float8, lease_expires_at
               FROM recur.fail($1, $2, 'try ' || $2::int)",
            &[&id, &attempt],
        )[0];
        assert_eq!(row.get::<_, String>(0), "pending");
        pauses.push(row.get::<_, f64>(1));
        assert_eq!(row.get::<_, Option<DateTime<Utc>>>(2), None);
        // Not before its time.
        assert_eq!(session.rows("SELECT FROM recur.claim(1)", &[]).len(), 0);
        session.batch("UPDATE recur.live_dispatches SET available_at = now()");
    }
    for (pause, wanted) in pauses.iter().zip([10.0, 30.0, 60.0, 60.0]) {
        assert!((pause - wanted).abs() <= wanted * 0.1 + 0.5, "{pauses:?}");
    }
    assert_eq!(claim_this(&mut session, id), 5);
    let ended: String = session.value("SELECT status FROM recur.fail($1, 5, 'the last')", &[&id]);
    assert_eq!(ended, "failed");
    let row = &session.rows(
        "SELECT error, errors, finished_at IS NOT NULL FROM recur.dispatches WHERE id = $1",
        &[&id],
    )[0];
    assert_eq!(row.get::<_, String>(0), "the last");
    let errors: Value = row.get(1);
    let reasons: Vec<_> = errors
        .as_array()
        .unwrap()
        .iter()
        .map(|e| (e["attempt"].clone(), e["reason"].clone()))
        .collect();
    assert_eq!(
        reasons,
        [
            (1, "try 1"),
            (2, "try 2"),
            (3, "try 3"),
            (4, "try 4"),
            (5, "the last")
        ]
        .map(|(n, text)| (json!(n), json!(text)))
    );
    assert!(
        errors
            .as_array()
            .unwrap()
            .iter()
            .all(|e| e["at"].is_string())
    );
    assert!(row.get::<_, bool>(2));
    let name: Option<String> =
        session.value("SELECT name FROM recur.dead_letters WHERE id = $1", &[&id]);
    assert!(name.unwrap().starts_with("idle "));

    // The jitter is a function of dispatch and attempt, and differs from one to the next.
    let row = &session.rows(
        "SELECT count(DISTINCT d), min(d) >= '27 s', max(d) <= '33 s', count(*) FILTER (WHERE d = again)
           FROM (SELECT recur._retry_delay(NULL, 1, id, 1) AS d, recur._retry_delay(NULL, 1, id, 1) AS again
                   FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, 100)) AS i) AS x",
        &[],
    )[0];
    assert!(row.get::<_, i64>(0) > 90 && row.get::<_, bool>(1) && row.get::<_, bool>(2));
    assert_eq!(row.get::<_, i64>(3), 100);
    let long: bool = session.value("SELECT recur._retry_delay('{\"base\": \"1 s\", \"factor\": 100, \"cap\": \"1 hour\"}', 2000000000, gen_random_uuid(), 1) <= '66 min'", &[]);
    assert!(long, "no overflow");
}

#[test]
fn a_failure_may_say_that_another_try_is_of_no_use() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = queue(&mut session, "");
    claim_this(&mut session, id);
    let ended: String = session.value(
        "SELECT status FROM recur.fail($1, 1, NULL, retry => false)",
        &[&id],
    );
    assert_eq!(ended, "failed");
    let row = &session.rows(
        "SELECT error, attempt, max_attempts FROM recur.dispatches WHERE id = $1",
        &[&id],
    )[0];
    assert_eq!(row.get::<_, String>(0), "no reason given");

    // By hand it gets one more, at once, and those who listen are told.
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    session.batch(&format!("SELECT recur.retry('{id}')"));
    let heard = listener.notification();
    assert_eq!(heard["id"], id.to_string());
    assert_eq!(heard["provider"], "test");
    assert_eq!(heard["action_type"], "noop");
    assert!(
        heard["scheduled_at"]
            .as_str()
            .unwrap()
            .parse::<DateTime<Utc>>()
            .is_ok()
    );
    assert_eq!(claim_this(&mut session, id), 2);
    let (state, message, _) = session.error(&format!("SELECT recur.retry('{id}')"));
    assert_eq!(
        (state.as_str(), message.as_str()),
        (
            "55000",
            format!(
                "dispatch {id} is running: only what has failed or was cancelled can be retried"
            )
            .as_str()
        )
    );
    session.execute("SELECT recur.fail($1, 2, 'again', false)", &[&id]);
    session.batch(&format!("SELECT recur.retry('{id}')"));
    assert_eq!(claim_this(&mut session, id), 3);
    session.execute("SELECT recur.fail($1, 3, 'and again')", &[&id]);
    session.batch(&format!("SELECT recur.retry('{id}')"));
    let row = &session.rows("SELECT max_attempts, attempt, jsonb_array_length(errors) FROM recur.dispatches WHERE id = $1", &[&id])[0];
    assert_eq!(
        (
            row.get::<_, i32>(0),
            row.get::<_, i32>(1),
            row.get::<_, i32>(2)
        ),
        (4, 3, 3)
    );
}

#[test]
fn extend_and_release() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = queue(&mut session, "lease = '1 minute', max_attempts = 1");
    session.batch("SELECT recur.claim(1, lease => '1 hour')");
    let left = "extract(epoch FROM lease_expires_at - clock_timestamp())::float8";
    let unchanged: f64 = session.value(&format!("SELECT {left} FROM recur.extend($1, 1)"), &[&id]);
    assert!(
        unchanged > 3500.0,
        "what was not asked for shortens nothing"
    );
    let shorter: f64 = session.value(
        &format!("SELECT {left} FROM recur.extend($1, 1, '5 minutes')"),
        &[&id],
    );
    assert!((200.0..=300.0).contains(&shorter));
    let (state, message, _) = session.error(&format!("SELECT recur.extend('{id}', 1, '0')"));
    assert_eq!(
        (state.as_str(), message.as_str()),
        (
            "22023",
            "invalid lease \"00:00:00\": must be longer than nothing"
        )
    );

    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    let row = &session.rows(
        "SELECT status, releases, lease_expires_at IS NULL FROM recur.release($1, 1)",
        &[&id],
    )[0];
    assert_eq!(
        (
            row.get::<_, String>(0).as_str(),
            row.get::<_, i32>(1),
            row.get::<_, bool>(2)
        ),
        ("pending", 1, true)
    );
    assert_eq!(listener.notification()["id"], id.to_string());
    // The attempt did not count: with one attempt at the most there is another, and then no more.
    assert_eq!(claim_this(&mut session, id), 2);
    let ended: String = session.value("SELECT status FROM recur.fail($1, 2, 'x')", &[&id]);
    assert_eq!(ended, "failed");
}

#[test]
fn counters_history_and_the_contact() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for (keep, kept) in [
        ("all", "completed failed"),
        ("failures", "failed"),
        ("none", ""),
    ] {
        let action = idle_action(
            &mut session,
            &format!(", keep_history => '{keep}', max_attempts => 1"),
        );
        for outcome in ["complete", "fail"] {
            let id = queue_for(&mut session, action);
            session.batch("UPDATE recur.live_dispatches SET max_attempts = 1");
            claim_this(&mut session, id);
            session.batch(&if outcome == "fail" {
                format!("SELECT recur.fail('{id}', 1, 'x')")
            } else {
                format!("SELECT recur.complete('{id}', 1)")
            });
        }
        let row = &session.rows(
            "SELECT a.completed_count, a.failed_count,
                    (SELECT coalesce(string_agg(d.status, ' ' ORDER BY d.status), '') FROM recur.dispatches AS d WHERE d.action_id = a.id)
               FROM recur.recurring_actions AS a WHERE a.id = $1",
            &[&action],
        )[0];
        assert_eq!(
            (
                row.get::<_, i64>(0),
                row.get::<_, i64>(1),
                row.get::<_, String>(2).as_str()
            ),
            (1, 1, kept)
        );
    }

    // The third failure in a row is told, once; what is completed begins a new row.
    let action = idle_action(&mut session, ", contact => 'ops@example.com'");
    let told = "SELECT count(*) FROM recur.events WHERE kind = 'owner.notified' AND action_id = $1";
    for (outcome, expected) in [
        ("fail", 0),
        ("fail", 0),
        ("fail", 1),
        ("fail", 1),
        ("complete", 1),
        ("fail", 1),
        ("fail", 1),
        ("fail", 2),
    ] {
        let id = queue_for(&mut session, action);
        claim_this(&mut session, id);
        session.batch(&if outcome == "fail" {
            format!("SELECT recur.fail('{id}', 1, 'x', false)")
        } else {
            format!("SELECT recur.complete('{id}', 1)")
        });
        let events: i64 = session.value(told, &[&action]);
        assert_eq!(events, expected, "{outcome}");
    }
    let detail: Value = session.value(
        "SELECT detail FROM recur.events WHERE kind = 'owner.notified' LIMIT 1",
        &[],
    );
    assert_eq!(detail["problem"], "3 dispatches in a row have failed");

    // An action that is gone is no reason not to report.
    let id = queue_for(&mut session, action);
    claim_this(&mut session, id);
    session.execute("SELECT recur.delete($1)", &[&action]);
    let done: String = session.value(
        "SELECT status FROM recur.complete($1, 1, '{}', '{\"a\": 1}')",
        &[&id],
    );
    assert_eq!(
        (done.as_str(), status(&mut session, id).as_str()),
        ("completed", "completed")
    );
}
