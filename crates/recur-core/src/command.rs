//! SQL actions: what the payload of a dispatch of the reserved provider `sql` says.

use crate::InvalidValue;
use crate::span::{self, Span};
use chrono::TimeDelta;
use serde_json::{Map, Value};

/// The provider whose dispatches the database itself runs.
pub const PROVIDER: &str = "sql";
/// The one action type of that provider.
pub const ACTION_TYPE: &str = "command";

/// The longest timeout: the server counts the milliseconds in 32 bits.
const LONGEST_TIMEOUT: TimeDelta = TimeDelta::days(24);

/// A command to run, and how long it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// One or several SQL statements.
    pub text: String,
    /// None where the server's `statement_timeout` decides.
    pub timeout: Option<TimeDelta>,
}

impl Command {
    /// Reads the payload of an SQL action.
    ///
    /// ```
    /// use chrono::TimeDelta;
    /// use recur_core::command::Command;
    ///
    /// let command = Command::from_payload(r#"{"command": "VACUUM orders", "timeout": "10 minutes"}"#).unwrap();
    /// assert_eq!(command.text, "VACUUM orders");
    /// assert_eq!(command.timeout, Some(TimeDelta::minutes(10)));
    ///
    /// let error = Command::from_payload(r#"{"comand": "VACUUM"}"#).unwrap_err();
    /// assert_eq!(error.detail(), Some(r#"It has no "command", and "comand" is no part of it."#));
    /// ```
    ///
    /// # Errors
    /// When it is no object of a text `command` and perhaps a `timeout` that is longer than nothing.
    pub fn from_payload(json: &str) -> Result<Command, InvalidValue> {
        let invalid = |detail: String| {
            InvalidValue::new(
                "payload",
                json,
                "must be the payload of an SQL action: a command, and perhaps a timeout",
            )
            .with_detail(detail)
            .with_hint(r#"Give it as in {"command": "VACUUM orders", "timeout": "10 minutes"}."#)
        };
        let fields: Map<String, Value> = match serde_json::from_str(json) {
            Ok(Value::Object(fields)) => fields,
            _ => return Err(invalid("It is no JSON object.".to_owned())),
        };
        let unknown = fields
            .keys()
            .find(|name| !["command", "timeout"].contains(&name.as_str()));
        let text = match (fields.get("command"), unknown) {
            (Some(Value::String(text)), None) => text.clone(),
            (Some(Value::String(_)), Some(name)) => {
                return Err(invalid(format!("\"{name}\" is no part of it.")));
            }
            (Some(_), _) => return Err(invalid("Its \"command\" is no text.".to_owned())),
            (None, None) => return Err(invalid("It has no \"command\".".to_owned())),
            (None, Some(name)) => {
                return Err(invalid(format!(
                    "It has no \"command\", and \"{name}\" is no part of it."
                )));
            }
        };
        let timeout = match fields.get("timeout") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(timeout(text)?),
            Some(other) => Some(timeout(&other.to_string())?),
        };
        Ok(Command { text, timeout })
    }

    /// The payload that says this.
    ///
    /// ```
    /// use recur_core::command::Command;
    ///
    /// assert_eq!(Command::payload("SELECT 1", Some("00:00:30")), r#"{"command":"SELECT 1","timeout":"00:00:30"}"#);
    /// ```
    pub fn payload(text: &str, timeout: Option<&str>) -> String {
        let mut fields = Map::new();
        fields.insert("command".to_owned(), text.into());
        if let Some(timeout) = timeout {
            fields.insert("timeout".to_owned(), timeout.into());
        }
        Value::Object(fields).to_string()
    }
}

/// Reads how long a run may take.
///
/// ```
/// use chrono::TimeDelta;
/// use recur_core::command::timeout;
///
/// assert_eq!(timeout("1.5 seconds").unwrap(), TimeDelta::milliseconds(1_500));
/// assert_eq!(timeout("0 seconds").unwrap_err().problem(), "must be longer than nothing");
/// ```
///
/// # Errors
/// When it is no span of time, not longer than nothing, or longer than the server can count.
pub fn timeout(text: &str) -> Result<TimeDelta, InvalidValue> {
    let span =
        span::parse(text).map_err(|error| InvalidValue::new("timeout", text, error.problem()))?;
    check_timeout(span, text)
}

fn check_timeout(span: Span, text: &str) -> Result<TimeDelta, InvalidValue> {
    let has_negative_part = span.months < 0 || span.days < 0 || span.micros < 0;
    let length = span.length();
    let problem = if has_negative_part || length < TimeDelta::milliseconds(1) {
        "must be longer than nothing"
    } else if length > LONGEST_TIMEOUT {
        "must not be longer than 24 days"
    } else {
        return Ok(length);
    };
    Err(InvalidValue::new("timeout", text, problem)
        .with_hint("Leave it out to let the statement_timeout of the owner decide."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_read_as_it_was_written() {
        for (text, timeout) in [("SELECT 1", None), ("x'\n\"\\", Some("1 day 02:00:00"))] {
            let read = Command::from_payload(&Command::payload(text, timeout)).unwrap();
            assert_eq!(read.text, text);
            assert_eq!(
                read.timeout,
                timeout.map(|text| span::parse(text).unwrap().length())
            );
        }
        let read = Command::from_payload(r#"{"command": "a", "timeout": null}"#).unwrap();
        assert_eq!(read.timeout, None);
    }

    #[test]
    fn other_payloads_are_refused() {
        for (json, detail) in [
            ("[]", "It is no JSON object."),
            ("{}", r#"It has no "command"."#),
            (r#"{"command": 1}"#, r#"Its "command" is no text."#),
            (r#"{"command": "a", "x": 1}"#, r#""x" is no part of it."#),
        ] {
            let error = Command::from_payload(json).unwrap_err();
            assert_eq!(
                (error.argument(), error.detail()),
                ("payload", Some(detail))
            );
        }
    }

    #[test]
    fn a_timeout_is_longer_than_nothing() {
        for (timeout, problem) in [
            (r#""0""#, r#""0" has no unit, as in "0 seconds""#),
            (r#""0 seconds""#, "must be longer than nothing"),
            (r#""-1 second""#, "must be longer than nothing"),
            (r#""1 day -23 hours""#, "must be longer than nothing"),
            (r#""25 days""#, "must not be longer than 24 days"),
            ("5", r#""5" has no unit, as in "5 seconds""#),
        ] {
            let json = format!(r#"{{"command": "a", "timeout": {timeout}}}"#);
            let error = Command::from_payload(&json).unwrap_err();
            assert_eq!((error.argument(), error.problem()), ("timeout", problem));
        }
    }
}
