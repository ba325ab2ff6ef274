//! Signatures of Standard Webhooks 1.0 (<https://www.standardwebhooks.com>): HMAC-SHA256 of `id.timestamp.body`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use std::ops::RangeInclusive;

/// What a secret begins with, so that secret scanners recognize it.
const PREFIX: &str = "whsec_";
/// The specification's bounds for a key, in bytes.
const KEY_LENGTH: RangeInclusive<usize> = 24..=64;

/// A key for HMAC-SHA256. Its `Debug` does not show it.
#[derive(Clone)]
pub struct Key(Vec<u8>);

/// Why a text is no secret of Standard Webhooks. It never repeats the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidSecret {
    Prefix,
    Base64,
    Length(usize),
}

impl Key {
    /// Reads `whsec_` followed by the key in base64.
    ///
    /// # Errors
    /// When the prefix is missing, the rest is not base64, or the key has not 24 to 64 bytes.
    pub fn parse(secret: &str) -> Result<Key, InvalidSecret> {
        let encoded = secret.trim().strip_prefix(PREFIX);
        let encoded = encoded.ok_or(InvalidSecret::Prefix)?;
        let key = STANDARD
            .decode(encoded)
            .map_err(|_| InvalidSecret::Base64)?;
        if !KEY_LENGTH.contains(&key.len()) {
            return Err(InvalidSecret::Length(key.len()));
        }
        Ok(Key(key))
    }

    /// The bytes of a text as they are, as GitHub and Stripe use their secrets.
    pub fn of_text(secret: &str) -> Key {
        Key(secret.as_bytes().to_vec())
    }

    /// For schemes that send the secret itself.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The HMAC over parts that follow each other, so that a body is not copied.
    pub fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        for part in parts {
            mac.update(part);
        }
        mac
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl fmt::Display for InvalidSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidSecret::Prefix => write!(f, "a secret begins with {PREFIX}"),
            InvalidSecret::Base64 => write!(f, "what follows {PREFIX} is base64"),
            InvalidSecret::Length(bytes) => write!(
                f,
                "a key has {} to {} bytes, not {bytes}",
                KEY_LENGTH.start(),
                KEY_LENGTH.end()
            ),
        }
    }
}

impl std::error::Error for InvalidSecret {}

/// The header `webhook-signature`: one signature for each key, so that receivers verify with the old or the new secret
/// while it is rotated. `timestamp` is in seconds since 1970.
pub fn signature_header(keys: &[Key], id: &str, timestamp: i64, body: &[u8]) -> String {
    let prefix = signed_prefix(id, timestamp);
    let signatures = keys.iter().map(|key| {
        let tag = key.mac(&[prefix.as_bytes(), body]).finalize().into_bytes();
        format!("v1,{}", STANDARD.encode(tag))
    });
    signatures.collect::<Vec<_>>().join(" ")
}

/// What is signed before the body.
pub fn signed_prefix(id: &str, timestamp: i64) -> String {
    format!("{id}.{timestamp}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderMap, HeaderValue};
    use standardwebhooks::Webhook;
    use std::time::{SystemTime, UNIX_EPOCH};

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn now() -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i64::try_from(since.as_secs()).unwrap()
    }

    fn accepts(secret: &str, id: &str, timestamp: i64, signature: &str, body: &[u8]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("webhook-id", id),
            ("webhook-timestamp", &timestamp.to_string()),
            ("webhook-signature", signature),
        ] {
            headers.insert(name, HeaderValue::from_str(value).unwrap());
        }
        Webhook::new(secret).unwrap().verify(body, &headers).is_ok()
    }

    #[test]
    fn the_example_of_the_specification_is_signed_as_it_says() {
        let key = Key::parse(SECRET).unwrap();
        let signature = signature_header(
            &[key],
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn another_implementation_accepts_a_signature_of_either_key() {
        let old = "whsec_b2xkIG9sZCBvbGQgb2xkIG9sZCBvbGQgb2xkIG9sZA==";
        let keys = [SECRET, old].map(|secret| Key::parse(secret).unwrap());
        let at = now();
        let body = "{\"größe\": 1e400, \"a\" : [ ]}".as_bytes();
        let signature = signature_header(&keys, "019a0000-1", at, body);
        assert_eq!(signature.matches("v1,").count(), 2);
        for secret in [SECRET, old] {
            assert!(accepts(secret, "019a0000-1", at, &signature, body));
            assert!(!accepts(secret, "019a0000-2", at, &signature, body));
            assert!(!accepts(secret, "019a0000-1", at + 1, &signature, body));
            assert!(!accepts(secret, "019a0000-1", at, &signature, b"{}"));
        }
        let other = "whsec_b3RoZXIgb3RoZXIgb3RoZXIgb3RoZXIgb3RoZXI=";
        assert!(!accepts(other, "019a0000-1", at, &signature, body));
    }

    #[test]
    fn secrets_are_read_strictly_and_never_shown() {
        let of = |bytes: usize| format!("{PREFIX}{}", STANDARD.encode(vec![7; bytes]));
        for bytes in [24, 32, 64] {
            assert!(Key::parse(&of(bytes)).is_ok(), "{bytes}");
        }
        for (text, expected) in [
            (of(23), InvalidSecret::Length(23)),
            (of(65), InvalidSecret::Length(65)),
            (PREFIX.to_owned(), InvalidSecret::Length(0)),
            ("whsec_****".to_owned(), InvalidSecret::Base64),
            (
                "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned(),
                InvalidSecret::Prefix,
            ),
            (String::new(), InvalidSecret::Prefix),
        ] {
            assert_eq!(Key::parse(&text).unwrap_err(), expected, "{text}");
        }
        assert_eq!(format!("{:?}", Key::parse(SECRET).unwrap()), "Key(…)");
    }
}
