//! ETags of actions: the version, which is the microseconds of updated_at, and a hash of what is shown. If-Match goes
//! by the version, which running leaves alone; If-None-Match by both, since next_run_at and the like change by running.

use super::problem::Problem;
use axum::http::{HeaderMap, StatusCode, header};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// No action has it: the action of whose version one can't tell what it is has changed.
const UNKNOWN: &str = "-1";

/// The ETag of this version, shown like this.
pub fn of(version: &str, body: &str) -> String {
    let hash = Sha256::digest(body.as_bytes());
    let mut tag = format!("\"{version}-");
    for byte in &hash[..8] {
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    tag
}

/// The version that If-Match demands; None where it demands nothing.
pub fn expected(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all(header::IF_MATCH).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or("").trim();
    if values.next().is_some() || text.contains(',') {
        return Err(
            Problem::new(StatusCode::BAD_REQUEST, "If-Match: expected one ETag")
                .with_hint("Send the ETag that the latest GET has returned."),
        );
    }
    if text == "*" {
        return Ok(None);
    }
    let tag = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or("");
    let digits = tag.split_once('-').map_or(tag, |(version, _)| version);
    let is_version =
        (1..=18).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    Ok(Some(if is_version { digits } else { UNKNOWN }.to_owned()))
}

/// Does If-None-Match name this ETag?
pub fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|value| value.trim())
        .any(|value| value == "*" || value.strip_prefix("W/").unwrap_or(value) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_MATCH, text.parse().unwrap());
        expected(&headers).unwrap()
    }

    #[test]
    fn an_etag_is_a_version() {
        assert_eq!(
            version("\"1795000000000000\"").as_deref(),
            Some("1795000000000000")
        );
        let tag = of("1795000000000000", "{}");
        assert_eq!(version(&tag).as_deref(), Some("1795000000000000"));
        assert_eq!(version("*"), None);
        for other in [
            "W/\"1\"",
            "\"a\"",
            "1",
            "\"\"",
            "\"-1\"",
            "\"99999999999999999999\"",
        ] {
            assert_eq!(version(other).as_deref(), Some(UNKNOWN), "{other}");
        }
    }

    #[test]
    fn what_is_shown_counts_for_reading_and_not_for_changing() {
        let (before, after) = (of("1", r#"{"run_count":1}"#), of("1", r#"{"run_count":2}"#));
        assert_eq!(version(&before), version(&after));
        let mut headers = HeaderMap::new();
        let known = format!("\"x\", W/{before}");
        headers.insert(header::IF_NONE_MATCH, known.parse().unwrap());
        assert!(is_known(&headers, &before));
        assert!(!is_known(&headers, &after));
    }
}
