//! The rows of `recur_internal.settings`, unchecked.

use crate::pg::query::queries;

/// What the database says of a setting, or one of its namespaces.
pub struct SettingRow {
    pub namespace: Option<String>,
    pub name: String,
    pub text: String,
}

queries! {
    SETTING_ROWS = "install/queries/setting_rows.sql" ();
}

pub fn read() -> Vec<SettingRow> {
    SETTING_ROWS.with(|query| {
        query.latest_rows(&[], |row| SettingRow {
            namespace: row.get(1),
            name: row.required(2),
            text: row.required(3),
        })
    })
}
