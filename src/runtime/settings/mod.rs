//! The settings, `recur.*`: one list. All of them take effect on reload, and what a database decides for itself, by a
//! row of `recur_internal.settings`, at the commit of `recur.set_setting`.
//!
//! The doc comment is the description that users see: the first line says what the setting is, the others what else
//! there is to know.

mod checks;
mod functions;
mod kinds;
mod stored;

use super::shared;
use crate::pg::error::OrRaise;
use chrono::TimeDelta;
use kinds::{Definition, Number, SetBy, Switch, Text};
use pgrx::{GucFlags, pg_sys};
use recur_core::action::Interval;
use recur_core::event::RecordedEvents;
use recur_core::journey::InteractiveTypes;
use recur_core::notify::Detail;
use std::time::Duration;

/// How many slots for background workers `recur.max_workers` leaves to others by default: two are those of the
/// launchers of pg_recur and of logical replication, and two are for a parallel query.
pub const SLOTS_FOR_OTHERS: i32 = 4;

macro_rules! settings {
    ($(
        #[doc = $short:literal]
        $(#[doc = $long:literal])*
        $name:ident: $kind:ident = $setting:expr;
    )*) => {
        $(
            static $name: $kind = $setting.described(
                concat!($short, "\0"),
                concat!($($long,)* "\0"),
            );
        )*

        static ALL: &[&dyn Definition] = &[$(&$name),*];
    };
}

settings! {
    /// Lets the background workers dispatch what is due.
    /// Switched off, nothing fires; recur.tick() still works. Definitions stay as they are.
    ENABLED: Switch = Switch::new(c"recur.enabled", SetBy::Reload, true).off_per_database();

    /// The databases that get a dispatcher: names separated by commas, or * for every one that has the extension.
    DATABASES: Text = Text::new(c"recur.databases", SetBy::Reload, c"*", None);

    /// What the operator calls this server, to tell its physical copies apart.
    /// A database that was first used at one site holds its fire at another one, until recur.arm() starts it.
    SITE: Text = Text::new(c"recur.site", SetBy::Reload, c"", None);

    /// How long a worker sleeps at most when nothing is due.
    /// A safety net: a worker wakes at the next due instant, and every change of that instant wakes the worker.
    CHECK_INTERVAL: Number = Number::new(c"recur.check_interval", SetBy::Reload, 5_000, (100, 3_600_000))
        .unit(GucFlags::UNIT_MS).per_database();

    /// How many due actions a dispatcher takes in one transaction.
    BATCH_SIZE: Number = Number::new(c"recur.batch_size", SetBy::Reload, 1_000, (1, 100_000)).per_database();

    /// How far ahead dispatches are staged when many actions are due at the same instant; 0 switches staging off.
    /// Few due actions are staged at most a tenth of a second ahead. Staged dispatches can be claimed from their
    /// instant on. Editing or pausing an action withdraws them.
    LOOKAHEAD: Number = Number::new(c"recur.lookahead", SetBy::Reload, 5, (0, 60)).unit(GucFlags::UNIT_S)
        .per_database();

    /// How many dispatchers each database has.
    /// One keeps up with thousands of dispatches a second; more share the work of larger backlogs.
    DISPATCHERS: Number = Number::new(c"recur.dispatchers", SetBy::Reload, 1, (1, shared::MAX_DISPATCHERS));

    /// How many processes may serve databases at once; -1 leaves four of max_worker_processes to others.
    /// Where there are more databases, one process visits those that have none, as soon as something is due.
    MAX_WORKERS: Number = Number::new(c"recur.max_workers", SetBy::Reload, -1, (-1, shared::MAX_WORKERS as i32));

    /// How many processes of a database may run SQL actions and handlers at once; 0 runs none.
    /// They start when there is something to run, leave after an idle minute, and take no slot that a dispatcher needs.
    EXECUTORS: Number = Number::new(c"recur.executors", SetBy::Reload, 4, (0, shared::executors::MAX_EXECUTORS as i32))
        .at_most_per_database();

    /// How many rows of the last result of an SQL action are kept.
    RESULT_ROWS: Number = Number::new(c"recur.result_rows", SetBy::Reload, 10, (0, 1_000)).at_most_per_database();

    /// How long finished dispatches and events are kept.
    /// Whole partitions are removed, up to a seventh of this time later. Pending and running dispatches stay.
    RETENTION: Number = Number::new(c"recur.retention", SetBy::Reload, 7 * 24 * 60, (1, i32::MAX))
        .unit(GucFlags::UNIT_MIN).per_database();

    /// How long recur.begin_request knows a key, and the answer of its request.
    REQUEST_KEY_RETENTION: Number =
        Number::new(c"recur.request_key_retention", SetBy::Reload, 24 * 60, (1, 366 * 24 * 60))
        .unit(GucFlags::UNIT_MIN).per_database();

    /// When the workers start, runs without a sign of life for this long fail, as by recur.recover(); 0 means never.
    /// A claim and an extended lease are signs of life. Without it, a run ends when its lease expires.
    RECOVER_AFTER: Number = Number::new(c"recur.recover_after", SetBy::Reload, 0, (0, i32::MAX))
        .unit(GucFlags::UNIT_S).per_database();

    /// The number of failures in a row at which the contact of an action is notified.
    /// The column error_threshold of an action overrides it.
    ERROR_THRESHOLD: Number = Number::new(c"recur.error_threshold", SetBy::Reload, 3, (1, i32::MAX)).per_namespace();

    /// Who is notified of problems of an action that has no contact; empty for its owner.
    DEFAULT_CONTACT: Text = Text::new(c"recur.default_contact", SetBy::Reload, c"", None).per_namespace();

    /// A link for messages to contacts, in which {id} stands for the id of the action; empty for none.
    LINK_TEMPLATE: Text = Text::new(c"recur.link_template", SetBy::Reload, c"", None).per_namespace();

    /// Which events of dispatches are recorded.
    /// All, none, or a list of completed, failed, cancelled, retrying and triggered. The column record_events of an
    /// action overrides it.
    RECORD_EVENTS: Text =
        Text::new(c"recur.record_events", SetBy::Reload, c"failed, triggered", Some(checks::recorded_events))
            .per_database();

    /// The number of failed dispatch attempts in a row after which an action is paused; 0 means never.
    PAUSE_AFTER_ERRORS: Number = Number::new(c"recur.pause_after_errors", SetBy::Reload, 10, (0, i32::MAX))
        .per_database();

    /// Records an event occurrence.dispatched for every dispatch.
    /// Off by default: the dispatch itself shows that it was dispatched.
    RECORD_DISPATCHES: Switch = Switch::new(c"recur.record_dispatches", SetBy::Reload, false).per_namespace();

    /// How long a dispatch stands for others with its dedup_key, where neither action nor call says; 0 for no window.
    /// Without a window, enqueue and receive merge with a pending dispatch of any age, and each occurrence of an
    /// action has a dispatch of its own.
    DEDUP_WINDOW: Number = Number::new(c"recur.dedup_window", SetBy::Reload, 0, (0, i32::MAX))
        .unit(GucFlags::UNIT_S).per_namespace();

    /// The time zone of an action that is created without one.
    /// An IANA name such as Europe/Berlin.
    DEFAULT_TIMEZONE: Text =
        Text::new(c"recur.default_timezone", SetBy::AnyRole, c"UTC", Some(checks::timezone)).per_database();

    /// The shortest time that a schedule may have between two occurrences.
    /// Checked when an action is created or rescheduled, by its schedule alone.
    MIN_INTERVAL: Number = Number::new(c"recur.min_interval", SetBy::Superuser, 1_000, (1_000, i32::MAX))
        .unit(GucFlags::UNIT_MS).at_least_per_database();

    /// Demands an end of every action: max_runs, ends_at, or a schedule that ends by itself.
    /// Checked when an action is created, and when its bounds are changed.
    REQUIRE_BOUNDS: Switch = Switch::new(c"recur.require_bounds", SetBy::Superuser, false).per_namespace();

    /// Demands a context of every action.
    /// Checked when an action is created, and when its context is changed.
    REQUIRE_CONTEXT: Switch = Switch::new(c"recur.require_context", SetBy::Superuser, false).per_namespace();

    /// How many pending dispatches an owner may have before enqueue, receive and trigger are refused; 0 for any number.
    /// What a schedule dispatches is not refused. With many sessions, a few more may get in. A webhook for several
    /// endpoints waits, while what it would become and what waits for the owner's endpoints are more together.
    MAX_PENDING_PER_OWNER: Number = Number::new(c"recur.max_pending_per_owner", SetBy::Superuser, 0, (0, i32::MAX))
        .at_most_or_0_per_database();

    /// How many keys of requests a role may have before recur.begin_request is refused; 0 for any number.
    /// Each has an answer of at most 64 kB. With many sessions, a few more may get in.
    MAX_REQUEST_KEYS_PER_OWNER: Number =
        Number::new(c"recur.max_request_keys_per_owner", SetBy::Superuser, 10_000, (0, i32::MAX))
        .at_most_or_0_per_database();

    /// How many actions a tenant may have; 0 means any number.
    /// recur.set_quota gives a tenant fewer.
    MAX_ACTIONS_PER_TENANT: Number = Number::new(c"recur.max_actions_per_tenant", SetBy::Superuser, 0, (0, i32::MAX))
        .at_most_or_0_per_database();

    /// How many dispatches the actions of an owner may have ahead of their time, because of a horizon.
    /// Shared equally by the owner's actions that have a horizon; each has at most 1,000.
    MAX_AHEAD_PER_OWNER: Number = Number::new(c"recur.max_ahead_per_owner", SetBy::Superuser, 100_000, (0, i32::MAX))
        .at_most_per_database();

    /// The largest JSON value that an action or a dispatch may have.
    MAX_PAYLOAD: Number = Number::new(c"recur.max_payload", SetBy::Superuser, 1024, (1, 256 * 1024))
        .unit(GucFlags::UNIT_KB).at_most_per_database();

    /// The channel on which new dispatches are announced.
    NOTIFY_CHANNEL: Text =
        Text::new(c"recur.notify_channel", SetBy::Reload, c"recur", Some(checks::channel)).per_database();

    /// How much an announcement says: ids, routing (and the action type) or full (and namespace and tenant).
    /// Every role that may connect to a database can listen.
    NOTIFY_DETAIL: Text =
        Text::new(c"recur.notify_detail", SetBy::Reload, c"routing", Some(checks::detail)).per_database();

    /// How full the server's NOTIFY queue may be, in percent, before dispatching goes on without notifications.
    /// A full queue would fail every transaction that notifies. Consumers then find dispatches when they poll.
    NOTIFY_QUEUE_LIMIT: Number = Number::new(c"recur.notify_queue_limit", SetBy::Reload, 50, (0, 100));

    /// Up to this number, the dispatches of a batch are announced one by one; more as a count per provider.
    NOTIFY_EACH_MAX: Number = Number::new(c"recur.notify_each_max", SetBy::Reload, 100, (0, 10_000)).per_database();

    /// The types of a journey's states that wait for input, separated by commas; approval:* is a beginning.
    /// A schedule of a journey must not be able to reach such a state.
    INTERACTIVE_STATE_TYPES: Text = Text::new(
        c"recur.interactive_state_types", SetBy::Superuser, c"wait, webhook", Some(checks::state_types),
    ).per_database();
}

/// Makes all of them settings of the server.
pub fn define() {
    for setting in ALL {
        setting.define();
    }
}

/// Do the workers dispatch in this database? Needs a transaction.
pub fn enabled() -> bool {
    ENABLED.get()
}

/// Do the workers run at all?
pub fn enabled_on_server() -> bool {
    ENABLED.of_server()
}

/// Does `recur.databases` name this database?
pub fn serves_database(name: &str) -> bool {
    DATABASES
        .get()
        .split(',')
        .map(str::trim)
        .any(|wanted| wanted == "*" || wanted == name)
}

pub fn site() -> String {
    SITE.get()
}

pub fn check_interval() -> Duration {
    Duration::from_millis(CHECK_INTERVAL.get().unsigned_abs().into())
}

pub fn batch_size() -> i64 {
    BATCH_SIZE.get().into()
}

/// None where staging is switched off.
pub fn lookahead() -> Option<Duration> {
    let seconds = LOOKAHEAD.get().unsigned_abs();
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

pub fn dispatchers() -> usize {
    DISPATCHERS.get().unsigned_abs() as usize
}

/// How many processes may serve databases at once.
pub fn max_workers() -> usize {
    let limit = match MAX_WORKERS.get() {
        -1 => (max_worker_processes() - SLOTS_FOR_OTHERS).max(1),
        limit => limit,
    };
    limit.unsigned_abs() as usize
}

/// How many executors a database may have.
pub fn executors() -> usize {
    EXECUTORS.get().unsigned_abs() as usize
}

/// How many executors all databases may have together: what dispatchers and maintenance leave of their slots, and one
/// at least.
pub fn executor_slots() -> usize {
    let dispatching = shared::served_databases() * dispatchers() + 1;
    max_workers().saturating_sub(dispatching).max(1)
}

pub fn result_rows() -> usize {
    RESULT_ROWS.get().unsigned_abs() as usize
}

/// Does `recur.max_workers` say how many?
pub fn limits_workers() -> bool {
    MAX_WORKERS.get() != -1
}

/// The slots of the server for background workers.
pub fn max_worker_processes() -> i32 {
    // SAFETY: a variable that is set when the server starts.
    unsafe { pg_sys::max_worker_processes }
}

pub fn retention() -> Interval {
    Interval::seconds(i64::from(RETENTION.get()) * 60)
}

pub fn request_key_retention() -> TimeDelta {
    TimeDelta::minutes(REQUEST_KEY_RETENTION.get().into())
}

/// None where nothing is recovered when the workers start.
pub fn recover_after() -> Option<Interval> {
    let seconds = i64::from(RECOVER_AFTER.get());
    (seconds > 0).then(|| Interval::seconds(seconds))
}

pub fn error_threshold(namespace: &str) -> i32 {
    ERROR_THRESHOLD.of(Some(namespace))
}

/// Who is notified of problems of actions without a contact.
pub fn default_contact(namespace: &str) -> Option<String> {
    Some(DEFAULT_CONTACT.of(Some(namespace))).filter(|contact| !contact.is_empty())
}

pub fn link_template(namespace: &str) -> Option<String> {
    Some(LINK_TEMPLATE.of(Some(namespace))).filter(|template| !template.is_empty())
}

/// Which events of dispatches are recorded, where the dispatch does not say so.
pub fn recorded_events() -> RecordedEvents {
    RECORD_EVENTS.get().parse().unwrap_or_default()
}

pub fn pause_after_errors() -> i32 {
    PAUSE_AFTER_ERRORS.get()
}

pub fn record_dispatches(namespace: Option<&str>) -> bool {
    RECORD_DISPATCHES.of(namespace)
}

/// How long a dispatch stands for others with its key, where nothing else says; None for no such time.
pub fn dedup_window(namespace: &str) -> Option<Interval> {
    let seconds = i64::from(DEDUP_WINDOW.of(Some(namespace)));
    (seconds > 0).then(|| Interval::seconds(seconds))
}

pub fn default_timezone() -> String {
    DEFAULT_TIMEZONE.get()
}

pub fn min_interval() -> Duration {
    Duration::from_millis(MIN_INTERVAL.get().unsigned_abs().into())
}

/// In bytes.
pub fn max_payload() -> usize {
    MAX_PAYLOAD.get().unsigned_abs() as usize * 1024
}

pub fn require_bounds(namespace: &str) -> bool {
    REQUIRE_BOUNDS.of(Some(namespace))
}

pub fn require_context(namespace: &str) -> bool {
    REQUIRE_CONTEXT.of(Some(namespace))
}

/// 0 for no limit.
pub fn max_pending_per_owner() -> i64 {
    MAX_PENDING_PER_OWNER.get().into()
}

/// 0 for no limit.
pub fn max_request_keys_per_owner() -> i64 {
    MAX_REQUEST_KEYS_PER_OWNER.get().into()
}

/// 0 for no limit.
pub fn max_actions_per_tenant() -> i64 {
    MAX_ACTIONS_PER_TENANT.get().into()
}

pub fn max_ahead_per_owner() -> usize {
    MAX_AHEAD_PER_OWNER.get().unsigned_abs() as usize
}

pub fn notify_channel() -> String {
    NOTIFY_CHANNEL.get()
}

pub fn notify_detail() -> Detail {
    NOTIFY_DETAIL.get().parse().unwrap_or(Detail::Routing)
}

/// From 0 to 1.
pub fn notify_queue_limit() -> f64 {
    f64::from(NOTIFY_QUEUE_LIMIT.get()) / 100.0
}

pub fn notify_each_max() -> usize {
    NOTIFY_EACH_MAX.get().unsigned_abs() as usize
}

pub fn interactive_state_types() -> InteractiveTypes {
    // The check of the setting has accepted the list.
    InteractiveTypes::parse(&INTERACTIVE_STATE_TYPES.get()).or_raise()
}
