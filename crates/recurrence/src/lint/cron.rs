//! Findings in cron expressions.

use super::{Code, Finding};
use crate::cron::{CronSpec, Field, FieldKind, Item};

const KINDS: [FieldKind; 6] = [
    FieldKind::Second,
    FieldKind::Minute,
    FieldKind::Hour,
    FieldKind::DayOfMonth,
    FieldKind::Month,
    FieldKind::DayOfWeek,
];

pub(super) fn lint(cron: &CronSpec) -> Vec<Finding> {
    let mut findings: Vec<Finding> = either_day(cron).into_iter().collect();
    findings.extend(
        KINDS
            .iter()
            .filter_map(|kind| uneven_step(cron.field(*kind))),
    );
    findings
}

fn either_day(cron: &CronSpec) -> Option<Finding> {
    let (day, weekday) = (
        cron.field(FieldKind::DayOfMonth),
        cron.field(FieldKind::DayOfWeek),
    );
    if day.is_any() || weekday.is_any() || cron.requires_both_days() {
        return None;
    }
    Some(Finding::new(
        Code::EitherDay,
        format!(
            "it runs on days that match day of month {day} or day of week {weekday}, not only on those that match both"
        ),
        format!("Write +{weekday} as the day of week for days that match both."),
    ))
}

/// `*/7` in a field whose number of values is no multiple of 7.
fn uneven_step(field: &Field) -> Option<Finding> {
    let kind = field.kind();
    let step = field.items().iter().find_map(|item| match item {
        Item::AnyStep { step } => Some(*step),
        _ => None,
    })?;
    let size = kind.size();
    let name = kind.name();
    let whole = kind.whole();
    let finding = match kind {
        // Months have 28 to 31 days, and begin with the first.
        FieldKind::DayOfMonth if step > 1 => {
            format!(
                "{name} */{step} begins anew with every month: the last step of a month is another"
            )
        }
        _ if size.is_multiple_of(step) => return None,
        _ => {
            let last = size % step;
            let unit = match kind {
                FieldKind::DayOfWeek => "day",
                _ => name,
            };
            let plural = if last == 1 { "" } else { "s" };
            format!(
                "{name} */{step} does not divide {size}: the last step of each {whole} is {last} {unit}{plural}"
            )
        }
    };
    let interval = kind.as_interval(step)?;
    let remedy = format!("Write the interval {interval}, which counts from starts_at.");
    Some(Finding::new(Code::UnevenStep, finding, remedy))
}
