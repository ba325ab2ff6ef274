//! What arrives: the payload byte for byte, signed, under an id that stays the same.

use super::{SECRET, Site, verify};
use nix::sys::signal::Signal;
use pg_recur_tests::eventually;
use pg_recur_tests::receiver::{Reaction, Receiver};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[test]
fn a_webhook_arrives_signed_and_its_response_is_kept() {
    let headers = "x-mine: yes\r\nset-cookie: a=b\r\n";
    let receiver = Receiver::start(move |_| Reaction::status(202, headers, "{\"got\": \"it\"}"));
    let mut site = Site::start();
    let recurd = site.deliver_to(&receiver);
    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let id: uuid::Uuid = site.session.value(
        "SELECT recur.enqueue_webhook(action_type => 'task:created', payload => '{\"n\": 1e400, \"ü\": [ ]}',
                                      metadata => jsonb_build_object('traceparent', $1::text))",
        &[&TRACE],
    );
    site.wait_for(id, "completed");
    let received = &receiver.received()[0];
    let payload: String = site.session.value(
        "SELECT payload::text FROM recur.dispatches WHERE id = $1",
        &[&id],
    );
    assert_eq!(String::from_utf8_lossy(&received.body), payload);
    assert_eq!(received.id(), id.to_string());
    assert_eq!(received.header("content-type"), Some("application/json"));
    assert_eq!(received.header("traceparent"), Some(TRACE));
    assert_eq!(received.header("recur-action-type"), Some("task:created"));
    assert!(
        received
            .header("user-agent")
            .is_some_and(|agent| agent.starts_with("recurd/"))
    );
    verify(SECRET, received);
    assert_eq!(site.result(id, "{status}").as_deref(), Some("202"));
    assert_eq!(site.result(id, "{headers,x-mine}").as_deref(), Some("yes"));
    assert_eq!(site.result(id, "{headers,set-cookie}"), None);
    assert_eq!(
        site.result(id, "{body}").as_deref(),
        Some("{\"got\": \"it\"}")
    );
    assert!(!recurd.log().contains("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
}

#[test]
fn an_attempt_has_the_same_id_and_a_signature_of_its_own() {
    let count = AtomicUsize::new(0);
    let receiver = Receiver::start(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        // The second attempt comes in another second, with another timestamp.
        0 => Reaction::status(503, "retry-after: 2\r\n", "later"),
        _ => Reaction::ok(),
    });
    let mut site = Site::start();
    let _recurd = site.deliver_to(&receiver);
    let id = site.enqueue("task:created", "{}", 5);
    site.wait_for(id, "completed");
    let received = receiver.received();
    assert_eq!(received.len(), 2);
    assert_eq!(receiver.ids().len(), 1);
    let times: Vec<i64> = received
        .iter()
        .map(|received| {
            received
                .header("webhook-timestamp")
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    assert!(times[1] >= times[0] + 2, "{times:?}");
    for received in &received {
        verify(SECRET, received);
    }
}

#[test]
fn instances_side_by_side_deliver_each_webhook_once() {
    let receiver = Receiver::start(|_| Reaction::ok());
    let mut site = Site::start();
    let config = site.config("", &site.endpoint("all", &["*"], &receiver.url("/")));
    let _recurds: Vec<_> = (0..3)
        .map(|number| site.deliver(&format!("recurd{number}"), &config, &[]))
        .collect();
    site.session.batch(
        "SET ROLE author;
         SELECT recur.enqueue_webhook(action_type => 'a', payload => '{}') FROM generate_series(1, 300);
         RESET ROLE",
    );
    eventually("all are delivered", || {
        site.session
            .count("recur.dispatches WHERE status = 'completed'")
            == 300
    });
    assert_eq!((receiver.count(), receiver.ids().len()), (300, 300));
}

#[test]
fn a_stop_finishes_what_is_under_way_and_gives_back_the_rest() {
    let receiver = Receiver::start(|received| {
        if received.path == "/slow" {
            let rest = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec();
            Reaction::AnswerSlowly(Vec::new(), Duration::from_secs(1), rest)
        } else {
            Reaction::Silence
        }
    });
    let mut site = Site::start();
    let mut endpoints = site.endpoint("slow", &["slow"], &receiver.url("/slow"));
    endpoints.push_str(&site.endpoint("never", &["never"], &receiver.url("/never")));
    let endpoints = endpoints.replace("timeout_seconds = 2", "timeout_seconds = 600");
    let config = site.config("grace_seconds = 3", &endpoints);
    let mut recurd = site.deliver("recurd", &config, &[]);
    let slow = site.enqueue("slow", "{}", 3);
    let never = site.enqueue("never", "{}", 3);
    receiver.wait_for(2);
    recurd.signal(Signal::SIGTERM);
    assert!(recurd.wait().success(), "{}", recurd.log());
    assert_eq!(site.status(slow), "completed");
    assert_eq!(site.status(never), "pending");
    let attempts: i32 = site.session.value(
        "SELECT attempt - releases FROM recur.dispatches WHERE id = $1",
        &[&never],
    );
    assert_eq!(attempts, 0, "what was given back does not count");
}

/// The lease of three seconds is renewed while the receiver thinks.
#[test]
fn a_slow_delivery_keeps_its_lease() {
    let receiver = Receiver::start(|_| {
        let rest = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec();
        Reaction::AnswerSlowly(Vec::new(), Duration::from_secs(8), rest)
    });
    let mut site = Site::start();
    let endpoint = site.endpoint("all", &["*"], &receiver.url("/"));
    let endpoint = endpoint.replace("timeout_seconds = 2", "timeout_seconds = 30");
    let _recurd = site.deliver("recurd", &site.config("", &endpoint), &[]);
    let id = site.enqueue("slow", "{}", 3);
    site.wait_for(id, "completed");
    assert_eq!(receiver.count(), 1);
}
