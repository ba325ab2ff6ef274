//! Errors on their way to an SQL client.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

/// An error with its SQLSTATE: one sentence, and what to do about it.
#[derive(Debug)]
pub struct SqlError {
    code: PgSqlErrorCode,
    message: String,
    hint: Option<String>,
}

impl SqlError {
    /// `invalid provider "": must not be empty`: the argument, its value and the problem; the hint says
    /// what is expected.
    pub fn invalid_argument(argument: &str, value: &str, problem: &str) -> Self {
        SqlError {
            code: PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            message: format!("invalid {argument} \"{}\": {problem}", abbreviated(value)),
            hint: None,
        }
    }

    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn raise(self) -> ! {
        let mut report = ErrorReport::new(self.code, self.message, "pg_recur");
        if let Some(hint) = self.hint {
            report = report.set_hint(hint);
        }
        report.report(PgLogLevel::ERROR);
        unreachable!("an ERROR does not return")
    }
}

/// An argument that must not be NULL. The functions are not STRICT: they say what is missing, instead of nothing.
pub fn given<T>(argument: &str, value: Option<T>) -> Result<T, SqlError> {
    value.ok_or_else(|| SqlError::invalid_argument(argument, "NULL", "must have a value"))
}

/// Raises the error of a failed result.
pub trait OrRaise<T> {
    fn or_raise(self) -> T;
}

impl<T> OrRaise<T> for Result<T, SqlError> {
    fn or_raise(self) -> T {
        match self {
            Ok(value) => value,
            Err(error) => error.raise(),
        }
    }
}

/// A value as an error message shows it: whole if short, cut if not.
fn abbreviated(value: &str) -> String {
    const SHOWN: usize = 120;
    match value.char_indices().nth(SHOWN) {
        None => value.to_owned(),
        Some((end, _)) => format!("{}…", &value[..end]),
    }
}
