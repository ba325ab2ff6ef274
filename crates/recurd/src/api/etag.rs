//! Versions of actions: the microseconds of updated_at.

use super::problem::Problem;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};

/// No action has it: the action of whose version one can't tell what it is has changed.
const UNKNOWN: &str = "-1";

pub fn of(version: &str) -> HeaderValue {
    HeaderValue::try_from(format!("\"{version}\""))
        .unwrap_or_else(|_| HeaderValue::from_static("\"\""))
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
    let digits = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or("");
    let is_version =
        (1..=18).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    Ok(Some(if is_version { digits } else { UNKNOWN }.to_owned()))
}

/// Does If-None-Match name this version?
pub fn is_known(headers: &HeaderMap, version: &str) -> bool {
    let tag = format!("\"{version}\"");
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
        headers.insert(header::IF_MATCH, HeaderValue::from_str(text).unwrap());
        expected(&headers).unwrap()
    }

    #[test]
    fn an_etag_is_a_version() {
        assert_eq!(
            version("\"1795000000000000\"").as_deref(),
            Some("1795000000000000")
        );
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
}
