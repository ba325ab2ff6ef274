//! Each scheme accepts what its source has signed, and nothing else.

use super::super::sign::signature_header;
use super::*;
use axum::http::HeaderValue;

const NOW: i64 = 1_700_000_000;
const TOLERANCE: Duration = Duration::from_secs(300);
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OLD: &str = "whsec_b2xkIG9sZCBvbGQgb2xkIG9sZCBvbGQgb2xkIG9sZA==";

fn verifier(scheme: Scheme, secrets: &[&str]) -> Verifier {
    let keys = secrets
        .iter()
        .map(|secret| scheme.key(secret).unwrap())
        .collect();
    Verifier::new(scheme, keys, TOLERANCE)
}

fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in of {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn id(verified: Result<Verified, Forgery>) -> String {
    verified.unwrap().id.unwrap()
}

fn standard(at: i64, signature: &str) -> HeaderMap {
    headers(&[
        ("webhook-id", "msg_1"),
        ("webhook-timestamp", &at.to_string()),
        ("webhook-signature", signature),
    ])
}

#[test]
fn standard_webhooks_are_verified_with_every_key() {
    let verifier = verifier(Scheme::StandardWebhooks, &[SECRET, OLD]);
    let body = b"\xff\x00 not text";
    for secret in [SECRET, OLD] {
        let key = Key::parse(secret).unwrap();
        let signature = signature_header(&[key], "msg_1", NOW, body);
        let with_others = format!("v1a,b3RoZXI= v1,!!! v1,AAAA {signature}");
        for signature in [&signature, &with_others] {
            let headers = standard(NOW, signature);
            assert_eq!(id(verifier.verify(&headers, body, NOW)), "msg_1");
            let changed = verifier.verify(&headers, b"\xff\x00 not Text", NOW);
            assert_eq!(changed, Err(Forgery::Signature));
        }
    }
    let other = Key::parse("whsec_b3RoZXIgb3RoZXIgb3RoZXIgb3RoZXIgb3RoZXI=").unwrap();
    let signature = signature_header(&[other], "msg_1", NOW, body);
    let refused = verifier.verify(&standard(NOW, &signature), body, NOW);
    assert_eq!(refused, Err(Forgery::Signature));
}

#[test]
fn another_implementation_signs_what_is_accepted() {
    let webhook = standardwebhooks::Webhook::new(SECRET).unwrap();
    let body = br#"{"test": 2432232314}"#;
    let signature = webhook.sign("msg_1", NOW, body).unwrap();
    let verifier = verifier(Scheme::StandardWebhooks, &[SECRET]);
    let verified = verifier.verify(&standard(NOW, &signature), body, NOW);
    assert_eq!(id(verified), "msg_1");
}

#[test]
fn times_are_tolerated_up_to_the_limit() {
    let verifier = verifier(Scheme::StandardWebhooks, &[SECRET]);
    let key = || Key::parse(SECRET).unwrap();
    for (at, expected) in [
        (NOW - 300, None),
        (NOW + 300, None),
        (NOW - 301, Some(Forgery::Old(301))),
        (NOW + 301, Some(Forgery::Early(301))),
        (0, Some(Forgery::Old(NOW))),
    ] {
        let signature = signature_header(&[key()], "msg_1", at, b"{}");
        let verified = verifier.verify(&standard(at, &signature), b"{}", NOW);
        assert_eq!(verified.err(), expected, "{at}");
    }
    let early = verifier.verify(&standard(i64::MAX, "v1,AAAA"), b"{}", NOW);
    assert_eq!(early, Err(Forgery::Signature));
}

#[test]
fn what_stands_for_two_requests_is_refused() {
    let verifier = verifier(Scheme::StandardWebhooks, &[SECRET]);
    let key = Key::parse(SECRET).unwrap();
    // The same bytes are signed for the id "a", the time 1700000000 and the body "1700000000.x".
    let signature = signature_header(&[key], "a.1700000000", NOW, b"x");
    let mut headers = headers(&[
        ("webhook-id", "a.1700000000"),
        ("webhook-timestamp", "1700000000"),
        ("webhook-signature", &signature),
    ]);
    let refused = verifier.verify(&headers, b"x", NOW);
    assert_eq!(refused, Err(Forgery::Malformed(WEBHOOK_ID)));
    headers.insert("webhook-id", HeaderValue::from_static("a"));
    headers.append("webhook-id", HeaderValue::from_static("b"));
    let refused = verifier.verify(&headers, b"x", NOW);
    assert_eq!(refused, Err(Forgery::Repeated(WEBHOOK_ID)));
    headers.remove("webhook-id");
    let refused = verifier.verify(&headers, b"x", NOW);
    assert_eq!(refused, Err(Forgery::Missing(WEBHOOK_ID)));
}

#[test]
fn times_are_digits() {
    let verifier = verifier(Scheme::StandardWebhooks, &[SECRET]);
    for time in [
        "",
        "+1700000000",
        "-1",
        "17e8",
        "1700000000.0",
        "9".repeat(30).as_str(),
    ] {
        let headers = headers(&[
            ("webhook-id", "msg_1"),
            ("webhook-timestamp", time),
            ("webhook-signature", "v1,AAAA"),
        ]);
        let refused = verifier.verify(&headers, b"", NOW);
        assert_eq!(
            refused,
            Err(Forgery::Malformed(WEBHOOK_TIMESTAMP)),
            "{time}"
        );
    }
}

/// The example of GitHub's documentation.
#[test]
fn github_signs_the_body() {
    let verifier = verifier(Scheme::Github, &["It's a Secret to Everybody"]);
    let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let of = |signature: &str| {
        headers(&[
            ("x-hub-signature-256", signature),
            ("x-github-delivery", "72d3162e"),
        ])
    };
    let body = b"Hello, World!";
    assert_eq!(id(verifier.verify(&of(signature), body, NOW)), "72d3162e");
    assert_eq!(
        verifier.verify(&of(signature), b"Hello, World", NOW),
        Err(Forgery::Signature)
    );
    for malformed in ["757107ea", "sha1=757107ea", "sha256=75710", "sha256=+1"] {
        let refused = verifier.verify(&of(malformed), body, NOW);
        assert_eq!(
            refused,
            Err(Forgery::Malformed(GITHUB_SIGNATURE)),
            "{malformed}"
        );
    }
    let short = verifier.verify(&of("sha256=7571"), body, NOW);
    assert_eq!(short, Err(Forgery::Signature));
}

fn stripe_tag(secret: &str, at: i64, body: &[u8]) -> String {
    let key = Key::of_text(secret);
    let at = at.to_string();
    let tag = key
        .mac(&[at.as_bytes(), b".", body])
        .finalize()
        .into_bytes();
    tag.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn stripe_signs_time_and_body() {
    let verifier = verifier(Scheme::Stripe, &["whsec_new", "whsec_old"]);
    let body = br#"{"object": "event", "id": "evt_1"}"#;
    for secret in ["whsec_new", "whsec_old"] {
        let tag = stripe_tag(secret, NOW, body);
        let of = |text: String| headers(&[("stripe-signature", text.as_str())]);
        for text in [
            format!("t={NOW},v1={tag}"),
            format!("t={NOW},v1=00,v1={tag},v0=ab"),
            format!("v1={tag}, t={NOW}"),
        ] {
            assert_eq!(id(verifier.verify(&of(text), body, NOW)), "evt_1");
        }
        let late = verifier.verify(&of(format!("t={NOW},v1={tag}")), body, NOW + 301);
        assert_eq!(late, Err(Forgery::Old(301)));
        for (text, expected) in [
            (format!("t={},v1={tag}", NOW + 1), Forgery::Signature),
            (format!("t={NOW},v0={tag}"), Forgery::Signature),
            (format!("t={NOW}"), Forgery::Signature),
            (format!("v1={tag}"), Forgery::Malformed(STRIPE_SIGNATURE)),
            (
                format!("t={NOW},t=1,v1={tag}"),
                Forgery::Malformed(STRIPE_SIGNATURE),
            ),
            (String::new(), Forgery::Malformed(STRIPE_SIGNATURE)),
        ] {
            let refused = verifier.verify(&of(text.clone()), body, NOW);
            assert_eq!(refused, Err(expected), "{text}");
        }
    }
}

#[test]
fn a_shared_secret_stands_in_a_header() {
    let scheme = Scheme::SharedSecret(HeaderName::from_static("authorization"));
    let verifier = verifier(scheme, &["open sesame", "older"]);
    for (value, is_right) in [
        ("open sesame", true),
        ("Bearer open sesame", true),
        ("older", true),
        ("open sesam", false),
        ("open sesamee", false),
        ("", false),
        ("Bearer ", false),
    ] {
        let headers = headers(&[("authorization", value), ("webhook-id", "7")]);
        let verified = verifier.verify(&headers, b"anything", NOW);
        assert_eq!(verified.is_ok(), is_right, "{value}");
        assert!(verified.is_err() || id(verified) == "7");
    }
}

#[test]
fn empty_secrets_are_none() {
    for scheme in [Scheme::Github, Scheme::Stripe, Scheme::StandardWebhooks] {
        assert!(scheme.key("").is_err() && scheme.key(" \n").is_err());
    }
    assert!(Scheme::Github.key("secret\n").is_ok());
}

#[test]
fn an_event_has_an_id_or_none() {
    assert_eq!(
        event_id(br#"{"id": "evt_1", "x": 1e999}"#).as_deref(),
        Some("evt_1")
    );
    for body in [&b""[..], b"{}", b"[]", br#"{"id": 7}"#, b"\xff"] {
        assert_eq!(event_id(body), None);
    }
}
