//! When an action runs next: after its creation, after a change, after a pause.

use std::str::FromStr;

use chrono::{DateTime, TimeDelta, Utc};
use recurrence::{Bounds, Kind, OnFold, OnGap, Recurrence, RecurrenceError, Warning};

use super::check;
use super::columns::Column;
use super::definition::Definition;
use super::environment::Environment;
use super::event::{Event, EventKind};
use super::invalid::{Code, Invalid};
use super::state::{Action, Timer};
use super::value::{Json, Value, instant_text};

/// Missed occurrences are not counted beyond this number.
const MOST_COUNTED: u64 = 10_000_000;

/// The resolution of instants in PostgreSQL.
const MICROSECOND: TimeDelta = TimeDelta::microseconds(1);

/// The instant just before another one: an occurrence strictly after it may be at that one.
pub(super) fn just_before(instant: DateTime<Utc>) -> DateTime<Utc> {
    instant.checked_sub_signed(MICROSECOND).unwrap_or(instant)
}

/// The definition's recurrence, regardless of the number of runs; None if it has no occurrence at all.
fn recurrence<J: Json>(
    definition: &Definition<J>,
    environment: &Environment<'_>,
) -> Result<Option<Recurrence>, Invalid> {
    let bounds = Bounds {
        starts_at: definition.starts_at(),
        ends_at: definition.ends_at(),
        max_runs: None,
    };
    recurrence_within(bounds, definition, environment)
}

fn recurrence_within<J: Json>(
    bounds: Bounds,
    definition: &Definition<J>,
    environment: &Environment<'_>,
) -> Result<Option<Recurrence>, Invalid> {
    let text = definition.schedule();
    let schedule = check::schedule(Column::Schedule.name(), text, environment)?;
    let zone = check::zone(Column::Timezone.name(), definition.timezone())?;
    let on_gap: OnGap = policy(definition, Column::OnDstGap)?;
    let on_fold: OnFold = policy(definition, Column::OnDstFold)?;
    match Recurrence::new(schedule, zone, bounds, on_gap, on_fold) {
        Ok(recurrence) => Ok(Some(recurrence)),
        Err(RecurrenceError::NeverOccurs { .. }) => Ok(None),
        Err(error) => Err(Invalid::argument("schedule", text, &error.to_string())),
    }
}

fn policy<J: Json, P: FromStr>(definition: &Definition<J>, column: Column) -> Result<P, Invalid> {
    let name = definition.get(column).as_text().unwrap_or_default();
    name.parse()
        .map_err(|_| Invalid::argument(column.name(), name, "is unknown"))
}

/// The first occurrence strictly after an instant.
pub(super) fn next_run<J: Json>(
    definition: &Definition<J>,
    after: DateTime<Utc>,
    environment: &Environment<'_>,
) -> Result<Option<DateTime<Utc>>, Invalid> {
    let recurrence = recurrence(definition, environment)?;
    Ok(recurrence
        .and_then(|recurrence| recurrence.next_after(after))
        .map(|occurrence| occurrence.at))
}

/// The first occurrence after an instant. An action that will never fire is a mistake, and refused.
pub(super) fn first_run<J: Json>(
    definition: &Definition<J>,
    after: DateTime<Utc>,
    now: DateTime<Utc>,
    environment: &Environment<'_>,
) -> Result<DateTime<Utc>, Invalid> {
    if let Some(end) = definition.ends_at().filter(|end| *end <= now) {
        return Err(
            Invalid::argument("ends_at", &instant_text(end), "must lie in the future")
                .with_hint("Leave it out for no end."),
        );
    }
    check_spacing(definition, environment)?;
    match next_run(definition, after, environment)? {
        Some(first) => Ok(first),
        None => Err(no_first_run(definition, now, environment)),
    }
}

/// What the author of a new action has to know: that its first run is more than a year away, or that it falls silent
/// for as long. Schedules that can't cost no search.
pub fn warning<J: Json>(
    action: &Action<J>,
    now: DateTime<Utc>,
    environment: &Environment<'_>,
) -> Option<Warning> {
    let definition = &action.definition;
    let text = definition.schedule();
    let schedule = check::schedule(Column::Schedule.name(), text, environment).ok()?;
    if !schedule.may_fall_silent() {
        return None;
    }
    let bounds = Bounds {
        starts_at: definition.starts_at(),
        ends_at: definition.ends_at(),
        max_runs: definition
            .max_runs()
            .and_then(|runs| u32::try_from(runs).ok()),
    };
    let from = definition.starts_at().map_or(now, |start| start.max(now));
    recurrence_within(bounds, definition, environment)
        .ok()??
        .warning(from)
}

/// Does a new action run as soon as it is created? A schedule that is counted from its start does, without a start.
pub fn runs_at_once<J: Json>(action: &Action<J>, now: DateTime<Utc>) -> bool {
    let start = action.definition.starts_at();
    start.is_some_and(|start| start <= now && action.timer.next_run_at == Some(start))
}

/// Why a schedule has no occurrence: a single time may have passed, and other schedules lie outside of the bounds.
fn no_first_run<J: Json>(
    definition: &Definition<J>,
    now: DateTime<Utc>,
    environment: &Environment<'_>,
) -> Invalid {
    let text = definition.schedule();
    let refused = |problem: &str| Invalid::argument("schedule", text, problem);
    let schedule = check::schedule(Column::Schedule.name(), text, environment);
    let is_single = schedule.is_ok_and(|schedule| matches!(schedule.kind(), Kind::At(_)));
    let passed = is_single
        .then(|| recurrence_within(Bounds::default(), definition, environment).ok()?)
        .flatten()
        .and_then(|recurrence| recurrence.previous_or_at(now));
    match passed {
        Some(occurrence) => refused(&format!(
            "its time has passed, it was {}",
            instant_text(occurrence.at)
        ))
        .with_hint("recur.enqueue makes a dispatch that is due at once."),
        None => refused("it has no occurrence within starts_at and ends_at")
            .with_hint("recur.preview shows the occurrences of a schedule."),
    }
}

/// The answer depends on the schedule alone, never on the moment of the question.
fn check_spacing<J: Json>(
    definition: &Definition<J>,
    environment: &Environment<'_>,
) -> Result<(), Invalid> {
    let least = environment.limits.min_interval;
    let text = definition.schedule();
    match check::schedule(Column::Schedule.name(), text, environment)?.shortest_gap() {
        Some(gap) if gap < least => {
            let problem =
                format!("it can recur after {gap:?}, and recur.min_interval is {least:?}");
            Err(Invalid::argument("schedule", text, &problem)
                .with_hint("Choose a schedule with longer pauses."))
        }
        _ => Ok(()),
    }
}

/// The first run after a pause: what was due in the meantime is not made up for.
pub(super) fn resumed_run<J: Json>(
    action: &Action<J>,
    now: DateTime<Utc>,
    environment: &Environment<'_>,
) -> Result<DateTime<Utc>, Invalid> {
    let definition = &action.definition;
    let name = definition.name();
    if let Some(max_runs) = definition.max_runs().filter(|_| action.is_exhausted()) {
        let message = format!("action \"{name}\" has had all of its {max_runs} runs");
        return Err(
            Invalid::new(Code::NotInPrerequisiteState, message).with_hint("Raise max_runs first.")
        );
    }
    next_run(definition, now, environment)?.ok_or_else(|| {
        let end = definition
            .ends_at()
            .map_or("not set".to_owned(), instant_text);
        Invalid::new(
            Code::NotInPrerequisiteState,
            format!("action \"{name}\" has no occurrence left"),
        )
        .with_detail(format!(
            "Its schedule is \"{}\" and its ends_at is {end}.",
            definition.schedule()
        ))
        .with_hint("Change the schedule or ends_at first.")
    })
}

/// Is the action resumed by `resume_all`: was it paused by `pause_all`, and has it an occurrence left?
pub fn is_resumable<J: Json>(
    action: &Action<J>,
    now: DateTime<Utc>,
    environment: &Environment<'_>,
) -> bool {
    let Timer {
        enabled,
        ended_reason,
        paused_in_bulk,
        ..
    } = &action.timer;
    !enabled
        && *paused_in_bulk
        && ended_reason.is_none()
        && resumed_run(action, now, environment).is_ok()
}

/// The event of the occurrences that passed during a pause, if there were any.
pub(super) fn skipped_while_paused<J: Json>(
    definition: &Definition<J>,
    missed_from: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
    environment: &Environment<'_>,
) -> Result<Option<Event<J>>, Invalid> {
    let Some(from) = missed_from.filter(|from| *from <= now) else {
        return Ok(None);
    };
    let Some(recurrence) = recurrence(definition, environment)? else {
        return Ok(None);
    };
    let count = recurrence.count_between(just_before(from), now, MOST_COUNTED);
    if count == 0 {
        return Ok(None);
    }
    let until = recurrence
        .previous_or_at(now)
        .map(|occurrence| occurrence.at);
    let event = Event::new(EventKind::Skipped)
        .with("reason", "paused")
        .with("from", from)
        .with("until", until)
        .with(
            "count",
            Value::Int(i64::try_from(count).unwrap_or(i64::MAX)),
        );
    Ok(Some(event))
}

/// When the dispatcher has to look at the action. With a horizon that is now: dispatches may have to be created ahead.
pub(super) fn due_at<J: Json>(
    definition: &Definition<J>,
    next_run_at: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    match definition.has_horizon() {
        true => next_run_at.map(|next| next.min(now)),
        false => next_run_at,
    }
}

#[cfg(test)]
mod tests {
    use super::super::create;
    use super::super::fixtures::{arguments, environment, now};
    use super::*;

    #[test]
    fn what_is_counted_from_now_runs_at_once() {
        let enabled = (Column::Enabled, true.into());
        let disabled = (Column::Enabled, false.into());
        let later = (Column::StartsAt, (now() + MICROSECOND).into());
        for (schedule, more, expected) in [
            ("1mo", enabled.clone(), true),
            ("RRULE:FREQ=DAILY", enabled.clone(), true),
            (r#"{"every": 2, "unit": "week"}"#, enabled.clone(), true),
            ("0 9 * * *", enabled.clone(), false),
            // An occurrence of a cron expression that is this instant by chance.
            ("30 12 * * *", enabled, false),
            ("1mo", disabled, false),
            ("1mo", later, false),
        ] {
            let created = create(
                &arguments([(Column::Schedule, schedule.into()), more]),
                now(),
                &environment(),
            );
            let action = created.unwrap().action;
            assert_eq!(runs_at_once(&action, now()), expected, "{schedule}");
        }
    }

    #[test]
    fn an_action_that_falls_silent_is_warned_of() {
        for (schedule, expected) in [
            ("0 9 * * *", None),
            (
                "0 9 29 2 *",
                Some("after 2028-02-29 there is no run until 2032-02-29"),
            ),
            (
                "0 9 29 2 +MON",
                Some("the first run is more than a year away, on 2044-02-29"),
            ),
        ] {
            let created = create(
                &arguments([(Column::Schedule, schedule.into())]),
                now(),
                &environment(),
            );
            let found = warning(&created.unwrap().action, now(), &environment());
            let found = found.map(|warning| warning.to_string());
            assert_eq!(found.as_deref(), expected, "{schedule}");
        }
    }
}
