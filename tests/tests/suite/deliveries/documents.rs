//! The code of docs/webhooks.md verifies what recurd really sends. Rust's is the module `verify`, which all tests use.

use super::{SECRET, Site};
use pg_recur_tests::receiver::{Reaction, Received, Receiver};
use pg_recur_tests::succeed;
use std::path::Path;
use std::process::Command;

fn block(language: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/webhooks.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rest) = text
        .split_once(&format!("```{language}\n"))
        .expect("a block");
    rest.split_once("```").expect("its end").0.to_owned()
}

/// A real delivery, as files: headers in JSON, and the body.
fn write(folder: &Path, received: &Received) {
    let headers: serde_json::Map<_, _> = received
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), value.clone().into()))
        .collect();
    std::fs::write(
        folder.join("headers"),
        serde_json::Value::from(headers).to_string(),
    )
    .unwrap();
    std::fs::write(folder.join("body"), &received.body).unwrap();
}

const PYTHON: &str = r#"
import json, sys
folder, secret = sys.argv[1:]
headers = json.load(open(folder + "/headers"))
body = open(folder + "/body", "rb").read()
verify(secret, headers, body)
other = "whsec_b2xkIG9sZCBvbGQgb2xkIG9sZCBvbGQgb2xkIG9sZA=="
old = dict(headers, **{"webhook-timestamp": "1700000000"})
for arguments in [(secret, headers, body + b" "), (other, headers, body), (secret, old, body)]:
    try:
        verify(*arguments)
    except ValueError:
        continue
    sys.exit("accepted")
print("verified")
"#;

const NODE: &str = r#"
const fs = require("node:fs");
const [folder, secret] = process.argv.slice(2);
const headers = JSON.parse(fs.readFileSync(folder + "/headers"));
const body = fs.readFileSync(folder + "/body");
verify(secret, headers, body);
const other = "whsec_b2xkIG9sZCBvbGQgb2xkIG9sZCBvbGQgb2xkIG9sZA==";
const old = { ...headers, "webhook-timestamp": "1700000000" };
const wrong = [[secret, headers, Buffer.concat([body, Buffer.from(" ")])], [other, headers, body], [secret, old, body]];
for (const given of wrong) {
  let accepted = true;
  try { verify(...given); } catch { accepted = false; }
  if (accepted) { throw new Error("accepted"); }
}
console.log("verified");
"#;

#[test]
fn documented_verifiers_accept_what_is_sent_and_nothing_else() {
    let receiver = Receiver::start(|_| Reaction::ok());
    let mut site = Site::start();
    let _recurd = site.deliver_to(&receiver);
    let id = site.enqueue("task:created", "{\"größe\": 1e400}", 3);
    site.wait_for(id, "completed");
    let folder = site.folder.path();
    write(folder, &receiver.received()[0]);
    for (language, program, harness) in [("python", "python3", PYTHON), ("js", "node", NODE)] {
        let script = folder.join(format!("verify.{language}"));
        let script = script.with_extension(if language == "js" { "cjs" } else { "py" });
        std::fs::write(&script, block(language) + harness).unwrap();
        let said = succeed(Command::new(program).arg(&script).arg(folder).arg(SECRET));
        assert_eq!(said, "verified\n");
    }
}

#[test]
fn the_documented_verifier_in_rust_is_the_one_that_the_tests_use() {
    assert_eq!(block("rust"), include_str!("verify.rs"));
}
