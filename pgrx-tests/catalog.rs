//! Defaults and allowed values stand once, in recur-core: the catalog repeats none, or the same.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use pgrx::prelude::*;
    use recur_core::action::Column;
    use recur_core::event::EventKind;
    use std::collections::{BTreeMap, BTreeSet};

    fn column(query: &str) -> Vec<String> {
        Spi::connect(|client| {
            let rows = client.select(query, None, &[]).unwrap();
            rows.map(|row| row.get::<String>(1).unwrap().unwrap())
                .collect()
        })
    }

    fn is_column_of_actions(name: &str) -> bool {
        Column::named(name).is_some()
    }

    #[pg_test]
    fn the_kinds_of_events_are_those_of_recur_core() {
        let allowed = column(
            "SELECT m[1] FROM pg_constraint AS c, regexp_matches(pg_get_constraintdef(c.oid), $$'([^']*)'$$, 'g') AS m
              WHERE c.conname = 'events_kind_known' AND c.conrelid = 'recur_internal.events'::regclass",
        );
        let allowed: BTreeSet<&str> = allowed.iter().map(String::as_str).collect();
        assert_eq!(allowed, EventKind::NAMES.iter().copied().collect());
    }

    #[pg_test]
    fn no_other_constraint_lists_values() {
        let lists = column(
            "SELECT c.conname::text FROM pg_constraint AS c
              WHERE c.connamespace = ANY ('{recur,recur_internal}'::regnamespace[]) AND c.contype = 'c'
                AND pg_get_constraintdef(c.oid) ~ 'ANY|= ''' AND c.conname <> 'events_kind_known'",
        );
        assert_eq!(lists, [""; 0]);
    }

    #[pg_test]
    fn tables_have_no_defaults_for_columns_of_actions() {
        let mut defaults = column(
            "SELECT a.attname::text FROM pg_attrdef AS d
               JOIN pg_class AS c ON c.oid = d.adrelid
               JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
              WHERE c.relnamespace = ANY ('{recur,recur_internal}'::regnamespace[])",
        );
        defaults.retain(|name| is_column_of_actions(name));
        assert_eq!(defaults, [""; 0]);
    }

    #[pg_test]
    fn columns_are_nullable_where_recur_core_says_so() {
        let nullable = column(
            "SELECT a.attname::text FROM pg_attribute AS a
              WHERE a.attrelid = 'recur_internal.definitions'::regclass AND a.attnum > 0 AND NOT a.attnotnull",
        );
        // Columns that can't be set are not among those of recur-core.
        let nullable: BTreeSet<&str> = nullable
            .iter()
            .map(String::as_str)
            .filter(|name| is_column_of_actions(name))
            .collect();
        let expected = Column::DEFINITION
            .iter()
            .filter(|column| column.spec().is_nullable());
        assert_eq!(nullable, expected.map(|column| column.name()).collect());
    }

    /// Function, argument and default of each argument that has one.
    fn defaults_of_arguments() -> Vec<(String, String, String)> {
        let rows = column(
            "SELECT concat_ws('|', p.proname, a.name, pg_get_function_arg_default(p.oid, a.number::int))
               FROM pg_proc AS p, unnest(p.proargnames) WITH ORDINALITY AS a (name, number)
              WHERE p.pronamespace = 'recur'::regnamespace
                AND pg_get_function_arg_default(p.oid, a.number::int) IS NOT NULL",
        );
        let split = |row: String| {
            let mut parts = row.splitn(3, '|').map(str::to_owned);
            let mut part = || parts.next().unwrap();
            (part(), part(), part())
        };
        rows.into_iter().map(split).collect()
    }

    #[pg_test]
    fn functions_leave_the_defaults_of_columns_to_recur_core() {
        let defaults = defaults_of_arguments();
        assert!(defaults.len() > 50, "{}", defaults.len());
        for (function, argument, default) in defaults {
            if is_column_of_actions(&argument) {
                assert!(
                    default.starts_with("NULL::"),
                    "{function}({argument}): {default}"
                );
            }
        }
    }

    #[pg_test]
    fn forms_of_a_function_have_the_same_defaults() {
        let mut known: BTreeMap<(String, String), String> = BTreeMap::new();
        for (function, argument, default) in defaults_of_arguments() {
            let shown = format!("{function}({argument})");
            let first = known
                .entry((function, argument))
                .or_insert_with(|| default.clone());
            assert_eq!(*first, default, "{shown}");
        }
    }

    #[pg_test]
    fn null_means_the_default_of_an_argument() {
        let same = "SELECT (SELECT count(*) FROM recur.preview('@daily', count => NULL))
                         = (SELECT count(*) FROM recur.preview('@daily'))";
        assert_eq!(Spi::get_one(same).unwrap(), Some(true));
    }
}
