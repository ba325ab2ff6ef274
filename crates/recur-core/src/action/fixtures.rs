//! What the tests of this module share.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use recurrence::{Schedule, ScheduleError, Zone};

use super::{
    Action, Change, Changes, Column, Demands, Detail, Environment, Event, Interval, Invalid, Json,
    Limits, Update, Value, Withdrawn, create,
};

/// JSON as nothing but its text: what is not decoded can't change.
#[derive(Clone, Debug, PartialEq)]
pub struct Text(pub String);

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

pub fn json(text: &str) -> Value<Text> {
    Value::Json(Text::from_text(text))
}

pub fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// A Thursday, between two hours.
pub fn now() -> DateTime<Utc> {
    at("2027-04-01T12:30:00Z")
}

fn parse_schedule(text: &str) -> Result<Arc<Schedule>, ScheduleError> {
    Schedule::parse(text).map(Arc::new)
}

/// As much of the server's notation as the tests need: `1 mon -29 days`, `30` (seconds).
pub fn parse_interval(text: &str) -> Option<Interval> {
    if let Ok(seconds) = text.parse() {
        return Some(Interval::seconds(seconds));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut interval = Interval::ZERO;
    for pair in words.chunks(2) {
        let [number, unit] = pair else { return None };
        let number: i64 = number.parse().ok()?;
        match unit.trim_end_matches('s') {
            "year" => interval.months += i32::try_from(number * 12).ok()?,
            "mon" => interval.months += i32::try_from(number).ok()?,
            "day" => interval.days += i32::try_from(number).ok()?,
            "hour" => interval.micros += number * 3_600_000_000,
            "minute" => interval.micros += number * 60_000_000,
            "second" => interval.micros += number * 1_000_000,
            _ => return None,
        }
    }
    Some(interval).filter(|_| !words.is_empty())
}

pub fn environment() -> Environment<'static> {
    Environment {
        limits: Limits {
            max_payload_bytes: 1_000_000,
            min_interval: Duration::from_secs(1),
        },
        default_timezone: Zone::UTC,
        demands: &|_| Demands::default(),
        parse_schedule: &parse_schedule,
        parse_interval: &parse_interval,
    }
}

pub fn changes<const N: usize>(pairs: [(Column, Value<Text>); N]) -> Changes<Text> {
    Changes::from_arguments(pairs).unwrap()
}

/// The arguments that a creation can't do without, and more.
pub fn arguments<const N: usize>(more: [(Column, Value<Text>); N]) -> Changes<Text> {
    let needed = [
        (Column::Name, "n".into()),
        (Column::Schedule, "0 9 * * *".into()),
        (Column::Provider, "p".into()),
        (Column::ActionType, "a".into()),
    ];
    let needed = needed
        .into_iter()
        .filter(|(column, _)| !more.iter().any(|(given, _)| given == column));
    Changes::from_arguments(needed.chain(more.clone())).unwrap()
}

/// An action that was created a month ago.
pub fn action<const N: usize>(more: [(Column, Value<Text>); N]) -> Action<Text> {
    let created = create(&arguments(more), at("2027-03-01T00:00:00Z"), &environment());
    created.unwrap().action
}

/// An action that runs next tomorrow.
pub fn running<const N: usize>(more: [(Column, Value<Text>); N]) -> Action<Text> {
    let mut action = action(more);
    action.timer.next_run_at = Some(at("2027-04-02T09:00:00Z"));
    action.timer.due_at = action.timer.next_run_at;
    action
}

/// An action that was paused in the morning of the day before yesterday.
pub fn paused<const N: usize>(more: [(Column, Value<Text>); N]) -> Action<Text> {
    let mut action = running(more);
    action.timer.enabled = false;
    action.timer.missed_from = Some(at("2027-03-30T09:00:00Z"));
    action.timer.paused_reason = Some("holidays".to_owned());
    action.timer.next_run_at = None;
    action.timer.due_at = None;
    action
}

/// What follows from changes where nothing was created ahead.
pub fn update<const N: usize>(
    before: &Action<Text>,
    pairs: [(Column, Value<Text>); N],
) -> Result<Update<Text>, Invalid> {
    let change = Change::new(before.clone(), &changes(pairs), &environment())?;
    let change = change.expect("something changes");
    change.effect(Withdrawn::default(), now(), &environment())
}

/// The detail of an event as `key=value` pairs, those of an object in braces.
pub fn shown(event: &Event<Text>) -> String {
    let pair = |(key, value): &(&str, Value<Text>)| format!("{key}={}", value.text());
    let pairs = event.detail.iter().map(|(key, detail)| match detail {
        Detail::Value(value) => pair(&(*key, value.clone())),
        Detail::Object(object) => {
            let inner: Vec<String> = object.iter().map(pair).collect();
            format!("{key}={{{}}}", inner.join(", "))
        }
    });
    let pairs: Vec<String> = pairs.collect();
    format!("{} {}", event.kind, pairs.join(", "))
}

pub fn all_shown(events: &[Event<Text>]) -> Vec<String> {
    events.iter().map(shown).collect()
}

pub fn tomorrow() -> DateTime<Utc> {
    at("2027-04-02T09:00:00Z")
}

pub fn change(before: &Action<Text>, changes: &Changes<Text>) -> Option<Change<Text>> {
    Change::new(before.clone(), changes, &environment()).unwrap()
}

#[track_caller]
pub fn refuses<const N: usize>(
    before: &Action<Text>,
    pairs: [(Column, Value<Text>); N],
    message: &str,
    hint: &str,
) {
    let invalid = update(before, pairs).unwrap_err();
    assert_eq!(invalid.message, message);
    assert_eq!(invalid.hint.unwrap_or_default(), hint, "{message}");
}

/// After some dispatches have been withdrawn.
pub fn withdrawing<const N: usize>(
    before: &Action<Text>,
    pairs: [(Column, Value<Text>); N],
) -> Update<Text> {
    let withdrawn = Withdrawn {
        count: 3,
        last_run_at: Some(at("2027-04-01T09:00:00Z")),
    };
    let change = change(before, &changes(pairs)).unwrap();
    change.effect(withdrawn, now(), &environment()).unwrap()
}
