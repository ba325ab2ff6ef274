//! Alarms that need no failure. Everything here runs as the engine.
//!
//! Each action with an alarm has a row that says when to look next: at the first deadline that is known. recur-core
//! decides which alarms are raised and which are over. Nothing is written or read for actions without alarms.

use super::contacts::{self, Message, RECIPIENT_COLUMNS, RECIPIENT_WIDTH, Recipient};
use crate::history::events::WorkerEvents;
use crate::pg::index_scan::{self, LowerBound};
use crate::pg::lock_timeout::LockTimeout;
use crate::pg::query::{Row, pg_uuid, pg_uuids, queries};
use crate::pg::{subtransaction, time};
use crate::runtime::{installation, stats};
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::prelude::*;
use recur_core::alarm::{Alarm, Each, Looked, Watched};
use recur_core::event::EventKind;
use recur_core::notice::Notice;
use recur_core::span::Span;
use uuid::Uuid;

queries! {
    WATCH = "alerts/queries/watch.sql" (UUIDOID, TIMESTAMPTZOID, BOOLOID);
    UNWATCH = "alerts/queries/unwatch.sql" (UUIDOID);
    KEEP_COMPLETIONS = "alerts/queries/keep_completions.sql" (UUIDOID, TIMESTAMPTZOID, BOOLOID);
    LOOK_IN_TIME = "alerts/queries/look_in_time.sql" (UUIDOID, TIMESTAMPTZOID);
    LOCK_DUE_ALARMS = "alerts/queries/lock_due_alarms.sql" (TIMESTAMPTZOID, INT4OID);
    READ_WATCHED = "alerts/queries/read_watched.sql" {recipient: RECIPIENT_COLUMNS} (UUIDARRAYOID, INT4OID);
    CULPRIT = "alerts/queries/culprit.sql" (UUIDOID, BOOLOID);
    WRITE_ALARMS = "alerts/queries/write_alarms.sql"
        (UUIDARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID);
}

type Instant = DateTime<Utc>;

/// How many actions one look takes.
const ACTIONS_AT_ONCE: i32 = 100;
/// Of an action with more unfinished dispatches than this, a look reads some.
const MOST_DISPATCHES: i32 = 10_000;
/// A look takes milliseconds; the first one of a process makes its plans, and takes longer.
const LONGEST_LOCK_WAIT_MILLIS: i32 = 500;
const SERIALIZATION_FAILURE: &str = "40001";
/// When to look again after an error.
const AFTER_ERROR: TimeDelta = TimeDelta::minutes(1);

/// Which alarms a definition sets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Set {
    pub any: bool,
    pub silence: bool,
}

/// An action was created, changed or resumed. `counts_anew` says that silence counts from now.
pub fn watch(action: Uuid, set: Set, counts_anew: bool, now: Instant) {
    let (id, at) = (pg_uuid(action), time::timestamptz(now));
    match set.any {
        true => WATCH.with(|query| query.execute(&[id.into(), at.into(), counts_anew.into()])),
        false => UNWATCH.with(|query| query.execute(&[id.into()])),
    };
    KEEP_COMPLETIONS.with(|query| query.execute(&[id.into(), at.into(), set.silence.into()]));
}

/// A dispatch of an action with alarms was made by hand. Waits for a look that is being taken, which does not see the
/// dispatch. Another session that has made a dispatch and stays open is not waited for: its look comes early enough.
pub fn look_in_time(action: Uuid, now: Instant) {
    let arguments = [pg_uuid(action).into(), time::timestamptz(now).into()];
    let _ = subtransaction::attempt_unless(
        || {
            let _timeout = LockTimeout::of_millis(LONGEST_LOCK_WAIT_MILLIS);
            LOOK_IN_TIME.with(|query| query.execute(&arguments))
        },
        |failure| !failure.is_lock_timeout() && failure.sqlstate != SERIALIZATION_FAILURE,
    );
}

/// Looks at the alarms whose time has come, as many as one transaction may, and returns when to look again. None where
/// no action has an alarm. An error is logged, and keeps nothing else from being done.
pub fn check(now: Instant) -> Option<Instant> {
    let next = || index_scan::first(installation::find()?.alarms_due, LowerBound::At(EARLIEST));
    let due = next()?;
    if due > now {
        return Some(due);
    }
    match subtransaction::attempt(|| look(now)) {
        Ok(()) => next(),
        Err(failure) => {
            warning!(
                "pg_recur: alarms could not be looked at sqlstate={} message={:?}",
                failure.sqlstate,
                failure.message
            );
            Some(now + AFTER_ERROR)
        }
    }
}

const EARLIEST: Instant = DateTime::UNIX_EPOCH;

/// An action with alarms, and what was found.
struct Case {
    recipient: Recipient,
    watched: Watched,
    looked: Looked,
}

fn look(now: Instant) {
    let arguments = [time::timestamptz(now).into(), ACTIONS_AT_ONCE.into()];
    let due = LOCK_DUE_ALARMS.with(|query| query.rows(&arguments, |row| row.uuid(1)));
    let arguments = [pg_uuids(due).into(), MOST_DISPATCHES.into()];
    let cases = READ_WATCHED.with(|query| query.rows(&arguments, |row| Case::read(row, now)));
    write(&cases);
    announce(&cases, now);
}

impl Case {
    fn read(row: &Row, now: Instant) -> Case {
        let place = |offset| RECIPIENT_WIDTH + offset;
        let span = |offset| row.get::<i64>(place(offset)).map(TimeDelta::microseconds);
        let instant = |offset| row.instant(place(offset));
        let watched = Watched {
            limits: Each {
                late: span(1),
                overrunning: span(2),
                silent: span(3),
            },
            is_enabled: row.required(place(4)),
            next_run_at: instant(5),
            completed_at: instant(6),
            unstarted_from: instant(7),
            pending_from: instant(8),
            running_from: instant(9),
        };
        let before = Each {
            late: instant(10),
            overrunning: instant(11),
            silent: instant(12),
        };
        Case {
            recipient: Recipient::read(row),
            looked: watched.look(&before, now),
            watched,
        }
    }

    fn notice(&self, alarm: Alarm, since: Instant, is_raised: bool) -> Notice {
        let (id, provider) = (self.recipient.action, &self.recipient.provider);
        let report = self.recipient.report(Some(since));
        if !is_raised {
            let what = match alarm {
                Alarm::Late => "no dispatch is late any more",
                Alarm::Overrunning => "no dispatch runs too long any more",
                Alarm::Silent => "a dispatch was completed again, or the action no longer fires",
            };
            return report.alarm(what.to_owned(), None);
        }
        let limit = self.watched.limits.of(alarm).unwrap_or_default();
        let limit = Span {
            micros: limit.num_microseconds().unwrap_or(i64::MAX),
            ..Span::default()
        };
        let (what, guidance) = match alarm {
            Alarm::Late => (
                format!("a dispatch was not started within {limit}"),
                format!(
                    "See whether consumers of provider \"{provider}\" run; recur.doctor() tells whether dispatching \
                     works."
                ),
            ),
            Alarm::Overrunning => (
                format!("a dispatch is still running after {limit}"),
                format!(
                    "recur.history('{id}') shows it, with its consumer; recur.cancel asks it to stop."
                ),
            ),
            Alarm::Silent => (
                format!("no dispatch was completed for {limit}"),
                format!("recur.history('{id}') shows what became of the last ones."),
            ),
        };
        report.alarm(what, Some(guidance))
    }

    /// The dispatch that is late, or runs too long.
    fn culprit(&self, alarm: Alarm) -> Option<Uuid> {
        let is_running = match alarm {
            Alarm::Late => false,
            Alarm::Overrunning => true,
            Alarm::Silent => return None,
        };
        let arguments = [pg_uuid(self.recipient.action).into(), is_running.into()];
        CULPRIT.with(|query| query.row(&arguments, |row| row.uuid(1)))
    }
}

fn write(cases: &[Case]) {
    let since = |alarm: Alarm| -> Vec<_> {
        let raised = cases.iter().map(|one| one.looked.raised.of(alarm));
        raised.map(|since| since.map(time::timestamptz)).collect()
    };
    let look_at = cases
        .iter()
        .map(|one| time::timestamptz(one.looked.look_at));
    let arguments = [
        pg_uuids(cases.iter().map(|one| one.recipient.action)).into(),
        look_at.collect::<Vec<_>>().into(),
        since(Alarm::Late).into(),
        since(Alarm::Overrunning).into(),
        since(Alarm::Silent).into(),
    ];
    WRITE_ALARMS.with(|query| query.execute(&arguments));
}

/// Records what has changed, and announces it once, unless the action is muted.
fn announce(cases: &[Case], now: Instant) {
    let mut silent = WorkerEvents::default();
    let mut messages = Vec::new();
    let mut raised = 0;
    for case in cases {
        for &(alarm, since, is_raised) in &case.looked.changes {
            let kind = match is_raised {
                true => EventKind::AlarmRaised,
                false => EventKind::AlarmOver,
            };
            raised += u64::from(is_raised);
            let notice = case.notice(alarm, since, is_raised);
            let message = Message {
                recipient: &case.recipient,
                kind,
                notice,
                dispatch: is_raised.then(|| case.culprit(alarm)).flatten(),
                alarm: Some(alarm),
            };
            match case.recipient.is_muted() {
                true => silent.add(case.recipient.action, kind, &message.detail()),
                false => messages.push(message),
            }
        }
    }
    silent.record();
    contacts::tell(&messages, now);
    stats::count_alarms(raised);
}
