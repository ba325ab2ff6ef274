//! Signatures of what is received: four schemes, verified over the bytes that came, before anything parses them.

use super::sign::{Key, signed_prefix};
use axum::http::{HeaderMap, HeaderName};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::Mac;
use sha2::{Digest, Sha256};
use std::fmt;
use std::time::Duration;
use subtle::ConstantTimeEq;

/// Signatures in one header that are looked at: senders give one for each of their keys.
const MOST_SIGNATURES: usize = 16;

/// How a source proves that a request is its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `webhook-id`, `webhook-timestamp`, `webhook-signature: v1,BASE64`.
    StandardWebhooks,
    /// `X-Hub-Signature-256: sha256=HEX`, over the body alone.
    Github,
    /// `Stripe-Signature: t=SECONDS,v1=HEX`.
    Stripe,
    /// The secret itself in a header, with or without `Bearer` before it.
    SharedSecret(HeaderName),
}

/// What verifies the requests of one source.
#[derive(Clone, Debug)]
pub struct Verifier {
    scheme: Scheme,
    /// More than one while a secret is rotated.
    keys: Vec<Key>,
    /// How far the sender's clock may be from this one's, either way.
    tolerance: Duration,
}

/// Why a request is not the source's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forgery {
    Missing(HeaderName),
    Repeated(HeaderName),
    Malformed(HeaderName),
    /// Seconds between the clocks.
    Old(i64),
    Early(i64),
    Signature,
}

/// The body may be trusted; what the sender calls the event, if it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    pub id: Option<String>,
}

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const GITHUB_SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature-256");
const GITHUB_ID: HeaderName = HeaderName::from_static("x-github-delivery");
const STRIPE_SIGNATURE: HeaderName = HeaderName::from_static("stripe-signature");

impl Scheme {
    /// The key that a secret of this scheme is.
    ///
    /// # Errors
    /// When the secret has not the form that the scheme asks for; the error does not repeat it.
    pub fn key(&self, secret: &str) -> Result<Key, String> {
        match self {
            Scheme::StandardWebhooks => Key::parse(secret).map_err(|error| error.to_string()),
            _ if secret.trim().is_empty() => Err("a secret must not be empty".to_owned()),
            _ => Ok(Key::of_text(secret.trim())),
        }
    }
}

impl Verifier {
    pub fn new(scheme: Scheme, keys: Vec<Key>, tolerance: Duration) -> Verifier {
        Verifier {
            scheme,
            keys,
            tolerance,
        }
    }

    /// The header that holds the secret itself, if one does.
    pub fn secret_header(&self) -> Option<&HeaderName> {
        match &self.scheme {
            Scheme::SharedSecret(header) => Some(header),
            _ => None,
        }
    }

    /// Is this request the source's? `now` is in seconds since 1970.
    ///
    /// # Errors
    /// With the reason, if it is not.
    pub fn verify(&self, headers: &HeaderMap, body: &[u8], now: i64) -> Result<Verified, Forgery> {
        match &self.scheme {
            Scheme::StandardWebhooks => self.standard(headers, body, now),
            Scheme::Github => self.github(headers, body),
            Scheme::Stripe => self.stripe(headers, body, now),
            Scheme::SharedSecret(header) => self.shared_secret(header, headers),
        }
    }

    fn standard(&self, headers: &HeaderMap, body: &[u8], now: i64) -> Result<Verified, Forgery> {
        let id = single(headers, &WEBHOOK_ID)?;
        // A full stop is what separates id, time and body: with one in the id, another id, time and body have the
        // same signature.
        if id.is_empty() || id.contains('.') {
            return Err(Forgery::Malformed(WEBHOOK_ID));
        }
        let timestamp = seconds(single(headers, &WEBHOOK_TIMESTAMP)?)
            .ok_or(Forgery::Malformed(WEBHOOK_TIMESTAMP))?;
        let tags: Vec<Vec<u8>> = single(headers, &WEBHOOK_SIGNATURE)?
            .split(' ')
            .filter_map(|signature| STANDARD.decode(signature.strip_prefix("v1,")?).ok())
            .take(MOST_SIGNATURES)
            .collect();
        let prefix = signed_prefix(id, timestamp);
        self.check(&[prefix.as_bytes(), body], &tags)?;
        self.check_time(timestamp, now)?;
        let id = Some(id.to_owned());
        Ok(Verified { id })
    }

    fn github(&self, headers: &HeaderMap, body: &[u8]) -> Result<Verified, Forgery> {
        let tag = single(headers, &GITHUB_SIGNATURE)?
            .strip_prefix("sha256=")
            .and_then(hex)
            .ok_or(Forgery::Malformed(GITHUB_SIGNATURE))?;
        self.check(&[body], &[tag])?;
        let id = single(headers, &GITHUB_ID).ok().map(str::to_owned);
        Ok(Verified { id })
    }

    fn stripe(&self, headers: &HeaderMap, body: &[u8], now: i64) -> Result<Verified, Forgery> {
        let header = single(headers, &STRIPE_SIGNATURE)?;
        let fields = || {
            header
                .split(',')
                .filter_map(|field| field.trim().split_once('='))
        };
        let mut times = fields().filter(|(name, _)| *name == "t");
        let (Some((_, time)), None) = (times.next(), times.next()) else {
            return Err(Forgery::Malformed(STRIPE_SIGNATURE));
        };
        let timestamp = seconds(time).ok_or(Forgery::Malformed(STRIPE_SIGNATURE))?;
        let tags: Vec<Vec<u8>> = fields()
            .filter(|(name, _)| *name == "v1")
            .filter_map(|(_, tag)| hex(tag))
            .take(MOST_SIGNATURES)
            .collect();
        self.check(&[time.as_bytes(), b".", body], &tags)?;
        self.check_time(timestamp, now)?;
        Ok(Verified { id: event_id(body) })
    }

    fn shared_secret(&self, header: &HeaderName, headers: &HeaderMap) -> Result<Verified, Forgery> {
        let given = single(headers, header)?;
        let given = given.strip_prefix("Bearer ").unwrap_or(given);
        // Of one length, whatever was given: a comparison of the texts would tell the secret's length.
        let given = Sha256::digest(given.as_bytes());
        let mut matches = subtle::Choice::from(0);
        for key in &self.keys {
            matches |= Sha256::digest(key.bytes()).ct_eq(&given);
        }
        if !bool::from(matches) {
            return Err(Forgery::Signature);
        }
        let id = single(headers, &WEBHOOK_ID).ok().map(str::to_owned);
        Ok(Verified { id })
    }

    /// Is one of the tags that of one of the keys? The comparison takes as long whatever the tags are.
    fn check(&self, parts: &[&[u8]], tags: &[Vec<u8>]) -> Result<(), Forgery> {
        let mut matches = subtle::Choice::from(0);
        for key in &self.keys {
            let expected = key.mac(parts).finalize().into_bytes();
            for tag in tags {
                matches |= expected.as_slice().ct_eq(tag.as_slice());
            }
        }
        if bool::from(matches) {
            Ok(())
        } else {
            Err(Forgery::Signature)
        }
    }

    /// Last: only the source learns how far its clock is off.
    fn check_time(&self, timestamp: i64, now: i64) -> Result<(), Forgery> {
        let tolerance = i64::try_from(self.tolerance.as_secs()).unwrap_or(i64::MAX);
        let age = now.saturating_sub(timestamp);
        if age > tolerance {
            return Err(Forgery::Old(age));
        }
        if age < -tolerance {
            return Err(Forgery::Early(-age));
        }
        Ok(())
    }
}

impl fmt::Display for Forgery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Forgery::Missing(header) => write!(f, "the header {header} is missing"),
            Forgery::Repeated(header) => write!(f, "the header {header} is given more than once"),
            Forgery::Malformed(header) => write!(f, "the header {header} is malformed"),
            Forgery::Old(seconds) => write!(f, "the signature is {seconds} seconds old"),
            Forgery::Early(seconds) => write!(f, "the signature is {seconds} seconds early"),
            Forgery::Signature => f.write_str("the signature is wrong"),
        }
    }
}

impl std::error::Error for Forgery {}

/// The header's one value. Of two, proxies and programs disagree which counts.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a str, Forgery> {
    let mut values = headers.get_all(name).iter();
    let value = values
        .next()
        .ok_or_else(|| Forgery::Missing(name.clone()))?;
    if values.next().is_some() {
        return Err(Forgery::Repeated(name.clone()));
    }
    value.to_str().map_err(|_| Forgery::Malformed(name.clone()))
}

/// Digits only: `parse` would take a sign as well, and two spellings of one time.
fn seconds(text: &str) -> Option<i64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(
        digits
            .chunks_exact(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect(),
    )
}

/// The `id` of an event, where the verified body is one of JSON.
fn event_id(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Event {
        id: String,
    }
    serde_json::from_slice::<Event>(body)
        .ok()
        .map(|event| event.id)
}

#[cfg(test)]
mod tests {
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
}
