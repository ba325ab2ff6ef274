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
