//! What an owner says about an endpoint.

use super::{
    DEFAULT_CONCURRENCY, DEFAULT_TIMEOUT, check_concurrency, check_headers, check_patterns,
    check_rate, check_timeout, check_url,
};
use crate::action::{Interval, Invalid};
use crate::span;
use serde_json::Value;

const FIELDS: &str = "url, patterns, headers, timeout, rate, concurrency, enabled and description";
const LONGEST_DESCRIPTION: usize = 10_000;

/// The settings of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where webhooks are sent.
    pub url: String,
    /// Which action types it gets.
    pub patterns: Vec<String>,
    /// More headers: a JSON text.
    pub headers: String,
    /// How long a delivery may take.
    pub timeout: Interval,
    /// How many deliveries begin in a second.
    pub rate: Option<f64>,
    /// How many deliveries run at once.
    pub concurrency: i32,
    /// Is anything delivered?
    pub enabled: bool,
    /// For people.
    pub description: Option<String>,
}

impl Settings {
    /// An endpoint of which only the URL is said.
    pub fn new(url: &str) -> Settings {
        Settings {
            url: url.to_owned(),
            patterns: Vec::new(),
            headers: "{}".to_owned(),
            timeout: DEFAULT_TIMEOUT,
            rate: None,
            concurrency: DEFAULT_CONCURRENCY,
            enabled: true,
            description: None,
        }
    }

    /// Refuses what can't be delivered to.
    ///
    /// # Errors
    /// When one of the values is out of its bounds.
    pub fn check(&self) -> Result<(), Invalid> {
        check_url("url", &self.url)?;
        check_headers(&self.headers)?;
        check_timeout(self.timeout)?;
        self.rate.map_or(Ok(()), check_rate)?;
        check_concurrency(self.concurrency)?;
        let description = self.description.as_deref().unwrap_or_default();
        if description.chars().count() > LONGEST_DESCRIPTION {
            let problem = format!("must not be longer than {LONGEST_DESCRIPTION} characters");
            return Err(Invalid::argument("description", description, &problem));
        }
        Ok(())
    }

    /// The settings with changes: a JSON object of some of them, where null means the default.
    ///
    /// ```
    /// use recur_core::webhook::Settings;
    ///
    /// let changed = Settings::new("https://a.example").with(r#"{"rate": 2, "patterns": ["task:*"]}"#).unwrap();
    /// assert_eq!((changed.rate, changed.patterns), (Some(2.0), vec!["task:*".to_owned()]));
    /// ```
    ///
    /// # Errors
    /// When it is no object, a key is no setting, or a value is not of its type or out of its bounds.
    pub fn with(mut self, json: &str) -> Result<Settings, Invalid> {
        let Ok(Value::Object(changes)) = serde_json::from_str(json) else {
            return Err(Invalid::argument("changes", json, "must be a JSON object")
                .with_hint("Give changes as an object such as '{\"enabled\": false}'."));
        };
        for (key, value) in &changes {
            self.change(key, value)?;
        }
        self.check()?;
        Ok(self)
    }

    fn change(&mut self, key: &str, value: &Value) -> Result<(), Invalid> {
        let default = Settings::new("");
        match (key, value) {
            ("url", Value::String(url)) => self.url.clone_from(url),
            ("patterns", Value::Null) => self.patterns = default.patterns,
            ("patterns", Value::Array(list)) => {
                let texts: Vec<_> = list
                    .iter()
                    .map(|one| one.as_str().map(str::to_owned))
                    .collect();
                self.patterns = check_patterns(&texts)?;
            }
            ("headers", Value::Null) => self.headers = default.headers,
            ("headers", Value::Object(_)) => self.headers = value.to_string(),
            ("timeout", Value::Null) => self.timeout = default.timeout,
            ("timeout", Value::String(text)) => self.timeout = interval(text)?,
            ("rate", Value::Null) => self.rate = None,
            ("rate", Value::Number(rate)) => self.rate = rate.as_f64(),
            ("concurrency", Value::Null) => self.concurrency = default.concurrency,
            ("concurrency", Value::Number(number)) => {
                let number = number
                    .as_i64()
                    .and_then(|number| i32::try_from(number).ok());
                self.concurrency = number.unwrap_or_default();
            }
            ("enabled", Value::Null) => self.enabled = default.enabled,
            ("enabled", Value::Bool(enabled)) => self.enabled = *enabled,
            ("description", Value::Null) => self.description = None,
            ("description", Value::String(text)) => self.description = Some(text.clone()),
            _ if FIELDS
                .split([',', ' '])
                .any(|field| field == key && field != "and") =>
            {
                let shown = if key == "headers" {
                    "…".to_owned()
                } else {
                    value.to_string()
                };
                return Err(Invalid::argument(key, &shown, "is not of its type")
                    .with_hint("recur.create_endpoint shows the types."));
            }
            _ => {
                return Err(
                    Invalid::argument("change", key, "is no setting of an endpoint")
                        .with_hint(format!("{FIELDS} can be changed.")),
                );
            }
        }
        Ok(())
    }
}

fn interval(text: &str) -> Result<Interval, Invalid> {
    let refused = |problem: &str| {
        Invalid::argument("timeout", text, problem)
            .with_hint("Give an interval such as '15 seconds'.")
    };
    let span = span::parse(text).map_err(|error| refused(error.problem()))?;
    Ok(Interval {
        months: span.months,
        days: span.days,
        micros: span.micros,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(json: &str) -> Result<Settings, String> {
        Settings::new("https://a.example")
            .with(json)
            .map_err(|error| error.message)
    }

    #[test]
    fn only_what_is_given_changes() {
        let all = with(
            r#"{"url": "http://b.example", "patterns": ["b", "a"], "headers": {"X-A": "1"}, "timeout": "3 seconds",
                "rate": 0.5, "concurrency": 2, "enabled": false, "description": "d"}"#,
        )
        .unwrap();
        assert_eq!(all.patterns, ["a", "b"]);
        assert_eq!(
            (all.timeout, all.rate, all.concurrency),
            (Interval::seconds(3), Some(0.5), 2)
        );
        assert_eq!(all.clone().with("{}").unwrap(), all);
        let cleared = all.with(
            r#"{"patterns": null, "headers": null, "timeout": null, "rate": null, "concurrency": null,
                "enabled": null, "description": null}"#,
        );
        assert_eq!(cleared.unwrap(), Settings::new("http://b.example"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (json, message) in [
            ("[]", "invalid changes \"[]\": must be a JSON object"),
            (
                r#"{"secret": "x"}"#,
                "invalid change \"secret\": is no setting of an endpoint",
            ),
            (
                r#"{"and": "x"}"#,
                "invalid change \"and\": is no setting of an endpoint",
            ),
            (
                r#"{"url": null}"#,
                "invalid url \"null\": is not of its type",
            ),
            (
                r#"{"headers": "x"}"#,
                "invalid headers \"…\": is not of its type",
            ),
            (
                r#"{"timeout": "3"}"#,
                "invalid timeout \"3\": \"3\" has no unit, as in \"3 seconds\"",
            ),
            (
                r#"{"concurrency": 0}"#,
                "invalid concurrency \"0\": must be from 1 to 1000",
            ),
            (
                r#"{"rate": 0}"#,
                "invalid rate \"0\": must be from 0.001 to 10,000 deliveries a second",
            ),
            (
                r#"{"url": "x"}"#,
                "invalid url \"x\": must begin with https:// or http://",
            ),
        ] {
            assert_eq!(with(json).unwrap_err(), message, "{json}");
        }
    }
}
