//! pg_recur: recurring actions for PostgreSQL.
//!
//! This file only wires the parts together; ARCHITECTURE.md has the map.

mod api;
mod dispatch;
mod guc;
mod hooks;
mod pg;
mod shared;
mod stats;
mod wake;
mod workers;

use pgrx::prelude::*;

::pgrx::pg_module_magic!(name, version);

#[allow(non_snake_case)]
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    guc::define();
    if pg::preloading() {
        shared::request();
        hooks::install();
        workers::register_launcher();
    }
}

// The SQL is written by hand, in this order: what \df, \sf and an upgrade script show is what was written.
extension_sql_file!("../sql/00_schema.sql", name = "schema", bootstrap);
extension_sql_file!(
    "../sql/10_schedules.sql",
    name = "schedules",
    requires = ["schema"]
);
extension_sql_file!(
    "../sql/20_actions.sql",
    name = "actions",
    requires = ["schedules"]
);
extension_sql_file!(
    "../sql/21_dispatches.sql",
    name = "dispatches",
    requires = ["actions"]
);
extension_sql_file!(
    "../sql/22_events.sql",
    name = "events",
    requires = ["dispatches"]
);
extension_sql_file!(
    "../sql/23_retention.sql",
    name = "retention",
    requires = ["events"]
);
extension_sql_file!(
    "../sql/24_telling.sql",
    name = "telling",
    requires = ["retention"]
);
extension_sql_file!(
    "../sql/30_writing.sql",
    name = "writing",
    requires = ["telling"]
);
extension_sql_file!(
    "../sql/31_definitions.sql",
    name = "definitions",
    requires = ["writing"]
);
extension_sql_file!(
    "../sql/32_looking.sql",
    name = "looking",
    requires = ["definitions"]
);
extension_sql_file!(
    "../sql/40_dispatching.sql",
    name = "dispatching",
    requires = ["looking"]
);
extension_sql_file!(
    "../sql/41_running.sql",
    name = "running",
    requires = ["dispatching"]
);
extension_sql_file!(
    "../sql/42_explaining.sql",
    name = "explaining",
    requires = ["running"]
);
extension_sql_file!(
    "../sql/43_operating.sql",
    name = "operating",
    requires = ["explaining"]
);
extension_sql_file!(
    "../sql/50_consuming.sql",
    name = "consuming",
    requires = ["operating"]
);
extension_sql_file!(
    "../sql/51_reporting.sql",
    name = "reporting",
    requires = ["consuming"]
);
extension_sql_file!(
    "../sql/52_batches.sql",
    name = "batches",
    requires = ["reporting"]
);
extension_sql_file!(
    "../sql/53_recovery.sql",
    name = "recovery",
    requires = ["batches"]
);
extension_sql_file!(
    "../sql/54_context.sql",
    name = "context",
    requires = ["recovery"]
);
extension_sql_file!(
    "../sql/55_history.sql",
    name = "history",
    requires = ["context"]
);
extension_sql_file!(
    "../sql/80_access.sql",
    name = "access",
    requires = ["history"]
);
extension_sql_file!("../sql/90_finish.sql", name = "finish", finalize);

#[cfg(any(test, feature = "pg_test"))]
#[path = "../pgrx-tests/mod.rs"]
mod tests;

/// What `cargo pgrx test` asks for.
#[cfg(test)]
pub mod pg_test {
    pub fn setup(_options: Vec<&str>) {}

    #[must_use]
    pub fn postgresql_conf_options() -> Vec<&'static str> {
        vec!["shared_preload_libraries = 'pg_recur'"]
    }
}
