//! Journeys: stored, scheduled, changed, and what their runs report.

mod changes;
mod owners;
mod runs;
mod schedules;
mod states;

use pg_recur_tests::Session;

/// A journey whose runs wait for no one from `charge` on, and wait from `start` on.
pub const BILLING: &str = r#"{
    "start":   {"type": "task",   "next": ["agree", "end"]},
    "agree":   {"type": "wait",   "next": "charge"},
    "charge":  {"type": "task",   "next": ["receipt", "charge"]},
    "receipt": {"type": "task",   "next": "end"},
    "end":     {"type": "succeed"}
}"#;

/// Stores it: (changed, schedules).
#[track_caller]
pub fn set(session: &mut Session, version: &str, states: &str) -> (bool, i64) {
    let row = &session.rows(
        "SELECT changed, schedules FROM recur.set_journey('billing', $1, $2::text::jsonb)",
        &[&version, &states],
    )[0];
    (row.get(0), row.get(1))
}

/// A call of recur.schedule_journey from `charge` on, with these arguments besides those that it can't do without.
pub fn schedule(more: &str) -> String {
    format!(
        "SELECT recur.schedule_journey('billing', 'charge', \"interval\" => 'P1M', context => '{{\"n\": 0}}'{more})"
    )
}
