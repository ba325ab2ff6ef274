//! Errors of the server with everything that a person needs to mend them. The guard around pgrx's bindings keeps
//! message, detail and hint only.

use cee_scape::{SigJmpBufFields, call_with_sigsetjmp};
use pgrx::pg_sys;
use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;

/// An error that the server raised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    pub sqlstate: String,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// The calls inside, the innermost first.
    pub context: Option<String>,
    /// Where in the command it is, in characters from 1.
    pub position: Option<i32>,
    /// A query inside a function, and where in it.
    pub internal_query: Option<String>,
    pub internal_position: Option<i32>,
}

impl ServerError {
    pub fn new(sqlstate: &str, message: impl Into<String>) -> Box<ServerError> {
        Box::new(ServerError {
            sqlstate: sqlstate.to_owned(),
            message: message.into(),
            ..ServerError::default()
        })
    }
}

/// Calls functions of the server that may raise an error, and returns it. The transaction, or what was begun inside it,
/// has to be rolled back then.
///
/// # Safety
/// An error jumps over everything that `call` has on its stack: it must hold no value with a destructor, and call the
/// server's own functions instead of pgrx's bindings.
pub unsafe fn catch<T>(call: impl FnOnce() -> T) -> Result<T, Box<ServerError>> {
    // SAFETY: the stacks of handlers are put back, whichever way the call ends. The jump
    // buffer lives as long as the closure, which is as long as the server knows of it.
    unsafe {
        let handlers = pg_sys::PG_exception_stack;
        let callbacks = pg_sys::error_context_stack;
        let mut result = MaybeUninit::uninit();
        let jumped = call_with_sigsetjmp(false, |buffer| {
            let buffer = std::ptr::from_ref::<SigJmpBufFields>(buffer);
            pg_sys::PG_exception_stack = buffer.cast_mut().cast();
            result.write(call());
            0
        });
        pg_sys::PG_exception_stack = handlers;
        pg_sys::error_context_stack = callbacks;
        if jumped == 0 {
            return Ok(result.assume_init());
        }
        // That of the call may be gone with a transaction that the call has ended.
        pg_sys::CurrentMemoryContext = pg_sys::TopMemoryContext;
        let data = pg_sys::CopyErrorData();
        let error = read(&*data);
        pg_sys::FreeErrorData(data);
        pg_sys::FlushErrorState();
        Err(Box::new(error))
    }
}

/// # Safety
/// The texts must be NULL or end with a zero byte.
pub unsafe fn read(data: &pg_sys::ErrorData) -> ServerError {
    // SAFETY: the caller promises texts.
    unsafe {
        let position = |position: i32| (position > 0).then_some(position);
        ServerError {
            sqlstate: sqlstate(data.sqlerrcode),
            message: text(data.message).unwrap_or_default(),
            detail: text(data.detail),
            hint: text(data.hint),
            context: text(data.context),
            position: position(data.cursorpos),
            internal_query: text(data.internalquery),
            internal_position: position(data.internalpos),
        }
    }
}

/// # Safety
/// `text` must be NULL or end with a zero byte.
pub unsafe fn text(text: *const c_char) -> Option<String> {
    // SAFETY: the text is not NULL, so it ends with a zero byte.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text).to_string_lossy().into_owned() })
}

/// The five characters that an operator looks up.
pub fn sqlstate(code: i32) -> String {
    let character = |place: u32| char::from(((code >> (6 * place)) & 0x3f) as u8 + b'0');
    (0..5).map(character).collect()
}
