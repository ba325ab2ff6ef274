//! From the stored text of a definition to what a decision works with.

use crate::policy::{Horizon, Policy};
use chrono::{DateTime, TimeDelta, Utc};
use recurrence::{Bounds, OnFold, OnGap, Recurrence, ScheduleCache, Zone};
use std::fmt;

/// The columns of a definition that say when it is due and what then happens.
#[derive(Clone, Copy, Debug)]
pub struct StoredDefinition<'a> {
    /// The schedule in its canonical form.
    pub schedule: &'a str,
    /// The name of an IANA time zone.
    pub timezone: &'a str,
    /// Nothing occurs before it.
    pub starts_at: Option<DateTime<Utc>>,
    /// Nothing occurs after it.
    pub ends_at: Option<DateTime<Utc>>,
    /// A name of [`OnGap`].
    pub on_dst_gap: &'a str,
    /// A name of [`OnFold`].
    pub on_dst_fold: &'a str,
    /// A name of [`Misfire`](crate::policy::Misfire).
    pub misfire: &'a str,
    /// An occurrence older than this does not fire.
    pub misfire_grace: Option<TimeDelta>,
    /// At most this many missed occurrences of one outage fire.
    pub catchup_limit: i32,
    /// A name of [`Overlap`](crate::policy::Overlap).
    pub overlap: &'a str,
    /// The reach of the horizon.
    pub horizon: Option<TimeDelta>,
    /// The count of the horizon.
    pub horizon_count: Option<i32>,
}

/// A definition that can be evaluated.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// When the action is due.
    pub recurrence: Recurrence,
    /// What happens then.
    pub policy: Policy,
}

/// What is wrong with a stored definition, which no function of the extension would have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionError(String);

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DefinitionError {}

/// Compiles a stored definition, with a cache because many actions share few schedules.
///
/// # Errors
/// When a text can't be read, or the schedule never yields an occurrence.
pub fn compile(
    stored: &StoredDefinition<'_>,
    schedules: &mut ScheduleCache,
) -> Result<Compiled, DefinitionError> {
    let schedule = schedules.parse(stored.schedule).map_err(wrong)?;
    let zone = Zone::parse(stored.timezone).map_err(wrong)?;
    let on_gap: OnGap = stored.on_dst_gap.parse().map_err(wrong)?;
    let on_fold: OnFold = stored.on_dst_fold.parse().map_err(wrong)?;
    // max_runs counts dispatches, not occurrences: the decision counts them itself.
    let bounds = Bounds {
        starts_at: stored.starts_at,
        ends_at: stored.ends_at,
        max_runs: None,
    };
    let at_least_one = stored.catchup_limit.max(1);
    let count = stored.horizon_count.map(|count| count.max(0));
    let policy = Policy {
        misfire: stored.misfire.parse().map_err(wrong)?,
        misfire_grace: stored.misfire_grace,
        catchup_limit: usize::try_from(at_least_one).unwrap_or(1),
        overlap: stored.overlap.parse().map_err(wrong)?,
        horizon: Horizon::new(
            stored.horizon,
            count.map(|count| usize::try_from(count).unwrap_or(0)),
        ),
    };
    let recurrence = Recurrence::new(schedule, zone, bounds, on_gap, on_fold).map_err(wrong)?;
    Ok(Compiled { recurrence, policy })
}

fn wrong(error: impl fmt::Display) -> DefinitionError {
    DefinitionError(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Misfire, Overlap};

    const DAILY: StoredDefinition<'static> = StoredDefinition {
        schedule: "@daily",
        timezone: "Europe/Berlin",
        starts_at: None,
        ends_at: None,
        on_dst_gap: "roll_forward",
        on_dst_fold: "first",
        misfire: "once",
        misfire_grace: None,
        catchup_limit: 10,
        overlap: "allow",
        horizon: None,
        horizon_count: None,
    };

    fn compiled(stored: StoredDefinition<'_>) -> Result<Compiled, String> {
        compile(&stored, &mut ScheduleCache::new(10)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_definition_compiles_to_its_policies() {
        let one = compiled(StoredDefinition {
            misfire: "all",
            misfire_grace: Some(TimeDelta::minutes(2)),
            overlap: "queue_one",
            horizon_count: Some(3),
            ..DAILY
        })
        .unwrap();
        assert_eq!(
            one.policy,
            Policy {
                misfire: Misfire::All,
                misfire_grace: Some(TimeDelta::minutes(2)),
                catchup_limit: 10,
                overlap: Overlap::QueueOne,
                horizon: Horizon::new(None, Some(3)),
            }
        );
        let from = "2030-07-01T12:00:00Z".parse().unwrap();
        let next = one.recurrence.next_after(from).unwrap().at;
        assert_eq!(
            next,
            "2030-07-01T22:00:00Z".parse::<DateTime<Utc>>().unwrap()
        );
    }

    #[test]
    fn numbers_that_make_no_sense_are_harmless() {
        let one = compiled(StoredDefinition {
            catchup_limit: -1,
            horizon_count: Some(-1),
            ..DAILY
        })
        .unwrap();
        assert_eq!(one.policy.catchup_limit, 1);
        assert_eq!(one.policy.horizon, Horizon::new(None, Some(0)));
    }

    #[test]
    fn errors_name_the_column_and_its_value() {
        let wrong = [
            StoredDefinition {
                schedule: "sometimes",
                ..DAILY
            },
            StoredDefinition {
                timezone: "Mars/Base",
                ..DAILY
            },
            StoredDefinition {
                on_dst_gap: "leap",
                ..DAILY
            },
            StoredDefinition {
                on_dst_fold: "third",
                ..DAILY
            },
            StoredDefinition {
                misfire: "never",
                ..DAILY
            },
            StoredDefinition {
                overlap: "maybe",
                ..DAILY
            },
        ];
        let named = [
            "sometimes",
            "Mars/Base",
            "on_dst_gap \"leap\"",
            "on_dst_fold \"third\"",
            "misfire \"never\"",
            "overlap \"maybe\"",
        ];
        for (stored, named) in wrong.into_iter().zip(named) {
            let error = compiled(stored).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
