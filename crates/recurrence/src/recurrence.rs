//! A schedule in its zone and within its bounds.

use std::sync::Arc;

use chrono::{DateTime, FixedOffset, NaiveDateTime, Utc};

use crate::civil::{Civil, DAY, Date};
use crate::error::RecurrenceError;
use crate::named::{NamedInstants, WithNamed};
use crate::occurrence::{Occurrence, Shift};
use crate::pin::{Pin, Pinned};
use crate::plan::{Anchor, Plan};
use crate::policy::{OnFold, OnGap};
use crate::schedule::{Kind, Schedule};
use crate::search::{Cause, Hit, InstantSet, Policy};
use crate::zone::Zone;

/// When a schedule begins and ends.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};
///
/// let start = "2027-01-01T00:00:00Z".parse()?;
/// let recurrence = Recurrence::new(
///     Arc::new(Schedule::parse("90m")?),
///     Zone::UTC,
///     Bounds { starts_at: Some(start), ends_at: None, max_runs: Some(3) },
///     OnGap::RollForward,
///     OnFold::First,
/// )?;
/// // The start is the first occurrence.
/// let times: Vec<String> = recurrence
///     .occurrences_after("2026-01-01T00:00:00Z".parse()?)
///     .map(|occurrence| occurrence.local.time().to_string())
///     .collect();
/// assert_eq!(times, ["00:00:00", "01:30:00", "03:00:00"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Nothing occurs before this instant. Intervals, rules and RRULEs count from it.
    pub starts_at: Option<DateTime<Utc>>,
    /// Nothing occurs after this instant.
    pub ends_at: Option<DateTime<Utc>>,
    /// How many occurrences there are from `starts_at` on. Without a `starts_at` there is nothing
    /// to count from: [`Recurrence::occurrences_after`] then counts from its first occurrence, and
    /// the other methods ignore the limit.
    pub max_runs: Option<u32>,
}

/// A schedule with everything that its evaluation needs.
///
/// Occurrences lie between 0001-01-02 and 9999-12-30, UTC. Searches are bounded and, for most
/// notations, take less than a microsecond.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};
///
/// let recurrence = Recurrence::new(
///     Arc::new(Schedule::parse("0 12 * * FRI#2")?),
///     Zone::UTC,
///     Bounds::default(),
///     OnGap::RollForward,
///     OnFold::First,
/// )?;
/// let (from, until) = ("2027-01-01T00:00:00Z".parse()?, "2028-01-01T00:00:00Z".parse()?);
/// assert_eq!(
///     recurrence.next_after(from).unwrap().local.to_string(),
///     "2027-01-08 12:00:00"
/// );
/// assert_eq!(
///     recurrence.previous_or_at(until).unwrap().local.to_string(),
///     "2027-12-10 12:00:00"
/// );
/// assert_eq!(recurrence.count_between(from, until, u64::MAX), 12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recurrence {
    schedule: Arc<Schedule>,
    zone: Zone,
    bounds: Bounds,
    policy: Policy,
    plan: Plan,
    pin: Option<Pin>,
    named: Option<Box<NamedInstants>>,
    /// The fraction of a second that every occurrence has, in nanoseconds: that of the anchor.
    fraction: u32,
    /// The first and the last whole second, counted from that fraction, within the bounds.
    first: i64,
    last: i64,
}

/// The first and the last second of any occurrence: a day away from the ends of the calendar, so that
/// every zone's wall clock is within it too.
const EARLIEST: i64 = Date::new(1, 1, 2).days() * DAY;
const LATEST: i64 = Date::new(9999, 12, 31).days() * DAY - 1;

impl Recurrence {
    /// Combines a schedule with its zone, bounds and policies.
    ///
    /// # Errors
    /// When the schedule counts from `starts_at` and the bounds have none, and when nothing ever
    /// satisfies the schedule from that start on.
    pub fn new(
        schedule: Arc<Schedule>,
        zone: Zone,
        bounds: Bounds,
        on_gap: OnGap,
        on_fold: OnFold,
    ) -> Result<Recurrence, RecurrenceError> {
        let table = zone.table();
        let anchor = || {
            let start = bounds
                .starts_at
                .ok_or_else(|| RecurrenceError::MissingStart {
                    schedule: schedule.to_string(),
                })?;
            let instant = start.timestamp().clamp(EARLIEST, LATEST);
            let civil = table.civil_at(instant);
            Ok(Anchor { instant, civil })
        };
        let plan = Plan::new(&schedule, anchor, table)?;
        let policy = match plan.keeps_cadence() {
            true => Policy::CADENCE,
            false => Policy { on_gap, on_fold },
        };
        let fraction = match (schedule.kind(), bounds.starts_at) {
            (Kind::At(at), _) => at.subsec_nanos(),
            (Kind::Cron(_), _) | (_, None) => 0,
            (_, Some(start)) => start.timestamp_subsec_nanos().min(999_999_999),
        };
        let named = match schedule.kind() {
            Kind::RRule(rules) => NamedInstants::of(rules),
            _ => None,
        };
        let mut recurrence = Recurrence {
            schedule,
            zone,
            bounds,
            policy,
            plan,
            pin: None,
            named,
            fraction,
            first: EARLIEST,
            last: LATEST,
        };
        recurrence.apply_bounds();
        let first = || recurrence.hit_after(recurrence.first - 1);
        if recurrence.plan.may_be_impossible() && first().is_none_or(|hit| hit.at > LATEST) {
            return Err(RecurrenceError::NeverOccurs {
                schedule: recurrence.schedule.to_string(),
            });
        }
        Ok(recurrence)
    }

    fn apply_bounds(&mut self) {
        if let Some(start) = self.bounds.starts_at {
            let is_after_fraction = start.timestamp_subsec_nanos() > self.fraction;
            let first = start.timestamp() + i64::from(is_after_fraction);
            self.first = first.max(EARLIEST);
        }
        if let Some(end) = self.bounds.ends_at {
            self.last = self.whole_seconds(end);
        }
        // RDATEs may come after UNTIL, which only ends the rule.
        if let Kind::RRule(rules) = self.schedule.kind()
            && let Some(until) = rules.until_utc()
            && rules.added().is_empty()
        {
            self.last = self.last.min(until);
        }
        let table = self.zone.table();
        if self.plan.begins_with(table.civil_at(self.first)) {
            self.pin = Pin::new(table, self.policy, self.first);
        }
    }

    /// The schedule.
    pub fn schedule(&self) -> &Arc<Schedule> {
        &self.schedule
    }

    /// The zone whose wall clock the schedule follows.
    pub fn zone(&self) -> Zone {
        self.zone
    }

    /// When the schedule begins and ends.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Whether occurrences have local times of day, instead of steps of elapsed time.
    pub(crate) fn names_times_of_day(&self) -> bool {
        self.plan.names_times_of_day()
    }

    /// The first occurrence strictly after an instant.
    pub fn next_after(&self, instant: DateTime<Utc>) -> Option<Occurrence> {
        let hit = self.hit_within_bounds_after(self.whole_seconds(instant))?;
        match self.runs_left_after(hit.at - 1) {
            Some(0) => None,
            _ => self.occurrence(hit),
        }
    }

    /// The latest occurrence at or before an instant.
    pub fn previous_or_at(&self, instant: DateTime<Utc>) -> Option<Occurrence> {
        let latest = self.whole_seconds(instant).min(self.last);
        let hit = self
            .hit_at_or_before(latest)
            .filter(|hit| hit.at >= self.first)?;
        match (self.runs_left_after(hit.at - 1), self.bounds.max_runs) {
            (Some(0), Some(runs)) => self.occurrence(self.nth_hit(u64::from(runs), hit.at)?),
            _ => self.occurrence(hit),
        }
    }

    /// The occurrences strictly after an instant, in order.
    pub fn occurrences_after(&self, instant: DateTime<Utc>) -> Occurrences<'_> {
        let after = self.whole_seconds(instant);
        let runs = self.bounds.max_runs.map(u64::from);
        Occurrences {
            recurrence: self,
            after,
            left: self.runs_left_after(after).or(runs),
        }
    }

    /// How many occurrences there are after one instant and up to another, counting no further
    /// than `cap`. Most notations are counted without visiting each occurrence.
    pub fn count_between(&self, after: DateTime<Utc>, until: DateTime<Utc>, cap: u64) -> u64 {
        let after = self.whole_seconds(after);
        let cap = self
            .runs_left_after(after)
            .map_or(cap, |left| left.min(cap));
        self.count(after, self.whole_seconds(until), cap)
    }

    /// The last whole second, counted from the schedule's own fraction, at or before an instant.
    fn whole_seconds(&self, instant: DateTime<Utc>) -> i64 {
        let is_before_fraction = instant.timestamp_subsec_nanos() < self.fraction;
        let seconds = instant.timestamp() - i64::from(is_before_fraction);
        seconds.clamp(EARLIEST, LATEST)
    }

    /// Runs a query on the set of instants, leaving the bounds aside.
    fn query<A>(&self, query: impl FnOnce(&dyn InstantSet) -> A) -> A {
        let table = self.zone.table();
        let with_named = |set: &dyn InstantSet| match &self.named {
            None => query(set),
            Some(named) => query(&WithNamed { set, named, table }),
        };
        self.plan.query(table, self.policy, |set| match self.pin {
            None => with_named(set),
            Some(pin) => with_named(&Pinned { set, pin }),
        })
    }

    fn hit_after(&self, instant: i64) -> Option<Hit> {
        self.query(|set| set.next_after(instant))
    }

    fn hit_at_or_before(&self, instant: i64) -> Option<Hit> {
        self.query(|set| set.last_at_or_before(instant))
    }

    fn hit_within_bounds_after(&self, instant: i64) -> Option<Hit> {
        self.hit_after(instant.max(self.first - 1))
            .filter(|hit| hit.at <= self.last)
    }

    /// Counts within the start and the end, leaving `max_runs` aside.
    fn count(&self, after: i64, until: i64, cap: u64) -> u64 {
        let after = after.max(self.first - 1);
        let until = until.min(self.last);
        match after < until {
            true => self
                .query(|set| set.count_between(after, until, cap))
                .min(cap),
            false => 0,
        }
    }

    /// How many runs `max_runs` leaves after an instant; `None` where there is no limit.
    fn runs_left_after(&self, instant: i64) -> Option<u64> {
        let runs = u64::from(self.bounds.max_runs?);
        self.bounds.starts_at?;
        Some(runs - self.count(EARLIEST, instant, runs))
    }

    /// The `n`-th occurrence from the start, for a `before` that lies behind it.
    fn nth_hit(&self, n: u64, before: i64) -> Option<Hit> {
        let (mut too_few, mut enough) = (self.first - 1, before);
        while enough - too_few > 1 {
            let middle = too_few + (enough - too_few) / 2;
            match self.count(EARLIEST, middle, n) < n {
                true => too_few = middle,
                false => enough = middle,
            }
        }
        self.hit_at_or_before(enough)
    }

    fn occurrence(&self, hit: Hit) -> Option<Occurrence> {
        let shift = match hit.cause {
            Cause::Plain => Shift::None,
            Cause::FirstOfFold => Shift::FirstOfFold,
            Cause::SecondOfFold => Shift::SecondOfFold,
            Cause::MovedOutOfGap { wanted } => Shift::MovedOutOfGap {
                wanted: self.naive(wanted)?,
            },
        };
        let at = DateTime::from_timestamp(hit.at, self.fraction)?;
        let offset = FixedOffset::east_opt((hit.civil.0 - hit.at) as i32)?;
        let local = at.naive_utc().checked_add_offset(offset)?;
        Some(Occurrence { at, local, shift })
    }

    fn naive(&self, civil: Civil) -> Option<NaiveDateTime> {
        DateTime::from_timestamp(civil.0, self.fraction).map(|utc| utc.naive_utc())
    }
}

/// The iterator that [`Recurrence::occurrences_after`] returns.
#[derive(Clone, Debug)]
pub struct Occurrences<'a> {
    recurrence: &'a Recurrence,
    after: i64,
    left: Option<u64>,
}

impl Iterator for Occurrences<'_> {
    type Item = Occurrence;

    fn next(&mut self) -> Option<Occurrence> {
        if self.left == Some(0) {
            return None;
        }
        let hit = self.recurrence.hit_within_bounds_after(self.after)?;
        self.after = hit.at;
        self.left = self.left.map(|left| left - 1);
        self.recurrence.occurrence(hit)
    }
}
