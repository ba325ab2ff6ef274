//! recur.forget_subject removes everything of a subject, and nothing else.

use pg_recur_tests::{Cluster, Session};
use serde_json::{Value, json};

/// How often a text occurs in any table of the extension.
fn occurrences(session: &mut Session, text: &str) -> i64 {
    let tables = session.texts(
        "SELECT c.oid::regclass::text FROM pg_class AS c
          WHERE c.relnamespace = 'recur_internal'::regnamespace AND c.relkind = 'r'",
        &[],
    );
    let count = |session: &mut Session, table: &String| -> i64 {
        session.value(
            &format!("SELECT count(*) FROM {table} AS t WHERE t::text LIKE '%' || $1::text || '%'"),
            &[&text],
        )
    };
    tables.iter().map(|table| count(session, table)).sum()
}

fn fill(session: &mut Session, person: &str) {
    session.batch(&format!(
        "SELECT recur.create('n', '@yearly', '{person}', 'a', subject => '{person}',
                             payload => '{{\"to\": \"{person}\"}}',
                             context => '{{\"of\": \"{person}\"}}');
         SELECT recur.update('n', '{{\"payload\": {{\"to\": \"{person} again\"}}}}', subject => '{person}');
         SELECT recur.update('n', '{{\"context\": {{\"of\": \"{person} again\"}}}}', subject => '{person}');
         SELECT recur.trigger('n', subject => '{person}');
         SELECT recur.complete(id, attempt, '{{\"said\": \"{person}\"}}') FROM recur.claim(1, '{{{person}}}');
         SELECT recur.trigger('n', subject => '{person}');
         SELECT recur.fail(id, attempt, '{person} did not answer', false) FROM recur.claim(1, '{{{person}}}');
         SELECT recur.trigger('n', subject => '{person}');
         SELECT recur.claim(1, '{{{person}}}');
         SELECT recur.enqueue('{person}', 'a', '{{\"to\": \"{person}\"}}', subject => '{person}');
         SELECT recur.create('deleted', '@yearly', '{person}', 'a', subject => '{person}',
                             payload => '{{\"x\": \"{person}\"}}');
         SELECT recur.delete('deleted', subject => '{person}');
         SELECT recur.create('elsewhere', '@yearly', '{person}', 'a', subject => '{person}', namespace => 'other')"
    ));
}

#[test]
fn nothing_of_the_subject_is_left_and_all_of_others() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    fill(&mut session, "Alice");
    fill(&mut session, "Bob");
    let of_bob = occurrences(&mut session, "Bob");
    assert_eq!(occurrences(&mut session, "Alice"), of_bob);
    let row = &session.rows(
        "SELECT actions, dispatches, contexts FROM recur.forget_subject('Alice', namespace => 'default')",
        &[],
    )[0];
    let counts: (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    assert_eq!(counts, (1, 4, 2));
    assert!(occurrences(&mut session, "Alice") > 0, "another namespace");
    session.batch("SELECT recur.forget_subject('Alice')");
    assert_eq!(occurrences(&mut session, "Alice"), 0);
    assert_eq!(occurrences(&mut session, "Bob"), of_bob);
    // What is said of it says how much.
    let events: Vec<Value> = session.column(
        "SELECT to_jsonb(e) - 'id' - 'at' FROM recur.events AS e WHERE kind = 'subject.forgotten' ORDER BY id",
        &[],
    );
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["action_id"], Value::Null);
    assert_eq!(events[0]["detail"]["dispatches"], json!(4));
    assert_eq!(events[1]["detail"]["actions"], json!(1));
    // Otherwise events stay.
    session.assert_error(
        "DELETE FROM recur_internal.events",
        "42501",
        "events can not be changed or deleted",
    );
    session.batch("SELECT recur.forget_subject('nobody at all')");
}

#[test]
fn events_of_enqueued_dispatches_are_found_when_these_were_purged() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.set_setting('recur.record_events', 'failed,retrying');
         SELECT recur.enqueue('p', 'a', subject => 'Carol', tenant => 't', max_attempts => 2,
                              retry_backoff => '{\"base\": \"1 us\", \"factor\": 1, \"cap\": \"1 us\"}');
         SELECT recur.fail(id, attempt, 'Carol did not answer') FROM recur.claim(1, '{p}');
         SELECT recur.fail(id, attempt, 'Carol did not answer') FROM recur.claim(1, '{p}');
         SELECT recur.enqueue('p', 'a', subject => 'Carol', max_attempts => 1);
         SELECT recur.claim(1, '{p}', lease => '1 ms', consumer => 'Carol''s phone');
         SELECT pg_sleep(0.01); SELECT recur_internal.expire_leases(clock_timestamp(), 10);
         SELECT recur.purge('0 s')",
    );
    let kinds = session.texts("SELECT kind FROM recur.events ORDER BY id", &[]);
    let of_one = ["dispatch.retrying", "dispatch.failed"];
    let of_other = ["dispatch.failed", "dispatch.recovered"];
    assert_eq!(kinds, [of_one, of_other].concat());
    let detail: Value = session.value(
        "SELECT detail - 'claimed_by' FROM recur.events ORDER BY id LIMIT 1 OFFSET 1",
        &[],
    );
    let named = json!({"attempt": 2, "error": "Carol did not answer",
                       "namespace": "default", "tenant": "t", "subject": "Carol"});
    assert_eq!(detail, named);
    assert_eq!(occurrences(&mut session, "Carol"), 4);
    session.batch("SELECT recur.forget_subject('Carol', tenant => 'default')");
    assert_eq!(occurrences(&mut session, "Carol"), 2, "another tenant");
    session.batch("SELECT recur.forget_subject('Carol')");
    assert_eq!(occurrences(&mut session, "Carol"), 0);
}

#[test]
fn a_subject_is_forgotten_whose_action_is_anothers_now() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let change =
        |changes: Value| format!("SELECT recur.update('n', '{changes}', subject => '{{}}');");
    let of = |person: &str, changes: Value| change(changes).replace("{}", person);
    let changes = [
        of("Zoe", json!({"payload": {"to": "Zoe again"}})),
        of("Zoe", json!({"context": {"of": "Zoe again"}})),
        of(
            "Zoe",
            json!({"subject": "Alice", "payload": {"to": "Alice"}, "context": {"of": "Alice"}}),
        ),
        of("Alice", json!({"payload": {"to": "Alice again"}})),
        of("Alice", json!({"context": {"of": "Alice again"}})),
        of("Alice", json!({"subject": "Bob", "context": {"of": "Bob"}})),
        of("Bob", json!({"priority": 3})),
        of("Bob", json!({"payload": {"to": "Bob"}})),
        of("Bob", json!({"payload": {"to": "Bob again"}})),
    ];
    session.batch(
        "SELECT recur.create('n', '@yearly', 'p', 'a', subject => 'Zoe', payload => '{\"to\": \"Zoe\"}',
                             context => '{\"of\": \"Zoe\"}')",
    );
    for change in &changes {
        session.batch(change);
    }
    session.batch("SELECT recur.forget_subject('Alice', namespace => 'other')");
    let versions =
        "SELECT coalesce(string_agg(version::text, ' ' ORDER BY version), '') FROM recur.contexts";
    assert_eq!(session.value::<String>(versions, &[]), "1 2 3 4 5");
    session.batch("SELECT recur.forget_subject('Alice', namespace => 'default')");
    assert_eq!(occurrences(&mut session, "Alice"), 0);
    assert_eq!(session.value::<String>(versions, &[]), "1 2 5");
    // What was before, and what came after, is still there.
    let changed =
        "SELECT string_agg(coalesce(detail #>> '{old,payload,to}', detail #>> '{old,context,of}',
                                              detail #>> '{old,priority}'), ', ' ORDER BY id)
                     FROM recur.events WHERE kind = 'action.updated'";
    assert_eq!(session.value::<String>(changed, &[]), "Zoe, Zoe, 0, Bob");
    let actions = "SELECT count(*) FROM recur.recurring_actions";
    assert_eq!(session.value::<i64>(actions, &[]), 1);
}

#[test]
fn an_author_makes_only_its_own_owners_forget() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "CREATE ROLE one; CREATE ROLE two;
         SELECT recur.grant_access('one', 'author'); SELECT recur.grant_access('one', 'consumer');
         SELECT recur.grant_access('two', 'author'); SELECT recur.grant_access('two', 'consumer');
         SET ROLE one",
    );
    fill(&mut session, "Carol");
    session.batch("RESET ROLE");
    let before = occurrences(&mut session, "Carol");
    session.batch("SET ROLE two");
    let removed: (i64, i64) = {
        let row = &session.rows(
            "SELECT actions, events FROM recur.forget_subject('Carol')",
            &[],
        )[0];
        (row.get(0), row.get(1))
    };
    assert_eq!(removed, (0, 0));
    session.batch("RESET ROLE");
    assert_eq!(occurrences(&mut session, "Carol"), before);
    session.batch("SET ROLE one; SELECT recur.forget_subject('Carol'); RESET ROLE");
    assert_eq!(occurrences(&mut session, "Carol"), 0);
}
