//! Rows that a role writes into the tables itself, past the functions: it may write its own, but none that count for
//! what belongs to others.

use pg_recur_tests::{Cluster, Session};
use uuid::Uuid;

const NOON: &str = "2030-01-01 12:00Z";

/// alice is an author and a consumer. Of the intruders one is an author and one a consumer: their rights differ.
fn prepare(cluster: &Cluster) -> (Session, Session, [Session; 2]) {
    let mut admin = cluster.database("app");
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

/// An id in the layout of those that belong to no occurrence.
fn random_id() -> String {
    let layout = 0xf << 76 | 0b11 << 62 | 1;
    let id = Uuid::new_v4().as_u128() & !layout | 7 << 76 | 0b10 << 62 | 1;
    format!("'{}'", Uuid::from_u128(id))
}

/// A row of the caller's own; what `columns` sets is SQL, and comes last.
fn insert(columns: &[(&str, &str)]) -> String {
    let id = random_id();
    let mut row = vec![
        ("id", id.as_str()),
        ("scheduled_at", "now()"),
        ("trigger", "'schedule'"),
        ("provider", "'p'"),
        ("action_type", "'a'"),
    ];
    row.retain(|(name, _)| columns.iter().all(|(set, _)| set != name));
    row.extend(columns);
    let (names, values): (Vec<_>, Vec<_>) = row.into_iter().unzip();
    let (names, values) = (names.join(", "), values.join(", "));
    format!("INSERT INTO recur_internal.live_dispatches ({names}) VALUES ({values})")
}

#[track_caller]
fn assert_refused(session: &mut Session, insert: &str) {
    let (code, message, _) = session.error(insert);
    assert_eq!(code, "42501", "{insert}: {message}");
    assert!(
        message.contains("row-level security"),
        "{insert}: {message}"
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

#[test]
fn a_role_can_not_take_the_id_of_an_occurrence_of_another() {
    let cluster = quiet();
    let (mut admin, mut alice, intruders) = prepare(&cluster);
    let action = create(&mut alice, "hers", "");
    let own = Uuid::new_v4();
    let id = format!("recur_internal.dispatch_id('{action}', '{NOON}')");
    let noon = format!("'{NOON}'");
    let (of_alice, of_nobody) = (format!("'{action}'"), format!("'{own}'"));
    for mut session in intruders {
        for action_id in ["NULL", &of_alice, &of_nobody] {
            let row = [
                ("id", id.as_str()),
                ("action_id", action_id),
                ("scheduled_at", &noon),
            ];
            assert_refused(&mut session, &insert(&row));
        }
        // Nor one that is in neither of the two layouts.
        assert_refused(&mut session, &insert(&[("id", "gen_random_uuid()")]));
    }
    assert_eq!(admin.tick(NOON), (1, 0, 0, 0));
    assert_eq!(dispatched(&mut admin, action), ["alice schedule 01"]);
}

#[test]
fn a_role_can_not_occupy_the_action_of_another() {
    let cluster = quiet();
    let (mut admin, mut alice, intruders) = prepare(&cluster);
    let mut actions = Vec::new();
    for (n, mut session) in intruders.into_iter().enumerate() {
        // To this transaction the action is not there, now or later: that it is hidden must be seen nevertheless.
        session.batch(
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM recur_internal.live_dispatches",
        );
        let action = create(&mut alice, &format!("hers {n}"), ", overlap => 'skip'");
        let of_alice = format!("'{action}'");
        let row = insert(&[("action_id", of_alice.as_str())]);
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
    let (mut admin, _, intruders) = prepare(&cluster);
    let long = |length| format!("repeat('x', {length})");
    let (bytes_64, long_name) = (long(64), long(256));
    for mut session in intruders {
        let bad = [
            ("scheduled_at", "'infinity'"),
            ("scheduled_at", "'-infinity'"),
            ("scheduled_at", "'280000-01-01'"),
            ("available_at", "'infinity'"),
            ("available_at", "'-infinity'"),
            ("created_at", "'infinity'"),
            ("notify_channel", "''"),
            ("notify_channel", bytes_64.as_str()),
            ("lock_group", &long_name),
            ("provider", &long_name),
            ("namespace", &long_name),
            ("attempt", "1000000"),
            ("attempt", "-1"),
            ("releases", "1"),
            ("releases", "-1"),
        ];
        for column in bad {
            assert_refused(&mut session, &insert(&[column]));
        }
        let (bytes_63, name) = (long(63), long(255));
        session.batch(&insert(&[]));
        session.batch(&insert(&[
            ("scheduled_at", "now() + interval '1000 years'"),
            ("available_at", "now() + interval '1000 years'"),
            ("notify_channel", &bytes_63),
            ("lock_group", &name),
            ("provider", &name),
            ("attempt", "999999"),
            ("releases", "999999"),
        ]));
    }
    assert_eq!(admin.count("recur_internal.live_dispatches"), 4);
}

/// Consumers write into the history: their reports move what they did there.
#[test]
fn a_forged_history_does_not_count_for_the_actions_of_others() {
    let cluster = quiet();
    let (mut admin, mut alice, [_, mut consumer]) = prepare(&cluster);
    let mut forge = |action: Uuid, at: &str| {
        consumer.execute(
            "INSERT INTO recur_internal.finished_dispatches
                    (id, action_id, scheduled_at, trigger, namespace, tenant, owner, provider, action_type, payload,
                     metadata,
                     priority, status, attempt, releases, max_attempts, available_at, cancel_requested, created_at)
             VALUES (recur_internal.dispatch_id($1, $2::text::timestamptz), $1, $2::text::timestamptz, 'schedule', 'default',
                     'default',
                     'consumer', 'p', 'a', '{}', '{}', 0, 'completed', 1, 0, 3, now(), false, now())",
            &[&action, &at],
        );
    };
    // After a clock was set back, history says what has been dispatched before.
    let action = create(&mut alice, "hers", "");
    assert_eq!(admin.tick("2030-01-03 12:00Z").0, 1);
    forge(action, "2030-01-02 12:00Z");
    admin.batch("UPDATE recur_internal.timers SET next_run_at = '2030-01-02 12:00Z'");
    assert_eq!(admin.tick("2030-01-02 12:00Z"), (1, 0, 0, 0));
    let both = ["alice schedule 02", "alice schedule 03"];
    assert_eq!(dispatched(&mut admin, action), both);

    // And so it does before something is made up for.
    let past: Uuid = alice.value(
        "SELECT recur.create('past', '0 12 * * *', 'p', 'a', starts_at => '2020-01-01Z', enabled => false)",
        &[],
    );
    forge(past, "2020-01-01 12:00Z");
    let backfill = "SELECT FROM recur.backfill($1, '2020-01-01Z', '2020-01-02Z')";
    assert_eq!(alice.rows(backfill, &[&past]).len(), 1);
    assert_eq!(dispatched(&mut admin, past), ["alice backfill 01"]);
    assert_eq!(alice.rows(backfill, &[&past]).len(), 0);

    // And what the last run was, when those ahead of their time are withdrawn.
    let ahead = create(&mut alice, "ahead", ", horizon => '2 days'");
    admin.tick("2029-12-31 12:00Z");
    forge(ahead, "2031-01-01 12:00Z");
    alice.execute("SELECT recur.update($1, '{\"priority\": 1}')", &[&ahead]);
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
    assert_eq!(author.count("recur_internal.live_dispatches"), 3);

    // One whose id is random, and one of an occurrence.
    let action: Uuid = alice.value(
        "SELECT recur.create('past', '0 12 * * *', 'p', 'a', starts_at => '2020-01-01Z', enabled => false)",
        &[],
    );
    alice.execute("SELECT recur.trigger($1)", &[&action]);
    let backfill = "SELECT FROM recur.backfill($1, '2020-01-01Z', '2020-01-02Z')";
    assert_eq!(alice.rows(backfill, &[&action]).len(), 1);
    // A consumer for alice is a member of her role, and no author.
    admin.batch("GRANT alice TO consumer");
    let mut all = |statement: &str| consumer.rows(statement, &[]).len();
    let retry =
        "SELECT recur.retry(id) FROM recur_internal.finished_dispatches WHERE status = 'failed'";
    let give_up = "SELECT recur.fail(id, attempt, 'broken', retry => false) FROM recur.claim(10)";
    assert_eq!(all(give_up), 2);
    assert_eq!(all(retry), 2);
    assert_eq!(
        all("SELECT recur.release(id, attempt) FROM recur.claim(10)"),
        2
    );
    assert_eq!(all(give_up), 2);
    // What has failed can be retried also when its action is gone.
    alice.execute("SELECT recur.delete($1)", &[&action]);
    assert_eq!(all(retry), 2);
    assert_eq!(
        all("SELECT recur.complete(id, attempt) FROM recur.claim(10)"),
        2
    );
}
