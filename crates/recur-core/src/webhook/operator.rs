//! The endpoints of an operator, as a program that delivers has them in its configuration.

use super::endpoint::{check_concurrency, check_rate};
use super::{DEFAULT_CONCURRENCY, OPERATOR_PREFIX};
use crate::InvalidValue;
use crate::pattern::Pattern;
use serde_json::{Map, Value};

const ARGUMENT: &str = "operator";
const HINT: &str =
    r#"Give a list such as '[{"name": "erp", "patterns": ["task:*"], "owners": ["app"]}]'."#;
const MOST: usize = 1_000;
const FIELDS: [&str; 5] = ["name", "patterns", "owners", "concurrency", "rate"];

/// An endpoint of the operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    /// The name with which dispatches are bound to it: `operator:` and its own.
    pub key: String,
    /// Which action types it gets.
    pub patterns: Vec<Pattern>,
    /// Whose dispatches it gets; none for everybody's.
    pub owners: Option<Vec<String>>,
    /// How many deliveries run at once.
    pub concurrency: i32,
    /// How many deliveries a second.
    pub rate: Option<f64>,
}

impl Operator {
    /// Reads the list, which is a JSON text.
    ///
    /// ```
    /// use recur_core::webhook::Operator;
    ///
    /// let list = Operator::parse(r#"[{"name": "erp", "patterns": ["task:*"], "owners": ["app"]}]"#).unwrap();
    /// assert_eq!(list[0].key, "operator:erp");
    /// assert!(list[0].takes("app", "task:created") && !list[0].takes("other", "task:created"));
    /// ```
    ///
    /// # Errors
    /// When it is no such list, or has something else as well.
    pub fn parse(json: &str) -> Result<Vec<Operator>, InvalidValue> {
        let refused =
            || InvalidValue::new(ARGUMENT, json, "must be a list of endpoints").with_hint(HINT);
        let Ok(Value::Array(list)) = serde_json::from_str(json) else {
            return Err(refused());
        };
        if list.len() > MOST {
            let problem = format!("must not have more than {MOST} endpoints");
            return Err(InvalidValue::new(ARGUMENT, list.len().to_string(), problem));
        }
        let mut read: Vec<Operator> = Vec::with_capacity(list.len());
        for one in &list {
            let fields = one.as_object().ok_or_else(refused)?;
            let operator = Operator::from_fields(fields).map_err(|detail| {
                InvalidValue::new(ARGUMENT, one.to_string(), "is no endpoint of an operator")
                    .with_detail(detail)
                    .with_hint(HINT)
            })?;
            if read.iter().any(|other| other.key == operator.key) {
                return Err(InvalidValue::new(ARGUMENT, operator.key, "is there twice"));
            }
            read.push(operator);
        }
        Ok(read)
    }

    fn from_fields(fields: &Map<String, Value>) -> Result<Operator, String> {
        if let Some(name) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
            return Err(format!("\"{name}\" is no part of it."));
        }
        let given = |name: &str| fields.get(name).filter(|value| !value.is_null());
        let name = given("name").and_then(Value::as_str).unwrap_or_default();
        if name.trim().is_empty() || name.chars().count() > 200 {
            return Err("Its name must be a text of 1 to 200 characters.".to_owned());
        }
        let patterns = match given("patterns") {
            None => return Err("It has no patterns.".to_owned()),
            Some(list) => texts("patterns", list)?,
        };
        let pattern = |text: &String| {
            Pattern::parse(ARGUMENT, text).map_err(|error| format!("The pattern {error}."))
        };
        let concurrency = match given("concurrency") {
            None => DEFAULT_CONCURRENCY,
            Some(value) => value
                .as_i64()
                .and_then(|number| i32::try_from(number).ok())
                .filter(|number| check_concurrency(*number).is_ok())
                .ok_or("Its concurrency must be from 1 to 1,000.")?,
        };
        let rate = given("rate").map(|value| {
            let rate = value.as_f64().filter(|rate| check_rate(*rate).is_ok());
            rate.ok_or("Its rate must be from 0.001 to 10,000 deliveries a second.")
        });
        Ok(Operator {
            key: format!("{OPERATOR_PREFIX}{name}"),
            patterns: patterns.iter().map(pattern).collect::<Result<_, _>>()?,
            owners: given("owners")
                .map(|list| texts("owners", list))
                .transpose()?,
            concurrency,
            rate: rate.transpose()?,
        })
    }

    /// Does it get the dispatches of an owner?
    pub fn serves(&self, owner: &str) -> bool {
        let owners = self.owners.as_deref();
        owners.is_none_or(|owners| owners.iter().any(|one| one == owner))
    }

    /// Does it get an owner's dispatches of an action type?
    pub fn takes(&self, owner: &str, action_type: &str) -> bool {
        self.serves(owner)
            && self
                .patterns
                .iter()
                .any(|pattern| pattern.matches(action_type))
    }
}

fn texts(name: &str, value: &Value) -> Result<Vec<String>, String> {
    let list = value.as_array().into_iter().flatten();
    let texts: Option<Vec<String>> = list.map(|one| one.as_str().map(str::to_owned)).collect();
    match (value.is_array(), texts) {
        (true, Some(texts)) => Ok(texts),
        _ => Err(format!("Its {name} must be a list of texts.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_read() {
        let list = Operator::parse(
            r#"[{"name": "a", "patterns": ["*"]},
                {"name": "b", "patterns": [], "owners": [], "concurrency": 3, "rate": 0.5}]"#,
        )
        .unwrap();
        assert_eq!(
            (list[0].concurrency, list[0].rate),
            (DEFAULT_CONCURRENCY, None)
        );
        assert!(list[0].takes("anybody", "anything"));
        assert_eq!((list[1].concurrency, list[1].rate), (3, Some(0.5)));
        assert!(!list[1].serves("anybody"));
        assert_eq!(Operator::parse("[]"), Ok(Vec::new()));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (json, detail) in [
            ("{}", None),
            ("[1]", None),
            (
                r#"[{"patterns": []}]"#,
                Some("Its name must be a text of 1 to 200 characters."),
            ),
            (r#"[{"name": "a"}]"#, Some("It has no patterns.")),
            (
                r#"[{"name": "a", "patterns": "*"}]"#,
                Some("Its patterns must be a list of texts."),
            ),
            (
                r#"[{"name": "a", "patterns": [], "url": "x"}]"#,
                Some("\"url\" is no part of it."),
            ),
            (
                r#"[{"name": "a", "patterns": [], "rate": 0}]"#,
                Some("Its rate must be from 0.001 to 10,000 deliveries a second."),
            ),
            (
                r#"[{"name": "a", "patterns": [], "concurrency": 1.5}]"#,
                Some("Its concurrency must be from 1 to 1,000."),
            ),
        ] {
            let error = Operator::parse(json).unwrap_err();
            assert_eq!(
                (error.argument(), error.detail()),
                (ARGUMENT, detail),
                "{json}"
            );
            assert!(error.hint().is_some());
        }
        let twice = r#"[{"name": "a", "patterns": []}, {"name": "a", "patterns": []}]"#;
        assert_eq!(
            Operator::parse(twice).unwrap_err().problem(),
            "is there twice"
        );
    }
}
