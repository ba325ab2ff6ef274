//! What a configuration may say, and what is refused.

use super::*;

fn config(text: &str) -> Result<Config, String> {
    Config::validate(
        toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())?,
    )
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    match config(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => assert_eq!(error, expected),
    }
}

#[test]
fn nothing_configured_is_closed() {
    let config = config("").unwrap();
    assert!(config.listen.ip().is_loopback());
    assert!(config.auth.tokens.is_empty() && config.auth.proxy.is_none());
    assert!(config.process.is_none() && config.metrics.is_none());
    assert_eq!(config.auth.role("postgres"), None);
}

#[test]
fn unknown_keys_are_errors() {
    let error = config("[auth]\nallowed_role = []").unwrap_err();
    assert!(error.starts_with("unknown field `allowed_role`"), "{error}");
    let error = config("[process]\nrole = \"a\"\nsecret = \"x\"").unwrap_err();
    assert!(error.starts_with("unknown field `secret`"), "{error}");
}

#[test]
fn a_password_in_the_file_is_refused() {
    let expected =
        "database.url holds a password: name a variable by url_env or a file by url_file instead";
    refused(
        "[database]\nurl = \"postgresql://a:b@localhost/app\"",
        expected,
    );
    for url in [
        "host=localhost password=b",
        "host=a sslmode=verify-full sslrootcert=/a.crt password=b",
    ] {
        refused(&format!("[database]\nurl = \"{url}\""), expected);
    }
    refused(
        "[database]\nurl = \"host=localhost sslmode=mystery pass=b\"",
        "database.url can't be read, and may hold a password: name a variable by url_env or a file by url_file instead",
    );
    let config = config("[database]\nurl = \"postgresql://recurd@localhost/app\"").unwrap();
    assert!(!format!("{config:?}").contains("localhost"));
}

#[test]
fn the_allow_list_binds_every_section() {
    let hash = "0".repeat(64);
    refused(
        &format!("[[auth.tokens]]\nrole = \"app\"\nsha256 = \"{hash}\""),
        "auth.tokens[0].role = \"app\": expected one of auth.allowed_roles",
    );
    refused(
        "[metrics]\nrole = \"watcher\"\nopen = true",
        "metrics.role = \"watcher\": expected one of auth.allowed_roles",
    );
    let text = format!(
        "[auth]\nallowed_roles = [\"app\"]\n[[auth.tokens]]\nrole = \"app\"\nsha256 = \"{hash}\""
    );
    assert_eq!(config(&text).unwrap().auth.tokens[0].role.as_str(), "app");
}

#[test]
fn values_out_of_range_are_named() {
    refused(
        "[limits]\nburst = 0",
        "limits.burst = 0: expected a number from 1 on",
    );
    refused(
        "[limits]\nrequest_timeout_seconds = -1.0",
        "limits.request_timeout_seconds = -1: expected seconds, from 0.001 to 86400",
    );
    refused(
        "[auth]\nallowed_roles = [\"a\"]\n[[auth.tokens]]\nrole = \"a\"\nsha256 = \"xyz\"",
        "auth.tokens[0].sha256: expected 64 hexadecimal digits, as of: printf %s TOKEN | sha256sum",
    );
    refused(
        "[auth.proxy]\nheader = \"x-role\"\naddresses = []",
        "auth.proxy.addresses is empty: expected the proxy's networks, such as 127.0.0.1/32",
    );
    refused(
        "[auth]\nallowed_roles = [\"m\"]\n[metrics]\nrole = \"m\"",
        "metrics: expected sha256, sha256_env or sha256_file of a bearer token, or open = true to let all read \
         who reach the listener",
    );
}

#[test]
fn a_call_does_not_deliver_for_hours() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "0123456789abcdef").unwrap();
    let text = |seconds| {
        format!(
            "[auth]\nallowed_roles = [\"app\"]\n[deliver]\nrole = \"app\"\n\
             [process]\nrole = \"app\"\nsecret_file = {:?}\ndeliver_seconds = {seconds}",
            secret.path()
        )
    };
    config(&text(600)).unwrap();
    let expected = "process.deliver_seconds: expected at most 600, and `recurd deliver` for what runs all the time";
    refused(&text(601), expected);
}

#[test]
fn errors_don_t_show_values() {
    for (text, expected) in [
        (
            "[limits]\nburst = \"hunter2, expected x\"",
            "line 2: burst: expected u32",
        ),
        (
            "[metrics]\nrole = \"m\"\nopen = \"hunter2\"",
            "line 3: open: expected a boolean",
        ),
        (
            "[log]\nformat = \"hunter2\"",
            "line 2: format: expected `json` or `text`",
        ),
        (
            "[auth]\nallowed_roles = \"hunter2\"",
            "line 2: allowed_roles: expected a sequence",
        ),
        (
            "[auth]\nallowed_roles = [\n\"a\", 5]",
            "line 3: a value: expected a string",
        ),
        (
            "process = \"hunter2\"",
            "line 1: process: expected struct Process",
        ),
    ] {
        let error = Config::parse(text).unwrap_err();
        assert_eq!(error, format!("the configuration, {expected}"));
    }
    let error = Config::parse("listen = \"hunter2\"").unwrap_err();
    assert!(!error.contains("hunter2"), "{error}");
}
