//! What can go wrong.

use std::fmt;
use tokio_postgres::error::SqlState;

/// Why a call did not succeed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The attempt is over: its lease expired, or somebody else has decided. Whatever was done for it does not count.
    AttemptOver(tokio_postgres::Error),
    /// The action's context has changed since the claim; the dispatch is still running.
    ContextChanged(tokio_postgres::Error),
    /// There is no such dispatch, or none that this role can see.
    UnknownDispatch(tokio_postgres::Error),
    /// Anything else: a lost connection, a missing right.
    Database(tokio_postgres::Error),
    /// The consumer can't be started as it is configured.
    Configuration(String),
}

impl Error {
    /// May the same call succeed on another connection?
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        let Error::Database(error) = self else {
            return false;
        };
        // The server says goodbye with a code of class 57P (it is shut down, it has crashed), and so does a pooler, with
        // 08; a broken line has no code.
        error
            .code()
            .is_none_or(|code| code.code().starts_with("57P") || code.code().starts_with("08"))
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Error {
        match error.code().map(SqlState::code) {
            Some("RC001") => Error::AttemptOver(error),
            Some("RC002") => Error::ContextChanged(error),
            Some("P0002") => Error::UnknownDispatch(error),
            _ => Error::Database(error),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::AttemptOver(error)
            | Error::ContextChanged(error)
            | Error::UnknownDispatch(error)
            | Error::Database(error) => match error.as_db_error() {
                Some(from_server) => write!(f, "{}", from_server.message()),
                None => write!(f, "{error}"),
            },
            Error::Configuration(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::AttemptOver(error)
            | Error::ContextChanged(error)
            | Error::UnknownDispatch(error)
            | Error::Database(error) => Some(error),
            Error::Configuration(_) => None,
        }
    }
}
