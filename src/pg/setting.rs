//! What the server knows of a setting: where its value comes from, and what it accepts as a value.

use super::compat;
use pgrx::{PgLogLevel, pg_sys};
use std::ffi::{CStr, c_int};

/// Where the value in force comes from.
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum Source {
    Default,
    /// The configuration of the server.
    Server,
    /// What is set for less than the server: a database, a role, a session, a transaction.
    Narrower,
}

/// Where the value of this setting of the extension comes from.
pub fn source(name: &CStr) -> Source {
    // SAFETY: the record of a setting lives as long as the process.
    let Some(record) = (unsafe { compat::setting(name).as_ref() }) else {
        return Source::Default;
    };
    match record.source {
        pg_sys::GucSource::PGC_S_DEFAULT | pg_sys::GucSource::PGC_S_DYNAMIC_DEFAULT => {
            Source::Default
        }
        source if source <= pg_sys::GucSource::PGC_S_GLOBAL => Source::Server,
        _ => Source::Narrower,
    }
}

/// Raises the server's error where the setting does not accept the value.
pub fn check(name: &CStr, value: &CStr) {
    try_out(name, value, PgLogLevel::ERROR as c_int);
}

/// Does the setting accept the value?
pub fn accepts(name: &CStr, value: &CStr) -> bool {
    try_out(name, value, PgLogLevel::DEBUG5 as c_int)
}

/// Lets the server check the value as in the configuration file, and sets nothing.
fn try_out(name: &CStr, value: &CStr, error_level: c_int) -> bool {
    // SAFETY: both texts end with a zero byte.
    let outcome = unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_SIGHUP,
            pg_sys::GucSource::PGC_S_FILE,
            pg_sys::GucAction::GUC_ACTION_SET,
            false,
            error_level,
            false,
        )
    };
    outcome != 0
}

/// A number, in the unit of the setting.
pub fn number(name: &CStr, value: &CStr) -> Option<i32> {
    // SAFETY: the record of a setting lives as long as the process.
    let flags = unsafe { compat::setting(name).as_ref() }.map_or(0, |record| record.flags);
    let mut number = 0;
    // SAFETY: the text ends with a zero byte, and no hint is asked for.
    let is_number =
        unsafe { pg_sys::parse_int(value.as_ptr(), &raw mut number, flags, std::ptr::null_mut()) };
    is_number.then_some(number)
}

pub fn boolean(value: &CStr) -> Option<bool> {
    let mut boolean = false;
    // SAFETY: the text ends with a zero byte.
    unsafe { pg_sys::parse_bool(value.as_ptr(), &raw mut boolean) }.then_some(boolean)
}
