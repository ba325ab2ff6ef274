//! What checks of values depend on besides the values: settings, and parsers.

use super::settings;
use pgrx::pg_sys;
use recur_core::action::{Demands, Environment, Interval, Limits};
use recurrence::{Schedule, ScheduleError, Zone};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;

/// An application has few schedules. At this number of admitted schedules, the cache is emptied.
const MAX_ADMITTED: usize = 1_000;

thread_local! {
    /// Schedules on which both parsers have agreed before.
    static ADMITTED: RefCell<HashMap<String, Arc<Schedule>>> = RefCell::default();
}

/// The environment of this session.
pub fn environment() -> Environment<'static> {
    Environment {
        limits: Limits {
            max_payload_bytes: settings::max_payload(),
            min_interval: settings::min_interval(),
        },
        default_timezone: Zone::parse(&settings::default_timezone()).unwrap_or(Zone::UTC),
        demands: &demands,
        parse_schedule: &parse_schedule,
        parse_interval: &parse_interval,
    }
}

fn demands(namespace: &str) -> Demands {
    Demands {
        bounds: settings::require_bounds(namespace),
        context: settings::require_context(namespace),
    }
}

/// Parses a schedule that is to be stored: two independent parsers must agree on its meaning.
pub fn parse_schedule(text: &str) -> Result<Arc<Schedule>, ScheduleError> {
    if let Some(known) = ADMITTED.with_borrow(|admitted| admitted.get(text).cloned()) {
        return Ok(known);
    }
    let schedule = Arc::new(Schedule::admit(text)?);
    ADMITTED.with_borrow_mut(|admitted| {
        if admitted.len() >= MAX_ADMITTED {
            admitted.clear();
        }
        admitted.insert(text.to_owned(), schedule.clone());
    });
    Ok(schedule)
}

/// Parses an interval as the server does.
fn parse_interval(text: &str) -> Option<Interval> {
    let text = CString::new(text).ok()?;
    // SAFETY: interval_in takes a text that ends with a zero byte, an unused oid and a type modifier, and returns a
    // pointer to an interval. Its error is caught by the subtransaction.
    let read = crate::pg::subtransaction::attempt(|| unsafe {
        let none = pg_sys::Datum::from(0usize);
        let arguments = [
            Some(pg_sys::Datum::from(text.as_ptr())),
            Some(none),
            Some(pg_sys::Datum::from(-1i32)),
        ];
        let datum = pgrx::direct_function_call_as_datum(pg_sys::interval_in, &arguments);
        datum.map(|datum| *datum.cast_mut_ptr::<pg_sys::Interval>())
    });
    let interval = read.ok().flatten()?;
    Some(Interval {
        months: interval.month,
        days: interval.day,
        micros: interval.time,
    })
}
