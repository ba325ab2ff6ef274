//! Finding actions: the filters, the pages, and the index that each filter uses.

use pg_recur_tests::{Cluster, Session};
use uuid::Uuid;

fn names(session: &mut Session, arguments: &str) -> Vec<String> {
    session.column(&format!("SELECT name FROM recur.list({arguments})"), &[])
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
}

#[test]
fn bad_limits_and_unknown_actions_are_refused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for (arguments, message) in [
        ("\"limit\" => 0", "invalid limit \"0\": must be at least 1"),
        (
            "\"limit\" => NULL",
            "invalid limit \"NULL\": must be at least 1",
        ),
    ] {
        session.assert_error(&format!("SELECT recur.list({arguments})"), "22023", message);
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
        "SELECT recur.create('n' || i % 10, '@yearly', 'p', 'a', namespace => 'ns' || i % 3,
                             on_existing => 'add_another')
           FROM generate_series(1, 60) AS i",
    );
    let everything: Vec<Uuid> = session.value(
        "SELECT array_agg(id ORDER BY namespace, tenant, name, id) FROM recur.recurring_actions",
        &[],
    );
    let mut seen: Vec<Uuid> = Vec::new();
    loop {
        let after = seen.last().copied();
        let page: Vec<Uuid> = session.column(
            "SELECT id FROM recur.list(\"limit\" => 7, after => $1)",
            &[&after],
        );
        let Some(last) = page.last() else { break };
        assert!(page.len() == 7 || everything.ends_with(std::slice::from_ref(last)));
        // Before the next page: a row comes in front of where we are, and the one that we stand on goes.
        session.batch(
            "SELECT recur.create('first', '@yearly', 'p', 'a', namespace => 'a',
                                 on_existing => 'add_another')",
        );
        session.execute("SELECT recur.delete($1::uuid)", &[last]);
        seen.extend(page);
    }
    assert_eq!(seen, everything);
}

/// The same for the newest first: what is created meanwhile comes before the first page.
#[test]
fn the_newest_come_first() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for name in ["b", "c", "a", "e", "d"] {
        session.batch(&format!(
            "SELECT recur.create('{name}', '@yearly', 'p', 'x')"
        ));
    }
    assert_eq!(names(&mut session, ""), ["a", "b", "c", "d", "e"]);
    assert_eq!(
        names(&mut session, "\"order\" => 'newest'"),
        ["d", "e", "a", "c", "b"]
    );
    assert_eq!(
        names(&mut session, "\"order\" => 'newest', search => 'e'"),
        ["e"]
    );
    // Also many of one millisecond.
    session.batch(
        "SELECT recur.create(to_char(n, 'n000'), '@yearly', 'p', 'x', namespace => 'many')
           FROM generate_series(1, 100) AS n",
    );
    let many = names(&mut session, "\"order\" => 'newest', namespace => 'many'");
    assert!(many.is_sorted_by(|a, b| a > b), "{many:?}");
    session.batch("SELECT recur.delete(id) FROM recur.list('many')");
    let mut page = |after: &str| {
        names(
            &mut session,
            &format!("\"order\" => 'newest', \"limit\" => 2, after => {after}"),
        )
    };
    assert_eq!(page("NULL"), ["d", "e"]);
    let after = "recur.id_of('e')";
    assert_eq!(page(after), ["a", "c"]);
    let id: Uuid = session.value("SELECT recur.id_of('e')", &[]);
    session.batch("SELECT recur.create('new', '@yearly', 'p', 'x'); SELECT recur.delete('e')");
    let mut page = |after: Uuid| {
        names(
            &mut session,
            &format!("\"order\" => 'newest', \"limit\" => 2, after => '{after}'"),
        )
    };
    assert_eq!(page(id), ["a", "c"]);
    session.assert_error(
        "SELECT recur.list(\"order\" => 'oldest')",
        "22023",
        "invalid order \"oldest\": must be name or newest",
    );
}

/// 50,000 actions with a dispatch each, most of them of `app` and some of `alice`.
fn fill(session: &mut Session) {
    session.batch(
        "CREATE ROLE alice; SELECT recur.grant_access('alice', 'author');
         CREATE ROLE app; SELECT recur.grant_access('app', 'author');
         SET ROLE alice; SELECT recur.create('of alice', '@daily', 'p', 'a');
         SET ROLE app; SELECT recur.create('of app', '@daily', 'p', 'a'); RESET ROLE",
    );
    // Rows as create would make them, in bulk.
    session.batch(
        "CREATE TEMP TABLE made AS
         SELECT i, gen_random_uuid() AS id, o.id AS owner_id, i % 1000 <> 0 AS enabled
           FROM generate_series(1, 50000) AS i
           JOIN recur_internal.owners AS o ON o.name = CASE WHEN i % 200 = 0 THEN 'alice' ELSE 'app' END;
         INSERT INTO recur_internal.definitions
         SELECT d.* FROM made AS m, recur_internal.definitions AS t,
                jsonb_populate_record(t, jsonb_build_object(
                    'id', m.id, 'name', 'name ' || i, 'namespace', 'ns' || i % 500, 'tenant', 'tenant' || i % 1000,
                    'subject', 'subject ' || i, 'owner_id', m.owner_id,
                    'labels', jsonb_build_object('customer', (i % 2000)::text))) AS d
          WHERE t.name = 'of app';
         INSERT INTO recur_internal.timers (action_id, enabled, next_run_at, due_at, run_count, error_count)
         SELECT id, enabled, n.next, n.next, 0, 0
           FROM made, LATERAL (SELECT CASE WHEN enabled THEN now() + interval '1 day' END AS next) AS n;
         INSERT INTO recur_internal.progress (action_id, completed_count, failed_count, failed_in_a_row,
                                              interactive_count, context_version)
         SELECT id, 0, 0, 0, 0, 1 FROM made;
         SELECT count(recur.trigger(id)) FROM made",
    );
    session.batch("VACUUM ANALYZE recur_internal.definitions");
    session.batch("VACUUM ANALYZE recur_internal.timers");
    session.batch("VACUUM ANALYZE recur_internal.progress");
    session.batch("VACUUM ANALYZE recur_internal.live_dispatches");
}

/// The plans on a table with statistics: each filter, alone, reaches its rows through an index, for a superuser and for
/// a role that sees only its own, which are many.
#[test]
fn every_filter_has_an_index() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut session = cluster.database("app");
    fill(&mut session);
    let some: Uuid = session.value(
        "SELECT id FROM recur_internal.definitions WHERE name = 'name 4001'",
        &[],
    );
    for (call, index) in [
        ("list()".to_owned(), "definitions_listed"),
        (format!("list(after => '{some}')"), "definitions_listed"),
        ("list(\"order\" => 'newest')".to_owned(), "definitions_pkey"),
        (
            format!("list(\"order\" => 'newest', after => '{some}')"),
            "definitions_pkey",
        ),
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
            let call = format!("SELECT count(*) FROM recur.{call}");
            let plan = cluster.plans("app", role, &call);
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
