//! Definitions: the checks of single values, and what follows from changes.

use crate::input::{Choices, Input};
use crate::target::Signature;
use chrono::{DateTime, TimeDelta, Utc};
use recur_core::action::{
    Action, Change, Changes, Column, Created, Demands, Environment, EventKind, Interval, Json,
    Kind, Limits, Update, Value, Withdrawn, checked, create, pause, resume,
};
use recur_core::backoff::RetryBackoff;
use recur_core::event::RecordedEvents;
use recur_core::span;
use recurrence::{Bounds, Recurrence, Schedule, ScheduleError, Zone};
use std::sync::Arc;
use std::time::Duration;

/// JSON as nothing but its text.
#[derive(Clone, Debug, PartialEq)]
struct Text(String);

impl Json for Text {
    fn from_text(text: &str) -> Text {
        Text(text.to_owned())
    }

    fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    fn text(&self) -> String {
        self.0.clone()
    }

    fn size(&self) -> usize {
        self.0.len()
    }
}

const MOST_BYTES: usize = 2_000;
const TEN_YEARS: Interval = Interval {
    months: 120,
    days: 0,
    micros: 0,
};

fn parse_schedule(text: &str) -> Result<Arc<Schedule>, ScheduleError> {
    Schedule::parse(text).map(Arc::new)
}

fn parse_interval(text: &str) -> Option<Interval> {
    let span = span::parse(text).ok()?;
    Some(Interval {
        months: span.months,
        days: span.days,
        micros: span.micros,
    })
}

fn environment() -> Environment<'static> {
    Environment {
        limits: Limits {
            max_payload_bytes: MOST_BYTES,
            min_interval: Duration::from_secs(1),
        },
        default_timezone: Zone::UTC,
        demands: &|_| Demands::default(),
        parse_schedule: &parse_schedule,
        parse_interval: &parse_interval,
    }
}

/// One value of one column, by the column's kind.
pub fn column(input: &Input) -> Signature {
    let mut choices = input.choices();
    let column = choices.pick(Column::ALL);
    let text = input.text.as_str();
    let value: Value<Text> = match choices.below(8) {
        0..=2 => fitting(column, text),
        3 => Value::Null,
        4 => Value::Int(choices.pick(&[
            0,
            1,
            -1,
            i64::from(i32::MAX),
            i64::from(i32::MAX) + 1,
            i64::MIN,
        ])),
        5 => Value::Json(Text(text.to_owned())),
        6 => Value::Bool(choices.one_in(2)),
        _ => Value::Text(text.to_owned()),
    };
    let environment = environment();
    let expected = is_expected(column, &value);
    match checked(column, &value, &environment) {
        Ok(stored) => {
            assert_ne!(expected, Some(false), "{column:?} takes {value:?}");
            assert_eq!(
                checked(column, &stored, &environment).as_ref(),
                Ok(&stored),
                "as it is stored"
            );
            Signature::of_numbers(&[column as usize, 1])
        }
        Err(invalid) => {
            assert_ne!(
                expected,
                Some(true),
                "{column:?} refuses {value:?}: {invalid}"
            );
            assert!(
                invalid.message.contains(column.name()),
                "{} names no column",
                invalid.message
            );
            assert!(invalid.message.len() < 2_000, "{}", invalid.message.len());
            Signature(Signature::of_error(invalid.message).0 ^ column as u64)
        }
    }
}

/// The text as a value of the column's type.
fn fitting(column: Column, text: &str) -> Value<Text> {
    match column.spec().kind {
        Kind::Count { .. } | Kind::Int => text.parse().map_or(Value::Null, Value::Int),
        Kind::Interval { .. } => parse_interval(text).map_or(Value::Null, Value::Interval),
        Kind::JsonObject | Kind::Labels | Kind::Backoff => Value::Json(Text(text.to_owned())),
        Kind::Instant => text.parse().map_or(Value::Null, |seconds: i64| {
            DateTime::from_timestamp(seconds, 0).map_or(Value::Null, Value::Instant)
        }),
        Kind::Bool => Value::Bool(text.len().is_multiple_of(2)),
        _ => Value::Text(text.to_owned()),
    }
}

/// Should the column take the value? None where the model does not know.
fn is_expected(column: Column, value: &Value<Text>) -> Option<bool> {
    let number = |number: i64, min: i64| (min..=i64::from(i32::MAX)).contains(&number);
    Some(match (column.spec().kind, value) {
        (_, Value::Null) => column.spec().is_nullable(),
        (Kind::Name, Value::Text(text)) => !text.trim().is_empty() && text.chars().count() <= 255,
        (Kind::Text, Value::Text(text)) => text.chars().count() <= 10_000,
        (Kind::Channel, Value::Text(text)) => (1..=63).contains(&text.len()),
        (Kind::Events, Value::Text(text)) => text.parse::<RecordedEvents>().is_ok(),
        (Kind::Choice(names), Value::Text(text)) => names.iter().any(|name| name == text),
        (Kind::Schedule, Value::Text(text)) => Schedule::parse(text).is_ok(),
        (Kind::Timezone, Value::Text(text)) => Zone::parse(text).is_ok(),
        (Kind::Count { min }, Value::Int(given)) => number(*given, min),
        (Kind::Int, Value::Int(given)) => number(*given, i64::from(i32::MIN)),
        (Kind::Bool, Value::Bool(_)) | (Kind::Instant, Value::Instant(_)) => true,
        (Kind::JsonObject, Value::Json(json)) => json.is_object() && json.size() <= MOST_BYTES,
        (Kind::Labels, Value::Json(json)) => {
            let object =
                serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&json.0);
            json.size() <= MOST_BYTES
                && object.is_ok_and(|object| object.values().all(|value| value.is_string()))
        }
        // What is accepted can be read by the reports.
        (Kind::Backoff, Value::Json(json)) => {
            json.is_object() && json.size() <= MOST_BYTES && RetryBackoff::parse(&json.0).is_ok()
        }
        (Kind::Interval { may_be_zero }, Value::Interval(interval)) => {
            let is_far = interval.compare(TEN_YEARS).is_gt() && column == Column::Horizon;
            interval.check("any", may_be_zero).is_ok() && !is_far
        }
        _ => false,
    })
}

/// A value that is likely to be valid, for each kind.
fn likely(column: Column, choices: &mut Choices<'_>, now: DateTime<Utc>) -> Value<Text> {
    let spec = column.spec();
    if choices.one_in(8) {
        return Value::Null;
    }
    match spec.kind {
        Kind::Schedule => Value::from(choices.pick(&[
            "0 9 * * *",
            "90m",
            "*/5 * * * *",
            "at 2027-05-01T00:00:00Z",
            "0 0 30 2 *",
            "1mo",
        ])),
        Kind::Timezone => {
            Value::from(choices.pick(&["UTC", "Europe/Berlin", "america/new_york", "Mars"]))
        }
        Kind::Name | Kind::Text | Kind::Channel => Value::from(choices.pick(&["a", "b", "ü", ""])),
        Kind::Choice(names) => Value::from(choices.pick(names)),
        Kind::Events => Value::from(choices.pick(&["failed", "all", "most"])),
        Kind::Count { .. } | Kind::Int => Value::Int(choices.within(0, 6)),
        Kind::Bool => Value::Bool(choices.one_in(2)),
        Kind::Interval { .. } => Value::Interval(Interval::seconds(choices.within(0, 7_200))),
        Kind::Instant => Value::Instant(now + TimeDelta::hours(choices.within(-50, 50))),
        Kind::JsonObject | Kind::Labels => Value::Json(Text(
            choices
                .pick(&["{}", r#"{"a":"b"}"#, r#"{"a":"c"}"#, "[]"])
                .to_owned(),
        )),
        Kind::Backoff => Value::Json(Text(
            r#"{"base": "30 seconds", "factor": 2, "cap": "1 hour"}"#.to_owned(),
        )),
    }
}

fn some_changes(
    choices: &mut Choices<'_>,
    now: DateTime<Utc>,
    most: usize,
) -> Vec<(Column, Value<Text>)> {
    let mut pairs: Vec<(Column, Value<Text>)> = Vec::new();
    for _ in 0..=choices.below(most) {
        let column = choices.pick(Column::ALL);
        if pairs.iter().all(|(given, _)| *given != column) {
            let value = likely(column, choices, now);
            pairs.push((column, value));
        }
    }
    pairs
}

/// An action that is created and changed again and again.
pub fn changes(input: &Input) -> Signature {
    let mut choices = input.choices();
    let environment = environment();
    let mut now: DateTime<Utc> = "2027-04-01T12:30:00Z".parse().expect("an instant");
    let mut pairs: Vec<(Column, Value<Text>)> = vec![
        (Column::Name, "n".into()),
        (
            Column::Schedule,
            choices.pick(&["0 9 * * *", "90m", "@hourly"]).into(),
        ),
        (Column::Provider, "p".into()),
        (Column::ActionType, "a".into()),
    ];
    pairs.extend(some_changes(&mut choices, now, 3));
    let mut given = Vec::new();
    pairs.retain(|(column, _)| {
        !given.contains(column) && {
            given.push(*column);
            true
        }
    });
    let arguments = Changes::from_arguments(pairs).expect("each column once");
    let Created { mut action, .. } = match create(&arguments, now, &environment) {
        Ok(created) => created,
        Err(invalid) => return Signature::of_error(invalid),
    };
    check_timer(&action, now);
    let mut seen = vec![0];
    while !choices.is_empty() && seen.len() < 7 {
        now += TimeDelta::minutes(choices.within(0, 2_000));
        let changes = match choices.below(4) {
            0 => pause(&action, choices.pick(&[None, Some("why")])),
            1 => resume(&action),
            _ => Changes::from_arguments(some_changes(&mut choices, now, 4)),
        };
        let withdrawn = match choices.below(6) {
            5 => Withdrawn {
                count: 1,
                last_run_at: None,
            },
            _ => Withdrawn::default(),
        };
        let Ok(changes) = changes else {
            seen.push(1);
            continue;
        };
        let change = match Change::new(action.clone(), &changes, &environment) {
            Ok(Some(change)) => change,
            Ok(None) => {
                let is_same = |(column, value): (Column, &Value<Text>)| {
                    let mut value = checked(column, value, &environment).expect("it passed");
                    if column == Column::MisfireGrace {
                        value = grace(&action, &action, value, true);
                    }
                    value == action.get(column)
                };
                assert!(changes.iter().all(is_same), "{changes:?} change nothing");
                seen.push(2);
                continue;
            }
            Err(_) => {
                seen.push(3);
                continue;
            }
        };
        match change.effect(withdrawn, now, &environment) {
            Ok(update) => {
                seen.push(4 + update.events.len());
                check_update(&action, &changes, &update, withdrawn, now);
                action = update.action;
            }
            Err(_) => seen.push(9),
        }
    }
    Signature::of_numbers(&seen)
}

/// A disabled action has no next run, an enabled one has.
fn check_timer(action: &Action<Text>, now: DateTime<Utc>) {
    let timer = &action.timer;
    assert_eq!(timer.enabled, timer.next_run_at.is_some(), "{timer:?}");
    assert_eq!(timer.enabled, timer.due_at.is_some(), "{timer:?}");
    assert!(timer.due_at <= timer.next_run_at, "{timer:?}");
    if timer.run_count == 0 && !action.definition.has_horizon() && timer.enabled {
        assert!(timer.next_run_at >= Some(now), "{timer:?} at {now}");
    }
    assert!(
        !(timer.enabled && timer.paused_reason.is_some()),
        "{timer:?}"
    );
}

fn check_update(
    before: &Action<Text>,
    changes: &Changes<Text>,
    update: &Update<Text>,
    withdrawn: Withdrawn,
    now: DateTime<Utc>,
) {
    let after = &update.action;
    let environment = environment();
    for column in Column::DEFINITION.iter().copied() {
        let mut expected = match changes.get(column) {
            Some(value) => checked(column, value, &environment).expect("it passed before"),
            None => before.get(column),
        };
        if column == Column::MisfireGrace {
            expected = grace(before, after, expected, changes.get(column).is_some());
        }
        // What counts from a start and has none counts from the change.
        let counts =
            Schedule::parse(after.definition.schedule()).is_ok_and(|one| one.needs_start());
        if column == Column::StartsAt && counts && expected.is_null() {
            expected = Value::Instant(now);
        }
        assert_eq!(after.get(column), expected, "{column:?}");
        assert_eq!(
            update.changed.contains(&column),
            before.get(column) != expected,
            "{column:?} is changed"
        );
    }
    let (was, is) = (&before.timer, &after.timer);
    assert_eq!(is.enabled, is.next_run_at.is_some(), "{is:?}");
    assert_eq!(is.run_count, was.run_count - withdrawn.count);
    assert_eq!(update.changes_timer, was != is, "{was:?} {is:?}");
    let moves_identity = update.changed.iter().any(|column| column.is_identity());
    assert_eq!(
        update.promotes_duplicate,
        moves_identity && !before.duplicate
    );
    assert_eq!(
        update.changes_tenant,
        update.changed.contains(&Column::Tenant)
    );
    let context = i64::from(update.changed.contains(&Column::Context));
    assert_eq!(after.context_version, before.context_version + context);
    let has = |kind: EventKind| {
        update
            .events
            .iter()
            .filter(|event| event.kind == kind)
            .count()
    };
    let wanted = changes.get(Column::Enabled).and_then(Value::as_bool);
    assert_eq!(
        has(EventKind::Resumed),
        usize::from(wanted == Some(true) && !was.enabled)
    );
    if withdrawn.count == 0 {
        assert_eq!(
            has(EventKind::Paused),
            usize::from(wanted == Some(false) && was.enabled)
        );
        check_next_run(before, update, wanted, now);
    }
}

/// With misfire skip there is a grace, a minute unless it is set; without it, that default is gone.
fn grace(
    before: &Action<Text>,
    after: &Action<Text>,
    given: Value<Text>,
    is_named: bool,
) -> Value<Text> {
    let skips = |action: &Action<Text>| action.get(Column::Misfire) == Value::from("skip");
    let default = Value::Interval(Interval::seconds(60));
    match (skips(before), skips(after)) {
        (_, true) if given.is_null() => default,
        (true, false) if !is_named && given == default => Value::Null,
        _ => given,
    }
}

/// A change of schedule, zone or bounds moves the next run; any other leaves it alone.
fn check_next_run(
    before: &Action<Text>,
    update: &Update<Text>,
    wanted: Option<bool>,
    now: DateTime<Utc>,
) {
    let after = &update.action;
    let moves = update.changed.iter().any(|column| column.reschedules());
    let has_horizon = before.definition.has_horizon() || after.definition.has_horizon();
    let is_switched = wanted.is_some_and(|wanted| wanted != before.timer.enabled);
    if !moves && !has_horizon && !is_switched {
        assert_eq!(
            after.timer.next_run_at, before.timer.next_run_at,
            "{:?}",
            update.changed
        );
    }
    if !after.timer.enabled || (!moves && !is_switched) || has_horizon {
        return;
    }
    let text = |column: Column| {
        after
            .definition
            .get(column)
            .as_text()
            .unwrap_or_default()
            .to_owned()
    };
    let bounds = Bounds {
        starts_at: after.definition.starts_at(),
        ends_at: after.definition.ends_at(),
        max_runs: None,
    };
    let recurrence = Recurrence::new(
        Schedule::parse(after.definition.schedule())
            .expect("a schedule")
            .into(),
        Zone::parse(after.definition.timezone()).expect("a zone"),
        bounds,
        text(Column::OnDstGap).parse().expect("a policy"),
        text(Column::OnDstFold).parse().expect("a policy"),
    );
    let next = recurrence
        .expect("a recurrence")
        .next_after(now)
        .map(|next| next.at);
    assert_eq!(after.timer.next_run_at, next, "after {now}");
}
