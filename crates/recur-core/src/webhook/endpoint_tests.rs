use super::*;

#[test]
fn urls_are_absolute_and_have_no_credentials() {
    for url in [
        "https://example.com",
        "HTTP://example.com:8080/a/b?c=d&e=%20",
        "https://[2001:db8::1]:443/",
        "https://10.0.0.1/",
        "https://xn--bcher-kva.example/",
    ] {
        check_url("url", url).unwrap_or_else(|error| panic!("{url}: {}", error.message));
    }
    for (url, problem) in [
        ("", "must begin with https:// or http://"),
        ("example.com", "must begin with https:// or http://"),
        ("ftp://example.com", "must begin with https:// or http://"),
        (
            "javascript:alert(1)//://",
            "must begin with https:// or http://",
        ),
        (
            "https://",
            "must have a host, and a port from 1 to 65535 if there is one",
        ),
        (
            "https://:80",
            "must have a host, and a port from 1 to 65535 if there is one",
        ),
        (
            "https://a:0",
            "must have a host, and a port from 1 to 65535 if there is one",
        ),
        (
            "https://a:+1",
            "must have a host, and a port from 1 to 65535 if there is one",
        ),
        (
            "https://a:65536",
            "must have a host, and a port from 1 to 65535 if there is one",
        ),
        (
            "https://[::1",
            "must have a host, and a port from 1 to 65535 if there is one",
        ),
        (
            "https://[::1]x",
            "must have a host, and a port from 1 to 65535 if there is one",
        ),
        ("https://a/#b", "must have no fragment"),
        (
            "https://a b/",
            "must have no blanks, and no characters that a URL escapes",
        ),
        (
            "https://a\\b/",
            "must have no blanks, and no characters that a URL escapes",
        ),
        (
            "https://bücher.example/",
            "must have no blanks, and no characters that a URL escapes",
        ),
        (
            "https://a/\r\nx: y",
            "must have no blanks, and no characters that a URL escapes",
        ),
    ] {
        let error = check_url("url", url).unwrap_err();
        assert!(error.message.ends_with(problem), "{url}: {}", error.message);
    }
    let long = format!("https://a/{}", "x".repeat(2_048));
    assert!(
        check_url("url", &long)
            .unwrap_err()
            .message
            .ends_with("2,048 bytes")
    );
    for secret in ["https://me:pass@a/", "https://pass@a@b/"] {
        let message = check_url("url", secret).unwrap_err().message;
        assert!(!message.contains("pass@"), "{message}");
    }
}

#[test]
fn names_are_not_those_of_operators() {
    assert!(check_name("name", "crm").is_ok());
    assert_eq!(
        check_name("endpoint", "operator:erp").unwrap_err().message,
        "invalid endpoint \"operator:erp\": must not begin with \"operator:\""
    );
    assert!(check_name("name", " ").is_err());
}

#[test]
fn patterns_are_stored_sorted_and_once() {
    let patterns = |texts: &[&str]| -> Vec<Option<String>> {
        texts.iter().map(|text| Some((*text).to_owned())).collect()
    };
    assert_eq!(
        check_patterns(&patterns(&["b:*", "a", "b:*"])).unwrap(),
        ["a", "b:*"]
    );
    assert_eq!(
        check_patterns(&patterns(&["a*b"])).unwrap_err().message,
        "invalid patterns \"a*b\": may have a * only at its end"
    );
    assert!(check_patterns(&[None]).is_err());
    assert!(check_patterns(&vec![Some("a".to_owned()); 101]).is_err());
}

#[test]
fn headers_are_those_that_a_request_can_have() {
    for good in [
        "{}",
        r#"{"Authorization": "Bearer x", "X-Team": "red team"}"#,
        r#"{"Content-Type": "application/cloudevents+json"}"#,
    ] {
        check_headers(good).unwrap_or_else(|error| panic!("{good}: {}", error.message));
    }
    for (bad, message) in [
        (
            "[]",
            "invalid headers \"…\": must be a JSON object with only strings as values",
        ),
        (
            r#"{"a b": "x"}"#,
            "invalid headers \"a b\": is no name of a header",
        ),
        (
            r#"{"": "x"}"#,
            "invalid headers \"\": is no name of a header",
        ),
        (
            r#"{"Host": "x"}"#,
            "invalid headers \"Host\": is set by the delivery itself",
        ),
        (
            r#"{"Webhook-Id": "x"}"#,
            "invalid headers \"Webhook-Id\": is set by the delivery itself",
        ),
        (
            r#"{"a": 1}"#,
            "invalid headers \"a\": must have a string as value",
        ),
    ] {
        assert_eq!(check_headers(bad).unwrap_err().message, message);
    }
    let error = check_headers("{\"a\": \"secret\\r\\nHost: b\"}").unwrap_err();
    assert!(!error.message.contains("secret"), "{}", error.message);
    let many: Vec<String> = (0..33).map(|n| format!("\"h{n}\": \"\"")).collect();
    assert!(check_headers(&format!("{{{}}}", many.join(","))).is_err());
}

#[test]
fn secrets_have_their_form() {
    for bytes in [24, 32, 64] {
        assert!(check_secret(&secret(&vec![1; bytes])).is_ok());
    }
    for bad in [
        "",
        "whsec_",
        "whsec_!!!!",
        "secret",
        &secret(&[1; 23]),
        &secret(&[1; 65]),
    ] {
        let error = check_secret(bad).unwrap_err();
        assert!(
            error.message.starts_with("invalid secret \"…\""),
            "{}",
            error.message
        );
    }
}

#[test]
fn numbers_have_bounds() {
    for rate in [0.001, 1.0, 10_000.0] {
        assert!(check_rate(rate).is_ok());
    }
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 10_001.0] {
        assert!(check_rate(rate).is_err(), "{rate}");
    }
    assert!(check_concurrency(1).is_ok() && check_concurrency(1_000).is_ok());
    assert!(check_concurrency(0).is_err() && check_concurrency(1_001).is_err());
    let of = |micros| Interval {
        months: 0,
        days: 0,
        micros,
    };
    assert!(check_timeout(of(100_000)).is_ok() && check_timeout(LONGEST_TIMEOUT).is_ok());
    assert!(
        check_timeout(DEFAULT_TIMEOUT).is_ok() && check_concurrency(DEFAULT_CONCURRENCY).is_ok()
    );
    for bad in [
        of(99_999),
        of(-1),
        of(300_000_001),
        Interval {
            months: 0,
            days: 1,
            micros: -86_395_000_000,
        },
    ] {
        assert!(check_timeout(bad).is_err(), "{bad}");
    }
}
