//! Which requests have which role.

use super::tokens::digest;
use super::*;
use crate::config::Config;
use axum::http::{HeaderName, HeaderValue};

fn auth() -> Auth {
    let hash: String = digest("correct horse")
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let text = format!(
        "[auth]\nallowed_roles = [\"app\", \"ops\"]\n[[auth.tokens]]\nrole = \"app\"\nsha256 = \"{hash}\"\n\
         [auth.proxy]\nheader = \"X-Role\"\naddresses = [\"10.0.0.0/8\"]"
    );
    Config::parse(&text).unwrap().auth
}

fn who(headers: &[(&str, &str)], peer: &str) -> Result<String, Refusal> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name: HeaderName = name.parse().unwrap();
        map.append(name, HeaderValue::from_str(value).unwrap());
    }
    identify(&auth(), &map, peer.parse().unwrap()).map(|role| role.as_str().to_owned())
}

#[test]
fn a_token_has_its_role() {
    assert_eq!(
        who(&[("authorization", "Bearer correct horse")], "192.0.2.1"),
        Ok("app".to_owned())
    );
    assert_eq!(
        who(&[("authorization", "bearer correct horse")], "::1"),
        Ok("app".to_owned())
    );
    for wrong in [
        "Bearer wrong",
        "Bearer",
        "Basic correct horse",
        "correct horse",
        "Bearer ",
    ] {
        assert_eq!(
            who(&[("authorization", wrong)], "::1"),
            Err(Refusal::Invalid),
            "{wrong}"
        );
    }
    let twice = [
        ("authorization", "Bearer correct horse"),
        ("authorization", "Bearer correct horse"),
    ];
    assert_eq!(who(&twice, "::1"), Err(Refusal::Invalid));
    assert_eq!(who(&[], "::1"), Err(Refusal::Missing));
}

#[test]
fn the_header_counts_from_the_proxy_only() {
    assert_eq!(who(&[("x-role", "ops")], "10.1.2.3"), Ok("ops".to_owned()));
    assert_eq!(
        who(&[("x-role", "ops")], "::ffff:10.1.2.3"),
        Ok("ops".to_owned())
    );
    assert_eq!(
        who(&[("x-role", "ops")], "192.0.2.1"),
        Err(Refusal::Invalid)
    );
    assert_eq!(
        who(&[("x-role", "postgres")], "10.1.2.3"),
        Err(Refusal::NotAllowed)
    );
    assert_eq!(
        who(&[("x-role", "ops"), ("x-role", "app")], "10.1.2.3"),
        Err(Refusal::Invalid)
    );
    let both = [("x-role", "ops"), ("authorization", "Bearer correct horse")];
    assert_eq!(who(&both, "10.1.2.3"), Err(Refusal::Invalid));
}
