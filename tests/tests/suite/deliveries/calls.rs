//! Deliveries that a call of `/v1/process` asks for.

use super::Site;
use pg_recur_tests::receiver::{Reaction, Receiver};
use pg_recur_tests::recurd::Recurd;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;
use uuid::Uuid;

const SECRET: &str = "a-long-secret-of-the-cron";

/// One that delivers while it is called, and to an endpoint that takes one webhook at a time.
fn start(site: &mut Site, receiver: &Receiver) -> Recurd {
    site.session.batch(
        "CREATE ROLE ticker; GRANT ticker TO recurd; SELECT recur.grant_access('ticker', 'ticker')",
    );
    let endpoint = site.endpoint("all", &["*"], &receiver.url("/"));
    let endpoint = endpoint.replace("concurrency = 64", "concurrency = 1");
    let path = site.config("", &endpoint);
    let secret = site.file("process.secret", SECRET);
    let text = fs::read_to_string(path).expect("a configuration");
    let text = text.replace("[\"deliverer\"]", "[\"deliverer\", \"ticker\"]");
    let section =
        format!("[process]\nrole = \"ticker\"\ndeliver_seconds = 60\nsecret_file = {secret:?}\n");
    Recurd::start(&site.cluster, "app", &format!("{text}\n{section}"))
}

/// The endpoint has room for the next webhook when the report of the one before is committed.
#[test]
fn a_call_delivers_until_nothing_is_left() {
    let receiver = Receiver::start(|_| Reaction::ok());
    let mut site = Site::start();
    let recurd = start(&mut site, &receiver);
    let ids: Vec<Uuid> = (0..5).map(|_| site.enqueue("a", "{}", 1)).collect();
    let bearer = format!("Bearer {SECRET}");
    let headers = [("authorization", bearer.as_str())];
    recurd.send("POST", "/v1/process", &headers, "").expect(200);
    for id in ids {
        assert_eq!(site.status(id), "completed");
    }
    assert_eq!(receiver.count(), 5);
}

#[test]
fn deliveries_go_on_when_the_caller_hangs_up() {
    let receiver = Receiver::start(|_| {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec();
        Reaction::AnswerSlowly(Vec::new(), Duration::from_millis(500), answer)
    });
    let mut site = Site::start();
    let recurd = start(&mut site, &receiver);
    let ids: Vec<Uuid> = (0..3).map(|_| site.enqueue("a", "{}", 1)).collect();
    let mut caller = TcpStream::connect(recurd.address).expect("a connection");
    let request = format!(
        "POST /v1/process HTTP/1.1\r\nhost: recurd\r\nauthorization: Bearer {SECRET}\r\ncontent-length: 0\r\n\r\n"
    );
    caller.write_all(request.as_bytes()).expect("a request");
    receiver.wait_for(1);
    drop(caller);
    for id in ids {
        site.wait_for(id, "completed");
    }
    assert_eq!(receiver.count(), 3);
}
