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

    /// May the same succeed a little later?
    pub fn is_transient(&self) -> bool {
        self.is_of_the_server() || self.code().is_some_and(is_about_others)
    }

    /// Is the server away, a standby, or out of room, so that everything fails that is asked of it now?
    pub fn is_of_the_server(&self) -> bool {
        matches!(self, Failure::Unavailable(_) | Failure::Busy)
            || self.code().is_some_and(is_about_the_server)
    }
}

/// Connections that are lost or refused, a standby, too little memory or disk, a server that starts or stops.
fn is_about_the_server(code: &str) -> bool {
    matches!(code, "25006" | "53000" | "53100" | "53200" | "53300")
        || code.starts_with("08")
        || code.starts_with("57P")
}

/// Other transactions: conflicts with them, their locks, and what took too long because of them.
fn is_about_others(code: &str) -> bool {
    matches!(code, "55P03" | "57014") || code.starts_with("40")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_differs_from_what_will_not() {
        for code in ["08006", "25006", "53300", "57P01", "57P03"] {
            assert!(
                is_about_the_server(code) && !is_about_others(code),
                "{code}"
            );
        }
        for code in ["40001", "40P01", "55P03", "57014"] {
            assert!(
                is_about_others(code) && !is_about_the_server(code),
                "{code}"
            );
        }
        for code in [
            "22023", "42501", "53400", "55000", "P0002", "RC001", "XX000",
        ] {
            assert!(
                !is_about_others(code) && !is_about_the_server(code),
                "{code}"
            );
        }
        assert!(Failure::Busy.is_transient());
        assert!(Failure::Unavailable(String::new()).is_transient());
        assert!(!Failure::Internal(String::new()).is_transient());
    }
}
