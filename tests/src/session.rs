//! A client connection, with what tests ask again and again.

use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{FromSqlOwned, ToSql};
use postgres::{Client, NoTls, Row};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// A real client. SQL errors fail the test, unless the test asks for them.
pub struct Session(pub Client);

impl Session {
    pub(crate) fn connect(
        host: &Path,
        port: u16,
        database: &str,
        user: &str,
    ) -> Result<Session, postgres::Error> {
        postgres::Config::new()
            .host_path(host)
            .port(port)
            .user(user)
            .dbname(database)
            .application_name("pg_recur-tests")
            .connect(NoTls)
            .map(Session)
    }

    #[track_caller]
    pub fn execute(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> u64 {
        self.0
            .execute(sql, parameters)
            .unwrap_or_else(|error| panic!("{sql}: {}", text(&error)))
    }

    /// Statements that have no parameters, several at once.
    #[track_caller]
    pub fn batch(&mut self, sql: &str) {
        self.0
            .batch_execute(sql)
            .unwrap_or_else(|error| panic!("{sql}: {}", text(&error)));
    }

    #[track_caller]
    pub fn rows(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Vec<Row> {
        self.0
            .query(sql, parameters)
            .unwrap_or_else(|error| panic!("{sql}: {}", text(&error)))
    }

    /// The one value of the one row.
    #[track_caller]
    pub fn value<T: FromSqlOwned>(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> T {
        let row = self.0.query_one(sql, parameters);
        row.unwrap_or_else(|error| panic!("{sql}: {}", text(&error)))
            .get(0)
    }

    /// The one value of each row.
    #[track_caller]
    pub fn column<T: FromSqlOwned>(
        &mut self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Vec<T> {
        let rows = self.rows(sql, parameters);
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// How many rows there are of `relation`, which may have a WHERE behind it.
    #[track_caller]
    pub fn count(&mut self, relation: &str) -> i64 {
        self.value(&format!("SELECT count(*) FROM {relation}"), &[])
    }

    /// The error that this statement must raise: (SQLSTATE, message, hint).
    #[track_caller]
    pub fn error(&mut self, sql: &str) -> (String, String, String) {
        self.error_with(sql, &[])
    }

    /// This statement must raise this error.
    #[track_caller]
    pub fn assert_error(&mut self, sql: &str, code: &str, message: &str) {
        let (state, text, _) = self.error(sql);
        assert_eq!((state.as_str(), text.as_str()), (code, message), "{sql}");
    }

    /// The error of a statement with parameters.
    #[track_caller]
    pub fn error_with(
        &mut self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> (String, String, String) {
        match self.0.query(sql, parameters) {
            Ok(_) => panic!("{sql}: no error"),
            Err(error) => database_error(&error),
        }
    }

    /// This session's process in the server.
    #[track_caller]
    pub fn pid(&mut self) -> i32 {
        self.value("SELECT pg_backend_pid()", &[])
    }

    /// What `recur.tick` did at that instant: (dispatched, skipped, ended, failed).
    #[track_caller]
    pub fn tick(&mut self, at: &str) -> (i64, i64, i64, i64) {
        let sql =
            "SELECT dispatched, skipped, ended, failed FROM recur.tick($1::text::timestamptz)";
        let row = &self.rows(sql, &[&at])[0];
        (row.get(0), row.get(1), row.get(2), row.get(3))
    }

    /// The one text of each row.
    #[track_caller]
    pub fn texts(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Vec<String> {
        self.column(sql, parameters)
    }

    /// Does the session of this process wait for another session?
    #[track_caller]
    pub fn is_blocked(&mut self, pid: i32) -> bool {
        self.value("SELECT cardinality(pg_blocking_pids($1)) > 0", &[&pid])
    }

    /// The next notification, as JSON, within the deadline.
    #[track_caller]
    pub fn notification(&mut self) -> Value {
        let mut notifications = self.0.notifications();
        let next = notifications
            .timeout_iter(Duration::from_secs(60))
            .next()
            .expect("a connection");
        let notification = next.expect("no notification within 60 seconds");
        serde_json::from_str(notification.payload()).expect("JSON")
    }

    /// Notifications that have arrived by now.
    pub fn waiting_notifications(&mut self) -> Vec<Value> {
        // A round trip: the server sends what is due before the answer.
        self.batch("SELECT 1");
        let mut notifications = self.0.notifications();
        notifications
            .iter()
            .map(|notification| Ok(serde_json::from_str(notification.payload()).expect("JSON")))
            .collect()
            .expect("a connection")
    }
}

pub fn database_error(error: &postgres::Error) -> (String, String, String) {
    let error = error
        .as_db_error()
        .unwrap_or_else(|| panic!("not the server's: {error}"));
    (
        error.code().code().to_owned(),
        error.message().to_owned(),
        error.hint().unwrap_or("").to_owned(),
    )
}

fn text(error: &postgres::Error) -> String {
    error
        .as_db_error()
        .map_or_else(|| error.to_string(), ToString::to_string)
}
