//! What recur.create stores, and what it refuses: by SQLSTATE, sentence and hint, with nothing left behind.

use pg_recur_tests::actions::{create_with, row, writable_columns};
use pg_recur_tests::{Cluster, Session};
use serde_json::Value;

fn refused(session: &mut Session, argument: &str, message: &str, hint: &str) {
    assert_eq!(
        session.error(&create_with(argument)),
        ("22023".to_owned(), message.to_owned(), hint.to_owned()),
        "{argument}"
    );
}

const NO_END: &str = "Leave it out for no end.";

#[test]
fn texts_that_are_empty_or_too_long_are_refused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SET timezone = 'UTC'");

    let long = "x".repeat(256);
    let shown = "x".repeat(120);
    for name in ["name", "schedule", "provider", "action_type"] {
        let message = format!("invalid {name} \"NULL\": must have a value");
        refused(&mut session, &format!("{name} => NULL"), &message, "");
    }
    for name in ["name", "namespace", "tenant", "provider", "action_type"] {
        let hint = format!("Give {name} as a text of 1 to 255 characters.");
        for (value, shown) in [("''", ""), ("' \t '", " \t ")] {
            let message = format!("invalid {name} \"{shown}\": must not be empty");
            refused(&mut session, &format!("{name} => {value}"), &message, &hint);
        }
        let message =
            format!("invalid {name} \"{shown}…\": must not be longer than 255 characters");
        refused(
            &mut session,
            &format!("{name} => '{long}'"),
            &message,
            &hint,
        );
        // The longest that is allowed, in characters and not in bytes.
        session.execute(&create_with(&format!("{name} => repeat('ü', 255)")), &[]);
        session.execute("DELETE FROM recur.recurring_actions", &[]);
    }
    for name in [
        "subject",
        "dedup_key",
        "lock_group",
        "primary_agent",
        "fallback_agent",
        "contact",
    ] {
        let hint = format!("Give {name} as a text of 1 to 255 characters.");
        let message = format!("invalid {name} \"\": must not be empty");
        refused(&mut session, &format!("{name} => ''"), &message, &hint);
    }
    assert_eq!(session.count("recur_internal.definitions"), 0);
}

#[test]
fn what_is_no_json_object_is_refused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SET timezone = 'UTC'");
    for name in ["payload", "context", "retry_backoff"] {
        let hint = format!("Give {name} as an object such as '{{\"key\": \"value\"}}'.");
        for (value, shown) in [
            ("[1, 2]", "[1, 2]"),
            ("\"text\"", "\"text\""),
            ("null", "null"),
            ("7", "7"),
        ] {
            let message = format!("invalid {name} \"{shown}\": must be a JSON object");
            refused(
                &mut session,
                &format!("{name} => '{value}'"),
                &message,
                &hint,
            );
        }
    }
    for name in ["metadata", "labels"] {
        let hint = format!("Give {name} as a flat object such as '{{\"team\": \"billing\"}}'.");
        for (value, shown) in [
            ("{\"a\": 1}", "{\"a\": 1}"),
            ("{\"a\": null}", "{\"a\": null}"),
            ("{\"a\": {}}", "{\"a\": {}}"),
            ("[]", "[]"),
        ] {
            let message = format!(
                "invalid {name} \"{shown}\": must be a JSON object with only strings as values"
            );
            refused(
                &mut session,
                &format!("{name} => '{value}'"),
                &message,
                &hint,
            );
        }
    }
    assert_eq!(session.count("recur_internal.definitions"), 0);
}

#[test]
fn choices_numbers_and_intervals_out_of_range_are_refused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SET timezone = 'UTC'");
    for (name, allowed) in [
        ("on_dst_gap", "roll_forward or skip"),
        ("on_dst_fold", "first, second or both"),
        ("count_runs", "dispatched or completed"),
        ("misfire", "once, skip or all"),
        ("overlap", "allow, skip, queue_one or cancel_previous"),
        ("on_duplicate", "merge or skip"),
        ("keep_history", "all, failures or none"),
        ("on_existing", "fail, upsert or add_another"),
    ] {
        let message = format!("invalid {name} \"maybe\": must be {allowed}");
        refused(&mut session, &format!("{name} => 'maybe'"), &message, "");
    }
    for name in [
        "max_runs",
        "catchup_limit",
        "horizon_count",
        "max_attempts",
        "error_threshold",
    ] {
        for value in ["0", "-1"] {
            let message = format!("invalid {name} \"{value}\": must be at least 1");
            refused(&mut session, &format!("{name} => {value}"), &message, "");
        }
    }
    for (name, value, problem) in [
        ("jitter", "-00:00:01", "zero or longer"),
        ("misfire_grace", "-00:00:01", "zero or longer"),
        ("lease", "00:00:00", "longer than nothing"),
        ("horizon", "-01:00:00", "longer than nothing"),
        ("mute_interval", "00:00:00", "longer than nothing"),
        ("late_after", "00:00:00", "longer than nothing"),
        ("max_runtime", "00:00:00", "longer than nothing"),
        ("max_silence", "00:00:00", "longer than nothing"),
    ] {
        let message = format!("invalid {name} \"{value}\": must be {problem}");
        let hint = format!("Give {name} as an interval such as '5 minutes'.");
        refused(
            &mut session,
            &format!("{name} => '{value}'"),
            &message,
            &hint,
        );
    }
    assert_eq!(session.count("recur_internal.definitions"), 0);
}

#[test]
fn a_bad_backoff_or_channel_is_refused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SET timezone = 'UTC'");
    for backoff in [
        "{}",
        "{\"cap\": \"1 second\", \"base\": \"1 minute\", \"factor\": 2}",
        "{\"cap\": \"1 hour\", \"base\": \"soon\", \"factor\": 2}",
        "{\"cap\": \"1 hour\", \"base\": \"1 minute\", \"factor\": 0}",
        "{\"cap\": \"1 hour\", \"base\": \"1 minute\", \"extra\": 1, \"factor\": 2}",
    ] {
        let message = format!(
            "invalid retry_backoff \"{backoff}\": must have a base longer than nothing, a factor from 1 to 100, and a \
             cap not below the base and not above 100 years"
        );
        let hint = "For instance {\"base\": \"30 seconds\", \"factor\": 2, \"cap\": \"1 hour\"}.";
        refused(
            &mut session,
            &format!("retry_backoff => '{backoff}'"),
            &message,
            hint,
        );
    }
    for channel in ["", &"c".repeat(64)] {
        let message = format!("invalid notify_channel \"{channel}\": must have 1 to 63 bytes");
        refused(
            &mut session,
            &format!("notify_channel => '{channel}'"),
            &message,
            "Leave it out to use recur.notify_channel.",
        );
    }
    assert_eq!(session.count("recur_internal.definitions"), 0);
}

#[test]
fn a_schedule_without_an_occurrence_within_its_bounds_is_refused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SET timezone = 'UTC'");
    let never = "recur.preview shows the occurrences of a schedule.";

    for (schedule, problem) in [
        ("", "it is empty"),
        ("61 * * * *", "the minute 61 is out of range: 0 to 59"),
    ] {
        let (code, message, _) = session.error(&create_with(&format!("schedule => '{schedule}'")));
        assert_eq!(code, "22023");
        assert!(
            message.starts_with(&format!("invalid schedule \"{schedule}\": ")),
            "{problem}: {message}"
        );
    }
    for zone in ["Mars/Olympus", "GMT+25", "5", ""] {
        let (code, message, hint) = session.error(&create_with(&format!("timezone => '{zone}'")));
        assert_eq!(code, "22023");
        assert_eq!(
            message,
            format!("invalid timezone \"{zone}\": not an IANA time zone")
        );
        assert!(hint.contains("Europe/"), "{hint}");
    }
    refused(
        &mut session,
        "starts_at => '2100-01-02Z', ends_at => '2100-01-01Z'",
        "invalid ends_at \"2100-01-01 00:00:00+00\": must not lie before starts_at, which is 2100-01-02 00:00:00+00",
        NO_END,
    );
    refused(
        &mut session,
        "starts_at => '2020-01-01Z', ends_at => '2021-01-01Z'",
        "invalid ends_at \"2021-01-01 00:00:00+00\": must lie in the future",
        NO_END,
    );
    // The bounds lie between two occurrences.
    refused(
        &mut session,
        "starts_at => '2100-01-01 01:00Z', ends_at => '2100-01-01 23:00Z'",
        "invalid schedule \"0 0 * * *\": it has no occurrence within starts_at and ends_at",
        never,
    );
    // ends_at is inclusive, starts_at too.
    session.execute(
        &create_with("starts_at => '2100-01-01 00:00Z', ends_at => '2100-01-01 00:00Z'"),
        &[],
    );
    // What would be refused of a running action is refused of a paused one as well.
    refused(
        &mut session,
        "name => 'paused', schedule => 'at 2020-01-01T00:00:00', enabled => false",
        "invalid schedule \"at 2020-01-01T00:00:00\": its time has passed, it was 2020-01-01 00:00:00+00",
        "recur.enqueue makes a dispatch that is due at once.",
    );
    assert_eq!(session.count("recur_internal.definitions"), 1);
}

#[test]
fn the_shortest_pause_is_judged_by_the_schedule_alone() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SET recur.min_interval = '30min'");
    let hint = "Choose a schedule with longer pauses.";
    // At whatever time it is asked: 9:00 and 9:05 are five minutes apart once a day only.
    for (schedule, gap) in [
        ("*/10 * * * *", "600s"),
        ("0,5 9 * * *", "300s"),
        ("5m", "300s"),
        ("RRULE:FREQ=MINUTELY", "60s"),
    ] {
        let message = format!(
            "invalid schedule \"{schedule}\": it can recur after {gap}, and recur.min_interval is 1800s"
        );
        refused(
            &mut session,
            &format!("schedule => '{schedule}'"),
            &message,
            hint,
        );
    }
    session.execute(&create_with("schedule => '0,30 * * * *'"), &[]);
    // The same for a change.
    session.assert_error(
        "SELECT recur.update(id, '{\"schedule\": \"1m\"}') FROM recur.recurring_actions",
        "22023",
        "invalid schedule \"1m\": it can recur after 60s, and recur.min_interval is 1800s",
    );
}

/// Every column that people may write is an argument of the same name, and arrives where it should.
#[test]
fn every_column_is_an_argument() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SET timezone = 'UTC'");
    let arguments: Vec<String> = session.value(
        "SELECT array_agg(name) FROM pg_proc, unnest(proargnames) AS name
          WHERE oid = 'recur.create'::regproc AND name <> 'on_existing'",
        &[],
    );
    let mut writable = writable_columns(&mut session);
    let mut sorted = arguments.clone();
    sorted.sort();
    writable.sort();
    assert_eq!(sorted, writable);

    let values = r#"{
        "name": "everything", "namespace": "ns", "tenant": "t", "subject": "invoice 7", "description": "all of it",
        "labels": {"team": "billing"}, "schedule": "0 9 * * MON-FRI", "timezone": "Europe/Berlin",
        "starts_at": "2100-01-01T00:00:00+00:00", "ends_at": "2101-01-01T00:00:00+00:00", "max_runs": 5,
        "count_runs": "completed",
        "on_dst_gap": "skip", "on_dst_fold": "both", "provider": "webhook", "action_type": "report", "endpoint": "crm",
        "payload": {"to": ["a", "b"], "nested": {"x": 1.5}}, "metadata": {"k": "v"},
        "dedup_key": "{{recurring_id}}-{{execution_time}}", "dedup_window": "00:20:00",
        "on_duplicate": "skip", "context": {"seen": 0}, "enabled": false, "paused_reason": "not yet",
        "misfire": "all", "misfire_grace": "01:30:00", "catchup_limit": 7,
        "overlap": "queue_one", "jitter": "00:00:10", "horizon": "2 days", "horizon_count": 3, "max_attempts": 9,
        "retry_backoff": {"base": "1 second", "factor": 3, "cap": "1 minute"}, "lease": "00:10:00", "priority": -4,
        "lock_group": "one", "notify_channel": "elsewhere", "primary_agent": "p1", "fallback_agent": "f1",
        "fallback_after": "00:02:00",
        "contact": "ops@example.org", "mute": true, "mute_interval": "01:00:00", "error_threshold": 2,
        "record_events": "failed, cancelled",
        "late_after": "00:10:00", "max_runtime": "02:00:00", "max_silence": "1 day", "keep_history": "failures"
    }"#;
    let wanted: Value = serde_json::from_str(values).unwrap();
    let named: Vec<String> = arguments
        .iter()
        .map(|name| {
            let value = match &wanted[name] {
                Value::String(text) => text.clone(),
                Value::Null => panic!("the test has no value for {name}"),
                other => other.to_string(),
            };
            format!("{name} => '{}'", value.replace('\'', "''"))
        })
        .collect();
    let id = session.value(&format!("SELECT recur.create({})", named.join(", ")), &[]);
    let stored = row(&mut session, id);
    for name in &arguments {
        assert_eq!(stored[name], wanted[name], "{name}");
    }
    // What was not given.
    assert_eq!(stored["owner"], "postgres");
    assert_eq!(stored["next_run_at"], Value::Null);
    assert_eq!(stored["context_version"], 1);
    for counter in [
        "run_count",
        "completed_count",
        "failed_count",
        "error_count",
    ] {
        assert_eq!(stored[counter], 0, "{counter}");
    }
}

#[test]
fn arguments_that_are_left_out_have_their_documented_defaults() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = session.value(
        "SELECT recur.create('n', '  0   9 * *  mon-fri ', 'p', 'a', timezone => 'europe/BERLIN')",
        &[],
    );
    let stored = row(&mut session, id);
    for (name, value) in [
        ("namespace", "\"default\""),
        ("tenant", "\"default\""),
        ("schedule", "\"0 9 * * MON-FRI\""),
        ("timezone", "\"Europe/Berlin\""),
        ("enabled", "true"),
        ("payload", "{}"),
        ("labels", "{}"),
        ("metadata", "{}"),
        ("context", "null"),
        ("misfire", "\"once\""),
        ("overlap", "\"allow\""),
        ("on_duplicate", "\"merge\""),
        ("max_attempts", "3"),
        ("lease", "\"00:05:00\""),
        ("mute", "false"),
        ("keep_history", "\"all\""),
    ] {
        assert_eq!(stored[name].to_string(), value, "{name}");
    }
    // Runs that build on each other must not overlap.
    let chain = session.value(
        "SELECT recur.create('chain', '@daily', 'p', 'a', context => '{}')",
        &[],
    );
    assert_eq!(row(&mut session, chain)["overlap"], "skip");
    // NULL is the same as to leave an argument out.
    session.batch(
        "SELECT recur.create('nulls', '0 9 * * MON-FRI', 'p', 'a', NULL, 'Europe/Berlin', NULL, NULL, enabled => NULL,
                             labels => NULL, metadata => NULL, lease => NULL, on_existing => NULL)",
    );
    let same: bool = session.value(
        "SELECT to_jsonb(m) - '{id,name,starts_at,created_at,updated_at}'::text[]
              = to_jsonb(a) - '{id,name,starts_at,created_at,updated_at}'::text[]
           FROM recur.recurring_actions AS m, recur.recurring_actions AS a WHERE m.name = 'nulls' AND a.name = 'n'",
        &[],
    );
    assert!(same);
    // A plain INSERT has the same defaults as the function.
    let same: bool = session.value(
        "WITH made AS (INSERT INTO recur.recurring_actions (name, schedule, timezone, provider, action_type)
                       VALUES ('inserted', '0 9 * * MON-FRI', 'Europe/Berlin', 'p', 'a') RETURNING *)
         SELECT to_jsonb(m) - '{id,name,starts_at,created_at,updated_at}'::text[]
              = to_jsonb(a) - '{id,name,starts_at,created_at,updated_at}'::text[]
           FROM made AS m, recur.recurring_actions AS a WHERE a.name = 'n'",
        &[],
    );
    assert!(same);
}
