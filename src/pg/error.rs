//! Errors on their way to an SQL client.

use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use recur_core::InvalidValue;
use recur_core::action::{Code as InvalidCode, Invalid};
use std::ffi::{c_int, c_void};

/// An error with its SQLSTATE: one sentence, more detail, and what to do about it.
#[derive(Debug)]
pub struct SqlError {
    code: Code,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum Code {
    Known(PgSqlErrorCode),
    /// An SQLSTATE of the extension's own, of five characters.
    Own(&'static str),
}

impl SqlError {
    pub fn new(code: PgSqlErrorCode, message: impl Into<String>) -> SqlError {
        SqlError {
            code: Code::Known(code),
            message: message.into(),
            detail: None,
            hint: None,
        }
    }

    /// An error with an SQLSTATE of the extension's own, such as RC001.
    pub fn own(sqlstate: &'static str, message: impl Into<String>) -> SqlError {
        SqlError {
            code: Code::Own(sqlstate),
            ..SqlError::new(PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, message)
        }
    }

    /// `invalid provider "": must not be empty`: the argument, its value and the problem; the hint says what is
    /// expected.
    pub fn invalid_argument(argument: &str, value: &str, problem: &str) -> SqlError {
        let message = format!("invalid {argument} \"{}\": {problem}", abbreviated(value));
        SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
    }

    pub fn no_data_found(message: impl Into<String>) -> SqlError {
        SqlError::new(PgSqlErrorCode::ERRCODE_NO_DATA_FOUND, message)
    }

    pub fn with_detail(mut self, detail: impl Into<String>) -> SqlError {
        self.detail = Some(detail.into());
        self
    }

    pub fn with_hint(mut self, hint: impl Into<String>) -> SqlError {
        self.hint = Some(hint.into());
        self
    }

    /// The same error with another SQLSTATE.
    pub fn with_code(mut self, code: PgSqlErrorCode) -> SqlError {
        self.code = Code::Known(code);
        self
    }

    /// Says which element of an array it is about, counted from 1.
    pub fn of_element(mut self, number: usize) -> SqlError {
        self.message = format!("element {number}: {}", self.message);
        self
    }

    pub fn raise(self) -> ! {
        let known = match self.code {
            Code::Known(code) => code,
            Code::Own(sqlstate) => {
                override_sqlstate(sqlstate);
                PgSqlErrorCode::ERRCODE_INTERNAL_ERROR
            }
        };
        let mut report = ErrorReport::new(known, self.message, "pg_recur");
        if let Some(detail) = self.detail {
            report = report.set_detail(detail);
        }
        if let Some(hint) = self.hint {
            report = report.set_hint(hint);
        }
        report.report(PgLogLevel::ERROR);
        unreachable!("an ERROR does not return")
    }
}

impl SqlError {
    /// A warning instead of an error.
    pub fn warn(self) {
        let Code::Known(code) = self.code else {
            return;
        };
        let mut report = ErrorReport::new(code, self.message, "pg_recur");
        if let Some(detail) = self.detail {
            report = report.set_detail(detail);
        }
        if let Some(hint) = self.hint {
            report = report.set_hint(hint);
        }
        report.report(PgLogLevel::WARNING);
    }
}

/// Tells the client something that is no error.
pub fn notice(message: String, hint: Option<&'static str>) {
    let report = ErrorReport::new(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        message,
        "pg_recur",
    );
    let report = match hint {
        Some(hint) => report.set_hint(hint),
        None => report,
    };
    report.report(PgLogLevel::NOTICE);
}

impl From<InvalidValue> for SqlError {
    fn from(invalid: InvalidValue) -> SqlError {
        let error = SqlError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            invalid.to_string(),
        );
        match invalid.hint() {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

impl From<Invalid> for SqlError {
    fn from(invalid: Invalid) -> SqlError {
        let code = match invalid.code {
            InvalidCode::InvalidParameter => PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            InvalidCode::NotInPrerequisiteState => {
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE
            }
            InvalidCode::UniqueViolation => PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION,
        };
        SqlError {
            code: Code::Known(code),
            message: invalid.message,
            detail: invalid.detail,
            hint: invalid.hint,
        }
    }
}

unsafe extern "C-unwind" {
    fn errcode(sqlstate: c_int) -> c_int;
}

/// Lets the error that is about to be raised have this SQLSTATE.
///
/// pgrx knows the server's SQLSTATEs only. An error context callback runs while the server assembles the error report,
/// and may add to it. The handler that catches the error restores the callback stack, which removes this callback.
fn override_sqlstate(sqlstate: &'static str) {
    struct Callback(pg_sys::ErrorContextCallback);
    // SAFETY: the process has one thread.
    unsafe impl Sync for Callback {}
    static mut CALLBACK: Callback = Callback(pg_sys::ErrorContextCallback {
        previous: std::ptr::null_mut(),
        callback: Some(set_sqlstate),
        arg: std::ptr::null_mut(),
    });

    extern "C-unwind" fn set_sqlstate(packed: *mut c_void) {
        // SAFETY: context callbacks run while an error report is being assembled, which errcode requires.
        unsafe { errcode(packed as usize as c_int) };
    }

    let bits = |byte: u8| usize::from(byte.wrapping_sub(b'0') & 0x3f);
    let packed = sqlstate
        .bytes()
        .rev()
        .fold(0, |packed, byte| packed << 6 | bits(byte));
    // SAFETY: the process has one thread, and raises the error before any other code runs. The callback is static.
    unsafe {
        let callback = &raw mut CALLBACK.0;
        (*callback).arg = packed as *mut c_void;
        if pg_sys::error_context_stack != callback {
            (*callback).previous = pg_sys::error_context_stack;
            pg_sys::error_context_stack = callback;
        }
    }
}

/// An argument that must not be NULL. The functions are not STRICT: they name the missing argument instead of returning
/// NULL.
pub fn given<T>(argument: &str, value: Option<T>) -> Result<T, SqlError> {
    value.ok_or_else(|| SqlError::invalid_argument(argument, "NULL", "must have a value"))
}

/// Raises the error of a failed result.
pub trait OrRaise<T> {
    fn or_raise(self) -> T;
}

impl<T, E: Into<SqlError>> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> T {
        match self {
            Ok(value) => value,
            Err(error) => error.into().raise(),
        }
    }
}

/// A value as an error message shows it: whole if it is short, cut if it is long.
pub fn abbreviated(value: &str) -> String {
    const SHOWN: usize = 120;
    match value.char_indices().nth(SHOWN) {
        None => value.to_owned(),
        Some((end, _)) => format!("{}…", &value[..end]),
    }
}
