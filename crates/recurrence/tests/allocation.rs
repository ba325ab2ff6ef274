//! A search for an occurrence of a cron expression, an interval or a structured rule allocates nothing.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator with unchanged arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn searches_do_not_allocate() {
    let start = common::instant("2024-03-09T12:00:00.5Z");
    for text in [
        "* * * * *",
        "30 2 * * *",
        "0 12 * * 5#2",
        "0 0 LW,15W * *",
        "0 0 0 29 2 * 2024-2400",
        "90m",
        "1d",
        "6mo",
        "P1DT12H",
        "at 2027-01-31T09:00:00",
        r#"{"every":1,"unit":"hour","between_hours":[9,17],"week_parity":"odd"}"#,
        r#"{"every":2,"unit":"week","days_of_week":["tue","thu"]}"#,
    ] {
        let bounds = Bounds {
            starts_at: Some(start),
            ends_at: Some(start + chrono::Duration::days(20_000)),
            max_runs: Some(1000),
        };
        let schedule = Arc::new(Schedule::parse(text).unwrap());
        let zone = Zone::parse("America/New_York").unwrap();
        let recurrence = Recurrence::new(schedule, zone, bounds, OnGap::RollForward, OnFold::Both);
        // The start is at 07:00 local time, so every schedule has occurrences.
        let recurrence = recurrence.unwrap();
        let before = ALLOCATIONS.with(Cell::get);
        let mut seen = 0;
        for day in 0..300 {
            let at = start + chrono::Duration::hours(17 * day);
            seen += usize::from(recurrence.next_after(at).is_some());
            seen += usize::from(recurrence.previous_or_at(at).is_some());
            seen += recurrence.count_between(start, at, 100) as usize;
        }
        assert!(seen > 0, "{text}");
        assert_eq!(ALLOCATIONS.with(Cell::get) - before, 0, "{text}");
    }
}
