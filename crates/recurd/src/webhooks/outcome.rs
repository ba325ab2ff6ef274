//! What a response means for a delivery.

use serde_json::{Map, Value, json};
use std::time::{Duration, SystemTime};

/// `Retry-After` counts up to this: an endpoint can't put a delivery off beyond its longest own back-off.
pub const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);
/// How much of a response's body is kept.
pub const KEPT_BODY: usize = 2048;
/// How much of a response's headers is kept, names and values together.
const KEPT_HEADERS: usize = 4096;
/// Credentials of the receiver: they do not belong into a history that others read.
const LEFT_OUT: [&str; 4] = [
    "set-cookie",
    "set-cookie2",
    "www-authenticate",
    "proxy-authenticate",
];

/// What a delivery's attempt came to, in the words of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// 2xx.
    Delivered,
    /// Anything else, also no response at all; tried again while attempts are left.
    Failed,
    /// 410: the endpoint does not want any more.
    Gone,
    /// 429 or 503 with `Retry-After`: tried again when the endpoint says.
    Throttled { retry_in: Option<Duration> },
}

impl Outcome {
    /// `retry_after` is the header's value, if there is one.
    pub fn of_response(status: u16, retry_after: Option<&str>, now: SystemTime) -> Outcome {
        let retry_in = retry_after.and_then(|text| wait(text, now));
        match status {
            200..=299 => Outcome::Delivered,
            410 => Outcome::Gone,
            429 => Outcome::Throttled { retry_in },
            503 if retry_in.is_some() => Outcome::Throttled { retry_in },
            _ => Outcome::Failed,
        }
    }

    /// As `recur.report_webhook` names it.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Delivered => "delivered",
            Outcome::Failed => "failed",
            Outcome::Gone => "gone",
            Outcome::Throttled { .. } => "throttled",
        }
    }

    /// How long the endpoint asked to wait.
    pub fn retry_in(self) -> Option<Duration> {
        match self {
            Outcome::Throttled { retry_in } => retry_in,
            _ => None,
        }
    }
}

/// `Retry-After` in seconds or as an HTTP date, at most a day; none where it is neither.
fn wait(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    let wait = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are a long time as well.
        text.parse().map_or(LONGEST_WAIT, Duration::from_secs)
    } else {
        let at = httpdate::parse_http_date(text).ok()?;
        at.duration_since(now).unwrap_or_default()
    };
    Some(wait.min(LONGEST_WAIT))
}

/// The first bytes of a response's body, and whether there were more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    kept: Vec<u8>,
    is_cut: bool,
}

impl Body {
    /// Keeps what there is still room for.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = KEPT_BODY - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.is_cut |= bytes.len() > room;
    }

    /// The rest did not come, or was not waited for.
    pub fn cut(&mut self) {
        self.is_cut = true;
    }

    /// As text where it is one that a JSON document of the database can hold, and else in base64.
    fn write(&self, into: &mut Map<String, Value>) {
        match text(&self.kept, self.is_cut) {
            Some(text) => into.insert("body".into(), text.into()),
            None => into.insert("body_base64".into(), base64(&self.kept).into()),
        };
        if self.is_cut {
            into.insert("body_truncated".into(), true.into());
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// A cut may have gone through a character: up to three bytes at the end are left out then.
fn text(bytes: &[u8], is_cut: bool) -> Option<&str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    // jsonb has no character of that code.
    (!text.contains('\0')).then_some(text)
}

/// What the database keeps of a response.
pub fn result<'a>(
    status: u16,
    headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    body: &Body,
    took: Duration,
) -> Value {
    let mut kept = Map::new();
    let mut room = KEPT_HEADERS;
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value).replace('\0', "\u{fffd}");
        let size = name.len() + value.len();
        if LEFT_OUT.contains(&name) || size > room {
            continue;
        }
        room -= size;
        match kept.get_mut(name) {
            Some(Value::String(first)) => {
                first.push_str(", ");
                first.push_str(&value);
            }
            _ => {
                kept.insert(name.to_owned(), value.into());
            }
        }
    }
    let mut result = Map::new();
    result.insert("status".into(), status.into());
    result.insert("headers".into(), kept.into());
    body.write(&mut result);
    result.insert("milliseconds".into(), json!(milliseconds(took)));
    result.into()
}

pub fn milliseconds(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noon() -> SystemTime {
        httpdate::parse_http_date("Sun, 06 Nov 1994 12:00:00 GMT").unwrap()
    }

    #[test]
    fn each_status_has_its_outcome() {
        let throttled = |seconds| Outcome::Throttled {
            retry_in: Some(Duration::from_secs(seconds)),
        };
        for (status, retry_after, expected) in [
            (200, None, Outcome::Delivered),
            (204, Some("60"), Outcome::Delivered),
            (299, None, Outcome::Delivered),
            (301, None, Outcome::Failed),
            (307, Some("60"), Outcome::Failed),
            (400, None, Outcome::Failed),
            (404, None, Outcome::Failed),
            (410, None, Outcome::Gone),
            (429, None, Outcome::Throttled { retry_in: None }),
            (429, Some("60"), throttled(60)),
            (500, Some("60"), Outcome::Failed),
            (503, Some("60"), throttled(60)),
            (503, None, Outcome::Failed),
            (503, Some("soon"), Outcome::Failed),
            (100, None, Outcome::Failed),
            (999, None, Outcome::Failed),
        ] {
            let outcome = Outcome::of_response(status, retry_after, noon());
            assert_eq!(outcome, expected, "{status} {retry_after:?}");
        }
    }

    #[test]
    fn waits_are_seconds_or_a_date_and_bounded() {
        let day = LONGEST_WAIT.as_secs();
        for (text, expected) in [
            ("0", Some(0)),
            (" 120 ", Some(120)),
            ("86400", Some(day)),
            ("86401", Some(day)),
            ("99999999999999999999999999", Some(day)),
            ("-1", None),
            ("+5", None),
            ("1.5", None),
            ("", None),
            ("soon", None),
            ("Sun, 06 Nov 1994 12:01:30 GMT", Some(90)),
            ("Sunday, 06-Nov-94 12:01:30 GMT", Some(90)),
            ("Sun Nov  6 12:01:30 1994", Some(90)),
            ("Sun, 06 Nov 1994 11:00:00 GMT", Some(0)),
            ("Fri, 06 Nov 2099 11:00:00 GMT", Some(day)),
        ] {
            let expected = expected.map(Duration::from_secs);
            assert_eq!(wait(text, noon()), expected, "{text:?}");
        }
    }

    fn kept(chunks: &[&[u8]]) -> Value {
        let mut body = Body::default();
        for chunk in chunks {
            body.push(chunk);
        }
        result(200, [], &body, Duration::from_millis(7))
    }

    #[test]
    fn a_body_is_kept_as_text_or_in_base64() {
        let all = json!({"status": 200, "headers": {}, "body": "{\"ok\": 1}", "milliseconds": 7});
        assert_eq!(kept(&[b"{\"ok\"", b": 1}"]), all);
        assert_eq!(kept(&[])["body"], "");
        assert_eq!(kept(&[b"\xff\xfe"])["body_base64"], "//4=");
        assert_eq!(kept(&[b"a\0b"])["body_base64"], "YQBi");
        assert_eq!(kept(&[b"a\0b"]).get("body"), None);
    }

    #[test]
    fn a_long_body_is_cut_between_characters() {
        let exact = kept(&[&[b'x'; KEPT_BODY]]);
        assert_eq!(exact.get("body_truncated"), None);
        let long = kept(&[&[b'x'; KEPT_BODY - 1], "€uro".as_bytes(), &[b'y'; 9]]);
        assert_eq!(long["body"].as_str().unwrap().len(), KEPT_BODY - 1);
        assert_eq!(long["body_truncated"], true);
        // What is cut off by the sender is no text.
        assert!(kept(&[b"\xe2\x82"]).get("body_base64").is_some());
    }

    #[test]
    fn headers_are_kept_within_a_bound_and_without_credentials() {
        let long = [b'x'; KEPT_HEADERS];
        let headers = [
            ("content-type", &b"text/plain"[..]),
            ("set-cookie", b"session=1"),
            ("via", b"one"),
            ("via", b"two"),
            ("x-long", &long),
            ("x-binary", b"a\xff\0b"),
        ];
        let kept = result(404, headers, &Body::default(), Duration::ZERO);
        assert_eq!(
            kept["headers"],
            json!({"content-type": "text/plain", "via": "one, two", "x-binary": "a\u{fffd}\u{fffd}b"})
        );
    }
}
