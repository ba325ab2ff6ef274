//! What SQL sees of the settings that a database decides for itself.

use super::ALL;
use super::kinds::{DecidedIn, Definition, Setting};
use super::stored;
use crate::pg::error::{OrRaise, SqlError, given};
use crate::pg::setting::{self, Source};
use crate::runtime::engine;
use crate::runtime::setting_rows::SettingRow;
use pgrx::iter::TableIterator;
use pgrx::{name, prelude::*};
use recurrence::nearest_name;
use std::ffi::CString;

/// `recur_internal.checked_setting(…)`: the full name of a setting that may have this value; raises
/// an error where it may not.
#[pg_extern(sql = false)]
fn checked_setting(name: Option<&str>, value: Option<&str>, namespace: Option<&str>) -> String {
    check(name, value, namespace).or_raise()
}

fn check(
    name: Option<&str>,
    value: Option<&str>,
    namespace: Option<&str>,
) -> Result<String, SqlError> {
    let definition = find(given("name", name)?)?;
    let setting = definition.setting();
    if setting.decided_in == DecidedIn::Server {
        let problem = "only the server's configuration decides it";
        let error = SqlError::invalid_argument("name", setting.name(), problem);
        return Err(error.with_hint("TABLE recur.settings has what a database may decide."));
    }
    if let Some(namespace) = namespace
        && setting.decided_in != DecidedIn::Namespace
    {
        let problem = format!("{} can't differ between namespaces", setting.name());
        return Err(SqlError::invalid_argument("namespace", namespace, &problem));
    }
    if let Some(value) = value {
        check_value(definition, value)?;
    }
    Ok(setting.name().to_owned())
}

/// The setting of this name, with or without `recur.` before it.
fn find(name: &str) -> Result<&'static dyn Definition, SqlError> {
    const PREFIX: &str = "recur.";
    let bare = name.strip_prefix(PREFIX).unwrap_or(name);
    stored::definition(&format!("{PREFIX}{bare}")).ok_or_else(|| {
        let names = decided_here().map(|one| one.setting().name().trim_start_matches(PREFIX));
        let hint = match nearest_name(bare, names) {
            Some(near) => format!("Did you mean {PREFIX}{near}?"),
            None => "TABLE recur.settings has what a database may decide.".to_owned(),
        };
        SqlError::invalid_argument("name", name, "there is no such setting").with_hint(hint)
    })
}

fn check_value(definition: &'static dyn Definition, value: &str) -> Result<(), SqlError> {
    let setting = definition.setting();
    let invalid = |problem: &str| SqlError::invalid_argument(setting.name(), value, problem);
    let text = CString::new(value).map_err(|_| invalid("holds a zero byte"))?;
    setting::check(setting.name, &text);
    let value = definition
        .read(&text)
        .ok_or_else(|| invalid("is no value"))?;
    match setting.limit {
        Some(limit) if !definition.is_within_limit(&value) => {
            let problem = format!("the server's value is the limit, {limit}");
            Err(invalid(&problem).with_hint("The server's configuration decides the limit."))
        }
        _ => Ok(()),
    }
}

/// What a database may decide.
fn decided_here() -> impl Iterator<Item = &'static dyn Definition> {
    let all = ALL.iter().copied();
    all.filter(|one| one.setting().decided_in != DecidedIn::Server)
}

/// `recur_internal.settings_in_force()`: what a database may decide, and where the value in force comes from. Without a
/// value, it is the one that the session shows.
#[pg_extern(sql = false)]
fn settings_in_force() -> TableIterator<
    'static,
    (
        name!(namespace, Option<String>),
        name!(name, String),
        name!(value, Option<String>),
        name!(source, &'static str),
    ),
> {
    let stored: Vec<SettingRow> = engine::as_engine(|| {
        let holds = |(row, problem): (SettingRow, Option<_>)| problem.is_none().then_some(row);
        stored::rows().filter_map(holds).collect()
    });
    let of_database = decided_here().map(|definition| {
        let setting = definition.setting();
        let row = stored
            .iter()
            .find(|row| row.namespace.is_none() && row.name == setting.name())
            .filter(|_| holds(definition));
        let (value, source) = match row {
            Some(row) => (Some(row.text.clone()), "database"),
            None => (None, source_on_server(setting)),
        };
        (None, setting.name().to_owned(), value, source)
    });
    let of_namespaces = stored
        .iter()
        .filter(|row| row.namespace.is_some())
        .map(|row| {
            let value = Some(row.text.clone());
            (row.namespace.clone(), row.name.clone(), value, "namespace")
        });
    let rows: Vec<_> = of_database.chain(of_namespaces).collect();
    TableIterator::new(rows)
}

/// Is the value of the database's row in force, and not one that comes before it?
fn holds(definition: &'static dyn Definition) -> bool {
    let value = definition.setting().stored(None);
    value.is_some_and(|value| definition.is_within_limit(&value))
}

fn source_on_server(setting: &Setting) -> &'static str {
    match setting::source(setting.name) {
        Source::Default => "default",
        Source::Server => "server",
        Source::Narrower => "session",
    }
}

/// `recur_internal.ignored_settings()`: rows that do not hold, for `recur.doctor()`.
#[pg_extern(sql = false)]
fn ignored_settings() -> TableIterator<
    'static,
    (
        name!(namespace, Option<String>),
        name!(name, String),
        name!(problem, &'static str),
    ),
> {
    let rows = engine::as_engine(|| stored::rows().collect::<Vec<_>>()).into_iter();
    let ignored = rows.filter_map(|(row, problem)| Some((row.namespace, row.name, problem?)));
    TableIterator::new(ignored.collect::<Vec<_>>())
}
