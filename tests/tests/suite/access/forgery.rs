//! Rows that a role would write into the tables itself, past the functions: none is accepted, and nothing that a role
//! can have the functions write counts for what belongs to others.

use pg_recur_tests::timers::set_due;
use pg_recur_tests::{Cluster, Session};
use uuid::Uuid;

const NOON: &str = "2030-01-01 12:00Z";

/// alice is an author and a consumer. Of the intruders one is an author and one a consumer: their rights differ.
fn prepare(cluster: &Cluster) -> (Session, Session, [Session; 2]) {
    let mut admin = cluster.test_database("app");
    admin.batch(
        "CREATE ROLE alice LOGIN; SELECT recur.grant_access('alice', 'author');
         SELECT recur.grant_access('alice', 'consumer');
         CREATE ROLE author LOGIN; SELECT recur.grant_access('author', 'author');
         CREATE ROLE consumer LOGIN; SELECT recur.grant_access('consumer', 'consumer')",
    );
    let session = |role| cluster.session_as(role, "app");
    let intruders = [session("author"), session("consumer")];
    (admin, session("alice"), intruders)
}

fn quiet() -> Cluster {
    Cluster::preloaded("recur.enabled = off")
}

/// Fires at noon every day from 2030 on.
fn create(session: &mut Session, name: &str, arguments: &str) -> Uuid {
    session.value(
        &format!(
            "SELECT recur.create('{name}', '0 12 * * *', 'p', 'a', starts_at => '2030-01-01Z'{arguments})"
        ),
        &[],
    )
}

/// A row of the intruder's own; what `columns` sets is SQL, and replaces a column that is set here.
fn insert(table: &str, columns: &[(&str, &str)]) -> String {
    let mut row = vec![
        ("id", "gen_random_uuid()"),
        ("scheduled_at", "now()"),
        ("trigger", "'schedule'"),
        ("namespace", "'default'"),
        ("tenant", "'default'"),
        ("owner_id", "1"),
        ("provider", "'p'"),
        ("action_type", "'a'"),
        ("payload", "'{}'"),
        ("metadata", "'{}'"),
        ("priority", "0"),
        ("status", "'pending'"),
        ("attempt", "0"),
        ("releases", "0"),
        ("max_attempts", "1"),
        ("lease", "interval '1 minute'"),
        ("available_at", "now()"),
        ("cancel_requested", "false"),
        ("created_at", "now()"),
    ];
    if table != "live_dispatches" {
        row.extend([("finished_at", "now()"), ("partition", "0")]);
    }
    row.retain(|(name, _)| columns.iter().all(|(set, _)| set != name));
    row.extend(columns);
    let (names, values): (Vec<_>, Vec<_>) = row.into_iter().unzip();
    let (names, values) = (names.join(", "), values.join(", "));
    format!("INSERT INTO recur_internal.{table} ({names}) VALUES ({values})")
}

#[track_caller]
fn assert_refused(session: &mut Session, statement: &str) {
    let (code, message, _) = session.error(statement);
    assert_eq!(code, "42501", "{statement}: {message}");
    assert!(
        message.starts_with("permission denied for table "),
        "{statement}: {message}"
    );
}

/// Of alice's: provider and owner of each of her dispatches.
fn dispatched(admin: &mut Session, action: Uuid) -> Vec<String> {
    admin.texts(
        "SELECT concat_ws(' ', owner, trigger, to_char(scheduled_at AT TIME ZONE 'UTC', 'DD')) FROM recur.dispatches
          WHERE action_id = $1 AND owner = 'alice' ORDER BY scheduled_at",
        &[&action],
    )
}

/// The statements that are refused here are valid: a superuser can execute them.
#[test]
fn the_forgeries_fail_for_want_of_rights_only() {
    let cluster = quiet();
    let (mut admin, mut alice, _) = prepare(&cluster);
    create(&mut alice, "hers", "");
    for table in ["live_dispatches", "finished_dispatches"] {
        admin.batch(&insert(table, &[]));
    }
}

#[test]
fn a_role_can_not_take_the_id_of_an_occurrence_of_another() {
    let cluster = quiet();
    let (mut admin, mut alice, intruders) = prepare(&cluster);
    let action = create(&mut alice, "hers", "");
    let id = format!("recur_internal.dispatch_id('{action}', '{NOON}')");
    let noon = format!("'{NOON}'");
    let (of_alice, of_nobody) = (format!("'{action}'"), format!("'{}'", Uuid::new_v4()));
    for mut session in intruders {
        for action_id in ["NULL", &of_alice, &of_nobody] {
            let row = [
                ("id", id.as_str()),
                ("action_id", action_id),
                ("scheduled_at", &noon),
            ];
            assert_refused(&mut session, &insert("live_dispatches", &row));
            assert_refused(&mut session, &insert("finished_dispatches", &row));
        }
    }
    // Nor can an author choose the id of an action, which the ids of its dispatches are made of.
    let mut author = cluster.session_as("author", "app");
    let with_id = format!(
        "INSERT INTO recur.recurring_actions (id, name, schedule, provider, action_type, starts_at)
         VALUES ('{action}', 'his', '0 12 * * *', 'p', 'a', '2030-01-01Z')"
    );
    author.assert_error(
        &with_id,
        "22023",
        "an action's id, counters and times can not be given: they are worked out",
    );
    assert_eq!(admin.tick(NOON), (1, 0, 0, 0));
    assert_eq!(dispatched(&mut admin, action), ["alice schedule 01"]);
}

#[test]
fn a_role_can_not_occupy_the_action_of_another() {
    let cluster = quiet();
    let (mut admin, mut alice, intruders) = prepare(&cluster);
    let mut actions = Vec::new();
    for (n, mut session) in intruders.into_iter().enumerate() {
        // To this transaction the action is not there, now or later.
        session.batch("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM recur.dispatches");
        let action = create(&mut alice, &format!("hers {n}"), ", overlap => 'skip'");
        let of_alice = format!("'{action}'");
        let row = insert("live_dispatches", &[("action_id", of_alice.as_str())]);
        assert_refused(&mut session, &row);
        session.batch("ROLLBACK");
        assert_refused(&mut session, &row);
        actions.push(action);
    }
    assert_eq!(admin.tick(NOON), (2, 0, 0, 0));
    for action in actions {
        assert_eq!(dispatched(&mut admin, action), ["alice schedule 01"]);
    }
}

#[test]
fn values_that_would_disturb_all_consumers_are_refused() {
    let cluster = quiet();
    let (mut admin, _, [mut author, mut consumer]) = prepare(&cluster);
    let long = |length| format!("repeat('x', {length})");
    let (bytes_64, long_name) = (long(64), long(256));
    for (argument, value) in [
        ("run_at", "'infinity'"),
        ("run_at", "'-infinity'"),
        ("run_at", "'280000-01-01'"),
        ("notify_channel", "''"),
        ("notify_channel", bytes_64.as_str()),
        ("lock_group", &long_name),
        ("namespace", &long_name),
        ("tenant", &long_name),
        ("max_attempts", "0"),
        ("lease", "'-1 second'"),
        ("lease", "'1000000 years'"),
    ] {
        let call = format!("SELECT recur.enqueue('p', 'a', {argument} => {value})");
        let (code, message, _) = author.error(&call);
        assert_eq!(code, "22023", "{call}: {message}");
        assert!(
            message.contains(&format!("invalid {argument} ")),
            "{call}: {message}"
        );
    }
    let call = format!("SELECT recur.enqueue({long_name}, 'a')");
    assert_eq!(author.error(&call).0, "22023", "{call}");
    // Nor by way of an action.
    for (column, value) in [
        ("starts_at", "'infinity'"),
        ("ends_at", "'infinity'"),
        ("notify_channel", bytes_64.as_str()),
        ("lock_group", &long_name),
    ] {
        let row = format!(
            "INSERT INTO recur.recurring_actions (name, schedule, provider, action_type, {column})
             VALUES ('n', '@daily', 'p', 'a', {value})"
        );
        assert_eq!(author.error(&row).0, "22023", "{row}");
    }
    for (column, value) in [("attempt", "1000000"), ("releases", "1"), ("attempt", "-1")] {
        for session in [&mut author, &mut consumer] {
            assert_refused(session, &insert("live_dispatches", &[(column, value)]));
        }
    }
    let (bytes_63, name) = (long(63), long(255));
    author.batch("SELECT recur.enqueue('p', 'a')");
    author.batch(&format!(
        "SELECT recur.enqueue({name}, 'a', run_at => now() + interval '1000 years', notify_channel => {bytes_63},
                              lock_group => {name})"
    ));
    assert_eq!(admin.count("recur_internal.live_dispatches"), 2);
}

/// What has been dispatched is read from the history: no role adds to it, takes from it or changes it.
#[test]
fn a_forged_history_does_not_count_for_the_actions_of_others() {
    let cluster = quiet();
    let (mut admin, mut alice, intruders) = prepare(&cluster);
    admin.batch("CREATE ROLE boss LOGIN; SELECT recur.grant_access('boss', 'admin')");
    let mut intruders = Vec::from(intruders);
    intruders.push(cluster.session_as("boss", "app"));
    let mut forge = |action: Uuid, at: &str| {
        let id = format!("recur_internal.dispatch_id('{action}', '{at}')");
        let (of_alice, at) = (format!("'{action}'"), format!("'{at}'"));
        let row = [
            ("id", id.as_str()),
            ("action_id", &of_alice),
            ("scheduled_at", &at),
            ("status", "'completed'"),
        ];
        for session in &mut intruders {
            for table in ["finished_dispatches", "finished_dispatches_0"] {
                assert_refused(session, &insert(table, &row));
                assert_refused(session, &format!("DELETE FROM recur_internal.{table}"));
                assert_refused(session, &format!("TRUNCATE recur_internal.{table}"));
            }
            assert_refused(
                session,
                "UPDATE recur_internal.timers SET next_run_at = now()",
            );
        }
    };
    // After a clock was set back, history says what has been dispatched before.
    let action = create(&mut alice, "hers", "");
    assert_eq!(admin.tick("2030-01-03 12:00Z").0, 1);
    forge(action, "2030-01-02 12:00Z");
    set_due(&mut admin, "'2030-01-02 12:00Z'", "");
    assert_eq!(admin.tick("2030-01-02 12:00Z"), (1, 0, 0, 0));
    let both = ["alice schedule 02", "alice schedule 03"];
    assert_eq!(dispatched(&mut admin, action), both);

    // And so it does before something is made up for.
    let past: Uuid = alice.value(
        "SELECT recur.create('past', '0 12 * * *', 'p', 'a', starts_at => '2020-01-01Z', enabled => false)",
        &[],
    );
    forge(past, "2020-01-01 12:00Z");
    let backfill = "SELECT FROM recur.backfill($1::uuid, '2020-01-01Z', '2020-01-02Z')";
    assert_eq!(alice.rows(backfill, &[&past]).len(), 1);
    assert_eq!(dispatched(&mut admin, past), ["alice backfill 01"]);
    assert_eq!(alice.rows(backfill, &[&past]).len(), 0);

    // And what the last run was, when those ahead of their time are withdrawn.
    let ahead = create(&mut alice, "ahead", ", horizon => '2 days'");
    admin.tick("2029-12-31 12:00Z");
    forge(ahead, "2031-01-01 12:00Z");
    alice.execute(
        "SELECT recur.update($1::uuid, '{\"priority\": 1}')",
        &[&ahead],
    );
    let last: Option<String> = admin.value(
        "SELECT last_run_at::text FROM recur_internal.timers WHERE action_id = $1",
        &[&ahead],
    );
    assert_eq!(last, None);
}

/// Everything that ordinary roles have dispatches written with.
#[test]
fn what_the_functions_write_is_not_refused() {
    let cluster = quiet();
    let (mut admin, mut alice, [mut author, mut consumer]) = prepare(&cluster);
    author.batch(
        "SELECT recur.enqueue('p', 'a'); SELECT recur.receive('p', 'a', '');
         SELECT recur.enqueue('p', 'a', run_at => '2000-01-01Z', lock_group => 'g', notify_channel => 'c',
                              lease => '1 hour')",
    );
    assert_eq!(author.count("recur.dispatches"), 3);

    // One whose id is random, and one of an occurrence.
    let action: Uuid = alice.value(
        "SELECT recur.create('past', '0 12 * * *', 'p', 'a', starts_at => '2020-01-01Z', enabled => false)",
        &[],
    );
    alice.execute("SELECT recur.trigger($1::uuid)", &[&action]);
    let backfill = "SELECT FROM recur.backfill($1::uuid, '2020-01-01Z', '2020-01-02Z')";
    assert_eq!(alice.rows(backfill, &[&action]).len(), 1);
    // A consumer for alice is a member of her role, and no author.
    admin.batch("GRANT alice TO consumer");
    let mut all = |statement: &str| consumer.rows(statement, &[]).len();
    let retry = "SELECT recur.retry(id) FROM recur.dead_letters";
    let give_up = "SELECT recur.fail(id, attempt, 'broken', retry => false) FROM recur.claim(10)";
    assert_eq!(all(give_up), 2);
    assert_eq!(all(retry), 2);
    assert_eq!(
        all("SELECT recur.release(id, attempt) FROM recur.claim(10)"),
        2
    );
    assert_eq!(all(give_up), 2);
    // What has failed can be retried also when its action is gone.
    alice.execute("SELECT recur.delete($1::uuid)", &[&action]);
    assert_eq!(all(retry), 2);
    assert_eq!(
        all("SELECT recur.complete(id, attempt) FROM recur.claim(10)"),
        2
    );
}
