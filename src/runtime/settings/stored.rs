//! What a database decides for itself: the rows of `recur_internal.settings`. The database's owner can restore any row,
//! so each value is checked again when it is read, by the server's own check of the setting.

use super::ALL;
use super::kinds::{DecidedIn, Definition};
use crate::pg::setting;
use crate::runtime::cached_table::CachedTable;
use crate::runtime::setting_rows::{self, SettingRow};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::rc::Rc;

/// A value of a setting.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Value {
    Switch(bool),
    Number(i32),
    Text(String),
}

/// The rows that hold. There are few: to look through them takes no longer than to hash a name.
#[derive(Default)]
struct Stored {
    database: Vec<(&'static CStr, Value)>,
    namespaces: HashMap<String, Vec<(&'static CStr, Value)>>,
}

thread_local! {
    static STORED: CachedTable<Rc<Stored>> = const { CachedTable::new(c"settings", read) };
}

/// What the namespace says of a setting, or else the database.
pub fn value(name: &'static CStr, namespace: Option<&str>) -> Option<Value> {
    let stored = STORED.with(CachedTable::get);
    let of_namespace = namespace.and_then(|namespace| stored.namespaces.get(namespace));
    of_namespace
        .and_then(|values| find(values, name))
        .or_else(|| find(&stored.database, name))
        .cloned()
}

fn find<'a>(values: &'a [(&'static CStr, Value)], wanted: &CStr) -> Option<&'a Value> {
    let found = values
        .iter()
        .find(|(name, _)| std::ptr::eq(name.as_ptr(), wanted.as_ptr()));
    found.map(|(_, value)| value)
}

/// The setting of this name.
pub fn definition(name: &str) -> Option<&'static dyn Definition> {
    let found = ALL.iter().find(|one| one.setting().name() == name);
    found.copied()
}

/// Every row, and why it does not hold.
pub fn rows() -> impl Iterator<Item = (SettingRow, Option<&'static str>)> {
    setting_rows::read().into_iter().map(|row| {
        let problem = accepted(&row).err();
        (row, problem)
    })
}

fn read() -> Rc<Stored> {
    let mut stored = Stored::default();
    for row in setting_rows::read() {
        let Ok((name, value)) = accepted(&row) else {
            continue;
        };
        match row.namespace {
            None => stored.database.push((name, value)),
            Some(namespace) => {
                let values = stored.namespaces.entry(namespace).or_default();
                values.push((name, value));
            }
        }
    }
    Rc::new(stored)
}

/// The setting and its value, or why the row does not hold.
fn accepted(row: &SettingRow) -> Result<(&'static CStr, Value), &'static str> {
    let definition = definition(&row.name).ok_or("there is no such setting")?;
    let name = definition.setting().name;
    match definition.setting().decided_in {
        DecidedIn::Server => return Err("only the server's configuration decides it"),
        DecidedIn::Database if row.namespace.is_some() => {
            return Err("a namespace can't decide it");
        }
        DecidedIn::Database | DecidedIn::Namespace => {}
    }
    let invalid = "the value is invalid";
    let text = CString::new(row.text.as_str()).map_err(|_| invalid)?;
    match setting::accepts(name, &text) {
        true => definition
            .read(&text)
            .map(|value| (name, value))
            .ok_or(invalid),
        false => Err(invalid),
    }
}
