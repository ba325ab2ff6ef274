//! The pause before a retry, as it is written: `{"base": "30 seconds", "factor": 2, "cap": "1 hour"}`.

use serde_json::{Map, Value as Parsed};

use super::environment::Environment;
use super::invalid::Invalid;

const FACTORS: std::ops::RangeInclusive<f64> = 1.0..=100.0;

/// Refuses a JSON object that is no retry_backoff.
pub(super) fn check(
    argument: &str,
    text: &str,
    environment: &Environment<'_>,
) -> Result<(), Invalid> {
    let is_sound = match serde_json::from_str(text) {
        Ok(Parsed::Object(parts)) => is_sound(&parts, environment).unwrap_or(false),
        _ => false,
    };
    match is_sound {
        true => Ok(()),
        false => Err(Invalid::argument(
            argument,
            text,
            "must have a base longer than nothing, a factor from 1 to 100, \
             and a cap not below the base and not above 100 years",
        )
        .with_hint(r#"For instance {"base": "30 seconds", "factor": 2, "cap": "1 hour"}."#)),
    }
}

/// None where a part is missing or can't be read.
fn is_sound(parts: &Map<String, Parsed>, environment: &Environment<'_>) -> Option<bool> {
    let interval = |key: &str| (environment.parse_interval)(&scalar(parts.get(key)?)?);
    let (base, cap) = (interval("base")?, interval("cap")?);
    let factor: f64 = scalar(parts.get("factor")?)?.trim().parse().ok()?;
    Some(
        parts.len() == 3
            && base.problem(false).is_none()
            && cap.problem(false).is_none()
            && base.compare(cap).is_le()
            && FACTORS.contains(&factor),
    )
}

/// The text of a string or a number: both spellings are common.
fn scalar(part: &Parsed) -> Option<String> {
    match part {
        Parsed::String(text) => Some(text.clone()),
        Parsed::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
