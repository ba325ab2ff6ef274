//! Consumers that know when the next attempt makes sense: `retry_in` of a failure, `delay` of a release.

use pg_recur_tests::queue::{NONE, claim_this, claimed, enqueue, status};
use pg_recur_tests::{Cluster, Session};
use uuid::Uuid;

/// How many seconds from now on the dispatch is available.
fn available_in(session: &mut Session, id: Uuid) -> f64 {
    session.value(
        "SELECT extract(epoch FROM available_at - recur.clock())::float8 FROM recur.dispatches WHERE id = $1",
        &[&id],
    )
}

fn reported(session: &mut Session, call: &str) -> String {
    session.value(&format!("SELECT status FROM recur.{call}"), &[])
}

#[test]
fn a_failure_is_retried_when_its_consumer_says() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = enqueue(
        &mut session,
        "max_attempts => 4, retry_backoff => '{\"base\": \"1 day\", \"factor\": 1, \"cap\": \"1 day\"}'",
    );
    claim_this(&mut session, id);
    let call = format!("fail('{id}', 1, 'throttled', retry_in => '10 minutes')");
    assert_eq!(reported(&mut session, &call), "pending");
    let wait = available_in(&mut session, id);
    assert!((590.0..=600.0).contains(&wait), "{wait}: not jittered");
    assert_eq!(claimed(&mut session, "1"), NONE);

    // At once.
    session.execute("SELECT recur.cancel($1)", &[&id]);
    session.execute("SELECT recur.retry($1)", &[&id]);
    let attempt = claim_this(&mut session, id);
    let call = format!("fail('{id}', {attempt}, 'again', true, '0')");
    assert_eq!(reported(&mut session, &call), "pending");
    let attempt = claim_this(&mut session, id);

    // NULL is no pause of one's own.
    let call = format!("fail('{id}', {attempt}, 'x', retry_in => NULL)");
    assert_eq!(reported(&mut session, &call), "pending");
    assert!(available_in(&mut session, id) > 70_000.0);
}

#[test]
fn it_grants_no_further_attempt_and_stops_no_cancellation() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = enqueue(&mut session, "max_attempts => 1");
    claim_this(&mut session, id);
    let call = format!("fail('{id}', 1, 'x', retry_in => '1 second')");
    assert_eq!(reported(&mut session, &call), "failed");
    assert_eq!(status(&mut session, id), "failed");

    for report in ["fail(%, 1, 'x', retry_in => '1 h')", "release(%, 1, '1 h')"] {
        let id = enqueue(&mut session, "");
        claim_this(&mut session, id);
        session.execute("SELECT recur.cancel($1)", &[&id]);
        let call = report.replace('%', &format!("'{id}'"));
        assert_eq!(reported(&mut session, &call), "cancelled", "{report}");
    }
}

/// The consumer hears of it when it is available, not when it is given back.
#[test]
fn a_release_may_be_for_later_and_does_not_count() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    let id = enqueue(&mut session, "max_attempts => 1");
    claim_this(&mut session, id);
    let call = format!("release('{id}', 1, delay => '1 month')");
    assert_eq!(reported(&mut session, &call), "pending");
    let days = available_in(&mut session, id) / 86_400.0;
    assert!(
        (27.9..=31.1).contains(&days),
        "a month of the calendar: {days}"
    );
    assert_eq!(claimed(&mut session, "1"), NONE);

    session.execute("SELECT recur.cancel($1)", &[&id]);
    let id = enqueue(&mut session, "max_attempts => 1");
    claim_this(&mut session, id);
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    let call = format!("release('{id}', 1, '300 milliseconds')");
    assert_eq!(reported(&mut session, &call), "pending");
    assert_eq!(listener.notification()["id"], id.to_string());
    assert!(available_in(&mut session, id) <= 0.0);
    assert_eq!(claim_this(&mut session, id), 2);
    let call = format!("fail('{id}', 2, 'x')");
    assert_eq!(
        reported(&mut session, &call),
        "failed",
        "one attempt counts"
    );
}

#[test]
fn pauses_are_checked() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = enqueue(&mut session, "");
    claim_this(&mut session, id);
    for (argument, call) in [
        ("retry_in", "fail(%, 1, 'x', retry_in => $)"),
        ("delay", "release(%, 1, delay => $)"),
    ] {
        for (pause, problem) in [
            ("-00:00:01", "must be zero or longer"),
            ("1 mon -31 days", "must be zero or longer"),
            (
                "1 mon -29 days",
                "must be zero or longer, also in the shortest month and on the shortest day",
            ),
            (
                "100 years 00:00:01",
                "must not be longer than 100 years, nor have a part that is",
            ),
        ] {
            let call = call
                .replace('%', &format!("'{id}'"))
                .replace('$', &format!("'{pause}'"));
            let (code, message, hint) = session.error(&format!("SELECT recur.{call}"));
            assert_eq!(code, "22023", "{call}");
            assert_eq!(
                message,
                format!("invalid {argument} \"{pause}\": {problem}")
            );
            assert_eq!(
                hint,
                format!("Give {argument} as an interval such as '5 minutes'.")
            );
        }
    }
    session.assert_error(
        &format!("SELECT recur.fail('{id}', 1, 'x', false, '1 minute')"),
        "22023",
        "invalid retry_in \"00:01:00\": must be left out where retry is false",
    );
    assert_eq!(status(&mut session, id), "running", "nothing has changed");
    // The longest leads to no end of the calendar.
    let call = format!("release('{id}', 1, '100 years')");
    assert_eq!(reported(&mut session, &call), "pending");
}
