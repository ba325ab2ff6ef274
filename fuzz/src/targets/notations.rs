//! Each notation's parser against a second reader.

use crate::input::Input;
use crate::naive;
use crate::target::Signature;
use chrono_tz::TZ_VARIANTS;
use recurrence::at::Moment;
use recurrence::cron::CronSpec;
use recurrence::interval::Interval;
use recurrence::rrule::RuleSet;
use recurrence::{Kind, Schedule, ScheduleError, Zone};

/// The canonical text parses back to an equal value, and is canonical itself.
fn round_trip(schedule: &Schedule) -> String {
    let canonical = schedule.to_string();
    let again = Schedule::parse(&canonical);
    assert_eq!(again.as_ref(), Ok(schedule), "canonical text {canonical:?}");
    assert_eq!(
        again.map(|again| again.to_string()).as_ref(),
        Ok(&canonical)
    );
    canonical
}

/// An error says something, in few words, however long the text is.
fn refusal(error: &ScheduleError) -> Signature {
    let message = error.to_string();
    assert!(!message.is_empty() && message.len() < 1_000, "{message}");
    assert!(error.hint().is_none_or(|hint| !hint.is_empty()));
    Signature::of_error(message)
}

/// Cron expressions: what is read, and what is refused.
pub fn cron(input: &Input) -> Signature {
    let expected = naive::cron::Cron::read(&input.text);
    match (CronSpec::parse(&input.text), expected) {
        (Ok(spec), Some((_, is_stepping))) => {
            assert_eq!(spec.is_stepping(), is_stepping, "is it stepping?");
            let canonical = spec.to_string();
            let again = CronSpec::parse(&canonical);
            assert_eq!(again.as_ref(), Ok(&spec), "canonical text {canonical:?}");
            Signature::of_shape(0, &canonical)
        }
        (Ok(spec), None) => {
            assert!(
                input.text.trim_ascii().starts_with('@'),
                "read as {spec}, and malformed"
            );
            Signature::of_shape(1, &input.text)
        }
        (Err(error), Some((model, _))) => {
            assert!(!model.has_date(), "refused with {error:?}, and well formed");
            refusal(&error)
        }
        (Err(error), None) => refusal(&error),
    }
}

/// Nicknames and presets: a short list, and nothing else.
pub fn nickname(input: &Input) -> Signature {
    let trimmed = input.text.trim_ascii();
    let expected = match trimmed.to_ascii_lowercase().as_str() {
        "@yearly" | "@annually" => Some("0 0 1 1 *"),
        "@monthly" => Some("0 0 1 * *"),
        "@weekly" => Some("0 0 * * SUN"),
        "@daily" | "@midnight" => Some("0 0 * * *"),
        "@hourly" => Some("0 * * * *"),
        _ => None,
    };
    // Presets keep the time of the start, and so are intervals.
    let preset = match trimmed.to_ascii_lowercase().as_str() {
        "hourly" => Some("1h"),
        "daily" => Some("1d"),
        "weekly" => Some("1w"),
        "monthly" => Some("1mo"),
        "yearly" => Some("12mo"),
        _ => None,
    };
    match Schedule::parse(&input.text) {
        Ok(schedule) => {
            let canonical = round_trip(&schedule);
            if trimmed.starts_with('@') {
                assert_eq!(expected, Some(canonical.as_str()));
            }
            assert!(
                preset.is_none_or(|preset| preset == canonical),
                "{canonical}"
            );
            Signature::of_shape(0, &canonical)
        }
        Err(error) => {
            assert!(
                expected.is_none() && preset.is_none(),
                "refused with {error}"
            );
            refusal(&error)
        }
    }
}

/// Intervals in every notation.
pub fn interval(input: &Input) -> Signature {
    let expected = naive::interval::read(&input.text);
    match Interval::parse(&input.text) {
        Ok(interval) => {
            assert_eq!(expected, Some(interval));
            let canonical = interval.to_string();
            assert_eq!(
                Interval::parse(&canonical).as_ref(),
                Ok(&interval),
                "canonical text {canonical:?}"
            );
            let schedule = Schedule::parse(&canonical).expect("a schedule");
            assert_eq!(schedule.kind(), &Kind::Interval(interval));
            assert!(schedule.needs_start() && schedule.shortest_gap().is_some());
            Signature::of_shape(0, &canonical)
        }
        Err(error) => {
            assert_eq!(expected, None, "refused with {error}");
            refusal(&error)
        }
    }
}

/// Structured rules.
pub fn rule(input: &Input) -> Signature {
    let text = input.text.trim_ascii();
    let expected = naive::rule::Rule::read(text).is_some();
    match Schedule::parse(&input.text) {
        Ok(schedule) if matches!(schedule.kind(), Kind::Rule(_)) => {
            assert!(expected, "read as {schedule}, and malformed");
            let canonical = round_trip(&schedule);
            let value: serde_json::Value =
                serde_json::from_str(&canonical).expect("canonical JSON");
            assert!(value.is_object());
            Signature::of_shape(0, &canonical)
        }
        Ok(schedule) => Signature::of_shape(1, &round_trip(&schedule)),
        Err(error) => {
            assert!(
                !expected || input.text.len() > 1_000,
                "refused with {error}"
            );
            refusal(&error)
        }
    }
}

/// RFC 5545 rules.
pub fn rrule(input: &Input) -> Signature {
    match RuleSet::parse(&input.text) {
        Ok(rules) => {
            let canonical = rules.to_string();
            assert_eq!(
                RuleSet::parse(&canonical).as_ref(),
                Ok(&rules),
                "canonical text {canonical:?}"
            );
            let schedule = Schedule::parse(&canonical).expect("a schedule");
            assert_eq!(round_trip(&schedule), canonical);
            // Names and values may be in any case.
            let lower = input.text.to_ascii_lowercase();
            assert_eq!(RuleSet::parse(&lower).as_ref(), Ok(&rules), "in lower case");
            assert_valid(&input.text);
            Signature::of_shape(0, &canonical)
        }
        Err(error) => {
            let message = error.to_string();
            assert!(!message.is_empty() && message.len() < 1_000, "{message}");
            Signature::of_error(message)
        }
    }
}

/// What RFC 5545 forbids, checked on the text itself.
fn assert_valid(text: &str) {
    let upper = text.trim().to_ascii_uppercase();
    let first = upper.lines().next().unwrap_or_default();
    let parts = first.strip_prefix("RRULE:").expect("a rule");
    let mut names = Vec::new();
    for part in parts.trim_end().split(';') {
        let (name, value) = part.split_once('=').expect("a part");
        assert!(!names.contains(&name), "{name} twice");
        names.push(name);
        let most = match name {
            "BYMONTH" => 12,
            "BYWEEKNO" | "INTERVAL" | "COUNT"
                if value.starts_with('0') && value.trim_matches('0').is_empty() =>
            {
                0
            }
            "BYWEEKNO" => 53,
            "BYYEARDAY" | "BYSETPOS" => 366,
            "BYMONTHDAY" => 31,
            "BYHOUR" => 23,
            "BYMINUTE" => 59,
            "BYSECOND" => 60,
            _ => continue,
        };
        let is_time = matches!(name, "BYHOUR" | "BYMINUTE" | "BYSECOND");
        for number in value.split(',') {
            let number: i64 = number.parse().expect("a number");
            assert!(
                number.abs() <= most && (number != 0 || is_time),
                "{name}={number}"
            );
        }
    }
    assert!(names.contains(&"FREQ"));
    assert!(
        !(names.contains(&"COUNT") && names.contains(&"UNTIL")),
        "COUNT with UNTIL"
    );
}

/// Single times.
pub fn at(input: &Input) -> Signature {
    let trimmed = input.text.trim_ascii();
    let is_at = trimmed
        .get(..3)
        .is_some_and(|start| start.eq_ignore_ascii_case("at "));
    let expected = trimmed
        .get(3..)
        .filter(|_| is_at)
        .and_then(|rest| naive::at::read(rest.trim_ascii()));
    match Schedule::parse(&input.text) {
        Ok(schedule) => {
            let canonical = round_trip(&schedule);
            if let Kind::At(at) = schedule.kind() {
                let (seconds, is_instant) = match at.moment() {
                    Moment::Local(civil) => (civil.0, false),
                    Moment::Instant(instant) => (instant, true),
                };
                let moment = naive::at::Moment {
                    seconds,
                    nanos: at.subsec_nanos(),
                    is_instant,
                };
                assert_eq!(Some(moment), expected);
                assert_eq!(schedule.shortest_gap(), None);
            }
            Signature::of_shape(0, &canonical)
        }
        Err(error) => {
            assert_eq!(expected, None, "refused with {error}");
            refusal(&error)
        }
    }
}

/// Names of zones.
pub fn zone(input: &Input) -> Signature {
    let name = input.text.as_str();
    match Zone::parse(name) {
        Ok(zone) => {
            assert!(zone.name().eq_ignore_ascii_case(name));
            assert_eq!(Zone::parse(zone.name()), Ok(zone));
            assert_eq!(zone.to_string(), zone.name());
            Signature::of_shape(0, zone.name())
        }
        Err(error) => {
            // The whole list is long: only texts that could be a name are looked for.
            let is_known = name.len() < 40
                && TZ_VARIANTS
                    .iter()
                    .any(|tz| tz.name().eq_ignore_ascii_case(name));
            assert!(!is_known, "refused with {error}");
            assert!(!error.hint().is_empty());
            Signature::of_error(error)
        }
    }
}
