//! Actions, as many tests make and read them.

use crate::session::Session;
use serde_json::Value;
use uuid::Uuid;

pub const EVERY_SECOND: &str = "* * * * * *";

/// An action of the provider `test`.
#[track_caller]
pub fn create(session: &mut Session, name: &str, schedule: &str) -> Uuid {
    session.value(
        "SELECT recur.create($1, $2, provider => 'test', action_type => 'noop', payload => '{\"n\": 1}')",
        &[&name, &schedule],
    )
}

/// A daily action that has a value in columns of several kinds, for tests that change them.
#[track_caller]
pub fn create_to_change(session: &mut Session) -> Uuid {
    session.value(
        "SELECT recur.create('n', '0 9 * * *', 'p', 'a', '{\"k\": 1}', description => 'd',
                             ends_at => now() + interval '1 year', contact => 'me', context => '{\"c\": 1}')",
        &[],
    )
}

#[track_caller]
pub fn row(session: &mut Session, id: Uuid) -> Value {
    session.value("SELECT to_jsonb(a) FROM recur.get($1::uuid) AS a", &[&id])
}

/// The columns that people may write, by the hint of a change that names none of them.
#[track_caller]
pub fn writable_columns(session: &mut Session) -> Vec<String> {
    let changes = serde_json::json!({"none of them at all": 1});
    let id: Uuid = session.value(
        "SELECT recur.create('for its columns', '@daily', 'p', 'a')",
        &[],
    );
    let (.., hint) = session.error_with("SELECT recur.update($1::uuid, $2)", &[&id, &changes]);
    session.execute("SELECT recur.delete($1::uuid)", &[&id]);
    let names = hint
        .strip_prefix("What can be changed: ")
        .and_then(|names| names.strip_suffix('.'));
    let names = names.unwrap_or_else(|| panic!("no columns: {hint}"));
    names.split(", ").map(str::to_owned).collect()
}

/// The row as it is after this change.
#[track_caller]
pub fn update(session: &mut Session, id: Uuid, changes: Value) -> Value {
    session.execute("SELECT recur.update($1::uuid, $2)", &[&id, &changes]);
    row(session, id)
}

/// The SQLSTATE and the message of a change that is refused, and changes nothing.
#[track_caller]
pub fn refused_update(session: &mut Session, id: Uuid, changes: Value) -> (String, String) {
    let before = row(session, id);
    let error = session.error_with("SELECT recur.update($1::uuid, $2)", &[&id, &changes]);
    assert_eq!(row(session, id), before, "a refused change changes nothing");
    (error.0, error.1)
}

/// How many dispatches an action has, finished or not.
#[track_caller]
pub fn dispatch_count(session: &mut Session, action: Uuid) -> i64 {
    session.value(
        "SELECT count(*) FROM recur.dispatches WHERE action_id = $1",
        &[&action],
    )
}

/// A call of recur.create with this argument (or several), and with those that it can not do without.
pub fn create_with(argument: &str) -> String {
    let needed = [
        ("name", "'n'"),
        ("schedule", "'@daily'"),
        ("provider", "'p'"),
        ("action_type", "'a'"),
    ];
    let mut arguments: Vec<String> = needed
        .iter()
        .filter(|(name, _)| !format!(" {argument}").contains(&format!(" {name} => ")))
        .map(|(name, value)| format!("{name} => {value}"))
        .collect();
    arguments.push(argument.to_owned());
    format!("SELECT recur.create({})", arguments.join(", "))
}
