//! The first occurrences of an expression in UTC, as both readers find them.

use chrono::{DateTime, SecondsFormat, Utc};
use croner::Cron;

use super::Disagreement;
use crate::civil::{Civil, DAY};
use crate::cron::CronSpec;
use crate::search::CivilSet;

/// The second before 1970, the first year that a year field can name: the same at every call, and
/// before the first occurrence of any expression.
const FROM: Civil = Civil(-1);

/// Occurrences that follow one another, then occurrences of days that follow one another. A dozen
/// shows most of a year of month days, and a few weeks of weekdays.
const NEIGHBOURS: usize = 3;
const TOTAL: usize = 12;

/// How long before an occurrence croner begins its search, in seconds. croner walks day by day, and
/// 29 February of a given weekday comes 40 years after the last one.
pub(super) const REACH: i64 = 62 * DAY;

/// The year in which croner's search gives up.
const CRONERS_LAST_YEAR: i32 = croner::YEAR_UPPER_LIMIT;

pub(super) fn compare(ours: &CronSpec, theirs: &Cron) -> Result<(), Disagreement> {
    let mut after = FROM;
    for index in 0..TOTAL {
        let Some(expected) = ours.at_or_after(Civil(after.0 + 1)) else {
            break;
        };
        if expected.date().year >= CRONERS_LAST_YEAR {
            break;
        }
        compare_one(theirs, after, expected)?;
        after = match index < NEIGHBOURS {
            true => expected,
            false => Civil::new(expected.days(), DAY - 1),
        };
    }
    Ok(())
}

/// Compares the first occurrence after a time with what croner finds. An instant that croner takes
/// for an occurrence ends its search, so the search is as short as its reach.
fn compare_one(theirs: &Cron, after: Civil, expected: Civil) -> Result<(), Disagreement> {
    let differs = |croners: String| Disagreement {
        subject: "an occurrence",
        ours: instant(expected).map_or_else(String::new, show),
        croners,
    };
    let begin = Civil(after.0.max(expected.0 - REACH));
    let (Some(begin), Some(wanted)) = (instant(begin), instant(expected)) else {
        return Err(differs("out of range".to_owned()));
    };
    match theirs.is_time_matching(&wanted) {
        Ok(true) => {}
        Ok(false) => return Err(differs("not one".to_owned())),
        Err(error) => return Err(differs(error.to_string())),
    }
    match theirs.find_next_occurrence(&begin, false) {
        Ok(found) if found == wanted => Ok(()),
        Ok(found) => Err(differs(show(found))),
        Err(error) => Err(differs(error.to_string())),
    }
}

fn instant(civil: Civil) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(civil.0, 0)
}

fn show(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}
