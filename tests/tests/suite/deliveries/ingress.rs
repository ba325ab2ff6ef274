//! `POST /v1/hooks/{source}`: what its source has signed becomes a dispatch, once; everything else leaves nothing.

use super::{SECRET, Site};
use hmac::{Hmac, KeyInit, Mac};
use pg_recur_tests::Session;
use pg_recur_tests::recurd::{Recurd, Reply};
use sha2::Sha256;
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

const PLAIN: &str = "a plain secret of a source";

struct Ingress {
    recurd: Recurd,
    site: Site,
}

fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs() as i64
}

fn tag(secret: &str, parts: &[&[u8]]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    for part in parts {
        mac.update(part);
    }
    mac.finalize()
        .into_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn standard(id: &str, at: i64, body: &[u8]) -> Vec<(String, String)> {
    let signature = standardwebhooks::Webhook::new(SECRET)
        .unwrap()
        .sign(id, at, body)
        .unwrap();
    [
        ("webhook-id", id),
        ("webhook-timestamp", &at.to_string()),
        ("webhook-signature", &signature),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

impl Ingress {
    fn start() -> Ingress {
        Ingress::with("")
    }

    /// With these lines at the end of recurd's configuration.
    fn with(more: &str) -> Ingress {
        let site = Site::start();
        let secret = site.file("standard", SECRET);
        let plain = site.file("plain", PLAIN);
        let mut text = "[auth]\nallowed_roles = [\"hooks\"]\n".to_owned();
        for (name, scheme, secret) in [
            ("standard", "standard-webhooks", &secret),
            ("github", "github", &plain),
            ("stripe", "stripe", &plain),
            ("shared", "shared-secret", &plain),
        ] {
            text.push_str(&format!(
                "[[sources]]\nname = \"{name}\"\nrole = \"hooks\"\nscheme = \"{scheme}\"\nprovider = \"in\"\n\
                 action_type = \"{name}:event\"\nmax_body_bytes = 1000\nsecret_file = {secret:?}\n"
            ));
        }
        let mut text = text.replace(
            "scheme = \"shared-secret\"",
            "scheme = \"shared-secret\"\nheader = \"x-token\"",
        );
        text.push_str(more);
        let recurd = Recurd::start(&site.cluster, "app", &text);
        Ingress { recurd, site }
    }

    #[track_caller]
    fn post(&self, source: &str, headers: &[(String, String)], body: &[u8]) -> Reply {
        let mut request = format!(
            "POST /v1/hooks/{source} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: text/x-odd\r\n\
             content-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut request = format!("{request}\r\n").into_bytes();
        request.extend_from_slice(body);
        self.recurd.send_raw(&request)
    }

    fn session(&mut self) -> &mut Session {
        &mut self.site.session
    }

    #[track_caller]
    fn stored(&mut self) -> i64 {
        self.session().count("recur.dispatches")
    }
}

#[track_caller]
fn id(reply: &Reply) -> Uuid {
    reply.json()["id"]
        .as_str()
        .expect("an id")
        .parse()
        .expect("a uuid")
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn a_body_is_stored_byte_for_byte() {
    let mut ingress = Ingress::start();
    let body: Vec<u8> = (0..=255).collect();
    // The other implementation signs text only.
    let signature = format!("sha256={}", tag(PLAIN, &[&body]));
    let headers = [
        header("x-hub-signature-256", &signature),
        header("x-github-delivery", "d1"),
    ];
    let reply = ingress.post("github", &headers, &body).expect(202);
    let row = &ingress.session().rows(
        "SELECT raw_payload, trigger, provider, action_type, metadata ->> 'content_type',
                payload #>> '{headers,x-github-delivery}', owner, created_at > now() - interval '1 minute'
           FROM recur.dispatches WHERE id = $1",
        &[&id(&reply)],
    )[0];
    assert_eq!(row.get::<_, Vec<u8>>(0), body);
    let texts: Vec<String> = (1..7).map(|column| row.get(column)).collect();
    assert_eq!(
        texts,
        ["webhook", "in", "github:event", "text/x-odd", "d1", "hooks"]
    );
    assert!(row.get::<_, bool>(7));
}

const EVENT: &[u8] = br#"{"id": "evt_1", "n": 1e400}"#;

type Headers = Vec<(String, String)>;

fn github(secret: &str) -> Headers {
    let signature = format!("sha256={}", tag(secret, &[EVENT]));
    vec![
        header("x-hub-signature-256", &signature),
        header("x-github-delivery", "d1"),
    ]
}

/// Signed as `version`, of which only v1 counts.
fn stripe(at: i64, version: &str) -> Headers {
    let tag = tag(PLAIN, &[at.to_string().as_bytes(), b".", EVENT]);
    vec![header(
        "stripe-signature",
        &format!("t={at},{version}={tag}"),
    )]
}

fn shared(secret: &str) -> Headers {
    vec![header("x-token", secret)]
}

#[test]
fn every_scheme_accepts_its_own() {
    let mut ingress = Ingress::start();
    for (source, headers) in [
        ("standard", standard("msg_1", now(), EVENT)),
        ("github", github(PLAIN)),
        ("stripe", stripe(now(), "v1")),
        ("shared", shared(PLAIN)),
    ] {
        ingress.post(source, &headers, EVENT).expect(202);
    }
    assert_eq!(ingress.stored(), 4);
    let stored = "SELECT payload::text FROM recur.dispatches";
    let payloads = ingress.session().texts(stored, &[]).concat();
    assert!(!payloads.contains(PLAIN), "a shared secret is not stored");
    ingress.post("nowhere", &shared(PLAIN), EVENT).expect(404);
    ingress.post("SHARED", &shared(PLAIN), EVENT).expect(404);
    assert_eq!(ingress.stored(), 4);
}

#[test]
fn what_its_source_has_not_signed_is_refused() {
    let mut ingress = Ingress::start();
    let right = standard("msg_2", now(), EVENT);
    let sha1 = format!("sha1={}", tag(PLAIN, &[EVENT]));
    for (source, headers) in [
        ("standard", standard("msg_2", now() - 400, EVENT)),
        ("standard", standard("msg_2", now() + 400, EVENT)),
        ("standard", standard("msg.2", now(), EVENT)),
        ("standard", standard("msg_2", now(), b"another body")),
        ("standard", right[1..].to_vec()),
        ("standard", [right.clone(), right].concat()),
        ("standard", github(PLAIN)),
        ("standard", vec![]),
        ("github", github("other")),
        ("github", vec![header("x-hub-signature", &sha1)]),
        ("github", shared(PLAIN)),
        ("stripe", stripe(now() - 400, "v1")),
        ("stripe", stripe(now(), "v0")),
        ("stripe", vec![header("stripe-signature", "t=,v1=")]),
        ("shared", shared("a plain secret of a sourc")),
        ("shared", shared("")),
        ("shared", vec![]),
    ] {
        let reply = ingress.post(source, &headers, EVENT).expect(401);
        let content_type = reply.header("content-type");
        assert_eq!(content_type, Some("application/problem+json"));
        assert!(!reply.body.contains(PLAIN));
    }
    assert_eq!(ingress.stored(), 0);
}

#[test]
fn what_is_too_large_is_refused_before_it_is_read() {
    let mut ingress = Ingress::start();
    let body = vec![b'x'; 1000];
    ingress
        .post("standard", &standard("m", now(), &body), &body)
        .expect(202);
    let body = vec![b'x'; 1001];
    ingress
        .post("standard", &standard("m2", now(), &body), &body)
        .expect(413);
    // Nothing but the length has arrived.
    let announced =
        b"POST /v1/hooks/shared HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-token: x\r\n\
                      content-length: 9000000\r\n\r\n";
    ingress.recurd.send_raw(announced).expect(413);
    // A length that is not announced counts as well.
    let mut chunked = b"POST /v1/hooks/shared HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
                        transfer-encoding: chunked\r\n\r\n"
        .to_vec();
    for _ in 0..3 {
        chunked.extend_from_slice(b"200\r\n");
        chunked.extend_from_slice(&[b'x'; 512]);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    ingress.recurd.send_raw(&chunked).expect(413);
    assert_eq!(ingress.stored(), 1);
}

#[test]
fn what_came_before_is_acknowledged_and_not_dispatched_again() {
    let mut ingress = Ingress::start();
    let first = id(&ingress
        .post("standard", &standard("msg_1", now(), b"{}"), b"{}")
        .expect(202));
    let again = id(&ingress
        .post("standard", &standard("msg_1", now(), b"{}"), b"{}")
        .expect(202));
    assert_eq!(first, again);
    // Also when it has been claimed, and when it is done.
    for statement in [
        "SELECT count(*) FROM recur.claim(providers => '{in}')",
        "SELECT count(*) FROM recur.dispatches AS d, LATERAL recur.complete(d.id, d.attempt)
          WHERE d.status = 'running'",
    ] {
        assert_eq!(ingress.session().value::<i64>(statement, &[]), 1);
        let again = ingress
            .post("standard", &standard("msg_1", now(), b"{}"), b"{}")
            .expect(202);
        assert_eq!(first, id(&again));
    }
    assert_eq!(ingress.stored(), 1);
    // Another id, and the same id of another source, are other events.
    ingress
        .post("standard", &standard("msg_2", now(), b"{}"), b"{}")
        .expect(202);
    let shared = [header("x-token", PLAIN), header("webhook-id", "msg_1")];
    ingress.post("shared", &shared, b"{}").expect(202);
    // Without an id there is nothing to remember.
    for _ in 0..2 {
        ingress.post("shared", &shared[..1], b"{}").expect(202);
    }
    assert_eq!(ingress.stored(), 5);
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let ingress = Ingress::with("[limits]\nrequest_timeout_seconds = 1\n");
    let request = b"POST /v1/hooks/github HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 9\r\n\r\nhalf";
    let reply = ingress.recurd.send_raw(request).expect(503);
    assert_eq!(reply.json()["detail"], "the request took too long");
}
