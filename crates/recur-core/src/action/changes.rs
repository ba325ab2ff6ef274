//! What is to be set: columns and values, as they were given.

use super::columns::{Column, DefaultValue, MAINTAINED};
use super::definition::default_value;
use super::invalid::{Code, Invalid};
use super::journey;
use super::value::{Json, Value};

/// Columns with the values that they are to have, each column at most once.
///
/// In [`create`](super::create) NULL means the column's default; in an update it clears the column.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes<J> {
    pairs: Vec<(Column, Value<J>)>,
}

impl<J: Json> Changes<J> {
    /// Named arguments of a function.
    pub fn from_arguments(
        pairs: impl IntoIterator<Item = (Column, Value<J>)>,
    ) -> Result<Changes<J>, Invalid> {
        let mut changes = Changes { pairs: Vec::new() };
        for (column, value) in pairs {
            changes.add(column, value)?;
        }
        Ok(changes)
    }

    /// The keys of a JSON object, each with its value as the column's SQL type; see [`column`](Changes::column).
    pub fn from_keys<'a>(
        pairs: impl IntoIterator<Item = (&'a str, Value<J>)>,
    ) -> Result<Changes<J>, Invalid> {
        let mut changes = Changes { pairs: Vec::new() };
        for (key, value) in pairs {
            changes.add(Self::column(key)?, value)?;
        }
        Ok(changes)
    }

    /// A row that is inserted by plain DML: names of columns with their values. The owner and `duplicate`, which an
    /// INSERT may give, are not the definition's.
    pub fn from_insert<'a>(
        row: impl IntoIterator<Item = (&'a str, Value<J>)>,
    ) -> Result<Changes<J>, Invalid> {
        let mut changes = Changes { pairs: Vec::new() };
        for (name, value) in row {
            match Column::named(name) {
                Some(column) => changes.add(column, value)?,
                None if value.is_null() || matches!(name, "owner" | "duplicate") => {}
                None if journey::COLUMNS.contains(&name) => {
                    let problem = "an INSERT makes no schedule of a journey";
                    return Err(Invalid::argument(name, &value.text(), problem)
                        .with_hint("recur.schedule_journey does."));
                }
                None => {
                    return Err(Invalid::new(
                        Code::InvalidParameter,
                        "an action's id, counters and times can not be given: they are worked out",
                    ));
                }
            }
        }
        Ok(changes)
    }

    /// A row that is updated by plain DML: names of columns with their old and new values. What is the same is not
    /// changed: the row may have changed since the statement read it.
    pub fn from_update<'a>(
        row: impl IntoIterator<Item = (&'a str, Value<J>, Value<J>)>,
    ) -> Result<Changes<J>, Invalid> {
        let differing = row.into_iter().filter(|(_, old, new)| old != new);
        Changes::from_keys(differing.map(|(name, _, new)| (name, new)))
    }

    /// The column that a key of `changes` names, or why it can't be changed.
    pub fn column(key: &str) -> Result<Column, Invalid> {
        let Some(column) = Column::named(key) else {
            let problem = match MAINTAINED.contains(&key) {
                true => "this column is maintained by pg_recur",
                false => "an action has no such column",
            };
            return Err(Invalid::argument("change", key, problem).with_hint(hint(key)));
        };
        Ok(column)
    }

    fn add(&mut self, column: Column, value: Value<J>) -> Result<(), Invalid> {
        if self.get(column).is_some() {
            return Err(Invalid::argument(
                "change",
                column.name(),
                "the column is given twice",
            ));
        }
        self.pairs.push((column, value));
        Ok(())
    }

    /// What the column is to have, if it is named.
    pub fn get(&self, column: Column) -> Option<&Value<J>> {
        self.iter()
            .find(|(named, _)| *named == column)
            .map(|(_, value)| value)
    }

    /// What the column is to have, where that is not NULL.
    pub fn given(&self, column: Column) -> Option<&Value<J>> {
        self.get(column).filter(|value| !value.is_null())
    }

    /// The pairs in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = (Column, &Value<J>)> {
        self.pairs.iter().map(|(column, value)| (*column, value))
    }

    /// Is nothing named?
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The arguments of a creation as changes of the action that exists already.
    ///
    /// What was left out gets its default, as in a creation. The identity is the one by which the action was found, and
    /// the columns of [`Column::is_kept_by_upsert`] keep their value.
    pub fn for_upsert(&self) -> Changes<J> {
        let changed = Column::ALL
            .iter()
            .copied()
            .filter(|column| !column.is_identity());
        let pairs = changed.filter_map(|column| match self.given(column) {
            Some(value) => Some((column, value.clone())),
            None if column.is_kept_by_upsert() => None,
            None => Some((column, or_null(column.spec().default))),
        });
        Changes {
            pairs: pairs.collect(),
        }
    }
}

/// A required column that is missing becomes NULL, and is refused as such.
fn or_null<J: Json>(default: DefaultValue) -> Value<J> {
    default_value(default).unwrap_or(Value::Null)
}

fn hint(key: &str) -> String {
    let names: Vec<&str> = Column::ALL.iter().map(|column| column.name()).collect();
    let all = format!("What can be changed: {}.", names.join(", "));
    match recurrence::nearest_name(key, names.iter().copied()) {
        Some(meant) => format!("Did you mean {meant}? {all}"),
        None => all,
    }
}
