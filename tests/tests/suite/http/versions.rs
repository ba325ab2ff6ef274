//! ETag and If-Match: no change overwrites another one that it has not seen.

use super::Site;
use std::thread;

#[test]
fn a_change_of_what_has_changed_is_refused() {
    let site = Site::start();
    let path = format!("/v1/recurring/{}", site.create("author", "versioned"));
    let shown = site.recurd.call("author", "GET", &path, "").expect(200);
    let etag = shown.header("etag").expect("an ETag").to_owned();
    let unchanged = site
        .recurd
        .call_with("author", "GET", &path, &[("if-none-match", &etag)], "")
        .expect(304);
    assert_eq!(
        (unchanged.body.as_str(), unchanged.header("etag")),
        ("", Some(etag.as_str()))
    );
    let patch = |etag: &str, body: &str| {
        site.recurd
            .call_with("author", "PATCH", &path, &[("if-match", etag)], body)
    };
    let changed = patch(&etag, r#"{"priority": 1}"#).expect(200);
    let newer = changed.header("etag").expect("an ETag").to_owned();
    assert_ne!(newer, etag);
    let refused = patch(&etag, r#"{"priority": 2}"#).expect(412);
    assert_eq!(refused.json()["code"], "RC011");
    for other in ["W/\"1\"", "\"nonsense\"", "\"0\""] {
        patch(other, r#"{"priority": 2}"#).expect(412);
    }
    patch("*", r#"{"priority": 3}"#).expect(200);
    let now = site
        .recurd
        .call_with("author", "GET", &path, &[("if-none-match", &newer)], "")
        .expect(200);
    assert_eq!(now.json()["priority"], 3);
    // Where it would count for nothing it is refused.
    site.recurd
        .call_with("author", "DELETE", &path, &[("if-match", &etag)], "")
        .expect(400);
}

#[test]
fn an_action_that_has_run_is_shown_again_and_may_be_changed() {
    let mut site = Site::start();
    let path = format!("/v1/recurring/{}", site.create("author", "running"));
    let shown = site.recurd.call("author", "GET", &path, "").expect(200);
    let etag = shown.header("etag").expect("an ETag").to_owned();
    site.session
        .batch("UPDATE recur_internal.timers SET run_count = run_count + 1");
    let now = site
        .recurd
        .call_with("author", "GET", &path, &[("if-none-match", &etag)], "")
        .expect(200);
    assert_eq!(now.json()["run_count"], 1);
    let body = r#"{"priority": 1}"#;
    site.recurd
        .call_with("author", "PATCH", &path, &[("if-match", &etag)], body)
        .expect(200);
}

#[test]
fn of_changes_at_the_same_time_one_is_made() {
    let site = Site::start();
    let path = format!("/v1/recurring/{}", site.create("author", "contested"));
    let shown = site.recurd.call("author", "GET", &path, "").expect(200);
    let etag = shown.header("etag").expect("an ETag");
    let recurd = &site.recurd;
    let change = |number: usize| {
        let body = format!(r#"{{"priority": {number}}}"#);
        recurd
            .call_with("author", "PATCH", &path, &[("if-match", etag)], &body)
            .status
    };
    let mut statuses: Vec<u16> = thread::scope(|scope| {
        let change = &change;
        let changes: Vec<_> = (1..=8)
            .map(|number| scope.spawn(move || change(number)))
            .collect();
        changes
            .into_iter()
            .map(|change| change.join().expect("a reply"))
            .collect()
    });
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412, 412, 412, 412, 412, 412, 412]);
}
