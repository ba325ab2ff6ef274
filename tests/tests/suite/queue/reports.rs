//! Reporting: complete, fail, extend, release, and who is not believed.

use pg_recur_tests::actions::{EVERY_SECOND, create};
use pg_recur_tests::queue::{claim_this, enqueue, let_lease_run_out};
use pg_recur_tests::{Cluster, Session};
use serde_json::Value;
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
    let id = enqueue(&mut session, "");
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
    session.batch("SELECT recur_internal.expire_leases(clock_timestamp(), 10)");
    all_refused(&mut session, id, 1, "It is pending again, after attempt 1.");
    assert_eq!(claim_this(&mut session, id), 2);
    all_refused(&mut session, id, 1, "It is running, at attempt 2.");
    session.execute("SELECT recur.complete($1, 2)", &[&id]);
    all_refused(&mut session, id, 2, "It is completed, at attempt 2.");
    let cancelled = enqueue(&mut session, "");
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
        for (id, code, expected) in [
            (
                "'00000000-0000-0000-0000-000000000000'::uuid",
                "P0002",
                "no dispatch has the id 00000000-0000-0000-0000-000000000000",
            ),
            (
                "NULL::uuid",
                "22023",
                "invalid id \"NULL\": must have a value",
            ),
        ] {
            let call = format!("SELECT recur.{}", report.replace('%', id));
            session.assert_error(&call, code, expected);
        }
    }
}

#[test]
fn extend_moves_the_lease_and_release_gives_the_attempt_back() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = enqueue(&mut session, "lease => '1 minute', max_attempts => 1");
    session.batch("SELECT recur.claim(1, lease => '1 hour')");
    let left = |session: &mut Session| -> f64 {
        session.value(
            "SELECT extract(epoch FROM lease_expires_at - clock_timestamp())::float8 FROM recur.dispatches
              WHERE id = $1",
            &[&id],
        )
    };
    session.execute("SELECT recur.extend($1, 1)", &[&id]);
    assert!(
        left(&mut session) > 3500.0,
        "a lease of default length shortens none"
    );
    session.execute("SELECT recur.extend($1, 1, '5 minutes')", &[&id]);
    assert!((200.0..=300.0).contains(&left(&mut session)));
    session.assert_error(
        &format!("SELECT recur.extend('{id}', 1, '0')"),
        "22023",
        "invalid lease \"00:00:00\": must be longer than nothing",
    );

    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    let released: String = session.value("SELECT status FROM recur.release($1, 1)", &[&id]);
    assert_eq!(released, "pending");
    let row = &session.rows(
        "SELECT releases, lease_expires_at IS NULL FROM recur.dispatches WHERE id = $1",
        &[&id],
    )[0];
    assert_eq!((row.get::<_, i32>(0), row.get::<_, bool>(1)), (1, true));
    assert_eq!(listener.notification()["id"], id.to_string());
    // The attempt did not count: with max_attempts of 1 there is another one, and then no more.
    assert_eq!(claim_this(&mut session, id), 2);
    let ended: String = session.value("SELECT status FROM recur.fail($1, 2, 'x')", &[&id]);
    assert_eq!(ended, "failed");
}

#[test]
fn a_claimed_dispatch_is_completed_once() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    create(&mut session, "tick", EVERY_SECOND);
    let (id, attempt): (Uuid, i32) = pg_recur_tests::eventually_some("a claim", || {
        let rows = session.rows(
            "SELECT id, attempt FROM recur.claim(1, consumer => 'me')",
            &[],
        );
        rows.first().map(|row| (row.get(0), row.get(1)))
    });
    assert_eq!(attempt, 1);
    let row = &session.rows(
        "SELECT status, claimed_by, lease_expires_at > started_at FROM recur.dispatches
          WHERE id = $1",
        &[&id],
    )[0];
    assert_eq!(row.get::<_, String>(0), "running");
    assert_eq!(row.get::<_, String>(1), "me");
    assert!(row.get::<_, bool>(2));

    let refused = session.error(&format!("SELECT recur.complete('{id}', 2)"));
    assert_eq!(refused.0, "RC001");
    assert_eq!(
        refused.1,
        format!("attempt 2 of dispatch {id} is not running")
    );

    session.execute("SELECT recur.complete($1, 1, '{\"ok\": true}')", &[&id]);
    let status: String = session.value("SELECT status FROM recur.dispatches WHERE id = $1", &[&id]);
    assert_eq!(status, "completed");
    let again = session.error(&format!("SELECT recur.complete('{id}', 1)"));
    assert_eq!(again.0, "RC001");
    let unknown = session.error(&format!("SELECT recur.complete('{}', 1)", Uuid::nil()));
    assert_eq!(unknown.0, "P0002");
}

/// Reasons are kept for each attempt, and the consumer's name with each dispatch.
#[test]
fn long_reasons_are_cut_and_long_names_refused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let claim = |session: &mut Session| -> Uuid {
        session.execute("SELECT recur.enqueue('p', 'a', max_attempts => 2)", &[]);
        session.value("SELECT id FROM recur.claim(1)", &[])
    };
    let long = "x".repeat(10_000);
    for report in [
        "SELECT recur.fail($1, 1, $2, retry => false)",
        "SELECT recur.fail_many(ARRAY[$1::uuid], ARRAY[1], ARRAY[$2], retry => false)",
        "SELECT recur.cancel($1, $2)",
    ] {
        let id = claim(&mut session);
        session.execute(report, &[&id, &long]);
        let stored: String =
            session.value("SELECT error FROM recur.dispatches WHERE id = $1", &[&id]);
        assert_eq!(stored, format!("{}…", &long[..8_000]), "{report}");
    }
    let claims = "SELECT id FROM recur.claim(1, consumer => repeat('x', 256))";
    let (state, message, _) = refused(&mut session, claims);
    assert_eq!(state, "22023");
    assert!(
        message.ends_with("\": must have at most 255 characters"),
        "{message}"
    );
}

/// Each error may be long, and a dispatch may be tried without end.
#[test]
fn the_errors_of_the_last_hundred_attempts_are_kept() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let backoff = r#"{"base": "1 microsecond", "factor": 1, "cap": "1 microsecond"}"#;
    let id = enqueue(
        &mut session,
        &format!("max_attempts => 1000, retry_backoff => '{backoff}'"),
    );
    let fail = "SELECT recur.fail(id, attempt, 'why ' || attempt, $1) FROM recur.claim(1)";
    for _ in 0..103 {
        session.execute(fail, &[&true]);
    }
    let errors = |session: &mut Session| -> (i32, String, String) {
        let row = &session.rows(
            "SELECT jsonb_array_length(errors), errors #>> '{0,reason}', errors #>> '{-1,reason}'
               FROM recur.dispatches WHERE id = $1",
            &[&id],
        )[0];
        (row.get(0), row.get(1), row.get(2))
    };
    assert_eq!(
        errors(&mut session),
        (100, "why 4".to_owned(), "why 103".to_owned())
    );
    session.execute(fail, &[&false]);
    assert_eq!(
        errors(&mut session),
        (100, "why 5".to_owned(), "why 104".to_owned())
    );
}
