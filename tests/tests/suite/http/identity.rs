//! Who calls, and what is closed to whom.

use super::Site;
use pg_recur_tests::recurd::{Recurd, token};
use pg_recur_tests::succeed;
use std::fs;
use std::process::Command;

#[test]
fn with_nothing_configured_all_but_liveness_is_closed() {
    let recurd = Recurd::unconfigured();
    recurd.send("GET", "/livez", &[], "").expect(200);
    recurd.send("GET", "/readyz", &[], "").expect(503);
    for (method, path) in [
        ("GET", "/v1/recurring"),
        ("POST", "/v1/recurring"),
        ("POST", "/v1/claim"),
        ("POST", "/v1/process"),
        ("GET", "/v1/openapi.json"),
        ("GET", "/metrics"),
        ("GET", "/"),
    ] {
        let reply = recurd.send(
            method,
            path,
            &[("authorization", "Bearer a-token-of-admin")],
            "",
        );
        assert!(
            [401, 404, 503].contains(&reply.status),
            "{method} {path}: {reply:?}"
        );
        assert_eq!(
            reply.header("content-type"),
            Some("application/problem+json"),
            "{path}"
        );
    }
    assert!(recurd.address.ip().is_loopback());
}

#[test]
fn callers_without_a_valid_token_are_refused() {
    let site = Site::start();
    let reply = site
        .recurd
        .send("GET", "/v1/recurring", &[], "")
        .expect(401);
    assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    assert_eq!(reply.json()["detail"], "the request has no identity");
    for value in ["Bearer wrong", "Bearer", "Basic YTpi", "a-token-of-admin"] {
        site.recurd
            .send("GET", "/v1/recurring", &[("authorization", value)], "")
            .expect(401);
    }
    site.recurd
        .call("reader", "GET", "/v1/recurring", "")
        .expect(200);
    site.recurd.send("GET", "/readyz", &[], "").expect(200);
}

#[test]
fn a_proxy_that_is_not_trusted_names_no_role() {
    let trusted = Site::with("[auth.proxy]\nheader = \"X-Role\"\naddresses = [\"127.0.0.1/32\"]");
    let list = |headers: &[(&str, &str)]| {
        trusted
            .recurd
            .send("GET", "/v1/recurring", headers, "")
            .status
    };
    assert_eq!(list(&[("x-role", "reader")]), 200);
    assert_eq!(list(&[("x-role", "postgres")]), 403);
    assert_eq!(list(&[("x-role", "recurd")]), 403);
    let token = format!("Bearer {}", token("reader"));
    assert_eq!(list(&[("x-role", "admin"), ("authorization", &token)]), 401);
    drop(trusted);
    let untrusted = Site::with("[auth.proxy]\nheader = \"X-Role\"\naddresses = [\"192.0.2.0/24\"]");
    untrusted
        .recurd
        .send("GET", "/v1/recurring", &[("x-role", "reader")], "")
        .expect(401);
}

#[test]
fn nobody_becomes_a_superuser_or_a_role_that_was_not_granted() {
    let mut site = Site::start();
    site.session
        .batch("ALTER ROLE author SUPERUSER; REVOKE reader FROM recurd");
    let reply = site
        .recurd
        .call("author", "GET", "/v1/recurring", "")
        .expect(403);
    assert_eq!(
        reply.json()["detail"],
        r#"role "author" does not exist, or is a superuser"#
    );
    let reply = site
        .recurd
        .call("reader", "GET", "/v1/recurring", "")
        .expect(403);
    assert_eq!(reply.json()["code"], "42501");
    // A login that is a superuser is no login.
    site.session.batch(
        "ALTER ROLE recurd SUPERUSER; SELECT pg_terminate_backend(pid)
                          FROM pg_stat_activity WHERE usename = 'recurd'",
    );
    site.recurd
        .call("admin", "GET", "/v1/recurring", "")
        .expect(503);
}

#[test]
fn the_audit_names_the_caller() {
    let mut site = Site::start();
    let id = site.create("author", "report");
    let actor: String = site.session.value(
        "SELECT actor FROM recur.events WHERE action_id = $1::text::uuid AND kind = 'action.created'",
        &[&id],
    );
    assert_eq!(actor, "author");
}

#[test]
fn a_role_sees_nothing_of_another() {
    let site = Site::start();
    let action = site.create("author", "private");
    let dispatch = site.enqueue("author");
    for path in [
        format!("/v1/recurring/{action}"),
        format!("/v1/recurring/{action}/preview"),
        format!("/v1/recurring/{action}/history"),
        format!("/v1/recurring/{action}/context"),
        format!("/v1/dispatches/{dispatch}"),
    ] {
        site.recurd.call("author", "GET", &path, "").expect(200);
        let reply = site.recurd.call("other", "GET", &path, "").expect(404);
        assert!(!reply.body.contains("private"), "{reply:?}");
    }
    for path in ["/v1/recurring", "/v1/dispatches", "/v1/dead-letters"] {
        let reply = site.recurd.call("other", "GET", path, "").expect(200);
        assert_eq!(reply.json()["items"], serde_json::json!([]), "{path}");
    }
    site.recurd
        .call("other", "DELETE", &format!("/v1/recurring/{action}"), "")
        .expect(404);
    site.recurd
        .call(
            "other",
            "PATCH",
            &format!("/v1/recurring/{action}"),
            r#"{"priority": 1}"#,
        )
        .expect(404);
    let reply = site
        .recurd
        .call("other", "POST", "/v1/bulk/pause", "{}")
        .expect(200);
    assert_eq!(reply.json()["items"], serde_json::json!([]));
}

#[test]
fn roles_take_turns_on_one_connection() {
    let site = Site::with("[database]\npool_size = 1");
    for round in 0..20 {
        site.create("author", &format!("a{round}"));
        let reply = site
            .recurd
            .call("other", "GET", "/v1/recurring?limit=500", "")
            .expect(200);
        assert_eq!(reply.json()["items"], serde_json::json!([]));
        site.recurd
            .call("stranger", "GET", "/v1/recurring", "")
            .expect(403);
    }
}

#[test]
fn no_secret_is_logged() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), "a-long-secret-of-the-cron\n").expect("a secret");
    let section = format!(
        "[process]\nrole = \"ticker\"\nsecret_file = {:?}\n[log]\nfilter = \"trace\"",
        file.path()
    );
    let site = Site::with(&section);
    let secret = ("authorization", "Bearer a-long-secret-of-the-cron");
    let reply = site
        .recurd
        .send("POST", "/v1/process", &[secret], "")
        .expect(200);
    assert_eq!(reply.json()["dispatched"], 0);
    site.recurd
        .send(
            "POST",
            "/v1/process",
            &[("authorization", "Bearer another")],
            "",
        )
        .expect(401);
    site.recurd.send("POST", "/v1/process", &[], "").expect(401);
    site.recurd
        .call("admin", "POST", "/v1/process", "")
        .expect(401);
    site.create("author", "logged");
    let log = site.recurd.log();
    assert!(
        log.contains("recurring.create") && log.contains("process.tick"),
        "{log}"
    );
    assert!(
        !log.contains("a-long-secret") && !log.contains(&token("author")),
        "{log}"
    );
}

#[test]
fn a_configuration_that_says_nonsense_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recurd.toml");
    fs::write(
        &path,
        "[database]\nurl = \"postgresql://recurd:hunter2@localhost/app\"\n",
    )
    .expect("a file");
    let mut command = Command::new(pg_recur_tests::recurd::program());
    let output = command
        .arg("check")
        .arg("--config")
        .arg(&path)
        .output()
        .expect("recurd runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("database.url holds a password") && !said.contains("hunter2"),
        "{said}"
    );
    let help = succeed(Command::new(pg_recur_tests::recurd::program()).arg("--help"));
    assert!(help.contains("serve") && help.contains("check"), "{help}");
}
