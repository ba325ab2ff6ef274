//! Helpers that the test files share.

#![allow(dead_code, reason = "each test file uses some of the helpers")]

pub mod oracle;

use chrono::{DateTime, Utc};
use serde_json::Value;

/// The cases of a file in `tests/vectors`.
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

/// Clock changes of many kinds: half hours, midnight, a whole day, two hours, odd minutes.
pub const CHANGES: [(&str, &str); 16] = [
    ("America/New_York", "2025-03-09T07:00:00Z"),
    ("America/New_York", "2025-11-02T06:00:00Z"),
    ("Europe/London", "2025-03-30T01:00:00Z"),
    ("Europe/London", "2025-10-26T01:00:00Z"),
    ("Australia/Lord_Howe", "2024-10-05T15:30:00Z"),
    ("Australia/Lord_Howe", "2024-04-06T15:00:00Z"),
    ("America/Sao_Paulo", "2018-11-04T03:00:00Z"),
    ("America/Sao_Paulo", "2018-02-18T02:00:00Z"),
    ("Pacific/Apia", "2011-12-30T10:00:00Z"),
    ("Antarctica/Troll", "2024-03-31T01:00:00Z"),
    ("Antarctica/Troll", "2024-10-27T01:00:00Z"),
    ("America/Nuuk", "2024-03-31T01:00:00Z"),
    ("Pacific/Chatham", "2024-09-28T14:00:00Z"),
    ("Asia/Beirut", "2024-10-26T21:00:00Z"),
    ("America/Caracas", "2016-05-01T07:00:00Z"),
    ("UTC", "2024-02-29T12:00:00Z"),
];
