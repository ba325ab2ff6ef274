//! Long silences: a schedule that goes on for a while, and then has no occurrence for more than a year.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};

use crate::cron::FieldKind;
use crate::occurrence::Occurrence;
use crate::recurrence::Recurrence;
use crate::rrule::{Freq, Rule};
use crate::rule::{StructuredRule, Unit};
use crate::schedule::{Kind, Schedule};

/// The longest year.
const YEAR: TimeDelta = TimeDelta::days(366);
/// Half a year: any silence of more than a year contains an instant of such a grid.
const GRID: TimeDelta = TimeDelta::days(183);
/// How many instants of the grid are looked at: ten years.
const GRID_SIZE: i32 = 20;

/// Two occurrences in a row that are more than a year apart, and further than the schedule's own step.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};
///
/// // After the long year 2026, every second week is an even one.
/// let text = r#"{"every":2,"unit":"week","days_of_week":["tue","thu"],"week_parity":"odd"}"#;
/// let start = "2026-02-10T15:00:00Z".parse()?;
/// let recurrence = Recurrence::new(
///     Arc::new(Schedule::parse(text)?),
///     Zone::parse("America/Chicago")?,
///     Bounds { starts_at: Some(start), ..Bounds::default() },
///     OnGap::RollForward,
///     OnFold::First,
/// )?;
/// assert_eq!(
///     recurrence.first_silence(start).unwrap().to_string(),
///     "after 2026-12-31 there is no run until 2033-01-04"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The occurrence before the silence.
    pub last: Occurrence,
    /// The occurrence that ends it.
    pub next: Occurrence,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "after {} there is no run until {}",
            self.last.local.date(),
            self.next.local.date()
        )
    }
}

/// What the author of a schedule has to know when it begins at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// More than a year passes before the first occurrence, which is this one.
    FarFirstRun(Occurrence),
    /// More than a year passes between two occurrences.
    Silence(Silence),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::FarFirstRun(first) => {
                let date = first.local.date();
                write!(f, "the first run is more than a year away, on {date}")
            }
            Warning::Silence(silence) => silence.fmt(f),
        }
    }
}

impl Recurrence {
    /// The first silence that begins within ten years from an instant on. The search visits no occurrence in
    /// between, and ends at once for schedules that never fall silent.
    pub fn first_silence(&self, from: DateTime<Utc>) -> Option<Silence> {
        if !self.schedule().may_fall_silent() {
            return None;
        }
        for index in 0..GRID_SIZE {
            let instant = from.checked_add_signed(GRID * index)?;
            // After its last occurrence a schedule has ended.
            let next = self.next_after(instant)?;
            let last = self.previous_or_at(instant).filter(|last| last.at >= from);
            // Before its first occurrence it has not fallen silent.
            if let Some(silence) = last.and_then(|last| self.silence_between(last, next)) {
                return Some(silence);
            }
        }
        None
    }

    /// Whether there is a silence between two occurrences in a row.
    pub fn silence_between(&self, last: Occurrence, next: Occurrence) -> Option<Silence> {
        let gap = next.at - last.at;
        (gap > YEAR && gap > self.schedule().longest_expected_gap())
            .then_some(Silence { last, next })
    }

    /// Whether more than a year passes before the first occurrence from an instant on, or between two of them. A
    /// single time is as far away as was asked for.
    pub fn warning(&self, from: DateTime<Utc>) -> Option<Warning> {
        if matches!(self.schedule().kind(), Kind::At(_)) {
            return None;
        }
        let before = from.checked_sub_signed(TimeDelta::microseconds(1))?;
        let first = self.next_after(before)?;
        match is_far(from, first.at) {
            true => Some(Warning::FarFirstRun(first)),
            false => Some(Warning::Silence(self.first_silence(from)?)),
        }
    }
}

/// Whether an instant is so far from another one that a first occurrence there is a surprise.
pub(crate) fn is_far(from: DateTime<Utc>, at: DateTime<Utc>) -> bool {
    at - from > YEAR
}

impl Schedule {
    /// Whether occurrences may be more than a year apart although the step is shorter.
    pub fn may_fall_silent(&self) -> bool {
        match self.kind() {
            Kind::Cron(cron) => {
                let is_any = |kind| cron.field(kind).is_any();
                !is_any(FieldKind::Month) || !is_any(FieldKind::Year) || cron.requires_both_days()
            }
            Kind::Rule(rule) => {
                !rule.filter().is_empty()
                    || (rule.unit() >= Unit::Month && rule.month_day().is_some())
            }
            Kind::RRule(_) => true,
            Kind::Interval(_) | Kind::At(_) => false,
        }
    }

    /// What a reader expects at most between two occurrences: twice the step.
    fn longest_expected_gap(&self) -> TimeDelta {
        let gap = |gap: std::time::Duration| TimeDelta::from_std(gap).unwrap_or(TimeDelta::MAX);
        let shortest = self.shortest_gap().map_or(TimeDelta::zero(), gap);
        let step = match self.kind() {
            // Every field but the year begins anew each year.
            Kind::Cron(cron) if cron.field(FieldKind::Year).is_any() => TimeDelta::zero(),
            Kind::Rule(rule) => of_rule(rule),
            Kind::RRule(rules) => of_rrule(rules.rule()),
            _ => shortest,
        };
        step.checked_mul(2).unwrap_or(TimeDelta::MAX)
    }
}

fn of_rule(rule: &StructuredRule) -> TimeDelta {
    let days = match rule.unit() {
        Unit::Minute | Unit::Hour | Unit::Day => 1,
        Unit::Week => 7,
        Unit::Month => 31,
        Unit::Year => 366,
    };
    TimeDelta::days(days * i64::from(rule.every()))
}

fn of_rrule(rule: &Rule) -> TimeDelta {
    let days = match rule.freq {
        Freq::Yearly => 366,
        Freq::Monthly => 31,
        Freq::Weekly => 7,
        _ => 1,
    };
    TimeDelta::days(days * i64::from(rule.interval))
}
