//! Finding actions: the filters, the pages, and the index that each filter uses; the time machine.

use pg_recur_tests::{Cluster, Session, eventually};
use serde_json::{Value, json};
use uuid::Uuid;

fn names(session: &mut Session, arguments: &str) -> Vec<String> {
    session
        .rows(&format!("SELECT name FROM recur.list({arguments})"), &[])
        .iter()
        .map(|row| row.get(0))
        .collect()
}

#[test]
fn filters_narrow_and_combine() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    session.batch(
        "CREATE ROLE alice; SELECT recur.grant_access('alice', 'author');
         SELECT recur.create('nightly report', '@daily', 'p', 'a', namespace => 'x', tenant => 't1', subject => 's1',
                             labels => '{\"team\": \"red\", \"tier\": \"1\"}', description => 'Sends the invoices');
         SELECT recur.create('weekly report', '@weekly', 'p', 'a', namespace => 'x', tenant => 't2', subject => 's2',
                             labels => '{\"team\": \"red\", \"tier\": \"2\"}');
         SELECT recur.create('backup', '@daily', 'p', 'a', namespace => 'y', tenant => 't1', enabled => false,
                             labels => '{\"team\": \"blue\"}', description => 'Über Nacht: o''clock & more');
         SET ROLE alice;
         SELECT recur.create('hers', '@daily', 'p', 'a', namespace => 'z');
         RESET ROLE",
    );
    for (arguments, expected) in [
        ("", "nightly report,weekly report,backup,hers"),
        ("namespace => 'x'", "nightly report,weekly report"),
        ("tenant => 't1'", "nightly report,backup"),
        ("namespace => 'x', tenant => 't2'", "weekly report"),
        ("enabled => false", "backup"),
        (
            "enabled => true, namespace => 'x'",
            "nightly report,weekly report",
        ),
        (
            "labels => '{\"team\": \"red\"}'",
            "nightly report,weekly report",
        ),
        (
            "labels => '{\"team\": \"red\", \"tier\": \"2\"}'",
            "weekly report",
        ),
        ("labels => '{\"team\": \"green\"}'", ""),
        ("subject => 's1'", "nightly report"),
        ("owner => 'alice'", "hers"),
        ("owner => 'nobody'", ""),
        ("search => 'report'", "nightly report,weekly report"),
        ("search => 'REP week'", "weekly report"),
        ("search => 'invoic'", "nightly report"),
        ("search => 'Über nac'", "backup"),
        ("search => 'o''clock & | ! ( :* more'", "backup"),
        ("search => ''", "nightly report,weekly report,backup,hers"),
        (
            "search => '&|!'",
            "nightly report,weekly report,backup,hers",
        ),
        (
            "search => 'report', enabled => true, tenant => 't1'",
            "nightly report",
        ),
        ("\"limit\" => 1", "nightly report"),
    ] {
        let expected: Vec<&str> = expected
            .split(',')
            .filter(|name| !name.is_empty())
            .collect();
        assert_eq!(names(&mut session, arguments), expected, "{arguments}");
    }
    for (arguments, message) in [
        ("\"limit\" => 0", "invalid limit \"0\": must be at least 1"),
        (
            "\"limit\" => NULL",
            "invalid limit \"NULL\": must be at least 1",
        ),
    ] {
        let (code, text, _) = session.error(&format!("SELECT recur.list({arguments})"));
        assert_eq!((code.as_str(), text.as_str()), ("22023", message));
    }
    let unknown =
        session.error("SELECT recur.list(after => '00000000-0000-0000-0000-000000000000')");
    assert_eq!(
        unknown,
        (
            "P0002".into(),
            "no action has the id 00000000-0000-0000-0000-000000000000".into(),
            "Pass the id of the last action of the page before.".into()
        )
    );
    assert_eq!(
        session.error("SELECT recur.id_of('backup', subject => 'none')"),
        (
            "P0002".into(),
            "no action \"backup\" in namespace \"default\", tenant \"default\", subject \"none\""
                .into(),
            "recur.list() shows the actions that you can see.".into()
        )
    );
}

/// What is created, deleted or renamed between two pages moves no other row to another page.
#[test]
fn pages_are_stable() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    // Equal names too: they differ by id alone.
    session.batch(
        "SELECT recur.create('n' || i % 10, '@yearly', 'p', 'a', namespace => 'ns' || i % 3, on_existing => 'add_another')
           FROM generate_series(1, 60) AS i",
    );
    let everything: Vec<Uuid> = session.value(
        "SELECT array_agg(id ORDER BY namespace, tenant, name, id) FROM recur.recurring_actions",
        &[],
    );
    let mut seen: Vec<Uuid> = Vec::new();
    loop {
        let after = seen.last().copied();
        let page: Vec<Uuid> = session
            .rows(
                "SELECT id FROM recur.list(\"limit\" => 7, after => $1)",
                &[&after],
            )
            .iter()
            .map(|row| row.get(0))
            .collect();
        let Some(last) = page.last() else { break };
        assert!(page.len() == 7 || everything.ends_with(std::slice::from_ref(last)));
        // Before the next page: a row comes in front of where we are, and the one that we stand on goes.
        session.batch("SELECT recur.create('first', '@yearly', 'p', 'a', namespace => 'a', on_existing => 'add_another')");
        session.execute("SELECT recur.delete($1)", &[last]);
        seen.extend(page);
    }
    assert_eq!(seen, everything);
}

/// The plans on a table with statistics: each filter, alone, reaches its rows through an index, for a superuser and for
/// a role that sees only its own, which are many.
#[test]
fn every_filter_has_an_index() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut session = cluster.database("app");
    session.batch("CREATE ROLE alice; CREATE ROLE app; SELECT recur.grant_access('app', 'reader')");
    // Rows as create would make them, in bulk.
    session.batch(
        "INSERT INTO recur.definitions (name, namespace, tenant, subject, owner, labels, schedule, provider, action_type)
         SELECT 'name ' || i, 'ns' || i % 500, 'tenant' || i % 1000, 'subject ' || i,
                CASE WHEN i % 200 = 0 THEN 'alice' ELSE 'app' END,
                jsonb_build_object('customer', (i % 2000)::text), '@daily', 'p', 'a'
           FROM generate_series(1, 50000) AS i;
         INSERT INTO recur.timers (action_id, tenant, enabled, next_run_at)
         SELECT id, tenant, i % 1000 <> 0, CASE WHEN i % 1000 <> 0 THEN now() + interval '1 day' END
           FROM (SELECT id, tenant, row_number() OVER () AS i FROM recur.definitions) AS d;
         INSERT INTO recur.progress (action_id) SELECT id FROM recur.definitions;
         INSERT INTO recur.live_dispatches (id, action_id, scheduled_at, trigger, owner, provider, action_type)
         SELECT gen_random_uuid(), id, now(), 'schedule', owner, 'p', 'a' FROM recur.definitions",
    );
    session.batch("VACUUM ANALYZE recur.definitions");
    session.batch("VACUUM ANALYZE recur.timers");
    session.batch("VACUUM ANALYZE recur.progress");
    session.batch("VACUUM ANALYZE recur.live_dispatches");
    let some: Uuid = session.value(
        "SELECT id FROM recur.definitions WHERE name = 'name 4001'",
        &[],
    );
    for (call, index) in [
        ("list()".to_owned(), "definitions_listed"),
        (format!("list(after => '{some}')"), "definitions_listed"),
        ("list(namespace => 'ns1')".to_owned(), "definitions_listed"),
        (
            "list(tenant => 'tenant1')".to_owned(),
            "definitions_by_tenant",
        ),
        (
            "list(namespace => 'ns1', tenant => 'tenant1')".to_owned(),
            "definitions_",
        ),
        ("list(enabled => false)".to_owned(), "timers_stopped"),
        (
            "list(labels => '{\"customer\": \"7\"}')".to_owned(),
            "definitions_by_label",
        ),
        (
            "list(subject => 'subject 7')".to_owned(),
            "definitions_by_subject",
        ),
        ("list(owner => 'alice')".to_owned(), "definitions_by_owner"),
        ("list(search => '4321')".to_owned(), "definitions_by_word"),
        (format!("get('{some}')"), "definitions_pkey"),
        (
            "id_of('name 4001', 'ns1', 'tenant1', 'subject 4001')".to_owned(),
            "definitions_",
        ),
        (format!("history('{some}')"), "live_dispatches_of_action"),
    ] {
        for role in ["postgres", "app"] {
            let plan = plan_of(&cluster, role, &call);
            assert!(
                plan.contains(index),
                "{role}: {call} does not use {index}:\n{plan}"
            );
            assert!(
                !plan.contains("Seq Scan on definitions"),
                "{role}: {call} reads all definitions:\n{plan}"
            );
            assert!(
                !plan.contains("Seq Scan on live_dispatches"),
                "{role}: {call} reads all dispatches:\n{plan}"
            );
        }
    }
}

/// What the server itself logs of the statements that a function runs.
fn plan_of(cluster: &Cluster, role: &str, call: &str) -> String {
    let script = format!(
        "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;
         SET auto_explain.log_level = notice; SET ROLE {role}; SELECT count(*) FROM recur.{call};"
    );
    let output = cluster.psql("app", &script);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn history_is_newest_first_and_pages_backwards() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id: Uuid = session.value("SELECT id FROM recur.create('n', '@yearly', 'p', 'a')", &[]);
    session.execute(
        "INSERT INTO recur.live_dispatches (id, action_id, scheduled_at, trigger, provider, action_type)
         SELECT gen_random_uuid(), $1, timestamptz '2026-01-01Z' + i * interval '1 hour', 'schedule', 'p', 'a' FROM generate_series(11, 20) AS i",
        &[&id],
    );
    session.execute(
        "INSERT INTO recur.finished_dispatches
                (id, action_id, scheduled_at, trigger, namespace, tenant, owner, provider, action_type, payload, metadata,
                 priority, status, attempt, releases, max_attempts, available_at, cancel_requested, created_at)
         SELECT gen_random_uuid(), $1, timestamptz '2026-01-01Z' + i * interval '1 hour', 'schedule', 'default', 'default',
                'postgres', 'p', 'a', '{}', '{}', 0, 'completed', 1, 0, 3, now(), false, now() FROM generate_series(1, 10) AS i",
        &[&id],
    );
    let hours = |session: &mut Session, arguments: &str| -> Vec<i32> {
        session
            .rows(&format!("SELECT extract(epoch FROM scheduled_at - '2026-01-01Z')::int / 3600 FROM recur.history('{id}'{arguments})"), &[])
            .iter()
            .map(|row| row.get(0))
            .collect()
    };
    let all: Vec<i32> = (1..=20).rev().collect();
    assert_eq!(hours(&mut session, ""), all);
    assert_eq!(hours(&mut session, ", 3"), [20, 19, 18]);
    assert_eq!(hours(&mut session, ", 3, '2026-01-01 12:00Z'"), [11, 10, 9]);
    assert_eq!(
        hours(&mut session, ", before => '2026-01-01 01:00Z'"),
        [0; 0]
    );
    let (code, message, _) =
        session.error("SELECT recur.history('00000000-0000-0000-0000-000000000000')");
    assert_eq!(
        (code.as_str(), message.as_str()),
        (
            "P0002",
            "no action has the id 00000000-0000-0000-0000-000000000000"
        )
    );
}

#[test]
fn preview_and_compare_show_what_an_update_would_do_and_do_nothing() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SET timezone = 'UTC'");
    let id: Uuid = session.value(
        "SELECT id FROM recur.create('n', '0 9 * * *', 'p', 'a', timezone => 'Europe/Berlin', starts_at => '2099-01-01Z', max_runs => 5)",
        &[],
    );
    let rows = |session: &mut Session, query: &str| -> Value {
        session.value(
            &format!("SELECT coalesce(jsonb_agg(to_jsonb(q)), '[]') FROM {query} AS q"),
            &[],
        )
    };
    let preview = rows(
        &mut session,
        &format!("recur.preview('{id}', '2099-06-01Z', 2)"),
    );
    assert_eq!(preview[0]["occurrence"], "2099-06-01T07:00:00+00:00");
    assert_eq!(preview[0]["local_time"], "2099-06-01T09:00:00");
    assert_eq!(preview.as_array().unwrap().len(), 2);
    // No more than max_runs leaves it.
    let whole = rows(
        &mut session,
        &format!("recur.preview('{id}', '2099-06-01Z', 20)"),
    );
    assert_eq!(whole.as_array().unwrap().len(), 5);
    assert_eq!(
        session.value::<String>("SELECT recur.describe($1::uuid)", &[&id]),
        session.value::<String>("SELECT recur.describe('0 9 * * *', 'Europe/Berlin')", &[])
    );

    let before: Value = session.value("SELECT to_jsonb(a) FROM recur.get($1) AS a", &[&id]);
    let compared = rows(
        &mut session,
        &format!("recur.compare('{id}', '{{\"schedule\": \"0 10 * * *\"}}', 2)"),
    );
    assert_eq!(
        compared,
        json!([
            {"number": 1, "current_occurrence": "2099-01-01T08:00:00+00:00", "new_occurrence": "2099-01-01T09:00:00+00:00", "note": "01:00:00 later"},
            {"number": 2, "current_occurrence": "2099-01-02T08:00:00+00:00", "new_occurrence": "2099-01-02T09:00:00+00:00", "note": "01:00:00 later"},
        ])
    );
    let notes = |session: &mut Session, changes: &str| -> Vec<String> {
        session.value(
            &format!(
                "SELECT array_agg(note ORDER BY number) FROM recur.compare('{id}', '{changes}', 3)"
            ),
            &[],
        )
    };
    assert_eq!(
        notes(&mut session, "{\"priority\": 1}"),
        ["same", "same", "same"]
    );
    assert_eq!(
        notes(&mut session, "{\"ends_at\": \"2099-01-02T12:00:00Z\"}"),
        ["same", "same", "not any more"]
    );
    assert_eq!(
        notes(&mut session, "{\"max_runs\": 1}"),
        ["same", "not any more", "not any more"]
    );
    assert_eq!(
        notes(&mut session, "{\"timezone\": \"Asia/Tokyo\"}"),
        ["08:00:00 earlier", "08:00:00 earlier", "08:00:00 earlier"]
    );
    let (code, message, _) = session.error(&format!(
        "SELECT recur.compare('{id}', '{{\"schedule\": \"soon\"}}')"
    ));
    assert_eq!(code, "22023");
    assert!(
        message.starts_with("invalid schedule \"soon\": "),
        "{message}"
    );
    let (code, message, _) =
        session.error(&format!("SELECT recur.compare('{id}', '{{\"x\": 1}}')"));
    assert_eq!(
        (code.as_str(), message.as_str()),
        (
            "22023",
            "invalid change \"x\": an action has no such column"
        )
    );
    let after: Value = session.value("SELECT to_jsonb(a) FROM recur.get($1) AS a", &[&id]);
    assert_eq!(before, after);
}

#[test]
fn the_forecast_counts_what_is_coming_minute_by_minute() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SET timezone = 'UTC';
         SELECT recur.create('a' || i, '0 9 * * *', 'p', 'a', starts_at => '2099-01-01Z') FROM generate_series(1, 40) AS i;
         SELECT recur.create('b', '*/15 * * * * *', 'p', 'a', starts_at => '2099-01-01 09:00Z', max_runs => 6);
         SELECT recur.create('c', '0 9 * * *', 'p', 'a', starts_at => '2099-01-01Z', enabled => false);
         SELECT recur.create('d', '0 10 * * *', 'p', 'a', timezone => 'Europe/Berlin', starts_at => '2099-01-01Z');
         SELECT recur.create('e', '0 9 * * *', 'p', 'a', starts_at => '2099-01-01Z', ends_at => '2099-01-01 09:00Z')",
    );
    let forecast: Value = session.value(
        "SELECT jsonb_object_agg(to_char(minute, 'DD HH24:MI'), dispatches) FROM recur.forecast('2099-01-01Z', '2099-01-03Z')",
        &[],
    );
    // Forty, one in Berlin, one on its last day, and four of the six that come every 15 seconds.
    assert_eq!(
        forecast,
        json!({"01 09:00": 46, "01 09:01": 2, "02 09:00": 41})
    );
    let (code, message, _) = session.error("SELECT recur.forecast('2099-01-01Z', '2099-03-01Z')");
    assert_eq!(
        (code.as_str(), message.as_str()),
        (
            "22023",
            "invalid until \"2099-03-01 00:00:00+00\": must lie within 31 days after \"from\", which is 2099-01-01 00:00:00+00"
        )
    );
}

/// As psql shows it, with names and schedules of any length, in a terminal of 120 columns.
#[test]
fn the_overview_fits_a_terminal() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.create(repeat('long name ', 10), '0 9 * * MON-FRI', 'p', 'a', timezone => 'America/Argentina/ComodRivadavia');
         SELECT recur.create('many', '{\"every\": 2, \"unit\": \"week\", \"days_of_week\": [\"tue\", \"thu\", \"sat\"]}', 'p', 'a');
         SELECT recur.create('far', '0 0 29 2 *', 'p', 'a', timezone => 'Asia/Kolkata');
         SELECT recur.pause(id) FROM recur.create('paused', '@daily', 'p', 'a');
         SELECT recur.create('ends', '* * * * * *', 'p', 'a', max_runs => 1)",
    );
    eventually("one has ended", || {
        session.value("SELECT count(*) = 1 FROM recur.overview WHERE state = 'ended' AND last_outcome LIKE 'pending +%'", &[])
    });
    let output = cluster.psql("app", "\\pset pager off\nTABLE recur.overview;");
    let table = String::from_utf8(output.stdout).unwrap();
    let widest = table
        .lines()
        .map(|line| line.chars().count())
        .max()
        .unwrap();
    assert!(widest <= 120, "{widest} columns:\n{table}");
    for expected in ["active", "paused", "ended", "long name"] {
        assert!(table.contains(expected), "{expected}:\n{table}");
    }
    let header = table
        .lines()
        .find(|line| line.contains("last_outcome"))
        .unwrap();
    for column in [
        "name",
        "schedule",
        "timezone",
        "state",
        "next_run",
        "ran_ago",
        "last_outcome",
    ] {
        assert!(header.contains(column));
    }
}
