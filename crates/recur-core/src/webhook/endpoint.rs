//! The checks of an endpoint.

use super::{OPERATOR_PREFIX, base64};
use crate::action::{Interval, Invalid, check_name as check_any_name};
use crate::pattern::Pattern;
use serde_json::Value;

/// How many deliveries to an endpoint run at once where it does not say.
pub const DEFAULT_CONCURRENCY: i32 = 10;
/// How long a delivery may take where the endpoint does not say.
pub const DEFAULT_TIMEOUT: Interval = Interval::seconds(15);

const LONGEST_TIMEOUT: Interval = Interval::seconds(300);
const LONGEST_URL: usize = 2_048;
const MOST_PATTERNS: usize = 100;
const MOST_HEADERS: usize = 32;
const LONGEST_HEADER: usize = 4_096;
const LARGEST_CONCURRENCY: i32 = 1_000;
const RATES: std::ops::RangeInclusive<f64> = 0.001..=10_000.0;

const SECRET_PREFIX: &str = "whsec_";
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Headers that the delivery itself sets, or that would change what a request is.
const RESERVED_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "traceparent",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Refuses a text that is no name of an owner's endpoint.
///
/// # Errors
/// When it is blank, longer than 255 characters, or begins as the names of an operator's endpoints do.
pub fn check_name(argument: &str, text: &str) -> Result<(), Invalid> {
    check_any_name(argument, text)?;
    if !text.starts_with(OPERATOR_PREFIX) {
        return Ok(());
    }
    let problem = format!("must not begin with \"{OPERATOR_PREFIX}\"");
    Err(Invalid::argument(argument, text, &problem).with_hint(
        "Such endpoints are in the operator's configuration, and chosen by their patterns.",
    ))
}

/// Refuses a text that is no URL to deliver to. Which addresses may be reached is decided where the delivery is made.
///
/// ```
/// use recur_core::webhook::check_url;
///
/// assert!(check_url("url", "https://example.com/hooks?x=1").is_ok());
/// assert_eq!(
///     check_url("url", "https://me:secret@example.com/").unwrap_err().message,
///     r#"invalid url "https://…@example.com/": must have no user name or password"#
/// );
/// ```
///
/// # Errors
/// When it is no absolute URL of http or https, has a user name or a password, a fragment, or characters that must be
/// escaped, or is longer than 2,048 bytes.
pub fn check_url(argument: &str, text: &str) -> Result<(), Invalid> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let mut shown = text.to_owned();
    let is_scheme = |wanted: &str| scheme.eq_ignore_ascii_case(wanted);
    let problem = if text.len() > LONGEST_URL {
        "must not be longer than 2,048 bytes"
    } else if !is_scheme("https") && !is_scheme("http") {
        "must begin with https:// or http://"
    } else if let Some((_, host)) = authority.rsplit_once('@') {
        // An error must not repeat a password.
        shown = format!("{scheme}://…@{host}{path}");
        "must have no user name or password"
    } else if text
        .bytes()
        .any(|byte| !byte.is_ascii_graphic() || b"\\\"<>^`{|}".contains(&byte))
    {
        "must have no blanks, and no characters that a URL escapes"
    } else if path.contains('#') {
        "must have no fragment"
    } else if !is_authority(authority) {
        "must have a host, and a port from 1 to 65535 if there is one"
    } else {
        return Ok(());
    };
    Err(Invalid::argument(argument, &shown, problem).with_hint(
        "Give a URL such as https://example.com/hooks; credentials belong into headers.",
    ))
}

/// A host, or an address in brackets, and maybe a port.
fn is_authority(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => (address, None),
        Some((address, rest)) => match rest.strip_prefix(':') {
            Some(port) => (address, Some(port)),
            None => return false,
        },
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_bracketed = text.starts_with('[');
    let is_host = match is_bracketed {
        true => host
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte)),
        false => host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)),
    };
    let is_port = |port: &str| {
        port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse().is_ok_and(|port: u16| port > 0)
    };
    is_host && !host.is_empty() && port.is_none_or(is_port)
}

/// Refuses what are no patterns, or too many of them.
///
/// # Errors
/// When one of them is none, or there are more than a hundred.
pub fn check_patterns(patterns: &[Option<String>]) -> Result<Vec<String>, Invalid> {
    if patterns.len() > MOST_PATTERNS {
        let problem = format!("must not be more than {MOST_PATTERNS}");
        return Err(
            Invalid::argument("patterns", &patterns.len().to_string(), &problem)
                .with_hint("A pattern such as task:* stands for many action types."),
        );
    }
    let mut checked = Vec::with_capacity(patterns.len());
    for pattern in patterns {
        let text = pattern
            .as_deref()
            .ok_or_else(|| Invalid::missing("patterns"))?;
        let pattern = Pattern::parse("patterns", text).map_err(|error| {
            let refused = Invalid::argument("patterns", text, error.problem());
            refused.with_hint(error.hint().unwrap_or_default())
        })?;
        checked.push(pattern.to_string());
    }
    checked.sort_unstable();
    checked.dedup();
    Ok(checked)
}

/// Refuses headers that a request can't have, or that the delivery sets itself. `json` is a JSON text.
///
/// # Errors
/// When it is no flat object of strings, a name or a value is none of HTTP, or one is reserved.
pub fn check_headers(json: &str) -> Result<(), Invalid> {
    let Ok(Value::Object(headers)) = serde_json::from_str(json) else {
        return Err(refused_headers(
            "…",
            "must be a JSON object with only strings as values",
        ));
    };
    if headers.len() > MOST_HEADERS {
        let problem = format!("must not be more than {MOST_HEADERS}");
        return Err(refused_headers(&headers.len().to_string(), &problem));
    }
    for (name, value) in &headers {
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let lower = name.to_ascii_lowercase();
        let is_reserved = RESERVED_HEADERS.contains(&lower.as_str())
            || lower.starts_with("webhook-")
            || lower.starts_with("proxy-");
        let problem = match value {
            _ if name.is_empty() || name.len() > 128 || !name.bytes().all(is_token) => {
                "is no name of a header"
            }
            _ if is_reserved => "is set by the delivery itself",
            // The value may be a credential: an error does not repeat it.
            Value::String(value) if !is_value(value) => {
                "has a value with characters that a header can't have, or longer than 4,096 bytes"
            }
            Value::String(_) => continue,
            _ => "must have a string as value",
        };
        return Err(refused_headers(name, problem));
    }
    Ok(())
}

fn is_value(text: &str) -> bool {
    text.len() <= LONGEST_HEADER
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() || byte == b' ' || byte == b'\t')
}

fn refused_headers(shown: &str, problem: &str) -> Invalid {
    Invalid::argument("headers", shown, problem)
        .with_hint("Give headers as a flat object such as '{\"Authorization\": \"Bearer …\"}'.")
}

/// Refuses a text that is no signing secret. The error does not repeat it.
///
/// # Errors
/// When it is not `whsec_` and the base64 of 24 to 64 bytes.
pub fn check_secret(text: &str) -> Result<(), Invalid> {
    let length = text
        .strip_prefix(SECRET_PREFIX)
        .and_then(base64::decoded_length);
    if length.is_some_and(|length| SECRET_BYTES.contains(&length)) {
        return Ok(());
    }
    let problem = format!("must be {SECRET_PREFIX} and the base64 of 24 to 64 bytes");
    Err(Invalid::argument("secret", "…", &problem).with_hint("Leave it out to have one made."))
}

/// The signing secret that these random bytes make.
///
/// ```
/// use recur_core::webhook::{check_secret, secret};
///
/// assert_eq!(secret(b"foobar"), "whsec_Zm9vYmFy");
/// assert!(check_secret(&secret(&[7; 32])).is_ok() && check_secret(&secret(b"foobar")).is_err());
/// ```
pub fn secret(bytes: &[u8]) -> String {
    format!("{SECRET_PREFIX}{}", base64::encode(bytes))
}

/// Refuses a rate, in deliveries a second, that can't be kept.
///
/// # Errors
/// When it is not from 0.001 to 10,000.
pub fn check_rate(rate: f64) -> Result<(), Invalid> {
    if RATES.contains(&rate) {
        return Ok(());
    }
    let problem = "must be from 0.001 to 10,000 deliveries a second";
    Err(Invalid::argument("rate", &rate.to_string(), problem)
        .with_hint("Leave it out for no limit."))
}

/// Refuses a number of deliveries at once.
///
/// # Errors
/// When it is not from 1 to 1,000.
pub fn check_concurrency(concurrency: i32) -> Result<(), Invalid> {
    if (1..=LARGEST_CONCURRENCY).contains(&concurrency) {
        return Ok(());
    }
    let problem = format!("must be from 1 to {LARGEST_CONCURRENCY}");
    let hint =
        format!("Leave it out for {DEFAULT_CONCURRENCY}; enabled => false stops deliveries.");
    Err(Invalid::argument("concurrency", &concurrency.to_string(), &problem).with_hint(hint))
}

/// Refuses a time that a delivery may take.
///
/// # Errors
/// When it is shorter than a tenth of a second or longer than five minutes.
pub fn check_timeout(timeout: Interval) -> Result<(), Invalid> {
    let shortest = Interval {
        months: 0,
        days: 0,
        micros: 100_000,
    };
    let has_days = timeout.months != 0 || timeout.days != 0;
    if !has_days && timeout.compare(shortest).is_ge() && timeout.compare(LONGEST_TIMEOUT).is_le() {
        return Ok(());
    }
    let problem = "must be from a tenth of a second to five minutes";
    Err(
        Invalid::argument("timeout", &timeout.to_string(), problem).with_hint(
            "Leave it out for 15 seconds; an endpoint should answer at once and work later.",
        ),
    )
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
