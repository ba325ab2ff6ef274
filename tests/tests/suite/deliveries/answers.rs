//! Receivers that answer slowly, never, with anything but success, with megabytes or garbage, or hang up.

use super::Site;
use chrono::Utc;
use pg_recur_tests::receiver::{Reaction, Receiver};
use pg_recur_tests::{eventually, eventually_some};
use std::time::Duration;

/// One endpoint for each kind of answer, whose path is its name.
fn react(path: &str) -> Reaction {
    match path {
        "/redirect" => Reaction::status(302, "location: /elsewhere\r\n", ""),
        "/permanent" => Reaction::status(308, "location: /elsewhere\r\n", ""),
        "/bad" => Reaction::status(400, "", "no"),
        "/broken" => Reaction::status(500, "", "oops"),
        "/never" => Reaction::Silence,
        "/hangup" => Reaction::AnswerAndClose(Vec::new()),
        "/half" => Reaction::AnswerAndClose(b"HTTP/1.1 200 OK\r\ncontent-le".to_vec()),
        "/garbage" => Reaction::AnswerAndClose(b"\x00\xffSSH-2.0-garbage\r\n\r\n".to_vec()),
        "/endless" => Reaction::AnswerAndClose(endless_head()),
        "/drip" => {
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nfirst".to_vec();
            Reaction::AnswerSlowly(head, Duration::from_secs(20), b"late".to_vec())
        }
        "/short" => {
            Reaction::AnswerAndClose(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort".to_vec())
        }
        "/large" => Reaction::status(200, "", &"x".repeat(8 * 1024 * 1024)),
        "/binary" => Reaction::Answer(
            b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nx-odd: \xff\xfe\r\n\r\na\0\xff".to_vec(),
        ),
        "/zipped" => Reaction::status(200, "content-encoding: gzip\r\n", "not zipped at all"),
        other => panic!("{other} is not for receivers"),
    }
}

fn endless_head() -> Vec<u8> {
    let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
    for number in 0..200_000 {
        head.extend_from_slice(format!("x-{number}: y\r\n").as_bytes());
    }
    head
}

#[test]
fn each_answer_has_its_outcome() {
    let receiver = Receiver::start(|received| react(&received.path));
    let mut site = Site::start();
    let failing = [
        ("redirect", "the endpoint answered 302"),
        ("permanent", "the endpoint answered 308"),
        ("bad", "the endpoint answered 400"),
        ("broken", "the endpoint answered 500"),
        ("never", "no response within 2s"),
        ("hangup", "no response: "),
        ("half", "no response: "),
        ("garbage", "no response: "),
        ("endless", "no response: "),
    ];
    let succeeding = [
        ("drip", "{body}", "first"),
        ("short", "{body}", "short"),
        ("binary", "{body_base64}", "YQD/"),
        ("zipped", "{body}", "not zipped at all"),
        ("large", "{body_truncated}", "true"),
    ];
    let mut endpoints = String::new();
    let names = failing.iter().map(|(name, _)| *name);
    for name in names.chain(succeeding.iter().map(|(name, _, _)| *name)) {
        endpoints.push_str(&site.endpoint(name, &[name], &receiver.url(&format!("/{name}"))));
    }
    let _recurd = site.deliver("recurd", &site.config("", &endpoints), &[]);
    let failed = failing.map(|(name, expected)| (site.enqueue(name, "{}", 1), name, expected));
    let delivered = succeeding
        .map(|(name, path, expected)| (site.enqueue(name, "{}", 1), name, path, expected));
    for (id, name, expected) in failed {
        site.wait_for(id, "failed");
        let error = site.error(id);
        assert!(error.starts_with(expected), "{name}: {error}");
    }
    for (id, name, path, expected) in delivered {
        site.wait_for(id, "completed");
        assert_eq!(site.result(id, path).as_deref(), Some(expected), "{name}");
        let body = site.result(id, "{body}").unwrap_or_default();
        assert!(body.len() <= 2048, "{name}: {}", body.len());
    }
    // Redirects are not followed, and nothing was sent twice.
    let expected = failing.len() + succeeding.len();
    assert_eq!(
        (receiver.count(), receiver.ids().len()),
        (expected, expected)
    );
}

#[test]
fn who_is_gone_gets_nothing_more() {
    let receiver = Receiver::start(|_| Reaction::status(410, "", ""));
    let mut site = Site::start();
    let config = site.config("allow_http = true\nallow_networks = [\"127.0.0.0/8\"]", "");
    let _recurd = site.deliver("recurd", &config, &[]);
    site.session.batch("SET ROLE author");
    site.session.execute(
        "SELECT recur.create_endpoint('mine', $1, patterns => '{*}')",
        &[&receiver.url("/")],
    );
    site.session.batch("RESET ROLE");
    let id = site.enqueue("a", "{}", 5);
    receiver.wait_for(1);
    eventually("an event says so", || {
        site.session
            .count("recur.events WHERE kind = 'endpoint.disabled'")
            == 1
    });
    site.wait_for(id, "failed");
    let second = site.enqueue("a", "{}", 5);
    // Whatever is decided about it, it is not sent.
    eventually("it was looked at", || site.status(second) != "running");
    assert_eq!(receiver.count(), 1);
}

/// One owner's webhook says nothing about those of others.
#[test]
fn an_endpoint_of_the_operator_stays_when_a_webhook_finds_nobody() {
    let receiver = Receiver::start(|_| Reaction::status(410, "", ""));
    let mut site = Site::start();
    let _recurd = site.deliver_to(&receiver);
    for count in 1..=2 {
        let id = site.enqueue("a", "{}", 5);
        site.wait_for(id, "failed");
        assert_eq!(receiver.count(), count);
    }
}

/// Far from the first pause of a failure, which is seconds.
#[test]
fn who_asks_for_time_gets_it() {
    let in_half_an_hour = Utc::now() + Duration::from_secs(1800);
    let date = in_half_an_hour
        .format("%a, %d %b %Y %H:%M:%S GMT")
        .to_string();
    for (status, retry_after, minutes) in [
        (429, "1800", 25..=31),
        (503, "1800", 25..=31),
        (503, date.as_str(), 20..=31),
        (500, "1800", -1..=1),
        (429, "99999999999", 50..=24 * 60 + 1),
    ] {
        let headers = format!("retry-after: {retry_after}\r\n");
        let receiver = Receiver::start(move |_| Reaction::status(status, &headers, ""));
        let mut site = Site::start();
        let _recurd = site.deliver_to(&receiver);
        let id = site.enqueue("a", "{}", 5);
        receiver.wait_for(1);
        let waits: i32 = eventually_some("it is to be tried again", || {
            let rows = site.session.rows(
                "SELECT (EXTRACT(epoch FROM available_at - now()) / 60)::int FROM recur.dispatches
                  WHERE id = $1 AND status = 'pending' AND attempt > 0",
                &[&id],
            );
            rows.first().map(|row| row.get(0))
        });
        assert!(minutes.contains(&waits), "{status} {retry_after}: {waits}");
    }
}
