//! recurd and a database that goes and comes back; what recurd says of itself.

use super::{Site, config, prepare};
use nix::sys::signal::Signal;
use pg_recur_tests::recurd::Recurd;
use pg_recur_tests::{Cluster, Shutdown, eventually};

#[test]
fn a_database_that_restarts_is_found_again() {
    let mut site = Site::start();
    let id = site.create("author", "kept");
    let path = format!("/v1/recurring/{id}");
    for shutdown in [Shutdown::Fast, Shutdown::Kill] {
        site.cluster.stop(shutdown);
        let reply = site.recurd.call("author", "GET", &path, "").expect(503);
        assert_eq!(reply.header("retry-after"), Some("1"));
        site.recurd.send("GET", "/readyz", &[], "").expect(503);
        site.recurd.send("GET", "/livez", &[], "").expect(200);
        site.cluster.launch();
        eventually("recurd answers", || {
            let reply = site.recurd.call("author", "GET", &path, "");
            assert!([200, 503].contains(&reply.status), "{reply:?}");
            reply.status == 200
        });
    }
    // Connections that the server ended while nothing was done on them are replaced unseen.
    let mut session = site.cluster.session("app");
    session
        .batch("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'recurd'");
    assert_eq!(session.count("recur.recurring_actions"), 1);
    site.recurd.call("author", "GET", &path, "").expect(200);
}

#[test]
fn recurd_may_start_before_the_database_and_stops_when_asked() {
    let mut cluster = Cluster::start();
    let mut session = cluster.database("app");
    prepare(&mut session);
    let config = config(&mut session);
    cluster.stop(Shutdown::Fast);
    let mut recurd = Recurd::start(&cluster, "app", &config);
    recurd
        .call("author", "GET", "/v1/recurring", "")
        .expect(503);
    cluster.launch();
    eventually("recurd is ready", || {
        recurd.send("GET", "/readyz", &[], "").status == 200
    });
    recurd.signal(Signal::SIGTERM);
    assert!(recurd.wait().success());
}

/// A request that takes too long leaves no statement behind on the server, and no connection that is busy with it.
#[test]
fn what_a_request_has_asked_for_ends_with_it() {
    let mut site = Site::with(
        "[limits]\nrequest_timeout_seconds = 1\n\
         [database]\npool_size = 1\nstatement_timeout_seconds = 600\nlock_timeout_seconds = 600",
    );
    site.recurd
        .call("author", "GET", "/v1/recurring", "")
        .expect(200);
    let mut watcher = site.cluster.session("app");
    let active = "pg_stat_activity WHERE usename = 'recurd' AND state = 'active'";
    site.session
        .batch("BEGIN; LOCK TABLE recur_internal.definitions IN ACCESS EXCLUSIVE MODE");
    site.recurd
        .call("author", "GET", "/v1/recurring", "")
        .expect(503);
    eventually("its statement is ended", || watcher.count(active) == 0);
    site.recurd.send("GET", "/readyz", &[], "").expect(200);
    site.session.batch("ROLLBACK");
    site.recurd
        .call("author", "GET", "/v1/recurring", "")
        .expect(200);
}

#[test]
fn metrics_are_those_of_the_database() {
    let site = Site::with("[metrics]\nrole = \"monitor\"\nopen = true");
    site.enqueue("author");
    let text = site
        .recurd
        .send("GET", "/metrics", &[], "")
        .expect(200)
        .body;
    for line in [
        "recurd_database_up 1",
        "recur_pending{provider=\"mailer\"} 1",
        "recur_completed_total 0",
        "# TYPE recur_completed_total counter",
        "# TYPE recur_lateness_seconds histogram",
        "recurd_requests_total{operation=\"dispatch.enqueue\",status=\"201\"} 1",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}: {text}");
    }
    let mut families: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("# TYPE "))
        .collect();
    let count = families.len();
    families.sort_unstable();
    families.dedup();
    assert_eq!(families.len(), count, "{text}");
    // The database is asked at most once in five seconds.
    site.enqueue("author");
    let text = site
        .recurd
        .send("GET", "/metrics", &[], "")
        .expect(200)
        .body;
    assert!(
        text.contains("recur_pending{provider=\"mailer\"} 1"),
        "{text}"
    );
}

#[test]
fn what_is_missing_is_said_with_its_remedy() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    session.batch("CREATE ROLE recurd LOGIN NOINHERIT; CREATE ROLE chief SUPERUSER; CREATE ROLE app; CREATE ROLE eye");
    let config = "[auth]\nallowed_roles = [\"app\", \"eye\", \"chief\", \"ghost\"]\n\
                  [metrics]\nrole = \"eye\"\nopen = true";
    let output = Recurd::check(&cluster, "app", "recurd", config);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success());
    let remedies: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(_, sql)| sql)
        .collect();
    for remedy in [
        "CREATE ROLE ghost;",
        "ALTER ROLE chief NOSUPERUSER;",
        "GRANT app TO recurd;",
        "SELECT recur.grant_access('app', 'reader');",
        "SELECT recur.grant_access('eye', 'monitor');",
    ] {
        assert!(remedies.contains(&remedy), "{remedy}: {said}");
    }
    // The remedies are all that is needed.
    for _ in 0..3 {
        let output = Recurd::check(&cluster, "app", "recurd", config);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.lines()
            .filter_map(|line| line.split_once(": "))
            .for_each(|(_, sql)| session.batch(sql));
    }
    let output = Recurd::check(&cluster, "app", "recurd", config);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let output = Recurd::check(&cluster, "app", "postgres", config);
    assert!(String::from_utf8_lossy(&output.stdout).contains("CREATE ROLE recurd LOGIN NOINHERIT"));
}
