//! Consuming over HTTP.

use super::Site;
use serde_json::{Value, json};

fn claim(site: &Site, body: &str) -> Vec<Value> {
    let reply = site
        .recurd
        .call("consumer", "POST", "/v1/claim", body)
        .expect(200);
    reply.json()["items"].as_array().expect("items").clone()
}

fn report(site: &Site, id: &str, what: &str, body: &str) -> pg_recur_tests::recurd::Reply {
    site.recurd.call(
        "consumer",
        "POST",
        &format!("/v1/dispatches/{id}/{what}"),
        body,
    )
}

#[test]
fn a_dispatch_is_claimed_extended_and_completed() {
    let site = Site::start();
    let id = site.enqueue("author");
    assert_eq!(
        claim(&site, r#"{"providers": ["other"]}"#),
        [json!(null); 0]
    );
    let claimed = claim(
        &site,
        r#"{"limit": 5, "providers": ["mailer"], "lease": "10 minutes", "consumer": "c1"}"#,
    );
    assert_eq!(claimed.len(), 1);
    assert_eq!(
        (&claimed[0]["id"], &claimed[0]["claimed_by"]),
        (&json!(id), &json!("c1"))
    );
    assert_eq!(claimed[0]["payload"], json!({"to": "new"}));
    assert_eq!(claim(&site, ""), [json!(null); 0]);
    let extended = report(&site, &id, "extend", r#"{"attempt": 1, "lease": "PT1H"}"#)
        .expect(200)
        .json();
    assert_eq!(
        (&extended["status"], &extended["cancel_requested"]),
        (&json!("running"), &json!(false))
    );
    let stale = report(&site, &id, "complete", r#"{"attempt": 2}"#).expect(409);
    assert_eq!(stale.json()["code"], "RC001");
    let done = report(
        &site,
        &id,
        "complete",
        r#"{"attempt": 1, "result": {"sent": 1.50}}"#,
    )
    .expect(200)
    .json();
    assert_eq!(done["status"], "completed");
    report(&site, &id, "complete", r#"{"attempt": 1}"#).expect(409);
    let shown = site
        .recurd
        .call("author", "GET", &format!("/v1/dispatches/{id}"), "")
        .expect(200);
    assert!(shown.body.contains("1.50"), "{shown:?}");
}

#[test]
fn failures_wait_and_die_and_live_again() {
    let site = Site::start();
    let id = site.enqueue("author");
    claim(&site, "{}");
    let body = r#"{"attempt": 1, "reason": "mailbox full", "retry_in": "1 hour"}"#;
    let failed = report(&site, &id, "fail", body).expect(200).json();
    assert_eq!(failed["status"], "pending");
    assert_eq!(claim(&site, "{}"), [json!(null); 0]);
    site.recurd
        .call(
            "consumer",
            "POST",
            &format!("/v1/dispatches/{id}/cancel"),
            r#"{"reason": "enough"}"#,
        )
        .expect(200);
    site.recurd
        .call(
            "consumer",
            "POST",
            &format!("/v1/dispatches/{id}/cancel"),
            "",
        )
        .expect(409);
    site.recurd
        .call(
            "consumer",
            "POST",
            &format!("/v1/dispatches/{id}/retry"),
            "",
        )
        .expect(200);
    let attempt = claim(&site, "{}")[0]["attempt"].clone();
    let body = format!(r#"{{"attempt": {attempt}, "delay": "2 hours"}}"#);
    assert_eq!(
        report(&site, &id, "release", &body).expect(200).json()["status"],
        "pending"
    );
    assert_eq!(claim(&site, "{}"), [json!(null); 0]);
    let other = site.enqueue("author");
    let attempt = claim(&site, "{}")[0]["attempt"].clone();
    let body = format!(r#"{{"attempt": {attempt}, "reason": "never", "retry": false}}"#);
    assert_eq!(
        report(&site, &other, "fail", &body).expect(200).json()["status"],
        "failed"
    );
    let dead = site
        .recurd
        .call("author", "GET", "/v1/dead-letters", "")
        .expect(200)
        .json();
    assert_eq!(
        (&dead["items"][0]["id"], &dead["items"][0]["error"]),
        (&json!(other), &json!("never"))
    );
    let body = r#"{"attempt": 1, "reason": "x", "retry_in": "-1 s"}"#;
    let refused = report(&site, &other, "fail", body).expect(422);
    assert!(
        refused.json()["detail"]
            .as_str()
            .expect("words")
            .contains("retry_in"),
        "{refused:?}"
    );
}
