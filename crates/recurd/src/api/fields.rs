//! JSON objects whose values stay as they were written: numbers keep every digit.

use super::operations::sql_name;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::fmt;

/// More than any operation takes, or any row has.
const MOST: usize = 200;

/// The fields of an object, in order, under their SQL names.
#[derive(Debug, Default)]
pub struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// Reads an object. Two fields of one name are refused: which of them counts is anybody's guess.
    pub fn parse(text: &str) -> Result<Fields, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, value)| value.get())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The object as JSON text.
    pub fn text(&self) -> String {
        object(
            self.0
                .iter()
                .map(|(name, value)| (name.as_str(), value.get())),
        )
    }
}

/// Only the fields that are named, under the names that are asked for. A field that there is not is left out.
pub fn selected(row: &str, names: &[String]) -> String {
    let Ok(fields) = serde_json::from_str::<Fields>(row) else {
        return row.to_owned();
    };
    let shown = names
        .iter()
        .filter_map(|name| Some((name.as_str(), fields.get(sql_name(name))?)));
    object(shown)
}

fn object<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::from("{");
    for (name, value) in fields {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&serde_json::Value::from(name).to_string());
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    text
}

impl<'de> serde::Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a JSON object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
                let mut fields = Vec::new();
                let mut names = HashSet::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    let name = sql_name(&name).to_owned();
                    if fields.len() == MOST {
                        return Err(M::Error::custom(format!("more than {MOST} fields")));
                    }
                    if !names.insert(name.clone()) {
                        let problem = format!("the field {name:?} is given twice");
                        return Err(M::Error::custom(problem));
                    }
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_every_digit() {
        let fields =
            Fields::parse(r#"{"payload": {"n": 12345678901234567890.10}, "cron_expr":"@daily"}"#)
                .unwrap();
        assert_eq!(
            fields.get("payload"),
            Some(r#"{"n": 12345678901234567890.10}"#)
        );
        assert_eq!(
            fields.text(),
            r#"{"payload":{"n": 12345678901234567890.10},"schedule":"@daily"}"#
        );
    }

    #[test]
    fn what_is_no_object_or_says_a_thing_twice_is_refused() {
        assert!(Fields::parse("[1]").is_err());
        assert!(Fields::parse("{").is_err());
        assert!(Fields::parse("{} x").is_err());
        let error = Fields::parse(r#"{"schedule": "1d", "cron_expr": "@daily"}"#).unwrap_err();
        assert!(
            error.starts_with("the field \"schedule\" is given twice"),
            "{error}"
        );
        let many = |count: usize| {
            let fields: Vec<String> = (0..count).map(|at| format!("\"{at}\": 0")).collect();
            format!("{{{}}}", fields.join(","))
        };
        assert!(Fields::parse(&many(MOST)).is_ok());
        let error = Fields::parse(&many(MOST + 1)).unwrap_err();
        assert!(error.starts_with("more than 200 fields"), "{error}");
    }

    #[test]
    fn fields_are_shown_under_the_names_asked_for() {
        let names = ["id", "next_execution_at", "nothing"].map(str::to_owned);
        let row = r#"{"id":"a","next_run_at":null,"run_count":3}"#;
        assert_eq!(
            selected(row, &names),
            r#"{"id":"a","next_execution_at":null}"#
        );
    }
}
