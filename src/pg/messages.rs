//! What code that runs tells its client: NOTICEs, WARNINGs and the like, kept where there is no client.

use super::catch;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::{Cell, RefCell};
use std::ffi::c_int;

/// More messages than this are counted only.
const MOST_MESSAGES: usize = 100;
/// More than this much text is cut.
const MOST_BYTES: usize = 32 * 1024;

/// A message, as a client would have got it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub severity: &'static str,
    pub text: String,
}

/// The messages of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// The first ones, in order.
    pub kept: Vec<Message>,
    /// How many more there were.
    pub omitted: u64,
    bytes: usize,
}

thread_local! {
    static KEPT: RefCell<Option<Messages>> = const { RefCell::new(None) };
    static SERVER_LEVEL: Cell<c_int> = const { Cell::new(0) };
}

static mut NEXT_HOOK: pg_sys::emit_log_hook_type = None;

/// Once in a process. `server_level` is what the server's log takes: what lies below it only comes here.
pub fn install() {
    // SAFETY: variables of this process, which has one thread.
    unsafe {
        SERVER_LEVEL.set(pg_sys::log_min_messages);
        NEXT_HOOK = pg_sys::emit_log_hook;
        pg_sys::emit_log_hook = Some(keep);
        pg_sys::SetConfigOption(
            c"log_min_messages".as_ptr(),
            c"info".as_ptr(),
            pg_sys::GucContext::PGC_SUSET,
            pg_sys::GucSource::PGC_S_OVERRIDE,
        );
    }
}

/// Keeps messages from now on.
pub fn begin() {
    KEPT.set(Some(Messages::default()));
}

/// The messages since [`begin`].
pub fn take() -> Messages {
    KEPT.take().unwrap_or_default()
}

/// # Safety
/// Only the server may call it, with an error report.
#[pg_guard]
unsafe extern "C-unwind" fn keep(data: *mut pg_sys::ErrorData) {
    // SAFETY: the server passes a report whose texts end with a zero byte; the next hook gets it as this one did.
    unsafe {
        let report = &mut *data;
        if let Some(severity) = severity(report.elevel) {
            let lines = [report.message, report.detail, report.hint];
            let lines = lines.into_iter().filter_map(|line| catch::text(line));
            let text = lines.collect::<Vec<_>>().join("\n");
            KEPT.with_borrow_mut(|kept| {
                if let Some(kept) = kept {
                    kept.add(Message { severity, text });
                }
            });
            if report.elevel < SERVER_LEVEL.get() {
                report.output_to_server = false;
            }
        }
        if let Some(next) = NEXT_HOOK {
            next(data);
        }
    }
}

fn severity(level: c_int) -> Option<&'static str> {
    const INFO: c_int = PgLogLevel::INFO as c_int;
    const NOTICE: c_int = PgLogLevel::NOTICE as c_int;
    const WARNING: c_int = PgLogLevel::WARNING as c_int;
    match level {
        INFO => Some("INFO"),
        NOTICE => Some("NOTICE"),
        WARNING => Some("WARNING"),
        _ => None,
    }
}

impl Messages {
    fn add(&mut self, mut message: Message) {
        let room = MOST_BYTES - self.bytes;
        if self.kept.len() == MOST_MESSAGES || room == 0 {
            self.omitted += 1;
            return;
        }
        if message.text.len() > room {
            let end = (0..=room)
                .rev()
                .find(|end| message.text.is_char_boundary(*end));
            message.text.truncate(end.unwrap_or(0));
            message.text.push('…');
            self.bytes = MOST_BYTES;
        } else {
            self.bytes += message.text.len();
        }
        self.kept.push(message);
    }
}
