//! What an operator demands of the actions of a namespace: an end, and a context.

use super::check;
use super::columns::Column;
use super::environment::Environment;
use super::invalid::Invalid;
use super::state::Action;
use super::value::Json;
use recurrence::Kind;
use recurrence::cron::{CronSpec, FieldKind, Item};

/// What the actions of a namespace must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    /// An end: `max_runs`, `ends_at`, or a schedule that ends by itself.
    pub bounds: bool,
    /// A context.
    pub context: bool,
}

/// Refuses an action that lacks what its namespace demands. Of a change, only what it concerns is checked: an action
/// that was there before the demand may be changed otherwise.
pub(super) fn check_demands<J: Json>(
    action: &Action<J>,
    concerns: impl Fn(&[Column]) -> bool,
    environment: &Environment<'_>,
) -> Result<(), Invalid> {
    let namespace = action.definition.namespace();
    let demands = (environment.demands)(namespace);
    let touches_bounds = || {
        concerns(&[
            Column::Namespace,
            Column::MaxRuns,
            Column::EndsAt,
            Column::Schedule,
        ])
    };
    if demands.bounds && touches_bounds() && !is_bounded(action, environment)? {
        let problem = format!("an action of namespace \"{namespace}\" must have an end");
        return Err(Invalid::argument("max_runs", "NULL", &problem)
            .with_hint("Give max_runs or ends_at. recur.require_bounds demands it."));
    }
    let touches_context = || concerns(&[Column::Namespace, Column::Context]);
    if demands.context && touches_context() && action.context.is_none() {
        let problem = format!("an action of namespace \"{namespace}\" must have a context");
        return Err(Invalid::argument("context", "NULL", &problem).with_hint(
            "Give context, an empty object at least. recur.require_context demands it.",
        ));
    }
    Ok(())
}

fn is_bounded<J: Json>(action: &Action<J>, environment: &Environment<'_>) -> Result<bool, Invalid> {
    let definition = &action.definition;
    if definition.max_runs().is_some() || definition.ends_at().is_some() {
        return Ok(true);
    }
    let text = definition.schedule();
    let schedule = check::schedule(Column::Schedule.name(), text, environment)?;
    let ends_by_itself =
        text.starts_with("RRULE:") && ["COUNT=", "UNTIL="].iter().any(|part| text.contains(part));
    Ok(ends_by_itself
        || match schedule.kind() {
            Kind::At(_) => true,
            Kind::Cron(cron) => names_last_year(cron),
            _ => false,
        })
}

/// Does the year field name a last year?
fn names_last_year(cron: &CronSpec) -> bool {
    let (_, largest) = FieldKind::Year.range();
    let mut items = cron.field(FieldKind::Year).items().iter();
    items.all(|item| match item {
        Item::Value(last) | Item::Range { last, .. } | Item::RangeStep { last, .. } => {
            *last < largest
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{arguments, at, changes, environment, json, now, running};
    use super::super::{Change, create};
    use super::*;

    const ALL: Demands = Demands {
        bounds: true,
        context: true,
    };

    fn demanding() -> Environment<'static> {
        Environment {
            demands: &|namespace| match namespace {
                "free" => Demands::default(),
                _ => ALL,
            },
            ..environment()
        }
    }

    #[test]
    fn a_new_action_has_what_is_demanded() {
        let context = || (Column::Context, json("{}"));
        let create = |given| create(&given, now(), &demanding());
        for bound in [
            (Column::MaxRuns, 3.into()),
            (Column::EndsAt, at("2030-01-01T00:00:00Z").into()),
            (Column::Schedule, "at 2030-01-01T00:00:00".into()),
            (Column::Schedule, "RRULE:FREQ=DAILY;COUNT=3".into()),
            (Column::Schedule, "0 0 0 1 1 * 2041".into()),
            (Column::Schedule, "0 0 0 1 1 * 2041-2049,2060-2070/2".into()),
        ] {
            assert!(create(arguments([bound, context()])).is_ok());
        }
        for endless in [
            "0 0 0 1 1 *",
            "0 0 0 1 1 * */2",
            "0 0 0 1 1 * 2041,2050-9999",
        ] {
            let schedule = (Column::Schedule, endless.into());
            assert!(
                create(arguments([schedule, context()])).is_err(),
                "{endless}"
            );
        }
        let invalid = create(arguments([context()])).unwrap_err();
        assert_eq!(
            invalid.message,
            "invalid max_runs \"NULL\": an action of namespace \"default\" must have an end"
        );
        let invalid = create(arguments([(Column::MaxRuns, 3.into())])).unwrap_err();
        assert_eq!(
            invalid.message,
            "invalid context \"NULL\": an action of namespace \"default\" must have a context"
        );
        assert!(create(arguments([(Column::Namespace, "free".into())])).is_ok());
    }

    #[test]
    fn a_change_may_not_take_it_away() {
        let before = running([(Column::MaxRuns, 3.into()), (Column::Context, json("{}"))]);
        let update = |pairs| Change::new(before.clone(), &pairs, &demanding());
        let null = super::super::Value::Null;
        assert!(update(changes([(Column::MaxRuns, null.clone())])).is_err());
        assert!(update(changes([(Column::Context, null)])).is_err());
        let other = (Column::Priority, 1.into());
        assert!(update(changes([other.clone()])).is_ok());
        // What was there before the demand may be changed otherwise, and moved only to where it fits.
        let unbounded = running([]);
        let update = |pairs| Change::new(unbounded.clone(), &pairs, &demanding());
        assert!(update(changes([other])).is_ok());
        assert!(update(changes([(Column::Namespace, "else".into())])).is_err());
        assert!(update(changes([(Column::Namespace, "free".into())])).is_ok());
    }
}
