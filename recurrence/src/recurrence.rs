//! A schedule in its zone and within its bounds: the thing that knows when it happens again.

use std::sync::Arc;

use chrono::{DateTime, NaiveDateTime, Utc};

use crate::at::Moment;
use crate::civil::{Civil, Date};
use crate::error::RecurrenceError;
use crate::interval::Interval;
use crate::occurrence::{Occurrence, Shift};
use crate::policy::{OnFold, OnGap};
use crate::schedule::{Kind, Schedule};
use crate::search::calendar::{DaySteps, MonthSteps};
use crate::search::elapsed::ElapsedSteps;
use crate::search::{Cause, CivilSet, Hit, Policy, wall_clock};
use crate::zone::Zone;

/// When a schedule begins and ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Nothing occurs before it. Intervals, rules and RRULEs are counted from it.
    pub starts_at: Option<DateTime<Utc>>,
    /// Nothing occurs after it.
    pub ends_at: Option<DateTime<Utc>>,
    /// How many occurrences there are from `starts_at` on. Without a `starts_at` there is nothing
    /// to count from: [`Recurrence::occurrences_after`] then counts from where it begins, and the
    /// other questions ignore it.
    pub max_runs: Option<u32>,
}

/// A schedule with everything it needs to be evaluated.
#[derive(Clone, Debug)]
pub struct Recurrence {
    schedule: Arc<Schedule>,
    zone: Zone,
    bounds: Bounds,
    policy: Policy,
    plan: Plan,
    /// The fraction of a second that every occurrence has, in nanoseconds: that of the anchor.
    fraction: u32,
}

/// What to search.
#[derive(Clone, Debug)]
enum Plan {
    /// The schedule's own cron expression.
    Cron,
    Days(DaySteps),
    Months(MonthSteps),
    OnceLocal(Once),
    OnceInstant(i64),
    Elapsed(ElapsedSteps),
}

#[derive(Clone, Copy, Debug)]
struct Once(Civil);

impl CivilSet for Once {
    fn at_or_after(&self, civil: Civil) -> Option<Civil> {
        (self.0 >= civil).then_some(self.0)
    }

    fn at_or_before(&self, civil: Civil) -> Option<Civil> {
        (self.0 <= civil).then_some(self.0)
    }

    fn count(&self, first: Civil, last: Civil, _cap: u64) -> u64 {
        u64::from((first..=last).contains(&self.0))
    }
}

impl Recurrence {
    pub fn new(
        schedule: Arc<Schedule>,
        zone: Zone,
        bounds: Bounds,
        on_gap: OnGap,
        on_fold: OnFold,
    ) -> Result<Recurrence, RecurrenceError> {
        let policy = Policy { on_gap, on_fold };
        let anchor = || {
            bounds
                .starts_at
                .map(|start| (start.timestamp(), start.timestamp_subsec_nanos()))
                .ok_or_else(|| RecurrenceError::MissingStart {
                    schedule: schedule.to_string(),
                })
        };
        let table = zone.table();
        let (plan, fraction, policy) = match schedule.kind() {
            Kind::Cron(cron) if cron.is_stepping() => (Plan::Cron, 0, Policy::CADENCE),
            Kind::Cron(_) => (Plan::Cron, 0, policy),
            Kind::Interval(interval) => {
                let (start, fraction) = anchor()?;
                let local = table.civil_at(start);
                let plan = match *interval {
                    Interval::Months(step) => Plan::Months(MonthSteps {
                        anchor: local,
                        step,
                    }),
                    Interval::Days { days, .. } => Plan::Days(DaySteps {
                        anchor: local,
                        step: days,
                    }),
                    Interval::Seconds(step) => Plan::Elapsed(ElapsedSteps {
                        anchor: start,
                        step: i64::from(step),
                    }),
                };
                (plan, fraction, policy)
            }
            Kind::Rule(_) | Kind::RRule(_) => {
                return Err(RecurrenceError::NeverOccurs {
                    schedule: schedule.to_string(),
                });
            }
            Kind::At(at) => {
                let plan = match at.moment() {
                    Moment::Local(civil) => Plan::OnceLocal(Once(civil)),
                    Moment::Instant(instant) => Plan::OnceInstant(instant),
                };
                (plan, at.subsec_nanos(), policy)
            }
        };
        Ok(Recurrence {
            schedule,
            zone,
            bounds,
            policy,
            plan,
            fraction,
        })
    }

    pub fn schedule(&self) -> &Arc<Schedule> {
        &self.schedule
    }

    pub fn zone(&self) -> Zone {
        self.zone
    }

    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// The first occurrence strictly after an instant.
    pub fn next_after(&self, instant: DateTime<Utc>) -> Option<Occurrence> {
        let mut after = self.whole_seconds(instant);
        if let Some(start) = self.bounds.starts_at {
            after = after.max(self.last_second_before(start));
        }
        let occurrence = self.occurrence(self.hit_after(after)?)?;
        match self.bounds.ends_at {
            Some(end) if occurrence.at > end => None,
            _ => Some(occurrence),
        }
    }

    /// The latest occurrence at or before an instant.
    pub fn previous_or_at(&self, instant: DateTime<Utc>) -> Option<Occurrence> {
        let last = match self.bounds.ends_at {
            Some(end) => instant.min(end),
            None => instant,
        };
        let hit = self.hit_at_or_before(self.whole_seconds(last))?;
        let occurrence = self.occurrence(hit)?;
        match self.bounds.starts_at {
            Some(start) if occurrence.at < start => None,
            _ => Some(occurrence),
        }
    }

    /// The last whole second, counted from the schedule's own fraction, at or before an instant.
    fn whole_seconds(&self, instant: DateTime<Utc>) -> i64 {
        let is_before_fraction = instant.timestamp_subsec_nanos() < self.fraction;
        instant.timestamp() - i64::from(is_before_fraction)
    }

    fn last_second_before(&self, instant: DateTime<Utc>) -> i64 {
        let is_after_fraction = instant.timestamp_subsec_nanos() > self.fraction;
        instant.timestamp() - i64::from(!is_after_fraction)
    }

    fn hit_after(&self, instant: i64) -> Option<Hit> {
        let table = self.zone.table();
        match (&self.plan, self.schedule.kind()) {
            (Plan::Cron, Kind::Cron(cron)) => {
                wall_clock::next_after(cron, table, self.policy, instant)
            }
            (Plan::Cron, _) => None,
            (Plan::Days(days), _) => wall_clock::next_after(days, table, self.policy, instant),
            (Plan::Months(months), _) => {
                wall_clock::next_after(months, table, self.policy, instant)
            }
            (Plan::OnceLocal(once), _) => wall_clock::next_after(once, table, self.policy, instant),
            (Plan::OnceInstant(at), _) => (*at > instant).then(|| self.plain(*at)),
            (Plan::Elapsed(steps), _) => steps.next_after(instant).map(|at| self.plain(at)),
        }
    }

    fn hit_at_or_before(&self, instant: i64) -> Option<Hit> {
        let table = self.zone.table();
        let policy = self.policy;
        match (&self.plan, self.schedule.kind()) {
            (Plan::Cron, Kind::Cron(cron)) => {
                wall_clock::last_at_or_before(cron, table, policy, instant)
            }
            (Plan::Cron, _) => None,
            (Plan::Days(days), _) => wall_clock::last_at_or_before(days, table, policy, instant),
            (Plan::Months(months), _) => {
                wall_clock::last_at_or_before(months, table, policy, instant)
            }
            (Plan::OnceLocal(once), _) => {
                wall_clock::last_at_or_before(once, table, policy, instant)
            }
            (Plan::OnceInstant(at), _) => (*at <= instant).then(|| self.plain(*at)),
            (Plan::Elapsed(steps), _) => steps.last_at_or_before(instant).map(|at| self.plain(at)),
        }
    }

    fn plain(&self, at: i64) -> Hit {
        Hit {
            at,
            civil: self.zone.table().civil_at(at),
            cause: Cause::Plain,
        }
    }

    fn occurrence(&self, hit: Hit) -> Option<Occurrence> {
        const LAST: i64 = Date::new(9999, 12, 31).days();
        if hit.civil.days() > LAST {
            return None;
        }
        let shift = match hit.cause {
            Cause::Plain => Shift::None,
            Cause::FirstOfFold => Shift::FirstOfFold,
            Cause::SecondOfFold => Shift::SecondOfFold,
            Cause::MovedOutOfGap { wanted } => Shift::MovedOutOfGap {
                wanted: self.naive(wanted)?,
            },
        };
        Some(Occurrence {
            at: DateTime::from_timestamp(hit.at, self.fraction)?,
            local: self.naive(hit.civil)?,
            shift,
        })
    }

    fn naive(&self, civil: Civil) -> Option<NaiveDateTime> {
        DateTime::from_timestamp(civil.0, self.fraction).map(|utc| utc.naive_utc())
    }
}
