//! What people wrote of an action.

use chrono::{DateTime, Utc};

use super::changes::Changes;
use super::check::{self, checked};
use super::columns::{Column, DefaultValue, OVERLAP_WITH_CONTEXT, OVERLAP_WITHOUT_CONTEXT};
use super::environment::Environment;
use super::interval::Interval;
use super::invalid::Invalid;
use super::value::{Json, Value, instant_text};
use crate::policy::{CountRuns, DEFAULT_GRACE, Misfire};
use crate::webhook;

/// The most bytes of all names of an identity: an entry of a B-tree holds 2,704, the owner and headers included.
const MAX_IDENTITY_BYTES: usize = 2_500;

/// The misfire_grace of an action with misfire skip that sets none.
const GRACE_OF_SKIP: Interval = Interval::seconds(DEFAULT_GRACE.num_seconds());

/// The values of all columns of [`Column::DEFINITION`].
#[derive(Clone, Debug, PartialEq)]
pub struct Definition<J> {
    values: Vec<Value<J>>,
}

impl<J: Json> Definition<J> {
    /// The definition of an action that is created now: what is given, checked and in canonical form, and defaults.
    pub fn new(
        changes: &Changes<J>,
        now: DateTime<Utc>,
        environment: &Environment<'_>,
    ) -> Result<Definition<J>, Invalid> {
        let value = |column: Column| match changes.given(column) {
            Some(value) => checked(column, value, environment),
            None => default_value(column.spec().default)
                .or_else(|| computed(column, changes, environment))
                .ok_or_else(|| Invalid::missing(column.name())),
        };
        let values = Column::DEFINITION.iter().map(|column| value(*column));
        let mut definition = Definition {
            values: values.collect::<Result<_, _>>()?,
        };
        definition.fill_in_start(now, environment)?;
        definition.fill_in_grace();
        definition.check_together()?;
        Ok(definition)
    }

    /// A definition as it is stored. What was valid when it was written is not checked again.
    pub fn stored(value: impl FnMut(Column) -> Value<J>) -> Definition<J> {
        Definition {
            values: Column::DEFINITION.iter().copied().map(value).collect(),
        }
    }

    /// The value of a column; NULL for one of the state.
    pub fn get(&self, column: Column) -> &Value<J> {
        self.values.get(column as usize).unwrap_or(&Value::Null)
    }

    /// All columns with their values, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (Column, &Value<J>)> {
        Column::DEFINITION.iter().copied().zip(&self.values)
    }

    pub(super) fn set(&mut self, column: Column, value: Value<J>) {
        if let Some(place) = self.values.get_mut(column as usize) {
            *place = value;
        }
    }

    /// A schedule that is counted from its start, and has none, is counted from now. True if it is.
    pub(super) fn fill_in_start(
        &mut self,
        now: DateTime<Utc>,
        environment: &Environment<'_>,
    ) -> Result<bool, Invalid> {
        let schedule = check::schedule(Column::Schedule.name(), self.schedule(), environment)?;
        let is_counted_from_now = self.starts_at().is_none() && schedule.needs_start();
        if is_counted_from_now {
            self.set(Column::StartsAt, Value::Instant(now));
        }
        Ok(is_counted_from_now)
    }

    /// With misfire skip there is a grace.
    pub(super) fn fill_in_grace(&mut self) {
        if self.skips_misfires() && self.get(Column::MisfireGrace).is_null() {
            self.set(Column::MisfireGrace, Value::Interval(GRACE_OF_SKIP));
        }
    }

    /// Without misfire skip, the default of its grace is no longer in force.
    pub(super) fn drop_default_grace(&mut self) {
        if self.get(Column::MisfireGrace).as_interval() == Some(GRACE_OF_SKIP) {
            self.set(Column::MisfireGrace, Value::Null);
        }
    }

    /// Is the misfire policy skip?
    pub(super) fn skips_misfires(&self) -> bool {
        self.text(Column::Misfire) == Some(Misfire::Skip.as_str())
    }

    /// Refuses values that are right by themselves but not together.
    pub(super) fn check_together(&self) -> Result<(), Invalid> {
        let identity = Column::DEFINITION
            .iter()
            .filter(|column| column.is_identity());
        let bytes: usize = identity
            .map(|column| self.text(*column).map_or(0, str::len))
            .sum();
        if bytes > MAX_IDENTITY_BYTES {
            let problem = format!(
                "name, namespace, tenant and subject have {bytes} bytes together, \
                 and at most {MAX_IDENTITY_BYTES} are allowed"
            );
            return Err(
                Invalid::argument("name", self.name(), &problem).with_hint("Choose shorter names.")
            );
        }
        if self.get(Column::DedupKey).is_null()
            && let Some(window) = self.get(Column::DedupWindow).as_interval()
        {
            return Err(window_without_key(&window.to_string()));
        }
        if let Some(endpoint) = self.text(Column::Endpoint) {
            self.check_endpoint(endpoint)?;
        }
        match (self.starts_at(), self.ends_at()) {
            (Some(start), Some(end)) if end < start => {
                let problem = format!(
                    "must not lie before starts_at, which is {}",
                    instant_text(start)
                );
                Err(Invalid::argument("ends_at", &instant_text(end), &problem)
                    .with_hint("Leave it out for no end."))
            }
            _ => Ok(()),
        }
    }
}

/// An endpoint is for webhooks, and an owner's own.
impl<J: Json> Definition<J> {
    fn check_endpoint(&self, endpoint: &str) -> Result<(), Invalid> {
        let name = Column::Endpoint.name();
        webhook::check_name(name, endpoint)?;
        if self.text(Column::Provider) == Some(webhook::PROVIDER) {
            return Ok(());
        }
        let problem = format!("means nothing unless provider is \"{}\"", webhook::PROVIDER);
        Err(Invalid::argument(name, endpoint, &problem)
            .with_hint("recur.create_webhook makes such actions."))
    }
}

/// Typed access.
impl<J: Json> Definition<J> {
    fn text(&self, column: Column) -> Option<&str> {
        self.get(column).as_text()
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.text(Column::Name).unwrap_or_default()
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        self.text(Column::Namespace).unwrap_or_default()
    }

    /// The tenant.
    pub fn tenant(&self) -> &str {
        self.text(Column::Tenant).unwrap_or_default()
    }

    /// The subject, if there is one.
    pub fn subject(&self) -> Option<&str> {
        self.text(Column::Subject)
    }

    /// The schedule in canonical form.
    pub fn schedule(&self) -> &str {
        self.text(Column::Schedule).unwrap_or_default()
    }

    /// The name of the time zone.
    pub fn timezone(&self) -> &str {
        self.text(Column::Timezone).unwrap_or_default()
    }

    /// The instant before which nothing fires.
    pub fn starts_at(&self) -> Option<DateTime<Utc>> {
        self.get(Column::StartsAt).as_instant()
    }

    /// The instant after which nothing fires.
    pub fn ends_at(&self) -> Option<DateTime<Utc>> {
        self.get(Column::EndsAt).as_instant()
    }

    /// The number of runs after which the action ends.
    pub fn max_runs(&self) -> Option<i64> {
        self.get(Column::MaxRuns).as_int()
    }

    /// Which runs that number counts.
    pub fn count_runs(&self) -> CountRuns {
        match self.text(Column::CountRuns) {
            Some(name) if name == CountRuns::Completed.as_str() => CountRuns::Completed,
            _ => CountRuns::Dispatched,
        }
    }

    /// The number of completed runs after which the action ends; None where dispatches are counted.
    pub fn max_completed(&self) -> Option<i64> {
        self.max_runs()
            .filter(|_| self.count_runs() == CountRuns::Completed)
    }

    /// How far ahead dispatches are created.
    pub fn horizon(&self) -> Option<Interval> {
        self.get(Column::Horizon).as_interval()
    }

    /// How many dispatches are created ahead.
    pub fn horizon_count(&self) -> Option<i64> {
        self.get(Column::HorizonCount).as_int()
    }

    /// Are dispatches created ahead?
    pub fn has_horizon(&self) -> bool {
        self.horizon().is_some() || self.horizon_count().is_some()
    }
}

/// A window that no key goes with, of an action or of one dispatch.
pub fn window_without_key(window: &str) -> Invalid {
    let problem = "means nothing without a dedup_key";
    Invalid::argument(Column::DedupWindow.name(), window, problem)
        .with_hint("Give dedup_key as well, or leave dedup_window out.")
}

/// A default that stands in the table; None for one that is computed or missing.
pub(super) fn default_value<J: Json>(default: DefaultValue) -> Option<Value<J>> {
    match default {
        DefaultValue::Required | DefaultValue::Computed => None,
        DefaultValue::Null => Some(Value::Null),
        DefaultValue::Text(text) => Some(text.into()),
        DefaultValue::Int(number) => Some(Value::Int(number)),
        DefaultValue::Bool(truth) => Some(Value::Bool(truth)),
        DefaultValue::Interval(interval) => Some(Value::Interval(interval)),
        DefaultValue::Json(text) => Some(Value::Json(J::from_text(text))),
    }
}

fn computed<J: Json>(
    column: Column,
    changes: &Changes<J>,
    environment: &Environment<'_>,
) -> Option<Value<J>> {
    match column {
        Column::Timezone => Some(environment.default_timezone.name().into()),
        Column::Overlap => Some(match changes.given(Column::Context) {
            Some(_) => OVERLAP_WITH_CONTEXT.into(),
            None => OVERLAP_WITHOUT_CONTEXT.into(),
        }),
        _ => None,
    }
}
