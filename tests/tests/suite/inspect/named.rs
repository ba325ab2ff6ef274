//! An action is meant by its name or its id, as a uuid or as a text, typed or not.

use pg_recur_tests::{Cluster, Session};
use postgres::types::Type;
use uuid::Uuid;

/// Statements that mean an action by `{action}`, and the column that tells.
const MEANT: [&str; 12] = [
    "SELECT name FROM recur.get({action})",
    "SELECT name FROM recur.update({action}, '{\"priority\": 1}')",
    "SELECT name FROM recur.pause({action})",
    "SELECT name FROM recur.resume({action})",
    "SELECT id::text FROM recur.history({action})",
    "SELECT verdict FROM recur.explain({action}, '2099-01-01Z')",
    "SELECT note FROM recur.compare({action}, '{\"schedule\": \"@hourly\"}')",
    "SELECT recur.trigger({action})::text",
    "SELECT context::text FROM recur.context_history({action})",
    "SELECT name FROM recur.restore_context({action}, 1)",
    "SELECT dispatch_id::text FROM recur.backfill({action}, '2026-01-01Z', '2026-01-02Z')",
    "SELECT name FROM recur.delete({action})",
];

fn create(session: &mut Session) -> Uuid {
    session.value(
        "SELECT recur.create('n', '@daily', 'p', 'a', namespace => 'ns', tenant => 't', subject => 's',
                             context => '{}')",
        &[],
    )
}

#[test]
fn every_function_takes_a_name_and_an_id() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for meant in ["{id}", "{id}::uuid", "'n'", "'n'::text"] {
        let id = create(&mut session);
        for statement in MEANT {
            let action = meant.replace("{id}", &format!("'{id}'"));
            let mut sql = statement.replace("{action}", &action);
            if meant.contains('n') {
                let last = sql.rfind(')').unwrap();
                let last = if sql.ends_with("::text") {
                    sql.rfind(")::text").unwrap()
                } else {
                    last
                };
                sql.insert_str(last, ", namespace => 'ns', tenant => 't', subject => 's'");
            }
            session
                .0
                .query(&sql, &[])
                .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        }
        assert_eq!(session.count("recur.recurring_actions"), 0, "{meant}");
    }
}

/// As drivers do that leave the types of parameters to the server: it takes an untyped parameter for a text.
#[test]
fn untyped_parameters_are_ids_and_names() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = create(&mut session);
    for statement in MEANT {
        let sql = statement.replace("{action}", "$1");
        let prepared = session.0.prepare(&sql).unwrap();
        assert_eq!(prepared.params(), [Type::TEXT], "{sql}");
        let text = id.to_string();
        session
            .0
            .query(&prepared, &[&text])
            .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    assert_eq!(session.count("recur.recurring_actions"), 0);
}

#[test]
fn a_deleted_action_has_a_history_by_its_id() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = create(&mut session);
    session.execute("SELECT recur.trigger($1::uuid)", &[&id]);
    session.execute("SELECT recur.delete($1::uuid)", &[&id]);
    let status: String = session.value(&format!("SELECT status FROM recur.history('{id}')"), &[]);
    assert_eq!(status, "cancelled");
    let unknown = Uuid::nil();
    session.assert_error(
        &format!("SELECT * FROM recur.history('{unknown}')"),
        "P0002",
        &format!("no action has the id {unknown}"),
    );
}

#[test]
fn where_a_text_is_a_schedule_an_id_is_understood() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    let id: Uuid = session.value(
        "SELECT recur.create('n', '0 9 * * MON-FRI', 'p', 'a', timezone => 'America/New_York', max_runs => 2)",
        &[],
    );
    let mut same = |by_text: &str, by_uuid: &str| {
        let of = |session: &mut Session, call: &str| {
            session.texts(&format!("SELECT r::text FROM {call} AS r"), &[])
        };
        let expected = of(&mut session, by_uuid);
        assert_eq!(of(&mut session, by_text), expected);
        assert!(!expected.is_empty());
        expected
    };
    let shown = same(
        &format!("recur.preview('{id}', \"from\" => '2099-01-01Z')"),
        &format!("recur.preview('{id}'::uuid, \"from\" => '2099-01-01Z')"),
    );
    assert_eq!(shown.len(), 2, "no more runs than it has left");
    same(
        &format!("recur.preview('{id}', 'UTC', '2099-01-01Z', 1)"),
        &format!("recur.preview('{id}'::uuid, 'UTC', '2099-01-01Z', 1)"),
    );
    same(
        &format!("recur.describe('{id}')"),
        &format!("recur.describe('{id}'::uuid)"),
    );
    let words: String = session.value(
        &format!("SELECT recur.describe('{id}', style => '12h')"),
        &[],
    );
    assert_eq!(words, "Every weekday at 9:00 AM, New York time, 2 times");
    // Untyped parameters, too.
    let text = id.to_string();
    session.value::<String>("SELECT recur.describe($1)", &[&text]);
    assert_eq!(
        session
            .rows("SELECT * FROM recur.preview($1)", &[&text])
            .len(),
        2
    );
    // What an action has of its own is not given.
    session.assert_error(
        &format!("SELECT * FROM recur.preview('{id}', max_runs => 3)"),
        "22023",
        &format!("max_runs is given for action {id}, which has one of its own"),
    );
    session.assert_error(
        &format!("SELECT recur.describe('{id}', 'UTC')"),
        "22023",
        &format!("timezone is given for action {id}, which has one of its own"),
    );
    session.assert_error(
        &format!("SELECT recur.lint('{id}')"),
        "22023",
        &format!("invalid schedule \"{id}\": is the id of an action, no schedule"),
    );
    // Each role sees its own.
    session.batch("CREATE ROLE other LOGIN; SELECT recur.grant_access('other', 'reader')");
    let mut other = cluster.session_as("other", "app");
    for call in [
        format!("recur.describe('{id}')"),
        format!("recur.preview('{id}')"),
    ] {
        let (code, message, _) = other.error(&format!("SELECT {call}"));
        assert_eq!(
            (code.as_str(), message),
            ("P0002", format!("no action has the id {id}"))
        );
    }
}
