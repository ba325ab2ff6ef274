//! Why the database did not do what was asked.

use crate::config::Role;
use std::fmt;

#[derive(Debug)]
pub enum Failure {
    /// The server's own error.
    Sql(Box<tokio_postgres::error::DbError>),
    /// No connection, or a lost one: what was asked may or may not have been done.
    Unavailable(String),
    /// All connections are in use.
    Busy,
    /// The role does not exist, or is a superuser.
    RoleRefused(Role),
    /// A mistake of this program.
    Internal(String),
}

impl Failure {
    pub fn code(&self) -> Option<&str> {
        match self {
            Failure::Sql(error) => Some(error.code().code()),
            _ => None,
        }
    }

    /// Did another transaction stand in the way, so that a repetition may succeed?
    pub fn is_worth_repeating(&self) -> bool {
        matches!(self.code(), Some("40001" | "40P01"))
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Failure {
        if let Some(error) = error.as_db_error() {
            return Failure::Sql(Box::new(error.clone()));
        }
        let source = std::error::Error::source(&error);
        let is_network =
            error.is_closed() || source.is_some_and(|source| source.is::<std::io::Error>());
        let text = source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
        if is_network {
            Failure::Unavailable(text)
        } else {
            Failure::Internal(text)
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Sql(error) => {
                write!(
                    formatter,
                    "{} (SQLSTATE {})",
                    error.message(),
                    error.code().code()
                )
            }
            Failure::Unavailable(reason) => write!(formatter, "no connection: {reason}"),
            Failure::Busy => formatter.write_str("all connections are in use"),
            Failure::RoleRefused(role) => {
                write!(
                    formatter,
                    "role {:?} does not exist, or is a superuser",
                    role.as_str()
                )
            }
            Failure::Internal(reason) => write!(formatter, "internal: {reason}"),
        }
    }
}
