//! What the database itself runs.

mod commands;
mod crashes;
mod escapes;
mod executors;
mod groups;
mod handlers;
mod owners;
mod pg_cron;

use pg_recur_tests::{Session, eventually_some};
use serde_json::Value;
use uuid::Uuid;

/// Waits until a dispatch is over; returns its status, result and error.
fn outcome(session: &mut Session, dispatch: Uuid) -> (String, Value, String) {
    eventually_some("the dispatch is over", || {
        let rows = session.rows(
            "SELECT status, coalesce(result, 'null'), coalesce(error, '') FROM recur.dispatches
              WHERE id = $1 AND finished_at IS NOT NULL",
            &[&dispatch],
        );
        let row = rows.first()?;
        Some((row.get(0), row.get(1), row.get(2)))
    })
}

/// Lets the database run a command once, and waits for its outcome.
fn run(session: &mut Session, command: &str, arguments: &str) -> (String, Value, String) {
    let sql = format!("SELECT recur.enqueue_sql($1{arguments})");
    let id: Uuid = session.value(&sql, &[&command]);
    outcome(session, id)
}
