//! What the test files share.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod oracle;

use chrono::{DateTime, Utc};
use serde_json::Value;

pub fn vectors(file: &str) -> Vec<Value> {
    let path = format!("{}/tests/vectors/{file}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("vector file");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

pub fn instant(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text)
        .expect("RFC 3339")
        .with_timezone(&Utc)
}
