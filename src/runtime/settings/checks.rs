//! What the server can't check by itself: texts with a grammar.

use pgrx::pg_sys;
use pgrx::prelude::*;
use recur_core::event::RecordedEvents;
use recur_core::journey::InteractiveTypes;
use recur_core::notify::Detail;
use recurrence::Zone;
use std::ffi::{CStr, c_char, c_void};

/// The value that a check hook was given; None if it is not UTF-8.
///
/// # Safety
/// `value` must be the first argument of a check hook, which is still running.
unsafe fn proposed<'a>(value: *mut *mut c_char) -> Option<&'a str> {
    // SAFETY: the server passes a pointer to NULL or to a text that ends with a zero byte.
    unsafe {
        if value.is_null() || (*value).is_null() {
            return None;
        }
        CStr::from_ptr(*value).to_str().ok()
    }
}

/// # Safety
/// Only the server may call it, as a check hook.
#[pg_guard]
pub unsafe extern "C-unwind" fn timezone(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the value is the hook's.
    unsafe { proposed(value) }.is_some_and(|name| Zone::parse(name).is_ok())
}

/// NOTIFY refuses empty and overlong names of channels only when it runs: in the dispatcher, which is too late.
///
/// # Safety
/// Only the server may call it, as a check hook.
#[pg_guard]
pub unsafe extern "C-unwind" fn channel(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the value is the hook's.
    unsafe { proposed(value) }
        .is_some_and(|name| !name.is_empty() && name.len() < pg_sys::NAMEDATALEN as usize)
}

/// # Safety
/// Only the server may call it, as a check hook.
#[pg_guard]
pub unsafe extern "C-unwind" fn detail(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the value is the hook's.
    unsafe { proposed(value) }.is_some_and(|name| name.parse::<Detail>().is_ok())
}

/// # Safety
/// Only the server may call it, as a check hook.
#[pg_guard]
pub unsafe extern "C-unwind" fn state_types(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the value is the hook's.
    unsafe { proposed(value) }.is_some_and(|list| InteractiveTypes::parse(list).is_ok())
}

/// # Safety
/// Only the server may call it, as a check hook.
#[pg_guard]
pub unsafe extern "C-unwind" fn recorded_events(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the value is the hook's.
    unsafe { proposed(value) }.is_some_and(|text| text.parse::<RecordedEvents>().is_ok())
}
