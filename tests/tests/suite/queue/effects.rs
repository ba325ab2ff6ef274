//! Every function that changes something changes it once, wherever in a statement it is called.

use pg_recur_tests::queue::{claim_this, enqueue, idle_action};
use pg_recur_tests::{Cluster, Session};
use std::collections::BTreeSet;

/// Calls of functions that return one value. What stands in braces is filled in by `fill`.
const SCALAR: [&str; 16] = [
    "recur.create_sql('sql', '@daily', 'SELECT 1')",
    "recur.enqueue_sql('SELECT 1')",
    "recur.create('new', '@daily', 'p', 't')",
    "recur.create_many(ARRAY[jsonb_build_object('name', 'x', 'schedule', '@daily', 'provider', 'p',
                                                'action_type', 'a')])",
    "recur.enqueue('p', 't')",
    "recur.receive('p', 't', '')",
    "recur.trigger('{action}'::uuid)",
    "recur.trigger('{action}'::text)",
    "recur.schedule_journey('j', 's', NULL, '@daily', 1, NULL, '{}')",
    "recur.create_endpoint('other', 'https://x')",
    "recur.rotate_webhook_secret('e')",
    "recur.create_webhook('webhook', '@daily', 'https://x')",
    "recur.enqueue_webhook('https://x')",
    "recur.recover('0')",
    "recur.purge('0')",
    "recur_internal.expire_leases(now() + interval '1 day', 10)",
];

/// Calls of functions that return rows.
const ROWS: [&str; 35] = [
    "recur.update('{action}'::uuid, '{\"priority\": 3}')",
    "recur.update('{action}'::text, '{\"priority\": 3}')",
    "recur.pause('{action}'::uuid)",
    "recur.pause('{action}'::text)",
    "recur.resume('{paused}'::uuid)",
    "recur.resume('{paused}'::text)",
    "recur.delete('{action}'::uuid)",
    "recur.delete('{action}'::text)",
    "recur.restore_context('{action}'::uuid, 1)",
    "recur.restore_context('{action}'::text, 1)",
    "recur.pause_all()",
    "recur.resume_all()",
    "recur.reassign_owner('postgres', 'pg_monitor')",
    "recur.forget_subject('nobody')",
    "recur.backfill('{action}'::uuid, '2026-01-01Z', '2026-01-03Z')",
    "recur.backfill('{action}'::text, '2026-01-01Z', '2026-01-03Z')",
    "recur.tick('2099-02-01Z')",
    "recur.claim(2)",
    "recur.complete('{running}', 1)",
    "recur.fail('{running}', 1, 'x')",
    "recur.extend('{running}', 1)",
    "recur.release('{running}', 1)",
    "recur.complete_many('{{running}}', '{1}')",
    "recur.fail_many('{{running}}', '{1}', '{x}')",
    "recur.cancel('{running}')",
    "recur.cancel('{pending}')",
    "recur.retry('{failed}')",
    "recur.set_journey('other', '1', '{\"s\": {\"type\": \"task\"}}')",
    "recur.drop_journey('j', '1')",
    "recur.fail_interactive('{running}', 1, 's')",
    "recur.route_webhooks()",
    "recur.claim_webhooks(1)",
    "recur.extend_webhook('{delivering}', 1)",
    "recur.release_webhook('{delivering}', 1)",
    "recur.report_webhook('{delivering}', 1, 'failed')",
];

/// Functions that look, although the planner may not assume so, and functions that return nothing to expand.
const OTHERS: [&str; 21] = [
    "arm_sql",
    "drop_endpoint",
    "drop_handler",
    "import_pg_cron",
    "set_handler",
    "arm",
    "begin_request",
    "clock",
    "doctor",
    "expect_move",
    "finish_request",
    "grant_access",
    "mark_test_database",
    "metrics",
    "reset_setting",
    "resume_endpoint",
    "revoke_access",
    "set_clock",
    "set_quota",
    "set_setting",
    "update_endpoint",
];

/// A database in which each of the calls changes something.
fn with_something_to_change(cluster: &Cluster) -> (Session, impl Fn(&str) -> String) {
    let mut session = cluster.database("app");
    let action = idle_action(
        &mut session,
        ", context => '{\"n\": 1}', starts_at => '2025-01-01Z'",
    );
    session.execute(
        "SELECT recur.update($1::uuid, '{\"context\": {\"n\": 2}, \"schedule\": \"@daily\"}')",
        &[&action],
    );
    session.batch("SELECT recur.set_journey('j', '1', '{\"s\": {\"type\": \"task\"}}')");
    let paused = idle_action(&mut session, ", labels => '{\"pause\": \"all\"}'");
    session.batch("SELECT recur.pause_all(labels => '{\"pause\": \"all\"}')");
    let failed = enqueue(&mut session, "");
    claim_this(&mut session, failed);
    session.execute("SELECT recur.fail($1, 1, 'x', false)", &[&failed]);
    let running = enqueue(&mut session, "");
    claim_this(&mut session, running);
    // More than one claim takes.
    let pending = [(); 5].map(|()| enqueue(&mut session, ""))[4];
    session.batch("SELECT recur.create_endpoint('e', 'https://x', '{*}')");
    session.batch("SELECT recur.enqueue_webhook(endpoint => 'e') FROM generate_series(1, 3)");
    let delivering = session.value("SELECT id FROM recur.claim_webhooks(1)", &[]);
    session.batch("SELECT recur.enqueue_webhook(action_type => 'unrouted')");
    let names = [
        ("{delivering}", delivering),
        ("{action}", action),
        ("{paused}", paused),
        ("{failed}", failed),
        ("{running}", running),
        ("{pending}", pending),
    ];
    let fill = move |call: &str| {
        names.iter().fold(call.to_owned(), |call, (name, id)| {
            call.replace(name, &id.to_string())
        })
    };
    (session, fill)
}

/// How many rows the statement writes and returns; nothing of it stays.
fn effect(session: &mut Session, statement: &str) -> (i64, usize) {
    let written =
        "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint FROM pg_stat_xact_all_tables
                    WHERE schemaname = 'recur_internal'";
    session.batch("BEGIN");
    let before: i64 = session.value(written, &[]);
    let returned = session.rows(statement, &[]).len();
    let after: i64 = session.value(written, &[]);
    session.batch("ROLLBACK");
    (after - before, returned)
}

#[track_caller]
fn check_once(session: &mut Session, call: &str, forms: &[String]) {
    let once = effect(session, &format!("SELECT * FROM {call} AS r"));
    assert!(once.0 > 0 && once.1 > 0, "{call} changes nothing");
    for form in forms {
        assert_eq!(effect(session, form), once, "{form}");
    }
}

#[test]
fn a_call_has_its_effect_once_wherever_it_stands() {
    let cluster = Cluster::quiet();
    let (mut session, fill) = with_something_to_change(&cluster);
    for call in SCALAR.map(&fill) {
        let forms = [
            format!("SELECT {call}"),
            format!("SELECT s.r, s.r, s.r FROM (SELECT {call} AS r) AS s"),
        ];
        check_once(&mut session, &call, &forms);
        let (code, _, _) = session.error(&format!("SELECT ({call}).*"));
        assert_eq!(code, "42809", "{call} returns nothing to expand");
    }
    for call in ROWS.map(&fill) {
        let forms = [
            format!("SELECT {call}"),
            format!("SELECT ({call}).*"),
            format!("SELECT (s.r).* FROM (SELECT {call} AS r) AS s"),
        ];
        check_once(&mut session, &call, &forms);
    }
}

#[test]
fn every_function_that_can_change_something_is_among_those() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let volatile: Vec<String> = session.column(
        "SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'recur'::regnamespace AND provolatile = 'v'",
        &[],
    );
    let called = SCALAR.iter().chain(&ROWS).map(|call| {
        let name = call.split(['.', '(']).nth(1);
        name.unwrap_or_default()
    });
    let known: BTreeSet<&str> = called.chain(OTHERS).collect();
    let missing: Vec<_> = volatile
        .iter()
        .filter(|name| !known.contains(name.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
