//! The server's queue of NOTIFY, which all databases share. A session that listens and never ends its transaction keeps
//! everything in the queue that was sent since; when the queue is full, every transaction that notifies fails.
//! Notifications are hints, dispatches are not: long before, pg_recur goes on without notifications.

use super::settings;
use pgrx::prelude::*;
use pgrx::{direct_function_call, pg_sys};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The queue holds gigabytes, so that its usage changes little within this time; to ask for it takes a lock.
const ASK_EVERY: Duration = Duration::from_secs(1);

#[derive(Clone, Copy)]
struct Known {
    has_room: bool,
    asked: Instant,
}

thread_local! {
    static KNOWN: Cell<Option<Known>> = const { Cell::new(None) };
}

/// May this transaction notify? An episode without room ends when the queue is half as full as it may be, so that a
/// usage around the limit does not make many short episodes.
pub fn has_room() -> bool {
    let known = KNOWN.get();
    if let Some(known) = known.filter(|known| known.asked.elapsed() < ASK_EVERY) {
        return known.has_room;
    }
    let had_room = known.is_none_or(|known| known.has_room);
    let limit = settings::notify_queue_limit();
    let limit = if had_room { limit } else { limit / 2.0 };
    let usage = usage();
    let has_room = usage <= limit;
    if has_room != had_room && is_worker() {
        match has_room {
            true => log!("pg_recur: the NOTIFY queue has room again, usage={usage}"),
            false => warning!(
                "pg_recur: the NOTIFY queue is filling up, going on without notifications, usage={usage}"
            ),
        }
    }
    KNOWN.set(Some(Known {
        has_room,
        asked: Instant::now(),
    }));
    has_room
}

/// From 0 to 1.
fn usage() -> f64 {
    // SAFETY: the function takes no arguments.
    unsafe { direct_function_call(pg_sys::pg_notification_queue_usage, &[]) }.unwrap_or(0.0)
}

/// Sessions come and go, and would each say the same: the workers' log lines and recur.doctor() are enough.
fn is_worker() -> bool {
    // SAFETY: set once, before a worker's main function.
    unsafe { !pg_sys::MyBgworkerEntry.is_null() }
}
