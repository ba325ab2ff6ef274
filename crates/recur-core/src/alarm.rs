//! Alarms that need no failure: a dispatch that is not started, one that does not end, an action that completes
//! nothing.

use crate::choice::choice;
use chrono::{DateTime, TimeDelta, Utc};

type Instant = DateTime<Utc>;

/// A raised alarm is looked at again after this time, to see whether it is over.
const OVER_AFTER: TimeDelta = TimeDelta::minutes(1);
/// And not more often than this.
const SHORTEST_PAUSE: TimeDelta = TimeDelta::seconds(1);
/// Whatever is known of deadlines, an action with alarms is looked at this often.
const SAFETY_NET: TimeDelta = TimeDelta::hours(1);

choice! {
    /// What an alarm is about.
    pub enum Alarm in "alarm" {
        /// A dispatch was not started in time: `late_after`.
        Late = "late",
        /// An attempt is still running: `max_runtime`.
        Overrunning = "overrunning",
        /// Nothing was completed for a time: `max_silence`.
        Silent = "silent",
    }
}

/// A value for each alarm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Each<T> {
    /// Of [`Alarm::Late`].
    pub late: Option<T>,
    /// Of [`Alarm::Overrunning`].
    pub overrunning: Option<T>,
    /// Of [`Alarm::Silent`].
    pub silent: Option<T>,
}

impl<T: Copy> Each<T> {
    /// The value of an alarm.
    pub fn of(&self, alarm: Alarm) -> Option<T> {
        match alarm {
            Alarm::Late => self.late,
            Alarm::Overrunning => self.overrunning,
            Alarm::Silent => self.silent,
        }
    }

    fn set(&mut self, alarm: Alarm, value: Option<T>) {
        match alarm {
            Alarm::Late => self.late = value,
            Alarm::Overrunning => self.overrunning = value,
            Alarm::Silent => self.silent = value,
        }
    }
}

/// An action with alarms, as far as they depend on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watched {
    /// How long each may last.
    pub limits: Each<TimeDelta>,
    /// Does the action fire?
    pub is_enabled: bool,
    /// The next occurrence that has not been dispatched.
    pub next_run_at: Option<Instant>,
    /// When the first dispatch that was never started became available, or will.
    pub unstarted_from: Option<Instant>,
    /// When the first dispatch that waits for an attempt became available, or will.
    pub pending_from: Option<Instant>,
    /// When the first of the running attempts was started.
    pub running_from: Option<Instant>,
    /// When a dispatch was last completed, or max_silence began to count.
    pub completed_at: Option<Instant>,
}

/// What a look at an action's alarms has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// The alarms that are raised now, and since when their cause lasts.
    pub raised: Each<Instant>,
    /// What has changed: the alarm, since when its cause lasts or lasted, and whether the alarm is raised now.
    pub changes: Vec<(Alarm, Instant, bool)>,
    /// When to look again.
    pub look_at: Instant,
}

impl Watched {
    /// Looks at the alarms, of which some were raised before.
    pub fn look(&self, before: &Each<Instant>, now: Instant) -> Looked {
        let mut looked = Looked {
            raised: Each::default(),
            changes: Vec::new(),
            look_at: later(now, SAFETY_NET),
        };
        for alarm in Alarm::ALL.iter().copied() {
            let Some(limit) = self.limits.of(alarm) else {
                looked.note(alarm, before, None);
                continue;
            };
            let cause = self.cause(alarm, now);
            let breached = cause.filter(|cause| later(*cause, limit) <= now);
            looked.note(alarm, before, breached);
            let next = match breached {
                Some(_) => Some(later(now, limit.clamp(SHORTEST_PAUSE, OVER_AFTER))),
                None => self.next_cause(alarm, now).map(|cause| later(cause, limit)),
            };
            looked.look_at = looked.look_at.min(next.unwrap_or(looked.look_at));
        }
        // Never at once again: the clock may stand still.
        looked.look_at = looked.look_at.max(now + TimeDelta::milliseconds(1));
        looked
    }

    /// Since when what the alarm is about lasts.
    fn cause(&self, alarm: Alarm, now: Instant) -> Option<Instant> {
        let cause = match alarm {
            Alarm::Late => earlier(self.unstarted_from, self.next_run()),
            Alarm::Overrunning => self.running_from,
            Alarm::Silent => self.completed_at.filter(|_| self.is_enabled),
        };
        cause.filter(|cause| *cause <= now)
    }

    /// When it begins, or could begin: no sooner than that can be known.
    fn next_cause(&self, alarm: Alarm, now: Instant) -> Option<Instant> {
        match alarm {
            Alarm::Late => earlier(self.unstarted_from, self.next_run()),
            Alarm::Overrunning => {
                let waiting = earlier(self.pending_from, self.next_run());
                earlier(self.running_from, waiting.map(|from| from.max(now)))
            }
            Alarm::Silent => self.completed_at.filter(|_| self.is_enabled),
        }
    }

    fn next_run(&self) -> Option<Instant> {
        self.next_run_at.filter(|_| self.is_enabled)
    }
}

impl Looked {
    fn note(&mut self, alarm: Alarm, before: &Each<Instant>, breached: Option<Instant>) {
        self.raised.set(alarm, breached);
        match (before.of(alarm), breached) {
            (None, Some(since)) => self.changes.push((alarm, since, true)),
            (Some(since), None) => self.changes.push((alarm, since, false)),
            _ => {}
        }
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

fn later(instant: Instant, span: TimeDelta) -> Instant {
    instant.checked_add_signed(span).unwrap_or(Instant::MAX_UTC)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = DateTime::UNIX_EPOCH;
    const MINUTE: TimeDelta = TimeDelta::minutes(1);

    fn at(minutes: i32) -> Instant {
        NOW + MINUTE * minutes
    }

    /// All limits are ten minutes.
    fn watched() -> Watched {
        let ten = Some(MINUTE * 10);
        Watched {
            limits: Each {
                late: ten,
                overrunning: ten,
                silent: ten,
            },
            is_enabled: true,
            completed_at: Some(NOW),
            ..Watched::default()
        }
    }

    fn look(watched: &Watched, minutes: i32) -> Looked {
        watched.look(&Each::default(), at(minutes))
    }

    #[test]
    fn an_alarm_is_raised_once_the_limit_has_passed() {
        let waiting = Watched {
            unstarted_from: Some(NOW),
            ..watched()
        };
        assert_eq!(look(&waiting, 9).changes, []);
        assert_eq!(look(&waiting, 9).look_at, at(10));
        let changes = look(&waiting, 10).changes;
        assert_eq!(
            changes,
            [(Alarm::Late, NOW, true), (Alarm::Silent, NOW, true)]
        );
        let running = Watched {
            running_from: Some(at(3)),
            completed_at: Some(at(13)),
            ..watched()
        };
        assert_eq!(
            look(&running, 13).changes,
            [(Alarm::Overrunning, at(3), true)]
        );
    }

    #[test]
    fn each_breach_and_its_end_are_noted_once() {
        let waiting = Watched {
            unstarted_from: Some(NOW),
            completed_at: Some(at(10)),
            ..watched()
        };
        let first = look(&waiting, 10);
        assert_eq!(first.raised.late, Some(NOW));
        // While it lasts, it is looked at every minute.
        assert_eq!(first.look_at, at(11));
        let second = waiting.look(&first.raised, at(11));
        assert_eq!((second.raised, second.changes), (first.raised, vec![]));
        let started = Watched {
            unstarted_from: None,
            completed_at: Some(at(10)),
            ..watched()
        };
        let third = started.look(&first.raised, at(12));
        assert_eq!(third.changes, [(Alarm::Late, NOW, false)]);
        assert_eq!(started.look(&third.raised, at(13)).changes, []);
    }

    #[test]
    fn an_occurrence_that_is_not_dispatched_is_late_too() {
        let due = Watched {
            next_run_at: Some(NOW),
            completed_at: Some(at(10)),
            ..watched()
        };
        assert_eq!(look(&due, 10).changes, [(Alarm::Late, NOW, true)]);
        let paused = Watched {
            is_enabled: false,
            ..due
        };
        assert_eq!(look(&paused, 10).changes, []);
    }

    #[test]
    fn silence_counts_only_while_enabled() {
        assert_eq!(look(&watched(), 10).changes, [(Alarm::Silent, NOW, true)]);
        let paused = Watched {
            is_enabled: false,
            ..watched()
        };
        assert_eq!(look(&paused, 10).changes, []);
        let raised = look(&watched(), 10).raised;
        assert_eq!(
            paused.look(&raised, at(11)).changes,
            [(Alarm::Silent, NOW, false)]
        );
    }

    #[test]
    fn a_limit_that_is_taken_away_ends_the_alarm() {
        let raised = look(&watched(), 10).raised;
        let unlimited = Watched {
            limits: Each::default(),
            ..watched()
        };
        assert_eq!(
            unlimited.look(&raised, at(11)).changes,
            [(Alarm::Silent, NOW, false)]
        );
    }

    #[test]
    fn the_next_look_is_at_the_first_deadline() {
        let idle = Watched {
            next_run_at: Some(at(20)),
            limits: Each {
                silent: None,
                ..watched().limits
            },
            ..watched()
        };
        assert_eq!(look(&idle, 0).look_at, at(30));
        let far = Watched {
            next_run_at: Some(at(100_000)),
            ..idle
        };
        assert_eq!(look(&far, 0).look_at, at(60), "the safety net");
        // A dispatch that waits may be started now: it overruns no sooner than its limit later.
        let waits = Watched {
            pending_from: Some(at(-5)),
            ..far
        };
        assert_eq!(look(&waits, 0).look_at, at(10));
        let retries = Watched {
            pending_from: Some(at(7)),
            ..far
        };
        assert_eq!(look(&retries, 0).look_at, at(17));
    }

    #[test]
    fn a_limit_near_the_end_of_the_calendar_is_never_reached() {
        let long = Watched {
            limits: Each {
                silent: Some(TimeDelta::MAX),
                ..Each::default()
            },
            ..watched()
        };
        assert_eq!(long.look(&Each::default(), at(10)).changes, []);
    }
}
