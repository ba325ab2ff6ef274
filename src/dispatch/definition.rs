//! From a definition as it is stored to what the decision works with.

use super::decide::{Horizon, Misfire, Overlap, Policy};
use super::store::StoredDefinition;
use chrono::TimeDelta;
use recurrence::{Bounds, OnFold, OnGap, Recurrence, ScheduleCache, Zone};
use std::cell::RefCell;

/// Far more schedules than an application has, at about a kilobyte each.
const SCHEDULES_KEPT: usize = 10_000;

thread_local! {
    /// A million actions share a few schedules: each text is parsed once.
    static SCHEDULES: RefCell<ScheduleCache> = RefCell::new(ScheduleCache::new(SCHEDULES_KEPT));
}

/// A definition that can be evaluated.
pub struct Compiled {
    pub recurrence: Recurrence,
    pub policy: Policy,
}

/// The error says what is wrong with the stored row: no function of ours would have written it.
pub fn compile(stored: &StoredDefinition) -> Result<Compiled, String> {
    let schedule = SCHEDULES
        .with_borrow_mut(|cache| cache.parse(&stored.schedule))
        .map_err(|error| error.to_string())?;
    let zone = Zone::parse(&stored.timezone).map_err(|error| error.to_string())?;
    let unknown = |column: &str, value: &str| format!("invalid {column} \"{value}\"");
    let on_gap: OnGap = stored
        .on_dst_gap
        .parse()
        .map_err(|_| unknown("on_dst_gap", &stored.on_dst_gap))?;
    let on_fold: OnFold = stored
        .on_dst_fold
        .parse()
        .map_err(|_| unknown("on_dst_fold", &stored.on_dst_fold))?;
    // The dispatcher counts runs itself: max_runs counts what was dispatched, not what was due.
    let bounds = Bounds {
        starts_at: stored.starts_at,
        ends_at: stored.ends_at,
        max_runs: None,
    };
    let policy = Policy {
        misfire: match stored.misfire.as_str() {
            "once" => Misfire::Once,
            "skip" => Misfire::Skip,
            "all" => Misfire::All,
            other => return Err(unknown("misfire", other)),
        },
        misfire_grace: stored.misfire_grace.map(TimeDelta::microseconds),
        catchup_limit: usize::try_from(stored.catchup_limit.max(1)).unwrap_or(1),
        overlap: match stored.overlap.as_str() {
            "allow" => Overlap::Allow,
            "skip" => Overlap::Skip,
            "queue_one" => Overlap::QueueOne,
            "cancel_previous" => Overlap::CancelPrevious,
            other => return Err(unknown("overlap", other)),
        },
        horizon: horizon(stored),
    };
    let recurrence = Recurrence::new(schedule, zone, bounds, on_gap, on_fold)
        .map_err(|error| error.to_string())?;
    Ok(Compiled { recurrence, policy })
}

/// A count without a span reaches as far as it must.
fn horizon(stored: &StoredDefinition) -> Option<Horizon> {
    const ANY_SPAN: TimeDelta = TimeDelta::days(3_650);
    let count = stored
        .horizon_count
        .map(|count| usize::try_from(count).unwrap_or(0));
    match (stored.horizon, count) {
        (None, None) => None,
        (reach, count) => Some(Horizon {
            reach: reach.map_or(ANY_SPAN, TimeDelta::microseconds),
            count,
        }),
    }
}
