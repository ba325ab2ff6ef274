//! What a monitoring system scrapes: `recur.metrics()`.

use pg_recur_tests::queue::{claim_this, claimed, enqueue, enqueue_many};
use pg_recur_tests::{Cluster, Session};
use std::collections::{BTreeMap, BTreeSet};

/// Every sample by its name and labels.
fn scrape(session: &mut Session) -> BTreeMap<String, f64> {
    let rows = session.rows(
        "SELECT name || CASE labels WHEN '{}' THEN '' ELSE labels::text END, value FROM recur.metrics()",
        &[],
    );
    let samples: BTreeMap<String, f64> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(samples.len(), rows.len(), "each of them once");
    samples
}

#[track_caller]
fn assert_samples(session: &mut Session, expected: &[(&str, f64)]) {
    let samples = scrape(session);
    for (name, value) in expected {
        assert_eq!(samples.get(*name), Some(value), "{name}");
    }
}

#[test]
fn what_becomes_of_attempts_is_counted_when_it_commits() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    enqueue_many(&mut session, 6, "max_attempts => 2");
    session.batch(
        "BEGIN; SELECT recur.complete(id, attempt) FROM recur.claim(3); ROLLBACK;
         SELECT recur.complete(id, attempt) FROM recur.claim(1);
         BEGIN; SELECT recur.complete_many(array_agg(id), array_agg(attempt)) FROM recur.claim(1); COMMIT;
         SELECT recur.fail(id, attempt, 'x', false) FROM recur.claim(1);
         SELECT recur.fail(id, attempt, 'x', retry_in => '1 day') FROM recur.claim(1);
         SELECT recur.release(id, attempt, '1 day') FROM recur.claim(1);
         SELECT recur.cancel(id) FROM recur.dispatches WHERE status = 'pending' AND available_at <= recur.clock();
         SELECT recur.create('a', '@hourly', 'p', 't', starts_at => '2030-01-01Z')",
    );
    session.tick("2030-01-01 00:30Z");
    assert_samples(
        &mut session,
        &[
            ("recur_completed_total", 2.0),
            ("recur_failed_total", 1.0),
            ("recur_retried_total", 1.0),
            ("recur_released_total", 1.0),
            ("recur_cancelled_total", 1.0),
            ("recur_dispatched_total", 1.0),
            ("recur_run_duration_seconds_count", 3.0),
            ("recur_run_duration_seconds_bucket{\"le\": \"+Inf\"}", 3.0),
            ("recur_lateness_seconds_count", 1.0),
            ("recur_dead_letters", 1.0),
        ],
    );
    // Another database has numbers of its own.
    let mut other = cluster.database("other");
    assert_samples(&mut other, &[("recur_completed_total", 0.0)]);
}

#[test]
fn histograms_are_cumulative_and_in_seconds() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for seconds in [0.002, 0.5, 30.0, 30.0, 100_000.0] {
        let id = enqueue(&mut session, "");
        claimed(&mut session, "1, lease => '30 days'");
        session.execute(
            "UPDATE recur_internal.live_dispatches SET started_at = clock_timestamp() - make_interval(secs => $1)
              WHERE id = $2",
            &[&seconds, &id],
        );
        session.execute("SELECT recur.complete($1, 1)", &[&id]);
    }
    let samples = scrape(&mut session);
    let buckets = samples.iter().filter_map(|(name, value)| {
        let end = name.strip_prefix("recur_run_duration_seconds_bucket{\"le\": \"")?;
        let end = end.strip_suffix("\"}")?;
        Some((end.parse::<f64>().unwrap_or(f64::INFINITY), *value))
    });
    let mut buckets: Vec<(f64, f64)> = buckets.collect();
    buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
    assert!(
        buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1),
        "{buckets:?}"
    );
    let below = |limit: f64| buckets.iter().rfind(|(end, _)| *end < limit).unwrap().1;
    assert_eq!(below(0.002), 0.0);
    assert_eq!(below(0.3), 1.0, "{buckets:?}");
    assert_eq!(below(20.0), 2.0);
    assert_eq!(below(5_000.0), 4.0);
    assert_eq!(buckets.last(), Some(&(f64::INFINITY, 5.0)));
    let sum = samples["recur_run_duration_seconds_sum"];
    assert!((100_060.5..100_070.0).contains(&sum), "{sum}");
}

#[test]
fn the_queue_is_counted_by_provider() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    enqueue_many(&mut session, 3, "provider => 'mail'");
    enqueue_many(
        &mut session,
        2,
        "provider => 'mail', run_at => now() + interval '1 h'",
    );
    enqueue_many(&mut session, 5, "provider => 'print'");
    claimed(&mut session, "2, providers => '{print}'");
    session.batch(
        "UPDATE recur_internal.live_dispatches SET available_at = available_at - interval '100 s'
          WHERE id = (SELECT id FROM recur_internal.live_dispatches WHERE provider = 'mail' LIMIT 1)",
    );
    assert_samples(
        &mut session,
        &[
            ("recur_pending{\"provider\": \"mail\"}", 3.0),
            ("recur_scheduled{\"provider\": \"mail\"}", 2.0),
            ("recur_running{\"provider\": \"mail\"}", 0.0),
            ("recur_pending{\"provider\": \"print\"}", 3.0),
            ("recur_running{\"provider\": \"print\"}", 2.0),
        ],
    );
    let oldest = scrape(&mut session)["recur_oldest_pending_seconds{\"provider\": \"mail\"}"];
    assert!((100.0..160.0).contains(&oldest), "{oldest}");
}

/// Authors make up the names of providers: an attacker must not fill the monitoring system with series.
#[test]
fn there_are_few_series_however_many_providers_there_are() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    enqueue_many(&mut session, 200, "provider => 'p' || n");
    enqueue_many(&mut session, 7, "provider => 'mail'");
    enqueue_many(&mut session, 3, "provider => 'victim'");
    // Most of them are another owner's, and the victim is a third one.
    session.batch(
        "UPDATE recur_internal.live_dispatches SET owner_id = 98 WHERE provider > 'p19';
         UPDATE recur_internal.live_dispatches SET owner_id = 99 WHERE provider = 'victim'",
    );
    let samples = scrape(&mut session);
    let pending: Vec<_> = samples
        .iter()
        .filter(|(name, _)| name.starts_with("recur_pending"))
        .collect();
    assert_eq!(pending.len(), 51);
    assert_eq!(samples["recur_pending{\"provider\": \"mail\"}"], 7.0);
    assert_eq!(samples["recur_pending{\"provider\": \"victim\"}"], 3.0);
    // Of each owner fifty are counted: mail and 49, fifty, and the victim.
    assert_eq!(samples["recur_pending{\"provider\": \"(others)\"}"], 51.0);
}

#[test]
fn actions_are_counted_by_state() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.create('active ' || n, '@daily', 'p', 'a') FROM generate_series(1, 3) AS n;
         SELECT recur.create('failing', '@daily', 'p', 'a', max_attempts => 1);
         SELECT recur.trigger('failing');
         SELECT recur.create('paused', '@daily', 'p', 'a', enabled => false);
         SELECT recur.create('ended', 'at 2099-01-01T00:00:00', 'p', 'a');
         UPDATE recur_internal.timers SET next_run_at = NULL, enabled = false, ended_reason = 'over', due_at = NULL
          WHERE action_id = recur.id_of('ended');
         UPDATE recur_internal.timers SET next_run_at = now() - interval '100 s'
          WHERE action_id = recur.id_of('active 1')",
    );
    session.batch("SELECT recur.fail(id, attempt, 'x') FROM recur.claim(1)");
    assert_samples(
        &mut session,
        &[
            ("recur_actions{\"state\": \"active\"}", 3.0),
            ("recur_actions{\"state\": \"failing\"}", 1.0),
            ("recur_actions{\"state\": \"paused\"}", 1.0),
            ("recur_actions{\"state\": \"ended\"}", 1.0),
            ("recur_actions_overdue", 1.0),
            ("recur_held", 0.0),
            ("recur_workers{\"kind\": \"dispatcher\"}", 0.0),
        ],
    );
    let overdue = scrape(&mut session)["recur_oldest_overdue_seconds"];
    assert!((100.0..160.0).contains(&overdue), "{overdue}");
}

#[test]
fn a_monitor_scrapes_all_owners_and_no_content() {
    let cluster = Cluster::start();
    let mut admin = cluster.database("app");
    admin.batch(
        "CREATE ROLE victim LOGIN; SELECT recur.grant_access('victim', 'author');
         CREATE ROLE monitor LOGIN; SELECT recur.grant_access('monitor', 'monitor');
         CREATE ROLE reader LOGIN; SELECT recur.grant_access('reader', 'reader')",
    );
    let mut victim = cluster.session_as("victim", "app");
    victim.batch(
        "SELECT recur.enqueue('mail', 'secret type', '{\"secret\": 1}', name => 'secret', tenant => 'secret');
         SELECT recur.create('secret', '@daily', 'mail', 'secret type', subject => 'secret')",
    );
    let mut monitor = cluster.session_as("monitor", "app");
    let samples = scrape(&mut monitor);
    assert_eq!(samples["recur_pending{\"provider\": \"mail\"}"], 1.0);
    assert_eq!(samples["recur_workers{\"kind\": \"dispatcher\"}"], 1.0);
    assert!(!format!("{samples:?}").contains("secret"), "{samples:?}");
    for session in [&mut victim, &mut cluster.session_as("reader", "app")] {
        assert_eq!(session.error("SELECT recur.metrics()").0, "42501");
    }
}

/// As a scraper reads them: names, kinds and help.
#[test]
fn the_samples_are_well_formed() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = enqueue(&mut session, "");
    claim_this(&mut session, id);
    let rows = session.rows(
        "SELECT name, kind, help, labels::text, value FROM recur.metrics()",
        &[],
    );
    let mut families: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    for row in rows {
        let (name, kind): (String, String) = (row.get(0), row.get(1));
        assert!(
            name.starts_with("recur_") && name.chars().all(|c| c.is_ascii_lowercase() || c == '_'),
            "{name}"
        );
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
        let is_part = ["_bucket", "_sum", "_count"]
            .iter()
            .any(|end| name.ends_with(end));
        assert_eq!(is_part, kind == "histogram", "{name}");
        assert!(row.get::<_, f64>(4) >= 0.0, "{name}");
        families.entry(name).or_default().insert((kind, row.get(2)));
    }
    assert!(families.values().all(|meanings| meanings.len() == 1));
}
