//! Recurring actions over HTTP.

use super::Site;
use serde_json::{Value, json};

#[test]
fn an_action_lives_and_is_deleted() {
    let site = Site::start();
    let recurd = &site.recurd;
    let body = r#"{"name": "nightly", "schedule": "30 2 * * *", "timezone": "Europe/Berlin", "provider": "mailer",
                   "action_type": "report", "payload": {"to": "team"}, "labels": {"team": "red"}}"#;
    let created = recurd
        .call("author", "POST", "/v1/recurring", body)
        .expect(201);
    let id = created.json()["id"].as_str().expect("an id").to_owned();
    let path = format!("/v1/recurring/{id}");
    assert_eq!(created.header("location"), Some(path.as_str()));
    assert!(
        created.json()["next_run_at"]
            .as_str()
            .expect("an instant")
            .ends_with("+00:00")
    );
    let shown = recurd.call("author", "GET", &path, "").expect(200).json();
    assert_eq!(
        (&shown["payload"], &shown["owner"]),
        (&json!({"to": "team"}), &json!("author"))
    );
    assert_eq!(shown["lease"], "PT5M");

    let changed = recurd
        .call(
            "author",
            "PATCH",
            &path,
            r#"{"priority": 5, "description": "early"}"#,
        )
        .expect(200);
    assert_eq!(
        (&changed.json()["priority"], &changed.json()["description"]),
        (&json!(5), &json!("early"))
    );
    let cleared = recurd
        .call("author", "PATCH", &path, r#"{"description": null}"#)
        .expect(200);
    assert_eq!(cleared.json()["description"], Value::Null);
}

#[test]
fn an_action_is_paused_triggered_and_remembered() {
    let site = Site::start();
    let recurd = &site.recurd;
    let path = format!("/v1/recurring/{}", site.create("author", "nightly"));
    let paused = recurd
        .call(
            "author",
            "POST",
            &format!("{path}/pause"),
            r#"{"reason": "printer"}"#,
        )
        .expect(200);
    assert_eq!(paused.json()["enabled"], false);
    let again = recurd
        .call("author", "POST", &format!("{path}/pause"), "")
        .expect(409);
    assert_eq!(again.json()["code"], "55000");
    recurd
        .call("author", "POST", &format!("{path}/resume"), "")
        .expect(200);

    let run = recurd
        .call(
            "author",
            "POST",
            &format!("{path}/trigger"),
            r#"{"payload": {"to": "me"}}"#,
        )
        .expect(201);
    let dispatch = recurd
        .call(
            "author",
            "GET",
            run.header("location").expect("a place"),
            "",
        )
        .expect(200)
        .json();
    assert_eq!(
        (&dispatch["trigger"], &dispatch["payload"]),
        (&json!("manual"), &json!({"to": "me"}))
    );
    let history = recurd
        .call("author", "GET", &format!("{path}/history"), "")
        .expect(200)
        .json();
    assert_eq!(history["items"][0]["id"], dispatch["id"]);
    assert_eq!(history["items"].as_array().map(Vec::len), Some(1));

    recurd.call("author", "DELETE", &path, "").expect(204);
    let gone = recurd.call("author", "GET", &path, "").expect(404);
    assert_eq!(
        (&gone.json()["code"], &gone.json()["status"]),
        (&json!("P0002"), &json!(404))
    );
    // What a deleted action has done stays known.
    recurd
        .call("author", "GET", &format!("{path}/history"), "")
        .expect(200);
    let never = "/v1/recurring/00000000-0000-0000-0000-000000000000/history";
    recurd.call("author", "GET", never, "").expect(404);
}

#[test]
fn errors_have_the_words_of_the_database() {
    let mut site = Site::start();
    let body = r#"{"name": "x", "schedule": "0 25 * * *", "provider": "p", "action_type": "t"}"#;
    let reply = site
        .recurd
        .call("author", "POST", "/v1/recurring", body)
        .expect(422);
    assert_eq!(
        reply.header("content-type"),
        Some("application/problem+json")
    );
    let (state, message, hint) = site
        .session
        .error("SELECT recur.create('x', '0 25 * * *', 'p', 't')");
    let problem = reply.json();
    assert_eq!(problem["detail"], message);
    assert_eq!(
        (
            problem["code"].as_str(),
            problem["hint"].as_str().unwrap_or("")
        ),
        (Some(&*state), &*hint)
    );
    assert_eq!(problem["request_id"].as_str(), reply.header("x-request-id"));
    let named = site
        .recurd
        .call_with(
            "author",
            "GET",
            "/v1/nowhere",
            &[("x-request-id", "abc-1")],
            "",
        )
        .expect(404);
    assert_eq!(
        (
            named.header("x-request-id"),
            named.json()["request_id"].as_str()
        ),
        (Some("abc-1"), Some("abc-1"))
    );
    let path = format!("/v1/recurring/{}", site.create("author", "a"));
    let reply = site
        .recurd
        .call("author", "PATCH", &path, r#"{"colour": "red"}"#)
        .expect(422);
    assert!(
        reply.json()["detail"]
            .as_str()
            .expect("words")
            .contains("colour"),
        "{reply:?}"
    );
    let reply = site
        .recurd
        .call("author", "POST", "/v1/recurring", r#"{"colour": 1}"#)
        .expect(422);
    assert!(
        reply.json()["detail"]
            .as_str()
            .expect("words")
            .starts_with("there is no field \"colour\"")
    );
    let reply = site
        .recurd
        .call("author", "GET", "/v1/recurring?colour=1", "")
        .expect(422);
    assert!(
        reply.json()["detail"]
            .as_str()
            .expect("words")
            .starts_with("there is no parameter \"colour\"")
    );
    assert_eq!(site.recurd.call("author", "PUT", &path, "").status, 405);
}

#[test]
fn numbers_keep_every_digit() {
    let site = Site::start();
    let payload =
        r#"{"big": 12345678901234567890123, "exact": 0.10000000000000000000001, "one": 1.10}"#;
    let body = format!(r#"{{"provider": "p", "action_type": "t", "payload": {payload}}}"#);
    let id = site
        .recurd
        .call("author", "POST", "/v1/dispatches", &body)
        .expect(201)
        .json()["id"]
        .clone();
    let path = format!("/v1/dispatches/{}", id.as_str().expect("an id"));
    let shown = site
        .recurd
        .call("author", "GET", &path, "")
        .expect(200)
        .body;
    for digits in [
        "12345678901234567890123",
        "0.10000000000000000000001",
        "1.10",
    ] {
        assert!(shown.contains(&format!(": {digits}")), "{digits}: {shown}");
    }
}

#[test]
fn pages_show_everything_once() {
    let site = Site::start();
    for number in 0..7 {
        site.create("author", &format!("a{number}"));
        site.enqueue("author");
    }
    for (path, cursor) in [("/v1/recurring", "after"), ("/v1/dispatches", "before")] {
        let mut seen: Vec<String> = Vec::new();
        let mut next = Value::Null;
        let mut pages = 0;
        loop {
            let query = next
                .as_str()
                .map_or(String::new(), |next| format!("&{cursor}={next}"));
            let page = site
                .recurd
                .call("author", "GET", &format!("{path}?limit=3{query}"), "")
                .expect(200)
                .json();
            let items = page["items"].as_array().expect("items").clone();
            seen.extend(
                items
                    .iter()
                    .map(|item| item["id"].as_str().expect("an id").to_owned()),
            );
            assert!(
                items.iter().all(|item| item.get("payload").is_none()),
                "{items:?}"
            );
            next = page["next"].clone();
            pages += 1;
            if next.is_null() {
                break;
            }
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!((seen.len(), pages), (7, 3), "{path}");
    }
    let action = site.create("author", "often");
    for _ in 0..5 {
        site.recurd
            .call(
                "author",
                "POST",
                &format!("/v1/recurring/{action}/trigger"),
                "",
            )
            .expect(201);
    }
    let path = format!("/v1/recurring/{action}/history?limit=3");
    let first = site
        .recurd
        .call("author", "GET", &path, "")
        .expect(200)
        .json();
    let next = first["next"]
        .as_str()
        .expect("a cursor")
        .replace('+', "%2B")
        .replace(' ', "%20");
    let second = site
        .recurd
        .call("author", "GET", &format!("{path}&before={next}"), "")
        .expect(200)
        .json();
    let ids = |page: &Value| {
        page["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|i| i["id"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!((ids(&first).len(), ids(&second).len()), (3, 2));
    assert!(ids(&second).iter().all(|id| !ids(&first).contains(id)));
}

#[test]
fn filters_choose_and_fields_show() {
    let site = Site::start();
    let create = |name: &str, tenant: &str, colour: &str| {
        let body = format!(
            r#"{{"name": "{name}", "cron_expr": "@yearly", "provider": "p", "action_type": "t", "tenant": "{tenant}",
                "action_template": {{"colour": "{colour}"}}, "labels": {{"colour": "{colour}"}}}}"#
        );
        site.recurd
            .call("author", "POST", "/v1/recurring", &body)
            .expect(201)
            .json()["id"]
            .clone()
    };
    let red = create("red one", "acme", "red");
    create("blue one", "acme", "blue");
    create("other", "umbrella", "red");
    let names = |query: &str| -> Vec<String> {
        let reply = site
            .recurd
            .call("author", "GET", &format!("/v1/recurring?{query}"), "")
            .expect(200)
            .json();
        let items = reply["items"].as_array().expect("items");
        items
            .iter()
            .map(|item| item["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    assert_eq!(names("tenant=acme"), ["blue one", "red one"]);
    assert_eq!(
        names("tenant=acme&labels=%7B%22colour%22%3A%22red%22%7D"),
        ["red one"]
    );
    assert_eq!(names("search=one&order=newest"), ["blue one", "red one"]);
    assert_eq!(names("enabled=false"), [""; 0]);
    let path = format!(
        "/v1/recurring/{}?fields=id,next_execution_at,execution_count,cron_expr",
        red.as_str().unwrap()
    );
    let shown = site
        .recurd
        .call("author", "GET", &path, "")
        .expect(200)
        .json();
    assert_eq!(shown["execution_count"], 0);
    assert_eq!(shown["cron_expr"], "0 0 1 1 *");
    let keys: Vec<&String> = shown.as_object().expect("an object").keys().collect();
    assert_eq!(
        keys,
        ["cron_expr", "execution_count", "id", "next_execution_at"]
    );
    site.recurd
        .call(
            "author",
            "POST",
            &format!("/v1/recurring/{}/trigger", red.as_str().unwrap()),
            "",
        )
        .expect(201);
    let path = format!("/v1/dispatches?recurring_id={}", red.as_str().unwrap());
    let found = site
        .recurd
        .call("author", "GET", &path, "")
        .expect(200)
        .json();
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(bulk(&site, "pause"), 2);
    assert_eq!(names("enabled=false").len(), 2);
    assert_eq!(bulk(&site, "resume"), 2);
    assert_eq!(bulk(&site, "resume"), 0);
}

/// How many of a tenant's actions were paused or resumed.
#[track_caller]
fn bulk(site: &Site, what: &str) -> usize {
    let path = format!("/v1/bulk/{what}");
    let reply = site
        .recurd
        .call("author", "POST", &path, r#"{"tenant": "acme"}"#)
        .expect(200);
    let shown = reply.json()["items"].as_array().expect("items").len();
    assert_eq!(reply.json()["count"], shown);
    shown
}

#[test]
fn the_future_and_the_past_are_explained() {
    let site = Site::start();
    let id = site.create("author", "yearly");
    let get = |path: &str| {
        site.recurd
            .call("author", "GET", &format!("/v1/recurring/{id}/{path}"), "")
            .expect(200)
            .json()
    };
    let preview = get("preview?from=2030-05-01T00:00:00Z&count=2");
    assert_eq!(
        preview["items"][0]["occurrence"],
        "2031-01-01T00:00:00+00:00"
    );
    assert_eq!(preview["items"].as_array().map(Vec::len), Some(2));
    let body = r#"{"changes": {"schedule": "@monthly"}, "count": 3}"#;
    let compared = site
        .recurd
        .call(
            "author",
            "POST",
            &format!("/v1/recurring/{id}/compare"),
            body,
        )
        .expect(200)
        .json();
    assert_eq!(compared["items"].as_array().map(Vec::len), Some(3));
    assert!(get("explain?at=2030-01-01T00:00:00Z")["verdict"].is_string());
    site.recurd
        .call(
            "author",
            "PATCH",
            &format!("/v1/recurring/{id}"),
            r#"{"context": {"page": 1}}"#,
        )
        .expect(200);
    assert_eq!(get("context")["items"][0]["context"], json!({"page": 1}));
    let body = r#"{"schedule": "30 2 * * *", "timezone": "Europe/Berlin", "from": "2027-03-26T00:00:00Z", "count": 4}"#;
    let preview = site
        .recurd
        .call("reader", "POST", "/v1/preview", body)
        .expect(200)
        .json();
    assert_eq!(preview["items"].as_array().map(Vec::len), Some(4));
    assert!(preview["items"].to_string().contains("note"), "{preview}");
}
