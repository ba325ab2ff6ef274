//! What is valid and probably not meant.

mod cron;
mod months;

use std::sync::Arc;

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};

use crate::civil::Date;
use crate::interval::Interval;
use crate::occurrence::{Occurrence, Shift};
use crate::policy::{OnFold, OnGap};
use crate::recurrence::{Bounds, Recurrence};
use crate::rule::Unit;
use crate::schedule::{Kind, Schedule};
use crate::silence::{Warning, is_far};
use crate::zone::Zone;

/// A property of a schedule that surprises many authors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of finding, by a name that does not change.
    pub code: Code,
    /// One sentence: what the schedule does.
    pub finding: String,
    /// How to write it instead, where that is not meant.
    pub remedy: String,
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The schedule never occurs from its start on.
    NeverOccurs,
    /// More than a year passes between two occurrences, and the step is shorter.
    LongSilence,
    /// The first occurrence is more than a year away.
    FarFirstRun,
    /// A day that not every month has.
    ShortMonths,
    /// A step that does not divide its field.
    UnevenStep,
    /// Day of month and day of week are alternatives.
    EitherDay,
    /// A clock change removes, repeats or moves a local time.
    ClockChange,
}

impl Code {
    /// The name, in snake case.
    pub const fn name(self) -> &'static str {
        match self {
            Code::NeverOccurs => "never_occurs",
            Code::LongSilence => "long_silence",
            Code::FarFirstRun => "far_first_run",
            Code::ShortMonths => "short_months",
            Code::UnevenStep => "uneven_step",
            Code::EitherDay => "either_day",
            Code::ClockChange => "clock_change",
        }
    }
}

impl Finding {
    fn new(code: Code, finding: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding {
            code,
            finding: finding.into(),
            remedy: remedy.into(),
        }
    }
}

/// What is valid and probably not meant in a schedule, the most serious first. A schedule that counts from
/// its start and has none starts `now`.
///
/// # Examples
/// ```
/// use recurrence::{Schedule, Zone, lint};
///
/// let schedule = Schedule::parse("*/7 * * * *")?;
/// let now = "2027-01-01T00:00:00Z".parse()?;
/// let findings = lint(&schedule, Zone::UTC, None, now);
/// assert_eq!(findings[0].code.name(), "uneven_step");
/// assert_eq!(findings[0].finding, "minute */7 does not divide 60: the last step of each hour is 4 minutes");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn lint(
    schedule: &Schedule,
    zone: Zone,
    starts_at: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Vec<Finding> {
    let anchor = starts_at.unwrap_or(now);
    let bounds = Bounds {
        starts_at: starts_at.or_else(|| schedule.needs_start().then_some(now)),
        ..Bounds::default()
    };
    let schedule = Arc::new(schedule.clone());
    let built = Recurrence::new(
        Arc::clone(&schedule),
        zone,
        bounds,
        OnGap::RollForward,
        OnFold::First,
    );
    let mut findings = Vec::new();
    match &built {
        Err(error) => {
            let remedy = "recur.preview shows the occurrences of a schedule.";
            findings.push(Finding::new(Code::NeverOccurs, error.to_string(), remedy));
        }
        Ok(recurrence) => {
            let from = anchor.max(now);
            findings.extend(first_run(recurrence, from, now));
            findings.extend(silence(recurrence, from));
        }
    }
    if let Kind::Cron(cron) = schedule.kind() {
        findings.extend(cron::lint(cron));
    }
    findings.extend(months::lint(&schedule, zone, anchor));
    if let Ok(recurrence) = &built {
        findings.extend(clock_changes(recurrence, anchor.max(now)));
    }
    findings
}

/// The instant just before another one, so that an occurrence at that one is found.
fn just_before(instant: DateTime<Utc>) -> DateTime<Utc> {
    instant
        .checked_sub_signed(TimeDelta::microseconds(1))
        .unwrap_or(instant)
}

fn first_run(recurrence: &Recurrence, from: DateTime<Utc>, now: DateTime<Utc>) -> Option<Finding> {
    let first = recurrence.next_after(just_before(from));
    let Some(first) = first else {
        let finding = "it has no occurrence from now on";
        let remedy = "Choose a later time, or another rule.";
        return Some(Finding::new(Code::NeverOccurs, finding, remedy));
    };
    is_far(now, first.at).then(|| {
        let finding = Warning::FarFirstRun(first).to_string();
        let remedy = match from > now && !is_far(from, first.at) {
            true => "Check starts_at.",
            false => {
                "Check the days, months and years that it names: few dates satisfy all of them."
            }
        };
        Finding::new(Code::FarFirstRun, finding, remedy)
    })
}

fn silence(recurrence: &Recurrence, from: DateTime<Utc>) -> Option<Finding> {
    let silence = recurrence.first_silence(from)?;
    let remedy = match recurrence.schedule().kind() {
        Kind::Rule(rule) if rule.unit() == Unit::Week && rule.week_parity().is_some() => {
            "A year of 53 ISO weeks changes the parity of every second week: drop week_parity, or write \
             \"every\":1 with it."
        }
        _ => "Few dates satisfy all conditions: drop one of them.",
    };
    Some(Finding::new(Code::LongSilence, silence.to_string(), remedy))
}

/// Local times that a clock change of the next year removes or repeats, one finding of each.
fn clock_changes(recurrence: &Recurrence, from: DateTime<Utc>) -> Vec<Finding> {
    let table = recurrence.zone().table();
    let until = from.timestamp() + 366 * 86_400;
    let changes = table.transitions()[table.index_after(from.timestamp())..]
        .iter()
        .take_while(|transition| transition.at < until);
    if !recurrence.names_times_of_day() {
        return elapsed_days(recurrence.schedule())
            .zip(changes.clone().next())
            .map(|((written, instead), change)| {
                let Date { year, month, day } = table.civil_at(change.at).date();
                let date = format!("{year}-{month:02}-{day:02}");
                let finding = format!(
                    "{written} is elapsed time: from {date} on, when the clocks are set, the local time is another"
                );
                let remedy = format!("Write {instead} for the same local time on all days.");
                Finding::new(Code::ClockChange, finding, remedy)
            })
            .into_iter()
            .collect();
    }
    let (mut removed, mut repeated) = (None, None);
    for change in changes {
        let width = i64::from(change.after - change.before).abs();
        let Some(start) = DateTime::from_timestamp(change.at - width - 1, 0) else {
            break;
        };
        let affected = recurrence
            .occurrences_after(start)
            .take_while(|occurrence| occurrence.at.timestamp() < change.at + width)
            .find(|occurrence| occurrence.shift != Shift::None);
        match affected.map(|occurrence| (occurrence, occurrence.shift)) {
            None | Some((_, Shift::None)) => {}
            Some((occurrence, Shift::MovedOutOfGap { wanted })) => {
                removed.get_or_insert_with(|| moved_out_of_gap(wanted, &occurrence));
            }
            Some((occurrence, Shift::FirstOfFold | Shift::SecondOfFold)) => {
                repeated.get_or_insert_with(|| in_fold(&occurrence));
            }
        }
    }
    removed.into_iter().chain(repeated).collect()
}

fn moved_out_of_gap(wanted: NaiveDateTime, occurrence: &Occurrence) -> Finding {
    let finding = format!(
        "{} does not exist on {}, when the clocks go forward: the run is at {}",
        wanted.format("%H:%M"),
        wanted.date(),
        occurrence.local.format("%H:%M")
    );
    let remedy = "Choose another time of day, or on_dst_gap => 'skip'.";
    Finding::new(Code::ClockChange, finding, remedy)
}

fn in_fold(occurrence: &Occurrence) -> Finding {
    let finding = format!(
        "{} occurs twice on {}, when the clocks go back: the run is at the first of the two",
        occurrence.local.format("%H:%M"),
        occurrence.local.date()
    );
    let remedy = "Choose another time of day, or on_dst_fold => 'second' or 'both'.";
    Finding::new(Code::ClockChange, finding, remedy)
}

/// Whole days that are written as hours, and how to write them as days.
fn elapsed_days(schedule: &Schedule) -> Option<(String, String)> {
    match schedule.kind() {
        Kind::Interval(interval @ Interval::Seconds(seconds)) if seconds % 86_400 == 0 => {
            Some((interval.to_string(), format!("{}d", seconds / 86_400)))
        }
        Kind::Rule(rule) if rule.unit() == Unit::Hour && rule.every() % 24 == 0 => {
            let days = rule.every() / 24;
            let instead = format!("\"every\":{days},\"unit\":\"day\"");
            Some((format!("a step of {} hours", rule.every()), instead))
        }
        _ => None,
    }
}
