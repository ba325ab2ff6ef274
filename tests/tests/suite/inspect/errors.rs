//! Errors say what is wrong, and nothing of how the extension is made inside.

use pg_recur_tests::Cluster;

/// Mistakes that people make: one or several for each function.
const MISTAKES: &[&str] = &[
    "recur.create('n', '61 * * * *', 'p', 'a')",
    "recur.create('n', '@daily', 'p', 'a', timezone => 'Europe/Berln')",
    "recur.create('n', '@daily', 'p', 'a', payload => '[1]')",
    "recur.create('n', '@daily', 'p', 'a', max_runs => 0)",
    "recur.create('n', '@daily', 'p', 'a', misfire => 'never')",
    "recur.create('n', 'at 2001-01-01T09:00:00', 'p', 'a')",
    "recur.create('known', '@daily', 'p', 'a')",
    "recur.create_many('{NULL}')",
    "recur.update('known', '{\"schedul\": \"@daily\"}')",
    "recur.update('known', '{\"schedule\": \"61 * * * *\"}')",
    "recur.update('known', '{\"lease\": \"soon\"}')",
    "recur.update('known', '[]')",
    "recur.update('unknown', '{}')",
    "recur.update(gen_random_uuid(), '{}')",
    "recur.get('unknown')",
    "recur.get(gen_random_uuid())",
    "recur.id_of('unknown')",
    "recur.pause('unknown')",
    "recur.pause(gen_random_uuid())",
    "recur.resume('unknown')",
    "recur.resume(gen_random_uuid())",
    "recur.delete('unknown')",
    "recur.delete(gen_random_uuid())",
    "recur.list(\"limit\" => 0)",
    "recur.list(\"order\" => 'random')",
    "recur.list(search => repeat('x', 2000))",
    "recur.list(after => gen_random_uuid())",
    "recur.history('unknown')",
    "recur.history(gen_random_uuid(), 0)",
    "recur.history('known', 0)",
    "recur.preview('61 * * * *')",
    "recur.preview('@daily', 'Europe/Berln')",
    "recur.preview('known')",
    "recur.preview(gen_random_uuid())",
    "recur.preview(recur.id_of('known'), 'Europe/Berln')",
    "recur.preview(gen_random_uuid()::text)",
    "recur.preview('@daily', count => -1)",
    "recur.preview(recur.id_of('known'), count => -1)",
    "recur.preview(recur.id_of('known'), \"from\" => NULL)",
    "recur.preview(NULL::uuid)",
    "recur.compare('known', '{}', -1)",
    "recur.compare(recur.id_of('known'), '{}', -1)",
    "recur.explain('known', 'infinity')",
    "recur.describe('61 * * * *')",
    "recur.describe('@daily', style => '13h')",
    "recur.describe('@daily', 'Europe/Berln')",
    "recur.describe(gen_random_uuid())",
    "recur.describe(gen_random_uuid()::text)",
    "recur.describe(recur.id_of('known'), '13h')",
    "recur.explain('unknown', now())",
    "recur.explain(gen_random_uuid(), now())",
    "recur.explain('known', NULL)",
    "recur.compare('unknown', '{}')",
    "recur.compare('known', '{\"schedule\": \"61 * * * *\"}')",
    "recur.compare(recur.id_of('known'), '{\"schedul\": \"@daily\"}')",
    "recur.forecast(until => now() - interval '1 day')",
    "recur.forecast(until => now() + interval '1000 years')",
    "recur.lint('61 * * * *')",
    "recur.lint('@daily', 'Europe/Berln')",
    "recur.next_occurrence('61 * * * *')",
    "recur.next_occurrence('@daily', 'Europe/Berln')",
    "recur.context_history('unknown')",
    "recur.context_history(gen_random_uuid())",
    "recur.context_history('known', 0)",
    "recur.restore_context('unknown', 1)",
    "recur.restore_context('known', 7)",
    "recur.restore_context(gen_random_uuid(), 1)",
    "recur.help('everything')",
    "recur.create_sql('n', '@daily', 'SELEC 1')",
    "recur.create_sql('n', '@daily', 'SELECT 1', timeout => '0')",
    "recur.enqueue_sql('COMMIT')",
    "recur.set_handler('a', NULL)",
    "recur.set_handler('a**', 'now()')",
    "recur.drop_handler('unknown')",
    "recur.arm_sql('unknown')",
    "recur.import_pg_cron()",
    "recur.trigger('unknown')",
    "recur.trigger(gen_random_uuid())",
    "recur.trigger('known', payload => '[1]')",
    "recur.backfill('unknown', now() - interval '1 day', now())",
    "recur.backfill(gen_random_uuid(), now() - interval '1 day', now())",
    "recur.backfill('known', now(), now() - interval '1 day')",
    "recur.enqueue('', 'a')",
    "recur.enqueue('p', 'a', max_attempts => 0)",
    "recur.receive('p', 'a', '{}', '{}', dedup_key => '')",
    "recur.tick(now() + interval '1 day')",
    "recur.claim(0)",
    "recur.claim(1, lease => '-1 minute')",
    "recur.claim(1, action_types => '{a*b}')",
    "recur.complete(gen_random_uuid(), 1)",
    "recur.fail(gen_random_uuid(), 1, 'e')",
    "recur.extend(gen_random_uuid(), 1)",
    "recur.release(gen_random_uuid(), 1)",
    "recur.cancel(gen_random_uuid())",
    "recur.retry(gen_random_uuid())",
    "recur.complete_many('{}', '{1}')",
    "recur.fail_many('{}', '{1}', '{}')",
    "recur.fail_interactive(gen_random_uuid(), 1, 's')",
    "recur.set_journey('j', '1', '{}')",
    "recur.set_journey('j', '1', '[{\"id\": \"a\"}]')",
    "recur.schedule_journey('j', 'a', NULL, '@daily', 1, NULL, '{}')",
    "recur.drop_journey('j', '1')",
    "recur.recover(interval '-1 day')",
    "recur.purge(interval '-1 day')",
    "recur.grant_access('nobody_known', 'reader')",
    "recur.grant_access(current_user, 'redaer')",
    "recur.grant_access('recur_engine', 'reader')",
    "recur.revoke_access('nobody_known')",
    "recur.set_quota('', 1)",
    "recur.set_quota('t', -1)",
    "recur.set_setting('retentoin', '1d')",
    "recur.set_setting('retention', 'soon')",
    "recur.reset_setting('retentoin')",
    "recur.expect_move(interval '100 years')",
    "recur.mark_test_database()",
    "recur.set_clock(now())",
    "recur.set_clock(interval '1 day')",
    "recur.set_clock('tomorrowish')",
    "recur.set_clock(NULL::text)",
    "recur.begin_request('', 'f')",
    "recur.finish_request('unknown', 200)",
    "recur.create_webhook('n', '@daily', 'ftp://x')",
    "recur.enqueue_webhook('not a url')",
    "recur.create_endpoint('e', 'https://x', '{a*b}')",
    "recur.create_endpoint('', 'https://x')",
    "recur.update_endpoint('unknown', '{}')",
    "recur.drop_endpoint('unknown')",
    "recur.resume_endpoint('unknown')",
    "recur.rotate_webhook_secret('unknown')",
    "recur.route_webhooks('{}')",
    "recur.claim_webhooks(0)",
    "recur.extend_webhook(gen_random_uuid(), 1)",
    "recur.release_webhook(gen_random_uuid(), 1)",
    "recur.report_webhook(gen_random_uuid(), 1, 'lost')",
];

/// One line at most: the function that was called. The calls behind it are of no use to its caller.
#[test]
fn errors_show_no_calls_inside() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    session.batch("SELECT recur.create('known', '@daily', 'p', 'a')");
    for call in MISTAKES {
        let Err(error) = session.0.query(&format!("SELECT * FROM {call}"), &[]) else {
            panic!("{call}: no error");
        };
        let error = error.as_db_error().expect("an error of the server");
        let context = error.where_().unwrap_or_default();
        assert!(context.lines().count() <= 1, "{call}: {error}\n{context}");
        // Refused by the function, and not by PostgreSQL, for another reason.
        assert!(
            !error.message().contains("does not exist"),
            "{call}: {error}"
        );
    }
}

/// Every function that can be called with a mistake is among those above.
#[test]
fn mistakes_of_every_function_are_tried() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    // Those without arguments, or with none that can be wrong.
    let harmless = [
        "arm",
        "clock",
        "doctor",
        "expect_move",
        "forget_subject",
        "is_valid_schedule",
        "metrics",
        "pause_all",
        "reassign_owner",
        "resume_all",
        "set_clock",
        "tzdata_version",
    ];
    let functions = session.texts(
        "SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'recur'::regnamespace",
        &[],
    );
    for function in functions {
        let is_tried = MISTAKES
            .iter()
            .any(|call| call.starts_with(&format!("recur.{function}(")));
        assert!(
            is_tried || harmless.contains(&function.as_str()),
            "{function}"
        );
    }
}

#[test]
fn errors_suggest_what_was_meant() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    session.batch("SELECT recur.create('known', '@daily', 'p', 'a')");
    for (call, message, hint) in [
        (
            "recur.create('n', '@daily', 'p', 'a', timezone => 'Europe/Berln')",
            "invalid timezone \"Europe/Berln\"",
            "Did you mean \"Europe/Berlin\"?",
        ),
        (
            "recur.update('known', '{\"schedul\": \"@daily\"}')",
            "invalid change \"schedul\"",
            "Did you mean schedule?",
        ),
        (
            "recur.create('n', '{\"every\": 1, \"unit\": \"week\", \"day_of_weeks\": [1]}', 'p', 'a')",
            "rule has unknown key \"day_of_weeks\"",
            "Did you mean \"days_of_week\"?",
        ),
        (
            "recur.set_setting('retentoin', '1d')",
            "invalid name \"retentoin\"",
            "Did you mean recur.retention?",
        ),
        (
            "recur.create('n', '*/100 * * * * *', 'p', 'a')",
            "cron second \"*/100\" has step \"100\", expected at most 60",
            "the interval 100s goes on",
        ),
        (
            "recur.create('n', '*/100 * * * *', 'p', 'a')",
            "cron minute \"*/100\" has step \"100\", expected at most 60",
            "the interval 100m goes on",
        ),
        (
            "recur.create('n', 'at 2001-01-01T09:00:00', 'p', 'a')",
            "its time has passed",
            "recur.enqueue",
        ),
    ] {
        let (_, text, advice) = session.error(&format!("SELECT {call}"));
        assert!(
            text.contains(message) && advice.contains(hint),
            "{call}: {text} ({advice})"
        );
    }
}

#[test]
fn errors_know_the_names_of_actions() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.create('known', '@daily', 'p', 'a'), recur.create('ann''s report', '@daily', 'p', 'a')",
    );
    for (call, message, hint) in [
        (
            "recur.pause('ann''s reprot')",
            "no action \"ann's reprot\" in namespace \"default\"",
            "Did you mean \"ann's report\"? recur.list() shows",
        ),
        (
            "recur.preview('ann''s report')",
            "invalid schedule \"ann's report\"",
            "It is the name of an action: recur.preview(recur.id_of('ann''s report')).",
        ),
        (
            "recur.describe('known')",
            "invalid schedule \"known\"",
            "It is the name of an action: recur.describe(recur.id_of('known')).",
        ),
        (
            "recur.preview('unknown')",
            "invalid schedule \"unknown\"",
            "",
        ),
        (
            "recur.create('n', '{\"interval\": 2, \"unit\": \"week\"}', 'p', 'a')",
            "rule has unknown key \"interval\"",
            "Did you mean \"every\"?",
        ),
        (
            "recur.create('01a1f21b-99bd-7583-9beb-1917352c5d07', '@daily', 'p', 'a')",
            "invalid name \"01a1f21b-99bd-7583-9beb-1917352c5d07\": reads as the id of an action",
            "Put a word before it",
        ),
        (
            "recur.update('known', '{\"name\": \"01A1F21B99BD75839BEB1917352C5D07\"}')",
            "reads as the id of an action",
            "Put a word before it",
        ),
    ] {
        let (_, text, advice) = session.error(&format!("SELECT {call}"));
        assert!(
            text.contains(message) && advice.contains(hint),
            "{call}: {text} ({advice})"
        );
    }
    // Each role is told of names that it sees, and of no others.
    session.batch("CREATE ROLE other LOGIN; SELECT recur.grant_access('other', 'author')");
    let mut other = cluster.session_as("other", "app");
    for call in ["recur.pause('ann''s reprot')", "recur.preview('known')"] {
        let (_, _, advice) = other.error(&format!("SELECT {call}"));
        assert!(
            !advice.contains("known") && !advice.contains("ann"),
            "{advice}"
        );
    }
}

#[test]
fn schedules_as_people_type_them_are_understood() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    for (typed, meant) in [
        ("1 day", "1d"),
        ("FREQ=DAILY;COUNT=3", "RRULE:FREQ=DAILY;COUNT=3"),
        ("Daily", "daily"),
        ("WEEKLY", "weekly"),
    ] {
        let same: bool = session.value(
            "SELECT recur.describe($1::text) = recur.describe($2::text)",
            &[&typed, &meant],
        );
        assert!(same, "{typed}");
    }
}
