//! A schedule compiled for one zone and one start: the search that evaluates it.

use std::sync::Arc;

use crate::at::Moment;
use crate::civil::Civil;
use crate::cron::CronSpec;
use crate::error::RecurrenceError;
use crate::interval::Interval;
use crate::rrule::CompiledRuleSet;
use crate::rule::{Filter, StructuredRule, Unit};
use crate::schedule::{Kind, Schedule};
use crate::search::calendar::{DaySteps, MonthSteps};
use crate::search::elapsed::ElapsedSteps;
use crate::search::filtered::{FilteredReadings, FilteredSteps};
use crate::search::mixed::{MixedInstants, MixedSteps};
use crate::search::wall_clock::{self, WallClock};
use crate::search::weekdays::{MonthDaySteps, WeekSteps};
use crate::search::{CivilSet, Hit, InstantSet, Policy};
use crate::zone::ZoneTable;

/// The start that a schedule counts from, in Unix seconds and on the wall clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    pub instant: i64,
    pub civil: Civil,
}

#[derive(Clone, Debug)]
pub(crate) enum Plan {
    Cron(Arc<CronSpec>),
    Days(DaySteps, Filter),
    Weeks(WeekSteps, Filter),
    Months(MonthSteps, Filter),
    MonthDays(MonthDaySteps, Filter),
    Elapsed(ElapsedSteps, Filter),
    Mixed(MixedSteps),
    Rules(Box<CompiledRuleSet>),
    Local(SingleReading),
    Instant(i64),
}

/// A single reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SingleReading(Civil);

impl CivilSet for SingleReading {
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

impl CivilSet for CompiledRuleSet {
    fn at_or_after(&self, civil: Civil) -> Option<Civil> {
        self.next_at_or_after(civil)
    }

    fn at_or_before(&self, civil: Civil) -> Option<Civil> {
        CompiledRuleSet::last_at_or_before(self, civil)
    }

    fn count(&self, first: Civil, last: Civil, cap: u64) -> u64 {
        self.count_between(first, last, cap)
    }
}

impl Plan {
    /// Compiles a schedule. `anchor` is called only where the schedule counts from one.
    pub fn new(
        schedule: &Schedule,
        anchor: impl FnOnce() -> Result<Anchor, RecurrenceError>,
        table: &ZoneTable,
    ) -> Result<Plan, RecurrenceError> {
        Ok(match schedule.kind() {
            Kind::Cron(cron) => Plan::Cron(Arc::clone(cron)),
            Kind::Interval(interval) => Plan::of_interval(*interval, anchor()?),
            Kind::Rule(rule) => Plan::of_rule(rule, anchor()?),
            Kind::RRule(rules) => {
                let set = rules
                    .compile(anchor()?.civil, |instant| table.civil_at(instant))
                    .map_err(RecurrenceError::Rule)?;
                Plan::Rules(Box::new(set))
            }
            Kind::At(at) => match at.moment() {
                Moment::Local(civil) => Plan::Local(SingleReading(civil)),
                Moment::Instant(instant) => Plan::Instant(instant),
            },
        })
    }

    fn of_interval(interval: Interval, anchor: Anchor) -> Plan {
        let filter = Filter::NONE;
        match interval {
            Interval::Months(step) => {
                let anchor = anchor.civil;
                Plan::Months(MonthSteps { anchor, step }, filter)
            }
            Interval::Days { days, seconds: 0 } => {
                let anchor = anchor.civil;
                Plan::Days(DaySteps { anchor, step: days }, filter)
            }
            Interval::Days { days, seconds } => Plan::Mixed(MixedSteps {
                start: anchor.instant,
                anchor: anchor.civil,
                days,
                seconds,
            }),
            Interval::Seconds(seconds) => Plan::of_seconds(anchor, i64::from(seconds), filter),
        }
    }

    fn of_rule(rule: &StructuredRule, anchor: Anchor) -> Plan {
        let filter = rule.filter();
        let every = rule.every();
        let civil = anchor.civil;
        match (rule.unit(), rule.days_of_week(), rule.month_day()) {
            (Unit::Minute, _, _) => Plan::of_seconds(anchor, i64::from(every) * 60, filter),
            (Unit::Hour, _, _) => Plan::of_seconds(anchor, i64::from(every) * 3600, filter),
            (Unit::Day, _, _) => Plan::Days(
                DaySteps {
                    anchor: civil,
                    step: every,
                },
                filter,
            ),
            (Unit::Week, None, _) => Plan::Days(
                DaySteps {
                    anchor: civil,
                    step: every * 7,
                },
                filter,
            ),
            (Unit::Week, Some(days), _) => Plan::Weeks(
                WeekSteps {
                    anchor: civil,
                    step: every,
                    days,
                },
                filter,
            ),
            (unit @ (Unit::Month | Unit::Year), _, day) => {
                let step = match unit {
                    Unit::Year => every * 12,
                    _ => every,
                };
                let anchor = civil;
                match day {
                    None => Plan::Months(MonthSteps { anchor, step }, filter),
                    Some(day) => Plan::MonthDays(MonthDaySteps { anchor, step, day }, filter),
                }
            }
        }
    }

    fn of_seconds(anchor: Anchor, step: i64, filter: Filter) -> Plan {
        let anchor = anchor.instant;
        Plan::Elapsed(ElapsedSteps { anchor, step }, filter)
    }

    /// Whether the schedule steps through the day, and so keeps its real-time cadence across clock
    /// changes.
    pub fn keeps_cadence(&self) -> bool {
        match self {
            Plan::Cron(cron) => cron.is_stepping(),
            Plan::Rules(rules) => rules.is_stepping(),
            _ => false,
        }
    }

    /// Whether the schedule names times of day, which a clock change may remove or repeat.
    pub fn names_times_of_day(&self) -> bool {
        !self.keeps_cadence() && !matches!(self, Plan::Elapsed(..) | Plan::Instant(_))
    }

    /// Whether nothing may ever satisfy the schedule from this start on. The parser refuses cron
    /// expressions that nothing satisfies.
    pub fn may_be_impossible(&self) -> bool {
        match self {
            Plan::Days(_, filter)
            | Plan::Weeks(_, filter)
            | Plan::Months(_, filter)
            | Plan::Elapsed(_, filter) => !filter.is_empty(),
            Plan::MonthDays(..) | Plan::Rules(_) => true,
            Plan::Cron(_) | Plan::Mixed(_) | Plan::Local(_) | Plan::Instant(_) => false,
        }
    }

    /// Whether the wall-clock reading of the anchor is itself an occurrence.
    pub fn begins_with(&self, anchor: Civil) -> bool {
        let passes = |filter: &Filter| filter.passes(anchor);
        match self {
            Plan::Days(_, filter) | Plan::Months(_, filter) => passes(filter),
            Plan::Weeks(set, filter) => set.at_or_after(anchor) == Some(anchor) && passes(filter),
            Plan::MonthDays(set, filter) => {
                set.at_or_after(anchor) == Some(anchor) && passes(filter)
            }
            Plan::Rules(set) => set.next_at_or_after(anchor) == Some(anchor),
            Plan::Cron(_)
            | Plan::Elapsed(..)
            | Plan::Mixed(_)
            | Plan::Local(_)
            | Plan::Instant(_) => false,
        }
    }

    /// Runs a query on the set of instants that the plan describes.
    pub fn query<A>(
        &self,
        table: &ZoneTable,
        policy: Policy,
        query: impl FnOnce(&dyn InstantSet) -> A,
    ) -> A {
        let readings = ReadingsQuery {
            table,
            policy,
            query,
        };
        match self {
            Plan::Cron(cron) => readings.run(cron.as_ref()),
            Plan::Days(set, filter) => readings.run_filtered(set, *filter),
            Plan::Weeks(set, filter) => readings.run_filtered(set, *filter),
            Plan::Months(set, filter) => readings.run_filtered(set, *filter),
            Plan::MonthDays(set, filter) => readings.run_filtered(set, *filter),
            Plan::Rules(set) => readings.run(set.as_ref()),
            Plan::Local(once) => readings.run(once),
            Plan::Elapsed(steps, filter) => (readings.query)(&FilteredSteps {
                steps: *steps,
                filter: *filter,
                table,
            }),
            Plan::Mixed(steps) => (readings.query)(&MixedInstants {
                steps: *steps,
                table,
                policy,
            }),
            Plan::Instant(at) => (readings.query)(&SingleInstant { at: *at, table }),
        }
    }
}

/// A query that runs on wall-clock readings, resolved under a policy.
struct ReadingsQuery<'a, Q> {
    table: &'a ZoneTable,
    policy: Policy,
    query: Q,
}

impl<A, Q: FnOnce(&dyn InstantSet) -> A> ReadingsQuery<'_, Q> {
    fn run(self, set: &impl CivilSet) -> A {
        (self.query)(&WallClock {
            set,
            table: self.table,
            policy: self.policy,
        })
    }

    fn run_filtered(self, set: &impl CivilSet, filter: Filter) -> A {
        if filter.is_empty() {
            return self.run(set);
        }
        let table = self.table;
        self.run(&FilteredReadings { set, filter, table })
    }
}

/// One instant.
struct SingleInstant<'a> {
    at: i64,
    table: &'a ZoneTable,
}

impl InstantSet for SingleInstant<'_> {
    fn next_after(&self, instant: i64) -> Option<Hit> {
        (self.at > instant).then(|| wall_clock::hit_at(self.table, self.at))
    }

    fn last_at_or_before(&self, instant: i64) -> Option<Hit> {
        (self.at <= instant).then(|| wall_clock::hit_at(self.table, self.at))
    }

    fn count_between(&self, after: i64, until: i64, _cap: u64) -> u64 {
        u64::from(after < self.at && self.at <= until)
    }
}
