//! The columns of an action that can be set: their names, kinds and defaults. Everything else derives from this table.

use super::interval::Interval;
use crate::policy::{CountRuns, Misfire, OnDuplicate, Overlap};

/// What to do with a local time that does not exist: the names of [`recurrence::OnGap`].
pub const ON_DST_GAP: &[&str] = &["roll_forward", "skip"];
/// What to do with a local time that exists twice: the names of [`recurrence::OnFold`].
pub const ON_DST_FOLD: &[&str] = &["first", "second", "both"];
/// What to do with occurrences that were missed.
pub const MISFIRE: &[&str] = Misfire::NAMES;
/// Which runs max_runs counts.
pub const COUNT_RUNS: &[&str] = CountRuns::NAMES;
/// What to do while an earlier dispatch is unfinished.
pub const OVERLAP: &[&str] = Overlap::NAMES;
/// What to do while a dispatch with the same key is pending.
pub const ON_DUPLICATE: &[&str] = OnDuplicate::NAMES;
/// The default of overlap for an action with a context: its runs build on each other.
pub const OVERLAP_WITH_CONTEXT: &str = Overlap::Skip.as_str();
/// The default of overlap for an action without a context.
pub const OVERLAP_WITHOUT_CONTEXT: &str = Overlap::Allow.as_str();
/// Which finished dispatches are kept.
pub const KEEP_HISTORY: &[&str] = &["all", "failures", "none"];

/// The columns that are shown and can't be set.
pub const MAINTAINED: &[&str] = &[
    "id",
    "owner",
    "duplicate",
    "journey",
    "journey_version",
    "start_state",
    "context_version",
    "ended_reason",
    "next_run_at",
    "last_run_at",
    "run_count",
    "completed_count",
    "failed_count",
    "interactive_count",
    "failed_in_a_row",
    "failing_since",
    "last_run_error",
    "last_run_error_at",
    "error_count",
    "last_error",
    "last_error_at",
    "last_notified_at",
    "created_at",
    "updated_at",
];

/// Which values a column takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text of 1 to 255 characters that is not blank.
    Name,
    /// A text of at most 10,000 characters.
    Text,
    /// A NOTIFY channel: 1 to 63 bytes.
    Channel,
    /// A schedule in any notation; stored in canonical form.
    Schedule,
    /// An IANA time zone; stored in its own spelling.
    Timezone,
    /// A point in time.
    Instant,
    /// A whole number that is not below the least.
    Count {
        /// The least.
        min: i64,
    },
    /// A whole number of 32 bits.
    Int,
    /// True or false.
    Bool,
    /// A time to wait.
    Interval {
        /// Is no time at all allowed?
        may_be_zero: bool,
    },
    /// A JSON object.
    JsonObject,
    /// A flat JSON object of strings.
    Labels,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// The pause before a retry: a JSON object of base, factor and cap.
    Backoff,
    /// Which events of dispatches are recorded; stored in canonical form.
    Events,
}

impl Kind {
    /// The SQL type of the column.
    pub fn sql_type(self) -> &'static str {
        match self {
            Kind::Name
            | Kind::Text
            | Kind::Channel
            | Kind::Schedule
            | Kind::Timezone
            | Kind::Choice(_)
            | Kind::Events => "text",
            Kind::Instant => "timestamptz",
            Kind::Count { .. } | Kind::Int => "int",
            Kind::Bool => "boolean",
            Kind::Interval { .. } => "interval",
            Kind::JsonObject | Kind::Labels | Kind::Backoff => "jsonb",
        }
    }
}

/// The value of a column that is left out, or given as NULL, when an action is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// There is none: a value must be given.
    Required,
    /// NULL: only these columns may be NULL.
    Null,
    /// It depends on the moment, a setting or another column; [`Definition::new`](super::Definition::new) knows how.
    Computed,
    /// A text.
    Text(&'static str),
    /// A number.
    Int(i64),
    /// True or false.
    Bool(bool),
    /// An interval.
    Interval(Interval),
    /// A JSON text.
    Json(&'static str),
}

/// A column: its name, which values it takes, and its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The name in SQL.
    pub name: &'static str,
    /// Which values it takes.
    pub kind: Kind,
    /// What a column has that is left out.
    pub default: DefaultValue,
}

impl Spec {
    /// May the column be NULL?
    pub fn is_nullable(self) -> bool {
        self.default == DefaultValue::Null
    }
}

macro_rules! columns {
    ($($(#[$doc:meta])* $column:ident: $name:literal, $kind:expr, $default:expr;)*) => {
        /// A column of an action that can be set.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Column {
            $($(#[$doc])* $column,)*
        }

        impl Column {
            /// All columns, in the order of the table.
            pub const ALL: &'static [Column] = &[$(Column::$column,)*];

            /// The column's entry in the table.
            pub const fn spec(self) -> Spec {
                match self {
                    $(Column::$column => Spec { name: $name, kind: $kind, default: $default },)*
                }
            }
        }
    };
}

const AT_LEAST_1: Kind = Kind::Count { min: 1 };
const SOME_TIME: Kind = Kind::Interval { may_be_zero: false };
const ANY_TIME: Kind = Kind::Interval { may_be_zero: true };

columns! {
    /// With namespace, tenant and subject, the action's identity.
    Name: "name", Kind::Name, DefaultValue::Required;
    /// A part of the application.
    Namespace: "namespace", Kind::Name, DefaultValue::Text("default");
    /// A customer of the application.
    Tenant: "tenant", Kind::Name, DefaultValue::Text("default");
    /// What the action is about, such as an invoice.
    Subject: "subject", Kind::Name, DefaultValue::Null;
    /// For people.
    Description: "description", Kind::Text, DefaultValue::Null;
    /// Strings to find actions by.
    Labels: "labels", Kind::Labels, DefaultValue::Json("{}");
    /// When the action recurs.
    Schedule: "schedule", Kind::Schedule, DefaultValue::Required;
    /// The time zone that the schedule is read in; the default is a setting.
    Timezone: "timezone", Kind::Timezone, DefaultValue::Computed;
    /// Nothing fires before it. A schedule that is counted from it has one, by default the moment of creation.
    StartsAt: "starts_at", Kind::Instant, DefaultValue::Null;
    /// Nothing that is scheduled later fires.
    EndsAt: "ends_at", Kind::Instant, DefaultValue::Null;
    /// The action ends after this number of runs.
    MaxRuns: "max_runs", AT_LEAST_1, DefaultValue::Null;
    /// Which runs max_runs counts.
    CountRuns: "count_runs", Kind::Choice(COUNT_RUNS), DefaultValue::Text(CountRuns::Dispatched.as_str());
    /// A local time that does not exist.
    OnDstGap: "on_dst_gap", Kind::Choice(ON_DST_GAP), DefaultValue::Text("roll_forward");
    /// A local time that exists twice.
    OnDstFold: "on_dst_fold", Kind::Choice(ON_DST_FOLD), DefaultValue::Text("first");
    /// Consumers choose their dispatches by it.
    Provider: "provider", Kind::Name, DefaultValue::Required;
    /// What is to be done.
    ActionType: "action_type", Kind::Name, DefaultValue::Required;
    /// The arguments, copied into each dispatch.
    Payload: "payload", Kind::JsonObject, DefaultValue::Json("{}");
    /// More strings for the consumer, copied into each dispatch.
    Metadata: "metadata", Kind::Labels, DefaultValue::Json("{}");
    /// A key for each dispatch, with placeholders.
    DedupKey: "dedup_key", Kind::Name, DefaultValue::Null;
    /// How long a pending dispatch stands for others with its key; the default is a setting.
    DedupWindow: "dedup_window", ANY_TIME, DefaultValue::Null;
    /// While a dispatch with the same key is pending.
    OnDuplicate: "on_duplicate", Kind::Choice(ON_DUPLICATE), DefaultValue::Text(OnDuplicate::Merge.as_str());
    /// Occurrences that were missed.
    Misfire: "misfire", Kind::Choice(MISFIRE), DefaultValue::Text(Misfire::Once.as_str());
    /// An occurrence older than this is not made up for. With misfire skip there is one, by default a minute.
    MisfireGrace: "misfire_grace", ANY_TIME, DefaultValue::Null;
    /// How many missed occurrences of one outage are made up for.
    CatchupLimit: "catchup_limit", AT_LEAST_1, DefaultValue::Int(100);
    /// While an earlier dispatch is unfinished; the default depends on the context.
    Overlap: "overlap", Kind::Choice(OVERLAP), DefaultValue::Computed;
    /// Dispatches become available up to this much later.
    Jitter: "jitter", ANY_TIME, DefaultValue::Interval(Interval::ZERO);
    /// Dispatches are created this far ahead.
    Horizon: "horizon", SOME_TIME, DefaultValue::Null;
    /// At most this number of dispatches is created ahead.
    HorizonCount: "horizon_count", AT_LEAST_1, DefaultValue::Null;
    /// How often a dispatch may be claimed before it has failed.
    MaxAttempts: "max_attempts", AT_LEAST_1, DefaultValue::Int(3);
    /// The pause before a retry.
    RetryBackoff: "retry_backoff", Kind::Backoff,
        DefaultValue::Json(r#"{"base": "30 seconds", "factor": 2, "cap": "1 hour"}"#);
    /// How long a consumer may work on a dispatch before it must report or extend.
    Lease: "lease", SOME_TIME, DefaultValue::Interval(Interval::seconds(300));
    /// Dispatches of a higher priority are claimed first.
    Priority: "priority", Kind::Int, DefaultValue::Int(0);
    /// At most one dispatch of a group runs at a time.
    LockGroup: "lock_group", Kind::Name, DefaultValue::Null;
    /// Where the action's dispatches are announced.
    NotifyChannel: "notify_channel", Kind::Channel, DefaultValue::Null;
    /// The only agent that may take a dispatch, but for the fallback.
    PrimaryAgent: "primary_agent", Kind::Name, DefaultValue::Null;
    /// Who takes a dispatch that the primary agent has not taken, or has failed.
    FallbackAgent: "fallback_agent", Kind::Name, DefaultValue::Null;
    /// How long the fallback waits for the primary agent.
    FallbackAfter: "fallback_after", ANY_TIME, DefaultValue::Interval(Interval::seconds(300));
    /// Who is notified of problems.
    Contact: "contact", Kind::Name, DefaultValue::Null;
    /// Suppresses automated notifications.
    Mute: "mute", Kind::Bool, DefaultValue::Bool(false);
    /// At most one automated notification in this time.
    MuteInterval: "mute_interval", SOME_TIME, DefaultValue::Null;
    /// The contact is notified after this number of failures in a row; the default is a setting.
    ErrorThreshold: "error_threshold", AT_LEAST_1, DefaultValue::Null;
    /// Which events of dispatches are recorded; the default is a setting.
    RecordEvents: "record_events", Kind::Events, DefaultValue::Null;
    /// A dispatch that has not been started by then raises an alarm.
    LateAfter: "late_after", SOME_TIME, DefaultValue::Null;
    /// An attempt that is still running after this time raises an alarm.
    MaxRuntime: "max_runtime", SOME_TIME, DefaultValue::Null;
    /// An action that has completed no dispatch for this time raises an alarm.
    MaxSilence: "max_silence", SOME_TIME, DefaultValue::Null;
    /// Which finished dispatches are kept.
    KeepHistory: "keep_history", Kind::Choice(KEEP_HISTORY), DefaultValue::Text("all");
    /// Where webhooks of the action are delivered, instead of the endpoints whose patterns match.
    Endpoint: "endpoint", Kind::Name, DefaultValue::Null;
    /// What the action carries from one run to the next.
    Context: "context", Kind::JsonObject, DefaultValue::Null;
    /// Does the action fire?
    Enabled: "enabled", Kind::Bool, DefaultValue::Bool(true);
    /// Why the action is paused.
    PausedReason: "paused_reason", Kind::Text, DefaultValue::Null;
}

impl Column {
    /// The columns of a definition: all but the state, which comes last in the table.
    pub const DEFINITION: &'static [Column] = Column::ALL.split_at(Column::Context as usize).0;

    /// The column of that name.
    pub fn named(name: &str) -> Option<Column> {
        Column::ALL
            .iter()
            .copied()
            .find(|column| column.name() == name)
    }

    /// The name in SQL.
    pub const fn name(self) -> &'static str {
        self.spec().name
    }

    /// Is the column part of the state, and not of the definition?
    pub fn is_state(self) -> bool {
        matches!(
            self,
            Column::Context | Column::Enabled | Column::PausedReason
        )
    }

    /// Is the column part of the identity?
    pub fn is_identity(self) -> bool {
        matches!(
            self,
            Column::Name | Column::Namespace | Column::Tenant | Column::Subject
        )
    }

    /// Does a change of the column move the next run?
    pub fn reschedules(self) -> bool {
        matches!(
            self,
            Column::Schedule
                | Column::Timezone
                | Column::StartsAt
                | Column::EndsAt
                | Column::MaxRuns
                | Column::CountRuns
                | Column::OnDstGap
                | Column::OnDstFold
        )
    }

    /// Does an upsert that leaves the column out keep the value? The state is an operator's. A computed default, and
    /// the moment from which a schedule is counted, would change with each upsert.
    pub fn is_kept_by_upsert(self) -> bool {
        self.is_state() || self == Column::StartsAt || self.spec().default == DefaultValue::Computed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recurrence::{OnFold, OnGap};
    use std::collections::HashSet;

    #[test]
    fn every_column_has_its_place_and_a_name_of_its_own() {
        for (position, column) in Column::ALL.iter().enumerate() {
            assert_eq!(*column as usize, position);
            assert_eq!(Column::named(column.name()), Some(*column));
            assert!(!MAINTAINED.contains(&column.name()), "{}", column.name());
        }
        let names: HashSet<&str> = Column::ALL.iter().map(|column| column.name()).collect();
        assert_eq!(names.len(), 50);
        assert_eq!(Column::named("Name"), None);
    }

    #[test]
    fn the_state_comes_last() {
        let (state, definition): (Vec<Column>, Vec<Column>) =
            Column::ALL.iter().partition(|column| column.is_state());
        assert_eq!(definition, Column::DEFINITION);
        assert_eq!(
            state,
            [Column::Context, Column::Enabled, Column::PausedReason]
        );
    }

    #[test]
    fn choices_are_those_of_the_engine() {
        for name in ON_DST_GAP {
            assert_eq!(name.parse::<OnGap>().unwrap().to_string(), *name);
        }
        for name in ON_DST_FOLD {
            assert_eq!(name.parse::<OnFold>().unwrap().to_string(), *name);
        }
        let default = |column: Column| match column.spec().default {
            DefaultValue::Text(text) => text.to_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(default(Column::OnDstGap), OnGap::default().to_string());
        assert_eq!(default(Column::OnDstFold), OnFold::default().to_string());
    }

    #[test]
    fn what_an_upsert_keeps() {
        let kept: Vec<&str> = Column::ALL
            .iter()
            .filter(|column| column.is_kept_by_upsert())
            .map(|column| column.name())
            .collect();
        assert_eq!(
            kept,
            [
                "timezone",
                "starts_at",
                "overlap",
                "context",
                "enabled",
                "paused_reason"
            ]
        );
    }

    #[test]
    fn what_may_be_null() {
        let nullable: Vec<&str> = Column::ALL
            .iter()
            .filter(|column| column.spec().is_nullable())
            .map(|column| column.name())
            .collect();
        assert_eq!(
            nullable.join(" "),
            "subject description starts_at ends_at max_runs dedup_key dedup_window misfire_grace horizon \
             horizon_count lock_group notify_channel primary_agent fallback_agent contact mute_interval \
             error_threshold record_events late_after max_runtime max_silence endpoint context paused_reason"
        );
    }
}
