//! Idempotency-Key: a request happens once, however often it is sent.

use super::Site;
use pg_recur_tests::recurd::{Recurd, Reply};
use std::thread;

const BODY: &str = r#"{"provider": "mailer", "action_type": "welcome"}"#;

fn enqueue(recurd: &Recurd, role: &str, key: &str, body: &str) -> Reply {
    recurd.call_with(
        role,
        "POST",
        "/v1/dispatches",
        &[("idempotency-key", key)],
        body,
    )
}

#[test]
fn a_repeated_request_has_the_first_answer() {
    let mut site = Site::start();
    let first = enqueue(&site.recurd, "author", "k1", BODY).expect(201);
    let second = enqueue(&site.recurd, "author", "k1", BODY).expect(201);
    assert_eq!(first.json(), second.json());
    assert_eq!(first.header("location"), second.header("location"));
    assert_eq!(
        (
            first.header("idempotency-replayed"),
            second.header("idempotency-replayed")
        ),
        (None, Some("true"))
    );
    assert_eq!(site.session.count("recur.dispatches"), 1);
    // The same key for another request is a mistake; of another role, it is another key.
    let other = enqueue(
        &site.recurd,
        "author",
        "k1",
        r#"{"provider": "mailer", "action_type": "other"}"#,
    )
    .expect(422);
    assert_eq!(other.json()["code"], "RC012");
    let theirs = enqueue(&site.recurd, "other", "k1", BODY).expect(201);
    assert_ne!(theirs.json()["id"], first.json()["id"]);
    assert_eq!(site.session.count("recur.dispatches"), 2);
    // What has not happened leaves its key free.
    let key = [("idempotency-key", "k2")];
    let bad = r#"{"name": "a", "schedule": "never", "provider": "p", "action_type": "t"}"#;
    site.recurd
        .call_with("author", "POST", "/v1/recurring", &key, bad)
        .expect(422);
    let good = bad.replace("never", "@daily");
    let created = site
        .recurd
        .call_with("author", "POST", "/v1/recurring", &key, &good)
        .expect(201);
    let again = site
        .recurd
        .call_with("author", "POST", "/v1/recurring", &key, &good)
        .expect(201);
    assert_eq!(created.json(), again.json());
    assert_eq!(created.header("location"), again.header("location"));
}

#[test]
fn requests_at_the_same_time_happen_once() {
    let mut site = Site::start();
    let recurd = &site.recurd;
    let replies: Vec<_> = thread::scope(|scope| {
        let senders: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| enqueue(recurd, "author", "same", BODY).expect(201).json()))
            .collect();
        senders
            .into_iter()
            .map(|sender| sender.join().expect("a reply"))
            .collect()
    });
    assert!(
        replies.iter().all(|reply| reply["id"] == replies[0]["id"]),
        "{replies:?}"
    );
    assert_eq!(site.session.count("recur.dispatches"), 1);
}

#[test]
fn a_key_where_nothing_is_created_is_refused() {
    let site = Site::start();
    let key = [("idempotency-key", "k")];
    site.recurd
        .call_with("consumer", "POST", "/v1/claim", &key, "{}")
        .expect(400);
    let long = "k".repeat(256);
    enqueue(&site.recurd, "author", &long, BODY).expect(400);
    enqueue(&site.recurd, "author", "", BODY).expect(400);
}
