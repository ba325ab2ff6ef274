//! The API walked by its document, with a client that invents requests: schemathesis.

use super::Site;
use pg_recur_tests::recurd::{self, token};

const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

#[test]
fn a_client_that_invents_requests_finds_no_internal_error() {
    let site = Site::with("[limits]\nrequests_per_second = 100000\nburst = 100000");
    let url = format!("http://{}", site.recurd.address);
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
    let output = recurd::schemathesis()
        .args([
            "run",
            document,
            "--url",
            &url,
            "--max-examples",
            "5",
            "--seed",
            "1",
            "--generation-deterministic",
        ])
        .args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing"])
        .args([
            "--exclude-path",
            "/v1/process",
            "--suppress-health-check",
            "all",
        ])
        .arg("--header")
        .arg(format!("Authorization: Bearer {}", token("admin")))
        .output()
        .expect("schemathesis runs");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{said}");
    site.recurd
        .call("admin", "GET", "/v1/recurring", "")
        .expect(200);
}
