//! The rules and the dashboard of monitoring/, and the metrics that they read.

use super::Site;
use pg_recur_tests::recurd::promtool;
use pg_recur_tests::succeed;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

fn file(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../monitoring")).join(name)
}

/// The metrics that these expressions name.
fn named(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with("recur_") || word.starts_with("recurd_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn what_is_scraped_is_well_formed_and_has_all_that_is_watched() {
    let site = Site::with("[metrics]\nrole = \"monitor\"\nopen = true");
    site.enqueue("author");
    for path in ["/v1/hooks/nobody", "/v1/process"] {
        site.recurd.send("POST", path, &[], "").expect(404);
    }
    let text = site
        .recurd
        .send("GET", "/metrics", &[], "")
        .expect(200)
        .body;
    for operation in ["webhook.received", "process.tick"] {
        let sample =
            format!("recurd_requests_total{{operation=\"{operation}\",status=\"404\"}} 1\n");
        assert!(text.contains(&sample), "{text}");
    }
    let mut checked = promtool()
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool runs");
    let mut input = checked.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("promtool reads");
    drop(input);
    let output = checked.wait_with_output().expect("promtool ends");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success() && said.trim().is_empty(), "{said}");

    let rules = fs::read_to_string(file("alerts.yml")).expect("rules");
    let expressions: Vec<&str> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("expr: "))
        .collect();
    let dashboard = fs::read_to_string(file("grafana-pg_recur.json")).expect("a dashboard");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let queries: Vec<&str> = targets
        .map(|target| target["expr"].as_str().expect("a query"))
        .collect();
    assert!(expressions.len() > 10 && queries.len() > 10);
    for name in named(&expressions.join(" ")).union(&named(&queries.join(" "))) {
        let sample = |line: &str| {
            line.strip_prefix(name.as_str())
                .is_some_and(|rest| rest.starts_with('{') || rest.starts_with(' '))
        };
        assert!(
            text.lines().any(sample),
            "{name} is watched and not there: {text}"
        );
    }
}

#[test]
fn the_alert_rules_are_rules() {
    let said = succeed(promtool().args(["check", "rules"]).arg(file("alerts.yml")));
    assert!(said.contains("SUCCESS"), "{said}");
}
