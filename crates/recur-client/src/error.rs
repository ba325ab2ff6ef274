//! Errors, by what a caller can do about them.

use std::error::Error as StdError;
use std::fmt;
use tokio_postgres::error::SqlState;

/// Why a call did not succeed.
///
/// ```no_run
/// # async fn example(session: recur_client::Session, id: uuid::Uuid) -> Result<(), recur_client::Error> {
/// use recur_client::Error;
///
/// match session.complete(id, 1, None, None).await {
///     Ok(report) => println!("{:?}", report.status),
///     Err(Error::AttemptOver(_)) => println!("too late: another attempt counts"),
///     Err(error) if error.is_disconnected() => println!("report again on a new connection"),
///     Err(error) => return Err(error),
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// SQLSTATE `RC001`: the lease has expired, or the attempt has been reported. Its work does not count.
    AttemptOver(tokio_postgres::Error),
    /// SQLSTATE `RC002`: the action's context has changed since the claim. The dispatch is still running.
    ContextChanged(tokio_postgres::Error),
    /// SQLSTATE `P0002`: the dispatch does not exist, or the role may not see it.
    UnknownDispatch(tokio_postgres::Error),
    /// Any other database error, a lost connection included.
    Database(tokio_postgres::Error),
    /// The server did not answer in time.
    Timeout,
    /// The connection was closed.
    Disconnected,
    /// The server's answer is not what this version of the client understands.
    UnexpectedAnswer(String),
    /// The consumer, or its connection string, is not configured correctly.
    Configuration(String),
}

impl Error {
    /// Whether the same call may succeed on a new connection.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        match self {
            // A server that shuts down or starts up reports class 57P, a pooler without a server class 08. A broken
            // connection has no SQLSTATE.
            Error::Database(error) => error.code().is_none_or(|state| {
                state.code().starts_with("57P") || state.code().starts_with("08")
            }),
            Error::Timeout | Error::Disconnected => true,
            _ => false,
        }
    }

    fn database(&self) -> Option<&tokio_postgres::Error> {
        match self {
            Error::AttemptOver(error)
            | Error::ContextChanged(error)
            | Error::UnknownDispatch(error)
            | Error::Database(error) => Some(error),
            _ => None,
        }
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
            Error::Timeout => f.write_str("the server did not answer in time"),
            Error::Disconnected => f.write_str("the connection was closed"),
            Error::UnexpectedAnswer(problem) | Error::Configuration(problem) => {
                f.write_str(problem)
            }
            Error::AttemptOver(error)
            | Error::ContextChanged(error)
            | Error::UnknownDispatch(error)
            | Error::Database(error) => match error.as_db_error() {
                Some(answer) => f.write_str(answer.message()),
                None => write_with_sources(f, error),
            },
        }
    }
}

/// The driver's messages are short ("error connecting to server"); the reason is in their sources.
fn write_with_sources(f: &mut fmt::Formatter<'_>, error: &dyn StdError) -> fmt::Result {
    write!(f, "{error}")?;
    let mut source = error.source();
    while let Some(error) = source {
        write!(f, ": {error}")?;
        source = error.source();
    }
    Ok(())
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.database().map(|error| error as _)
    }
}
