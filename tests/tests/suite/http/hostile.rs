//! Whatever a client sends: no internal error, and nobody else notices.

use super::Site;
use pg_recur_tests::recurd::token;
use std::io::{Read, Write};
use std::net::TcpStream;

const TEXTS: [&str; 12] = [
    "",
    " ",
    "\\u0000",
    "'); DROP TABLE x; --",
    "$1",
    "{{recurring_id}}",
    "\\ud83d\\ude80",
    "%s%n",
    "infinity",
    "-infinity",
    "99999999999999999999",
    "../../etc/passwd",
];

/// JSON values, each of which some field does not take.
const VALUES: [&str; 11] = [
    "-1",
    "0",
    "2147483648",
    "1e400",
    "1.5",
    "1e3",
    "null",
    "true",
    "[]",
    "{}",
    "\"\\ud800\"",
];

fn quoted() -> Vec<String> {
    TEXTS.iter().map(|text| format!("\"{text}\"")).collect()
}

#[test]
fn hostile_values_are_refused_or_stored_and_nothing_else() {
    let site = Site::start();
    let id = site.create("author", "victim");
    let texts = quoted();
    let values = || {
        VALUES
            .iter()
            .copied()
            .chain(texts.iter().map(String::as_str))
    };
    let fields = [
        "name",
        "schedule",
        "timezone",
        "starts_at",
        "max_runs",
        "payload",
        "labels",
        "metadata",
        "jitter",
        "horizon",
        "priority",
        "retry_backoff",
        "overlap",
        "context",
        "enabled",
        "notify_channel",
        "record_events",
        "lease",
    ];
    for field in fields {
        for value in values() {
            let body = format!("{{\"{field}\": {value}}}");
            let reply = site
                .recurd
                .call("author", "PATCH", &format!("/v1/recurring/{id}"), &body);
            assert!(reply.status < 500, "PATCH {body}: {reply:?}");
            let body = format!(
                r#"{{"name": "n", "schedule": "@daily", "provider": "p", "action_type": "t", "on_existing": "upsert",
                    "{field}": {value}}}"#
            );
            let reply = site.recurd.call("author", "POST", "/v1/recurring", &body);
            assert!(reply.status < 500, "POST {body}: {reply:?}");
        }
    }
}

#[test]
fn hostile_arguments_are_refused_or_stored_and_nothing_else() {
    let site = Site::start();
    let texts = quoted();
    for value in VALUES
        .iter()
        .copied()
        .chain(texts.iter().map(String::as_str))
    {
        for (path, field) in [
            ("/v1/preview", "schedule"),
            ("/v1/preview", "count"),
            ("/v1/dispatches", "payload"),
            ("/v1/dispatches", "run_at"),
            ("/v1/dispatches", "dedup_window"),
        ] {
            let body = format!(r#"{{"provider": "p", "action_type": "t", "{field}": {value}}}"#);
            let reply = site.recurd.call("author", "POST", path, &body);
            assert!(reply.status < 500, "{path} {body}: {reply:?}");
            let body = format!(r#"{{"schedule": "@daily", "{field}": {value}}}"#);
            let reply = site.recurd.call("author", "POST", path, &body);
            assert!(reply.status < 500, "{path} {body}: {reply:?}");
        }
        let body = format!(r#"{{"limit": {value}}}"#);
        assert!(
            site.recurd
                .call("consumer", "POST", "/v1/claim", &body)
                .status
                < 500,
            "{body}"
        );
        let body = format!(r#"{{"providers": [{value}], "lease": {value}}}"#);
        assert!(
            site.recurd
                .call("consumer", "POST", "/v1/claim", &body)
                .status
                < 500,
            "{body}"
        );
    }
}

#[test]
fn broken_requests_are_refused() {
    let site = Site::start();
    let post = |body: &str| site.recurd.call("author", "POST", "/v1/dispatches", body);
    for body in ["{", "[]", "\"x\"", "{}{}", "{\"a\": 01}", "{\"a\": NaN}"] {
        post(body).expect(400);
    }
    post("").expect(415);
    post(r#"{"provider": "p", "provider": "q", "action_type": "t"}"#).expect(400);
    let deep = format!(
        r#"{{"provider": "p", "action_type": "t", "payload": {}1{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let reply = post(&deep);
    assert!([400, 413, 422].contains(&reply.status), "{}", reply.status);
    let authorization = format!("Bearer {}", token("author"));
    let form = [
        ("authorization", authorization.as_str()),
        ("content-type", "text/plain"),
    ];
    site.recurd
        .send("POST", "/v1/dispatches", &form, "{}")
        .expect(415);
    site.recurd
        .call("author", "GET", "/v1/recurring/not-an-id", "")
        .expect(422);
    site.recurd
        .call("author", "GET", "/v1/recurring/%00", "")
        .expect(422);
    site.recurd
        .call("author", "GET", "/v1/recurring?limit=501", "")
        .expect(422);
    site.recurd
        .call("author", "GET", "/v1/recurring?limit=1&limit=2", "")
        .expect(422);
    site.recurd
        .call("author", "GET", "/v1/recurring?after=%00", "")
        .expect(422);
    site.recurd
        .call("author", "GET", "/v1/recurring?tenant=%00", "")
        .expect(422);
    let history = format!("/v1/recurring/{}/history", site.create("author", "a"));
    for before in ["x", "x/y", "2030-01-01/", "/", "infinity/x", "%00"] {
        site.recurd
            .call("author", "GET", &format!("{history}?before={before}"), "")
            .expect(422);
    }
    site.recurd.send_raw(b"nonsense\r\n\r\n").expect(400);
    site.recurd.send("GET", "/livez", &[], "").expect(200);
}

#[test]
fn nothing_is_asked_for_without_end() {
    let site = Site::start();
    let call = |role: &str, method: &str, path: &str, body: &str| {
        site.recurd.call(role, method, path, body).status
    };
    let path = format!("/v1/recurring/{}", site.create("author", "shown"));
    for fields in ["id,id", "schedule,cron_expr", "id,colour"] {
        assert_eq!(
            call("author", "GET", &format!("{path}?fields={fields}"), ""),
            422
        );
        let list = format!("/v1/recurring?fields={fields}");
        assert_eq!(call("author", "GET", &list, ""), 422);
    }
    let many: Vec<String> = (0..201).map(|at| format!("\"f{at}\": 1")).collect();
    let body = format!("{{{}}}", many.join(", "));
    assert_eq!(call("author", "PATCH", &path, &body), 400);
    assert_eq!(
        call("consumer", "POST", "/v1/claim", r#"{"limit": 501}"#),
        422
    );
    assert_eq!(
        call("consumer", "POST", "/v1/claim", r#"{"limit": 500}"#),
        200
    );
}

#[test]
fn a_client_that_says_nothing_holds_no_connection() {
    let site = Site::with("[limits]\nconnections = 1\nheader_timeout_seconds = 1");
    for said in ["", "GET /livez HT", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut silent = TcpStream::connect(site.recurd.address).expect("a connection");
        silent.write_all(said.as_bytes()).expect("a request");
        // Another one is answered when the first has been closed.
        site.recurd.send("GET", "/livez", &[], "").expect(200);
        silent.set_nonblocking(true).expect("a socket");
        let read = silent.read_to_end(&mut Vec::new());
        assert!(read.is_ok(), "{said:?}: still open: {read:?}");
    }
}

#[test]
fn sizes_and_rates_are_limited() {
    let site = Site::with("[limits]\nbody_bytes = 4096\nrequests_per_second = 1\nburst = 5");
    let body = format!(
        r#"{{"provider": "p", "action_type": "t", "payload": "{}"}}"#,
        "x".repeat(5000)
    );
    let reply = site
        .recurd
        .call("author", "POST", "/v1/dispatches", &body)
        .expect(413);
    assert_eq!(reply.json()["detail"], "the body has more than 4096 bytes");
    let chunked = format!(
        "POST /v1/dispatches HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1400\r\n{}\r\n0\r\n\r\n",
        token("author"),
        "x".repeat(0x1400)
    );
    site.recurd.send_raw(chunked.as_bytes()).expect(413);
    let statuses: Vec<u16> = (0..20)
        .map(|_| {
            site.recurd
                .call("author", "GET", "/v1/openapi.json", "")
                .status
        })
        .collect();
    assert!(
        statuses.iter().all(|status| *status == 200),
        "the document costs nothing: {statuses:?}"
    );
    let replies: Vec<_> = (0..20)
        .map(|_| site.recurd.call("author", "GET", "/v1/recurring", ""))
        .collect();
    let refused = replies
        .iter()
        .find(|reply| reply.status == 429)
        .expect("a limit");
    assert!(refused.header("retry-after").is_some());
    // Another role has a rate of its own.
    site.recurd
        .call("reader", "GET", "/v1/recurring", "")
        .expect(200);
}
