//! Intervals that lead beyond the end of the calendar: refused where they enter, and harmless where they are stored.
//! One row that can't be computed with would otherwise stop every claim that reaches it.

use pg_recur_tests::queue::{claimed, enqueue, idle_action, queue, queue_many};
use pg_recur_tests::{Cluster, Session};
use uuid::Uuid;

#[track_caller]
fn refused(session: &mut Session, call: &str, message: &str) {
    let (code, text, hint) = session.error(&format!("SELECT recur.{call}"));
    assert_eq!((code.as_str(), text.as_str()), ("22023", message), "{call}");
    assert!(!hint.is_empty(), "{call}");
}

#[test]
fn intervals_of_more_than_a_hundred_years_are_refused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    // The parts of the last one make up 27 years, but are added one after the other.
    let mut too_long = vec![
        "100 years 00:00:01",
        "1000000 years",
        "1000000 years -359990000 days",
    ];
    let version: i32 = session.value("SELECT current_setting('server_version_num')::int", &[]);
    if version >= 170_000 {
        too_long.push("infinity");
    }
    for span in too_long {
        let message = |name| {
            format!(
                "invalid {name} \"{span}\": must not be longer than 100 years, nor have a part that is"
            )
        };
        for name in [
            "lease",
            "jitter",
            "misfire_grace",
            "horizon",
            "mute_interval",
            "late_after",
            "max_runtime",
            "max_silence",
        ] {
            let call = format!("create('n', '@daily', 'p', 'a', {name} => '{span}')");
            refused(&mut session, &call, &message(name));
        }
        let call = format!("enqueue('p', 'a', lease => '{span}')");
        refused(&mut session, &call, &message("lease"));
        refused(
            &mut session,
            &format!("claim(lease => '{span}')"),
            &message("lease"),
        );
        let call = format!("extend('{}', 1, '{span}')", Uuid::nil());
        refused(&mut session, &call, &message("lease"));
    }
    let backoff = "{\"cap\": \"1000000 years\", \"base\": \"1000000 years\", \"factor\": 2}";
    let message = format!(
        "invalid retry_backoff \"{backoff}\": must have a base longer than nothing, a factor from 1 to 100, and a cap \
         not below the base and not above 100 years"
    );
    let call = format!("enqueue('p', 'a', retry_backoff => '{backoff}')");
    refused(&mut session, &call, &message);
    let call = format!("create('n', '@daily', 'p', 'a', retry_backoff => '{backoff}')");
    refused(&mut session, &call, &message);
    // A hundred are not too many.
    session.batch(
        "SELECT recur.enqueue('p', 'a', lease => '100 years',
                              retry_backoff => '{\"base\": \"1 day\", \"factor\": 100, \"cap\": \"100 years\"}');
         SELECT recur.extend(id, attempt, '1200 months') FROM recur.claim(1, lease => '36000 days')",
    );
}

/// They are there, as after a restore from somewhere else.
#[test]
fn stored_rows_with_such_intervals_stop_no_claim() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let backoff = "{\"base\": \"1000000 years\", \"factor\": 2, \"cap\": \"1000000 years\"}";
    for _ in 0..3 {
        queue(
            &mut session,
            &format!("lease = '1000000 years', retry_backoff = '{backoff}'"),
        );
    }
    queue_many(&mut session, 1);
    let years = |column: &str| format!("extract(year FROM age({column}, clock_timestamp()))::int");
    // By provider and not, because these are two statements.
    for claim in ["claim(2)", "claim(2, ARRAY['test'])"] {
        let sql = format!(
            "SELECT id, attempt, {} FROM recur.{claim} ORDER BY lease DESC",
            years("lease_expires_at + interval '1 day'")
        );
        let rows = session.rows(&sql, &[]);
        assert_eq!(rows.len(), 2, "{claim}");
        assert_eq!(rows[0].get::<_, i32>(2), 100, "{claim}");
        let id: Uuid = rows[0].get(0);
        session.execute("SELECT recur.extend($1, 1)", &[&id]);
        let extended = format!(
            "SELECT {} FROM recur.dispatches WHERE id = $1",
            years("lease_expires_at + interval '1 day'")
        );
        assert_eq!(session.value::<i32>(&extended, &[&id]), 100);
    }
    let ids: Vec<Uuid> = session.column(
        "SELECT id FROM recur_internal.live_dispatches ORDER BY lease DESC NULLS LAST",
        &[],
    );
    let wait = years("available_at");
    let waits: i32 = session.value(
        &format!("SELECT {wait} FROM recur.fail($1, 1, 'broken')"),
        &[&ids[0]],
    );
    assert!((89..=110).contains(&waits), "{waits}");
    let accepted: i64 = session.value(
        "SELECT count(*) FROM recur.fail_many($1, '{1,1,1}', '{a,b,c}') WHERE accepted AND status = 'pending'",
        &[&ids[1..].to_vec()],
    );
    assert_eq!(accepted, 3);
}

/// A pause must go forward, in every part of it.
#[test]
fn a_backoff_with_a_negative_part_or_an_unreadable_one_is_refused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, "");
    let pending = enqueue(&mut session, "");
    for (base, factor, cap) in [
        ("1 day -48 hours", "2", "1 hour"),
        ("1 day -23 hours", "2", "1 day"),
        ("1 mon -29 days", "2", "1 mon"),
        ("1 second", "2", "1 mon -1 day"),
        ("-1 second", "2", "1 hour"),
        ("1 second", "1e400", "1 hour"),
        ("1 second", "-2", "1 hour"),
        ("1 second", "2", "9999999999 years"),
        ("99999999999999999999 seconds", "2", "1 hour"),
        // Seconds or minutes?
        ("30", "2", "60"),
    ] {
        let backoff = format!("{{\"base\": \"{base}\", \"factor\": {factor}, \"cap\": \"{cap}\"}}");
        for call in [
            format!("create('n', '@daily', 'p', 'a', retry_backoff => '{backoff}')"),
            format!("update('{action}'::uuid, '{{\"retry_backoff\": {backoff}}}')"),
            format!("enqueue('p', 'a', retry_backoff => '{backoff}')"),
        ] {
            let (code, message, hint) = session.error(&format!("SELECT recur.{call}"));
            assert_eq!(code, "22023", "{call}");
            assert!(
                message.starts_with("invalid retry_backoff \"")
                    && message.contains("must have a base longer than nothing"),
                "{call}: {message}"
            );
            assert!(hint.starts_with("For instance"), "{call}: {hint}");
        }
    }
    assert_eq!(session.count("recur.recurring_actions"), 1);
    assert_eq!(claimed(&mut session, "10"), [pending]);
}

/// Whatever is stored, each report has its own answer.
#[test]
fn a_stored_backoff_that_makes_no_sense_fails_no_report() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for backoff in [
        "{\"base\": \"1 day -48 hours\", \"factor\": 2, \"cap\": \"1 hour\"}",
        "{\"base\": \"-1000000 years\", \"factor\": -7, \"cap\": \"-1000000 years\"}",
        "{\"base\": \"1 second\", \"factor\": 1e400, \"cap\": \"1 hour\"}",
        "{\"base\": \"soon\", \"factor\": \"often\"}",
        "{\"initial\": 1}",
        "[1, 2]",
        "\"1 minute\"",
        "null",
        "7",
    ] {
        queue(&mut session, &format!("retry_backoff = '{backoff}'"));
    }
    queue_many(&mut session, 1);
    let ids = claimed(&mut session, "10");
    assert_eq!(ids.len(), 10);
    let accepted: i64 = session.value(
        "SELECT count(*) FROM recur.fail_many($1, array_fill(1, '{10}'), array_fill('x'::text, '{10}'))
          WHERE accepted AND status = 'pending'",
        &[&ids],
    );
    assert_eq!(accepted, 10);
    let sane: i64 = session.count(
        "recur.dispatches WHERE available_at BETWEEN clock_timestamp() - interval '1 minute'
                                                AND clock_timestamp() + interval '111 years'",
    );
    assert_eq!(sane, 10);
}
