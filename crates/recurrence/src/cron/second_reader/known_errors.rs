//! What croner 4.0.2 is known to read wrong, so that its errors refuse nothing that is valid.
//!
//! An error in the canonical text is avoided by rewriting the expression, and both readers must agree
//! on the rewritten one. An error in the text as written is avoided by the canonical text.
//!
//! Other errors of croner can't affect the comparison; `tests/croner_errors.rs` shows them:
//!
//! - The comparison runs in UTC. Around clock changes croner adds a run at the end of a gap for a
//!   fixed time of the hour before, gives up in gaps of more than two hours, and takes lists of hours
//!   (`0 2,14 * * *`) for steps.
//! - This crate refuses the text first: names in any field (`SUN * * * *`, `1MON` as 11), empty list
//!   items (`, * * * *`, on which croner searches for ten seconds), and dates that don't exist.
//! - Descriptions are not compared: croner's lose ranges.

use super::fields::COMMON_YEARS;
use crate::cron::{CronSpec, Field, FieldKind, Item};

/// An error of croner that may appear in the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KnownError {
    /// Years after 5000 are refused.
    YearsAfter5000,
    /// `*/4` in the year field counts from the year 1 instead of 1970.
    YearStepsFromYear1,
    /// `7L` and `FRI-SUN#L` miss the last Sunday: croner keeps it under 7, and looks for it under 0.
    LastSunday,
    /// `MON-FRIL` is refused, where `MON-FRI#L` is read.
    LastOfRange,
    /// `L,LW` loses its `L`.
    LastDayBesideLastWeekday,
}

impl KnownError {
    /// The errors that remain in the canonical text.
    pub const IN_CANONICAL: [KnownError; 4] = [
        KnownError::YearStepsFromYear1,
        KnownError::YearsAfter5000,
        KnownError::LastSunday,
        KnownError::LastDayBesideLastWeekday,
    ];

    /// The items to write instead of one of the field's; the item itself where the error does not
    /// concern it.
    fn rewrite(self, field: &Field, item: Item) -> Vec<Item> {
        match (self, field.kind()) {
            (KnownError::YearStepsFromYear1, FieldKind::Year) => count_from_1970(item),
            (KnownError::YearsAfter5000, FieldKind::Year) => end_in_5000(item),
            (KnownError::LastSunday, FieldKind::DayOfWeek) => split_last_sunday(item),
            (KnownError::LastDayBesideLastWeekday, FieldKind::DayOfMonth) => {
                let beside = field.items().contains(&Item::LastWeekday);
                match item {
                    Item::LastDay if beside => vec![],
                    item => vec![item],
                }
            }
            _ => vec![item],
        }
    }
}

/// The expression in a form that croner reads right, and the errors that the form avoids.
///
/// The rewritten expression has the same meaning, except for two things that croner has no text for:
/// years after 5000, and `L` beside `LW`.
pub(super) fn avoid(cron: &CronSpec) -> (CronSpec, Vec<KnownError>) {
    let mut rewritten = cron.clone();
    let mut avoided = Vec::new();
    for error in KnownError::IN_CANONICAL {
        let other = rewritten.rewrite(|field, item| error.rewrite(field, item));
        if other != rewritten {
            avoided.push(error);
            rewritten = other;
        }
    }
    (rewritten, avoided)
}

/// The errors that croner makes in a text as written and not in its canonical form: all of them
/// concern the last weekdays of a month.
pub(super) fn in_text(written: &str) -> Vec<KnownError> {
    let mut errors = Vec::new();
    let items = written.split(|c: char| c.is_ascii_whitespace() || c == ',');
    for item in items.map(str::to_ascii_uppercase) {
        let Some(days) = item.strip_suffix('L') else {
            continue;
        };
        if days.contains('-') && !days.contains('#') {
            errors.push(KnownError::LastOfRange);
        }
        let days = days.trim_end_matches('#');
        // At the end of a range, Sunday is 7 to croner.
        if days.ends_with('7') || days.ends_with("-SUN") {
            errors.push(KnownError::LastSunday);
        }
    }
    errors
}

/// `*/4` as `1970-5000/4`.
fn count_from_1970(item: Item) -> Vec<Item> {
    let (first, last) = COMMON_YEARS.into_inner();
    match item {
        Item::AnyStep { step } => vec![Item::RangeStep { first, last, step }],
        item => vec![item],
    }
}

/// The item without the years after 5000.
fn end_in_5000(item: Item) -> Vec<Item> {
    let end = *COMMON_YEARS.end();
    match item {
        Item::Value(year) if year > end => vec![],
        Item::Range { first, .. } | Item::RangeStep { first, .. } if first > end => vec![],
        Item::Range { first, last } => vec![Item::Range {
            first,
            last: last.min(end),
        }],
        Item::RangeStep { first, last, step } => vec![Item::RangeStep {
            first,
            last: last.min(end),
            step,
        }],
        item => vec![item],
    }
}

/// `FRI-SUN#L` as `FRI-SAT#L,SUN#L`.
fn split_last_sunday(item: Item) -> Vec<Item> {
    match item {
        Item::Last { first, last: 7 } => {
            vec![
                Item::Last { first, last: 6 },
                Item::Last { first: 0, last: 0 },
            ]
        }
        item => vec![item],
    }
}
