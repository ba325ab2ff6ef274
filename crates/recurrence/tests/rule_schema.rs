//! The JSON Schema of structured rules, `docs/schedule-rule.schema.json`, says what the parser accepts.

use std::collections::BTreeSet;

use recurrence::Schedule;
use serde_json::{Map, Value, json};

fn schema() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/schedule-rule.schema.json"
    );
    let text = std::fs::read_to_string(path).expect("the schema");
    serde_json::from_str(&text).expect("the schema is JSON")
}

/// Whether a value satisfies a schema, for the keywords that the schema uses. Any other keyword panics.
fn satisfies(root: &Value, schema: &Value, value: &Value) -> bool {
    let Value::Object(keywords) = schema else {
        return schema
            .as_bool()
            .expect("a schema is an object or a truth value");
    };
    let holds = |inner: &Value, value: &Value| satisfies(root, inner, value);
    keywords
        .iter()
        .all(|(keyword, operand)| match keyword.as_str() {
            "$schema" | "title" | "description" | "$defs" | "examples" => true,
            "$ref" => {
                let pointer = operand.as_str().unwrap().trim_start_matches('#');
                holds(root.pointer(pointer).expect("what $ref names"), value)
            }
            "type" => match operand.as_str().unwrap() {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "integer" => value.is_i64() || value.is_u64(),
                other => panic!("type {other}"),
            },
            "enum" => operand.as_array().unwrap().contains(value),
            "const" => operand == value,
            "minimum" => value
                .as_i64()
                .is_none_or(|n| n >= operand.as_i64().unwrap()),
            "maximum" => value
                .as_i64()
                .is_none_or(|n| n <= operand.as_i64().unwrap()),
            "minItems" => length(value).is_none_or(|n| n >= operand.as_u64().unwrap()),
            "maxItems" => length(value).is_none_or(|n| n <= operand.as_u64().unwrap()),
            "items" => items(value).iter().all(|item| holds(operand, item)),
            "prefixItems" => {
                let pairs = operand.as_array().unwrap().iter().zip(items(value));
                pairs.into_iter().all(|(inner, item)| holds(inner, item))
            }
            "properties" => {
                operand.as_object().unwrap().iter().all(|(key, inner)| {
                    value.get(key).is_none_or(|property| holds(inner, property))
                })
            }
            "required" => value.as_object().is_none_or(|object| {
                let names = operand.as_array().unwrap();
                names
                    .iter()
                    .all(|name| object.contains_key(name.as_str().unwrap()))
            }),
            "additionalProperties" => {
                assert_eq!(operand, false);
                value.as_object().is_none_or(|object| {
                    object
                        .keys()
                        .all(|key| keywords["properties"].get(key).is_some())
                })
            }
            "not" => !holds(operand, value),
            "allOf" => operand
                .as_array()
                .unwrap()
                .iter()
                .all(|inner| holds(inner, value)),
            "if" => !holds(operand, value) || holds(&keywords["then"], value),
            "then" => true,
            other => panic!("keyword {other}"),
        })
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn length(value: &Value) -> Option<u64> {
    value.as_array().map(|items| items.len() as u64)
}

fn parses(rule: &Value) -> bool {
    Schedule::parse(&rule.to_string()).is_ok()
}

fn check(schema: &Value, rule: &Value) {
    let (allowed, parsed) = (satisfies(schema, schema, rule), parses(rule));
    assert_eq!(allowed, parsed, "{rule}: schema and parser");
}

/// Values for a key: right ones, those at and beyond each bound, and some of the wrong type.
fn candidates(key: &str) -> Vec<Value> {
    let mut values = match key {
        "every" => [
            0, 1, 2, 1_000, 1_001, 12_000, 12_001, 52_000, 52_001, 366_000, 366_001, 1_000_000,
            1_000_001, 60_000_000, 60_000_001, -1,
        ]
        .map(|n: i64| json!(n))
        .to_vec(),
        "unit" => [
            "second", "minute", "hour", "day", "week", "month", "year", "decade", "",
        ]
        .map(|unit| json!(unit))
        .to_vec(),
        "days_of_week" => vec![
            json!([]),
            json!(["mon"]),
            json!(["monday", 7, "sat"]),
            json!([0]),
            json!([8]),
            json!(["m"]),
            json!(["tue", "tues"]),
        ],
        "week_parity" => ["odd", "even", "any", "both"]
            .map(|name| json!(name))
            .to_vec(),
        "between_hours" => vec![
            json!([9, 17]),
            json!([22, 6]),
            json!([0, 24]),
            json!([23, 0]),
            json!([24, 0]),
            json!([0, 25]),
            json!([-1, 5]),
            json!([9]),
            json!([9, 17, 18]),
        ],
        "day_of_month" => [-2, -1, 0, 1, 31, 32].map(|n| json!(n)).to_vec(),
        "nth_weekday" => {
            let mut values: Vec<Value> = [-2, -1, 0, 1, 5, 6]
                .map(|nth| json!({"nth": nth, "day": "fri"}))
                .to_vec();
            values.extend([
                json!({"nth": 1}),
                json!({"day": "fri"}),
                json!({"nth": 1, "day": "x"}),
                json!({"nth": 1, "day": 7, "of": "month"}),
            ]);
            values
        }
        other => panic!("key {other} of the schema has no candidates"),
    };
    values.extend([
        json!(1.5),
        json!("1"),
        json!(true),
        json!([[1, 2]]),
        json!({"nth": []}),
    ]);
    values
}

#[test]
fn the_keys_are_those_of_the_parser() {
    let schema = schema();
    let keys: BTreeSet<&str> = schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    // The parser lists its keys where it refuses another one.
    let error = Schedule::parse(r#"{"every":1,"unit":"day","x":1}"#)
        .unwrap_err()
        .to_string();
    let listed = error
        .split_once("expected ")
        .unwrap()
        .1
        .replace(" or ", ", ");
    assert_eq!(keys, listed.split(", ").collect());
}

#[test]
fn schema_and_parser_agree_on_every_value_with_every_unit() {
    let schema = schema();
    let keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    for unit in candidates("unit") {
        for key in &keys {
            for value in candidates(key) {
                let mut rule = Map::from_iter([
                    ("every".to_owned(), json!(1)),
                    ("unit".to_owned(), unit.clone()),
                ]);
                rule.insert((*key).clone(), value);
                check(&schema, &Value::Object(rule));
            }
        }
    }
    for rule in [
        json!({}),
        json!({"every": 1}),
        json!({"unit": "day"}),
        json!({"every": 1, "unit": "day", "colour": 1}),
        json!({"every": 1, "unit": "month", "day_of_month": 1, "nth_weekday": {"nth": 1, "day": "mon"}}),
    ] {
        check(&schema, &rule);
    }
}

#[test]
fn schema_and_parser_agree_on_pairs_of_keys() {
    let schema = schema();
    let keys = [
        "days_of_week",
        "week_parity",
        "between_hours",
        "day_of_month",
    ];
    for (index, first) in keys.iter().enumerate() {
        for second in &keys[index + 1..] {
            for one in candidates(first) {
                for two in candidates(second) {
                    check(
                        &schema,
                        &json!({"every": 1, "unit": "month", *first: one, *second: two}),
                    );
                }
            }
        }
    }
}

#[test]
fn the_examples_are_rules_and_a_canonical_text_satisfies_the_schema() {
    let schema = schema();
    for rule in items(&schema["examples"]) {
        assert!(satisfies(&schema, &schema, rule) && parses(rule), "{rule}");
    }
    for text in [
        r#"{"every":{"interval":2,"unit":"weeks"},"daysOfWeek":["Tue",4],"weekParity":"odd"}"#,
        r#"{"everyInterval":1,"everyUnit":"hour","betweenHoursStart":9,"betweenHoursEnd":24}"#,
        r#"{"every":1,"unit":"year","nthWeekday":{"nth":-1,"day":"Friday"}}"#,
    ] {
        let canonical = Schedule::parse(text).unwrap().to_string();
        let rule = serde_json::from_str(&canonical).unwrap();
        assert!(satisfies(&schema, &schema, &rule), "{canonical}");
    }
}
