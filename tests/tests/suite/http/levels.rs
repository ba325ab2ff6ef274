//! Every operation as each access level: what a role may not do in SQL, it may not do here.

use super::{ROLES, Site};
use serde_json::Value;
use std::fs;

const LOOKS: &[&str] = &["reader", "author", "consumer", "sql", "admin", "other"];
const WRITES: &[&str] = &["author", "sql", "admin", "other"];
const CONSUMES: &[&str] = &["consumer", "admin"];
const STOPS: &[&str] = &["consumer", "sql", "admin"];

/// Operation, body, who may.
const OPERATIONS: [(&str, &str, &[&str]); 27] = [
    (
        "recurring.create",
        r#"{"name":"x","schedule":"1d","provider":"p","action_type":"t"}"#,
        WRITES,
    ),
    ("recurring.list", "", LOOKS),
    ("recurring.get", "", LOOKS),
    ("recurring.update", r#"{"priority":1}"#, WRITES),
    ("recurring.delete", "", WRITES),
    ("recurring.pause", "{}", WRITES),
    ("recurring.resume", "", WRITES),
    ("recurring.trigger", "{}", WRITES),
    ("recurring.preview", "", LOOKS),
    (
        "recurring.compare",
        r#"{"changes":{"schedule":"2d"}}"#,
        LOOKS,
    ),
    ("recurring.explain", "", LOOKS),
    ("recurring.history", "", LOOKS),
    ("recurring.context", "", LOOKS),
    ("recurring.pause_all", r#"{"tenant":"none"}"#, WRITES),
    ("recurring.resume_all", r#"{"tenant":"none"}"#, WRITES),
    ("schedule.preview", r#"{"schedule":"@daily"}"#, LOOKS),
    (
        "dispatch.enqueue",
        r#"{"provider":"p","action_type":"t"}"#,
        WRITES,
    ),
    ("dispatch.list", "", LOOKS),
    ("dispatch.get", "", LOOKS),
    ("dispatch.cancel", "{}", STOPS),
    ("dispatch.retry", "", STOPS),
    ("dispatch.dead_letters", "", LOOKS),
    ("dispatch.claim", r#"{"providers":["none"]}"#, CONSUMES),
    ("dispatch.complete", r#"{"attempt":1}"#, CONSUMES),
    ("dispatch.fail", r#"{"attempt":1,"reason":"x"}"#, CONSUMES),
    ("dispatch.extend", r#"{"attempt":1}"#, CONSUMES),
    ("dispatch.release", r#"{"attempt":1}"#, CONSUMES),
];

/// (operation, method, path) of the committed document.
fn documented() -> Vec<(String, String, String)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
    let document: Value =
        serde_json::from_str(&fs::read_to_string(path).expect("a document")).expect("JSON");
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let id = operation["operationId"].as_str().expect("an id").to_owned();
            found.push((id, method.to_uppercase(), path.clone()));
        }
    }
    found
}

#[test]
fn each_operation_is_open_to_its_levels_only() {
    let mut site = Site::start();
    // A member of a role has the level of that role as well.
    site.session
        .batch("REVOKE author FROM reader, consumer, sql");
    let action = site.create("author", "watched");
    let dispatch = site.enqueue("author");
    let mut tested = 0;
    for (id, method, path) in documented() {
        if id == "process" {
            continue;
        }
        let found = OPERATIONS.iter().find(|(name, _, _)| *name == id);
        let (_, body, allowed) =
            found.unwrap_or_else(|| panic!("{id} is not in the table of this test"));
        let target = if path.starts_with("/v1/dispatches") {
            &dispatch
        } else {
            &action
        };
        let path = path.replace("{id}", target);
        for role in ROLES {
            let reply = site.recurd.call(role, &method, &path, body);
            let what = format!("{role}: {method} {path}: {} {}", reply.status, reply.body);
            assert!(reply.status < 500, "{what}");
            if allowed.contains(&role) {
                assert_ne!(reply.status, 403, "{what}");
            } else {
                assert_eq!(
                    (reply.status, reply.json()["code"].as_str()),
                    (403, Some("42501")),
                    "{what}"
                );
            }
        }
        tested += 1;
    }
    assert_eq!(tested, OPERATIONS.len());
}
