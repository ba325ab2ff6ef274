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
#[path = "verify_tests.rs"]
mod tests;
