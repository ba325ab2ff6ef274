//! pg_recur: recurring actions for PostgreSQL.
//!
//! This file only wires the parts together; ARCHITECTURE.md has the map.

mod access;
mod actions;
mod alerts;
mod commands;
mod dispatch;
mod execution;
mod history;
mod inspect;
mod journeys;
mod pg;
mod queue;
mod recovery;
mod requests;
mod runtime;
mod webhooks;
mod workers;

use pgrx::prelude::*;

::pgrx::pg_module_magic!(name, version);

#[allow(non_snake_case)]
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    runtime::settings::define();
    if pg::preloading() {
        runtime::shared::request();
        runtime::stats::request();
        runtime::hooks::install();
        if !pg::is_binary_upgrade() {
            workers::register_launcher();
        }
    }
}

// The SQL is written by hand, in this order: what \df, \sf and an upgrade script show is what was written.
extension_sql_file!("../sql/install/schema.sql", name = "schema", bootstrap);
extension_sql_file!(
    "../sql/install/clock.sql",
    name = "clock",
    requires = ["schema"]
);
extension_sql_file!(
    "../sql/install/settings.sql",
    name = "settings",
    requires = ["clock"]
);
extension_sql_file!(
    "../sql/install/home.sql",
    name = "home",
    requires = ["settings"]
);
extension_sql_file!(
    "../sql/actions/schedules.sql",
    name = "schedules",
    requires = ["home"]
);
extension_sql_file!(
    "../sql/access/owners.sql",
    name = "owners",
    requires = ["schedules"]
);
extension_sql_file!(
    "../sql/actions/tables.sql",
    name = "action_tables",
    requires = ["owners"]
);
extension_sql_file!(
    "../sql/actions/quotas.sql",
    name = "quotas",
    requires = ["action_tables"]
);
extension_sql_file!(
    "../sql/alerts/tables.sql",
    name = "alert_tables",
    requires = ["quotas"]
);
extension_sql_file!(
    "../sql/queue/tables.sql",
    name = "dispatch_tables",
    requires = ["alert_tables"]
);
extension_sql_file!(
    "../sql/history/events.sql",
    name = "events",
    requires = ["dispatch_tables"]
);
extension_sql_file!(
    "../sql/history/partitions.sql",
    name = "partitions",
    requires = ["events"]
);
extension_sql_file!(
    "../sql/commands/tables.sql",
    name = "command_tables",
    requires = ["partitions"]
);
extension_sql_file!(
    "../sql/actions/view.sql",
    name = "action_view",
    requires = ["command_tables"]
);
extension_sql_file!(
    "../sql/actions/functions.sql",
    name = "action_functions",
    requires = ["action_view"]
);
extension_sql_file!(
    "../sql/dispatch/templates.sql",
    name = "templates",
    requires = ["action_functions"]
);
extension_sql_file!(
    "../sql/dispatch/functions.sql",
    name = "dispatch_functions",
    requires = ["templates"]
);
extension_sql_file!(
    "../sql/dispatch/test_clock.sql",
    name = "test_clock",
    requires = ["dispatch_functions"]
);
extension_sql_file!(
    "../sql/queue/functions.sql",
    name = "queue_functions",
    requires = ["test_clock"]
);
extension_sql_file!(
    "../sql/commands/functions.sql",
    name = "command_functions",
    requires = ["queue_functions"]
);
extension_sql_file!(
    "../sql/execution/views.sql",
    name = "execution_views",
    requires = ["command_functions"]
);
extension_sql_file!(
    "../sql/recovery/functions.sql",
    name = "recovery_functions",
    requires = ["execution_views"]
);
extension_sql_file!(
    "../sql/requests/keys.sql",
    name = "request_keys",
    requires = ["recovery_functions"]
);
extension_sql_file!(
    "../sql/journeys/tables.sql",
    name = "journey_tables",
    requires = ["request_keys"]
);
extension_sql_file!(
    "../sql/journeys/functions.sql",
    name = "journey_functions",
    requires = ["journey_tables"]
);
extension_sql_file!(
    "../sql/webhooks/tables.sql",
    name = "webhook_tables",
    requires = ["journey_functions"]
);
extension_sql_file!(
    "../sql/webhooks/functions.sql",
    name = "webhook_functions",
    requires = ["webhook_tables"]
);
extension_sql_file!(
    "../sql/inspect/preview.sql",
    name = "preview",
    requires = ["webhook_functions"]
);
extension_sql_file!(
    "../sql/commands/import_pg_cron.sql",
    name = "import_pg_cron",
    requires = ["preview"]
);
extension_sql_file!(
    "../sql/inspect/actions.sql",
    name = "inspect_actions",
    requires = ["import_pg_cron"]
);
extension_sql_file!(
    "../sql/inspect/upcoming.sql",
    name = "upcoming",
    requires = ["inspect_actions"]
);
extension_sql_file!(
    "../sql/inspect/explain.sql",
    name = "explain",
    requires = ["upcoming"]
);
extension_sql_file!(
    "../sql/inspect/overview.sql",
    name = "overview",
    requires = ["explain"]
);
extension_sql_file!(
    "../sql/inspect/operating.sql",
    name = "operating",
    requires = ["overview"]
);
extension_sql_file!(
    "../sql/inspect/metrics.sql",
    name = "metrics",
    requires = ["operating"]
);
extension_sql_file!(
    "../sql/inspect/help.sql",
    name = "help",
    requires = ["metrics"]
);
extension_sql_file!(
    "../sql/history/functions.sql",
    name = "history_functions",
    requires = ["help"]
);
extension_sql_file!(
    "../sql/inspect/settings.sql",
    name = "settings_view",
    requires = ["history_functions"]
);
extension_sql_file!(
    "../sql/access/levels.sql",
    name = "levels",
    requires = ["settings_view"]
);
extension_sql_file!("../sql/install/finish.sql", name = "finish", finalize);

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
