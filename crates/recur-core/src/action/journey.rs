//! Actions that schedule a journey: what holds for them besides what holds for every action.

use super::columns::Column;
use super::effect::Created;
use super::invalid::{Code, Invalid};
use super::state::Action;
use super::value::Json;
use crate::journey::{LONGEST_NAME, LONGEST_VERSION};

/// The columns that say which journey an action schedules.
pub const COLUMNS: [&str; 3] = ["journey", "journey_version", "start_state"];

/// The provider of a journey's dispatches, where none is given.
pub const PROVIDER: &str = "journey";

/// Which journey an action schedules, and in which state its runs start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journey {
    /// The name of the journey.
    pub name: String,
    /// The version of the journey.
    pub version: String,
    /// The state in which each run starts.
    pub start_state: String,
}

impl Journey {
    /// The name of the action. With the subject it is the schedule's identity: a journey's name has no `@`, and its
    /// version no `/`, so that no other journey, version and state have the same.
    ///
    /// ```
    /// use recur_core::action::Journey;
    ///
    /// let text = |text: &str| text.to_owned();
    /// let journey = Journey { name: text("billing"), version: text("3"), start_state: text("charge") };
    /// assert_eq!(journey.action_name(), "billing@3/charge");
    /// ```
    pub fn action_name(&self) -> String {
        format!("{}@{}/{}", self.name, self.version, self.start_state)
    }
}

/// The name and version of a journey, or why they are refused.
pub fn check_identity(name: &str, version: &str) -> Result<(), Invalid> {
    check_text("name", name, LONGEST_NAME, '@')?;
    check_text("version", version, LONGEST_VERSION, '/')
}

fn check_text(argument: &str, text: &str, longest: usize, forbidden: char) -> Result<(), Invalid> {
    let problem = if text.trim().is_empty() {
        "must not be empty".to_owned()
    } else if text.chars().count() > longest {
        format!("must not be longer than {longest} characters")
    } else if text.contains(forbidden) {
        format!("must not contain \"{forbidden}\"")
    } else {
        return Ok(());
    };
    let hint =
        format!("Give {argument} as a text of 1 to {longest} characters, without \"{forbidden}\".");
    Err(Invalid::argument(argument, text, &problem).with_hint(hint))
}

impl<J: Json> Created<J> {
    /// The new action schedules a journey.
    pub fn of_journey(mut self, journey: Journey) -> Result<Created<J>, Invalid> {
        let [name, version, start_state] = COLUMNS;
        self.event = self
            .event
            .with(name, journey.name.as_str())
            .with(version, journey.version.as_str())
            .with(start_state, journey.start_state.as_str());
        self.action.journey = Some(journey);
        check(&self.action)?;
        Ok(self)
    }
}

/// Refuses a journey's schedule without a bound or a context, or under another name than its own.
pub(super) fn check<J: Json>(action: &Action<J>) -> Result<(), Invalid> {
    let Some(journey) = &action.journey else {
        return Ok(());
    };
    let definition = &action.definition;
    if definition.name() != journey.action_name() {
        let problem = format!(
            "the name of a journey's schedule is its identity, \"{}\"",
            journey.action_name()
        );
        return Err(Invalid::argument("name", definition.name(), &problem)
            .with_hint("recur.schedule_journey makes a schedule of another journey or state."));
    }
    if definition.max_runs().is_none() && definition.ends_at().is_none() {
        let problem = "a journey's schedule has a bound: max_runs, ends_at or both";
        return Err(Invalid::argument("max_runs", "NULL", problem)
            .with_hint("Say how often it runs, such as max_runs => 12."));
    }
    if action.context.is_none() {
        let problem = "a journey's schedule has a context, which its first run starts with";
        return Err(Invalid::argument(Column::Context.name(), "NULL", problem)
            .with_hint("Give what a run needs to know, such as '{\"user_id\": 42}'."));
    }
    Ok(())
}

/// An action with the name of a journey's schedule that schedules another one, or none.
pub fn is_another<J: Json>(action: &Action<J>, wanted: &Journey) -> Option<Invalid> {
    if action.journey.as_ref() == Some(wanted) {
        return None;
    }
    let name = action.definition.name();
    let message = format!(
        "action \"{name}\" exists, and is no schedule of journey \"{}\"",
        wanted.name
    );
    Some(
        Invalid::new(Code::UniqueViolation, message)
            .with_hint("Rename or delete that action first."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::fixtures::{Text, arguments, changes, environment, json, now};
    use crate::action::{Change, Value, create};

    fn journey() -> Journey {
        Journey {
            name: "billing".to_owned(),
            version: "3".to_owned(),
            start_state: "charge".to_owned(),
        }
    }

    fn created(more: [(Column, Value<Text>); 3]) -> Result<Created<Text>, Invalid> {
        let created = create(&arguments(more), now(), &environment()).unwrap();
        created.of_journey(journey())
    }

    fn schedule() -> Created<Text> {
        created([
            (Column::Name, "billing@3/charge".into()),
            (Column::MaxRuns, 12.into()),
            (Column::Context, json("{}")),
        ])
        .unwrap()
    }

    #[test]
    fn a_schedule_of_a_journey_has_a_bound_and_a_context_and_its_own_name() {
        let created = schedule();
        assert_eq!(created.action.journey, Some(journey()));
        let keys: Vec<&str> = created.event.detail.iter().map(|(key, _)| *key).collect();
        assert!(keys.ends_with(&COLUMNS), "{keys:?}");
        for (change, problem) in [
            (
                (Column::MaxRuns, Value::Null),
                "invalid max_runs \"NULL\": a journey's schedule has a bound: max_runs, ends_at or both",
            ),
            (
                (Column::Context, Value::Null),
                "invalid context \"NULL\": a journey's schedule has a context, which its first run starts with",
            ),
            (
                (Column::Name, "other".into()),
                "invalid name \"other\": the name of a journey's schedule is its identity, \"billing@3/charge\"",
            ),
        ] {
            let changed = Change::new(created.action.clone(), &changes([change]), &environment());
            assert_eq!(changed.unwrap_err().message, problem);
        }
        // Another bound will do, and the other names of the identity are free.
        let ends_at = Value::Instant(now() + chrono::TimeDelta::days(9));
        let taken = changes([
            (Column::MaxRuns, Value::Null),
            (Column::EndsAt, ends_at),
            (Column::Subject, "s".into()),
        ]);
        assert!(Change::new(created.action, &taken, &environment()).is_ok());
    }

    #[test]
    fn a_creation_is_checked_alike() {
        let name: Value<Text> = "billing@3/charge".into();
        let without_bound = created([
            (Column::Name, name.clone()),
            (Column::MaxRuns, Value::Null),
            (Column::Context, json("{}")),
        ]);
        assert!(without_bound.unwrap_err().message.contains("max_runs"));
        let without_context = created([
            (Column::Name, name),
            (Column::MaxRuns, 1.into()),
            (Column::Context, Value::Null),
        ]);
        assert!(without_context.unwrap_err().message.contains("context"));
    }

    #[test]
    fn only_a_schedule_of_the_same_journey_is_changed_in_place() {
        let mut action = schedule().action;
        assert_eq!(is_another(&action, &journey()), None);
        action.journey = None;
        let other = is_another(&action, &journey()).unwrap();
        assert_eq!(
            other.message,
            "action \"billing@3/charge\" exists, and is no schedule of journey \"billing\""
        );
    }

    #[test]
    fn names_and_versions() {
        assert!(check_identity("billing/monthly", "2027@1").is_ok());
        let longest = "x".repeat(100);
        assert!(check_identity(&longest, &longest[..50]).is_ok());
        for (name, version, message) in [
            ("", "1", "invalid name \"\": must not be empty"),
            ("a", " ", "invalid version \" \": must not be empty"),
            ("a@b", "1", "invalid name \"a@b\": must not contain \"@\""),
            (
                "a",
                "1/2",
                "invalid version \"1/2\": must not contain \"/\"",
            ),
        ] {
            assert_eq!(check_identity(name, version).unwrap_err().message, message);
        }
        let too_long = check_identity("a", &"x".repeat(51)).unwrap_err().message;
        assert!(too_long.ends_with("must not be longer than 50 characters"));
    }
}
