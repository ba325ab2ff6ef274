//! The settings, `recur.*`. All of them take effect on reload.

use super::shared;
use pgrx::prelude::*;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, pg_sys};
use recur_core::action::Interval;
use recur_core::notify::Detail;
use recurrence::Zone;
use std::ffi::{CStr, CString, c_char, c_void};
use std::time::Duration;

static ENABLED: GucSetting<bool> = GucSetting::<bool>::new(true);
static DATABASES: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"*"));
static CHECK_INTERVAL: GucSetting<i32> = GucSetting::<i32>::new(5_000);
static BATCH_SIZE: GucSetting<i32> = GucSetting::<i32>::new(1_000);
static LOOKAHEAD: GucSetting<i32> = GucSetting::<i32>::new(5);
static DISPATCHERS: GucSetting<i32> = GucSetting::<i32>::new(1);
static RETENTION: GucSetting<i32> = GucSetting::<i32>::new(7 * 24 * 60);
static ERROR_THRESHOLD: GucSetting<i32> = GucSetting::<i32>::new(3);
static PAUSE_AFTER_ERRORS: GucSetting<i32> = GucSetting::<i32>::new(10);
static RECORD_DISPATCHES: GucSetting<bool> = GucSetting::<bool>::new(false);
static DEFAULT_TIMEZONE: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(c"UTC"));
static MIN_INTERVAL: GucSetting<i32> = GucSetting::<i32>::new(1_000);
static MAX_ACTIONS_PER_TENANT: GucSetting<i32> = GucSetting::<i32>::new(0);
static MAX_AHEAD_PER_OWNER: GucSetting<i32> = GucSetting::<i32>::new(100_000);
static MAX_PAYLOAD: GucSetting<i32> = GucSetting::<i32>::new(1024);
static NOTIFY_CHANNEL: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(c"recur"));
static NOTIFY_DETAIL: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(c"routing"));
static NOTIFY_QUEUE_LIMIT: GucSetting<i32> = GucSetting::<i32>::new(50);
static NOTIFY_EACH_MAX: GucSetting<i32> = GucSetting::<i32>::new(100);

pub fn define() {
    define_workers();
    define_records();
    define_limits();
    define_texts();
}

/// What the workers do, and when.
fn define_workers() {
    GucRegistry::define_bool_guc(
        c"recur.enabled",
        c"Lets the background workers dispatch what is due.",
        c"Switched off, nothing fires; recur.tick() still works. Definitions stay as they are.",
        &ENABLED,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_string_guc(
        c"recur.databases",
        c"The databases that get a dispatcher: names separated by commas, or * for every one that has the extension.",
        c"",
        &DATABASES,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"recur.check_interval",
        c"How long a worker sleeps at most when nothing is due.",
        c"A safety net: a worker wakes at the next due instant, and every change of that instant wakes the worker.",
        &CHECK_INTERVAL,
        100,
        3_600_000,
        GucContext::Sighup,
        GucFlags::UNIT_MS,
    );
    GucRegistry::define_int_guc(
        c"recur.batch_size",
        c"How many due actions a dispatcher takes in one transaction.",
        c"",
        &BATCH_SIZE,
        1,
        100_000,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"recur.lookahead",
        c"How far ahead dispatches are staged when many actions are due at the same instant; 0 switches staging off.",
        c"Few due actions are staged at most a tenth of a second ahead. Staged dispatches can be claimed from their \
            instant on. Editing or pausing an action withdraws them.",
        &LOOKAHEAD,
        0,
        60,
        GucContext::Sighup,
        GucFlags::UNIT_S,
    );
    GucRegistry::define_int_guc(
        c"recur.dispatchers",
        c"How many dispatchers each database has.",
        c"One keeps up with thousands of dispatches a second; more share the work of larger backlogs.",
        &DISPATCHERS,
        1,
        shared::MAX_DISPATCHERS,
        GucContext::Sighup,
        GucFlags::default(),
    );
}

/// What is kept, and when contacts are notified.
fn define_records() {
    GucRegistry::define_int_guc(
        c"recur.retention",
        c"How long finished dispatches and events are kept.",
        c"Whole partitions are removed, up to a seventh of this time later. Pending and running dispatches stay.",
        &RETENTION,
        1,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::UNIT_MIN,
    );
    GucRegistry::define_int_guc(
        c"recur.error_threshold",
        c"The number of failures in a row after which the contact of an action is notified.",
        c"",
        &ERROR_THRESHOLD,
        1,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"recur.pause_after_errors",
        c"The number of failed dispatch attempts in a row after which an action is paused; 0 means never.",
        c"",
        &PAUSE_AFTER_ERRORS,
        0,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"recur.record_dispatches",
        c"Records an event occurrence.dispatched for every dispatch.",
        c"Off by default: the dispatch itself shows that it was dispatched.",
        &RECORD_DISPATCHES,
        GucContext::Sighup,
        GucFlags::default(),
    );
}

/// Limits.
fn define_limits() {
    GucRegistry::define_int_guc(
        c"recur.min_interval",
        c"The shortest time that a schedule may have between two occurrences.",
        c"Checked when an action is created or rescheduled, by its schedule alone.",
        &MIN_INTERVAL,
        1_000,
        i32::MAX,
        GucContext::Suset,
        GucFlags::UNIT_MS,
    );
    GucRegistry::define_int_guc(
        c"recur.max_actions_per_tenant",
        c"How many actions a tenant may have; 0 means any number.",
        c"",
        &MAX_ACTIONS_PER_TENANT,
        0,
        i32::MAX,
        GucContext::Suset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"recur.max_ahead_per_owner",
        c"How many dispatches the actions of an owner may have ahead of their time, because of a horizon.",
        c"Shared equally by the owner's actions that have a horizon; each has at most 1,000.",
        &MAX_AHEAD_PER_OWNER,
        0,
        i32::MAX,
        GucContext::Suset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"recur.max_payload",
        c"The largest JSON value that an action or a dispatch may have.",
        c"",
        &MAX_PAYLOAD,
        1,
        256 * 1024,
        GucContext::Suset,
        GucFlags::UNIT_KB,
    );
    GucRegistry::define_int_guc(
        c"recur.notify_queue_limit",
        c"How full the server's NOTIFY queue may be, in percent, before dispatching goes on without notifications.",
        c"A full queue would fail every transaction that notifies. Consumers then find dispatches when they poll.",
        &NOTIFY_QUEUE_LIMIT,
        0,
        100,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"recur.notify_each_max",
        c"Up to this number, the dispatches of a batch are announced one by one; more as a count per provider.",
        c"",
        &NOTIFY_EACH_MAX,
        0,
        10_000,
        GucContext::Sighup,
        GucFlags::default(),
    );
}

/// Texts with checks of their own.
fn define_texts() {
    // SAFETY: both hooks are guarded against panics.
    unsafe {
        GucRegistry::define_string_guc_with_hooks(
            c"recur.default_timezone",
            c"The time zone of an action that is created without one.",
            c"An IANA name such as Europe/Berlin.",
            &DEFAULT_TIMEZONE,
            GucContext::Userset,
            GucFlags::default(),
            Some(check_timezone),
            None,
            None,
        );
        GucRegistry::define_string_guc_with_hooks(
            c"recur.notify_channel",
            c"The channel on which new dispatches are announced.",
            c"",
            &NOTIFY_CHANNEL,
            GucContext::Sighup,
            GucFlags::default(),
            Some(check_channel),
            None,
            None,
        );
        GucRegistry::define_string_guc_with_hooks(
            c"recur.notify_detail",
            c"How much an announcement says: ids, routing (and the action type) or full (and namespace and tenant).",
            c"Every role that may connect to a database can listen.",
            &NOTIFY_DETAIL,
            GucContext::Sighup,
            GucFlags::default(),
            Some(check_detail),
            None,
            None,
        );
    }
}

pub fn enabled() -> bool {
    ENABLED.get()
}

/// Does `recur.databases` name this database?
pub fn serves_database(name: &str) -> bool {
    let setting = DATABASES.get();
    let setting = setting.as_deref().unwrap_or(c"*").to_string_lossy();
    setting
        .split(',')
        .map(str::trim)
        .any(|wanted| wanted == "*" || wanted == name)
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

pub fn retention() -> Interval {
    Interval::seconds(i64::from(RETENTION.get()) * 60)
}

pub fn error_threshold() -> i32 {
    ERROR_THRESHOLD.get()
}

pub fn pause_after_errors() -> i32 {
    PAUSE_AFTER_ERRORS.get()
}

pub fn record_dispatches() -> bool {
    RECORD_DISPATCHES.get()
}

pub fn default_timezone() -> String {
    text(&DEFAULT_TIMEZONE, "UTC")
}

pub fn min_interval() -> Duration {
    Duration::from_millis(MIN_INTERVAL.get().unsigned_abs().into())
}

/// In bytes.
pub fn max_payload() -> usize {
    MAX_PAYLOAD.get().unsigned_abs() as usize * 1024
}

/// 0 for no limit.
pub fn max_actions_per_tenant() -> i64 {
    MAX_ACTIONS_PER_TENANT.get().into()
}

pub fn max_ahead_per_owner() -> usize {
    MAX_AHEAD_PER_OWNER.get().unsigned_abs() as usize
}

pub fn notify_channel() -> String {
    text(&NOTIFY_CHANNEL, "recur")
}

pub fn notify_detail() -> Detail {
    text(&NOTIFY_DETAIL, "").parse().unwrap_or(Detail::Routing)
}

/// From 0 to 1.
pub fn notify_queue_limit() -> f64 {
    f64::from(NOTIFY_QUEUE_LIMIT.get()) / 100.0
}

pub fn notify_each_max() -> usize {
    NOTIFY_EACH_MAX.get().unsigned_abs() as usize
}

fn text(setting: &GucSetting<Option<CString>>, otherwise: &str) -> String {
    match setting.get() {
        Some(value) => value.to_string_lossy().into_owned(),
        None => otherwise.to_owned(),
    }
}

/// The value that a check hook was given; None if it is not UTF-8.
///
/// # Safety
/// `value` must be the first argument of a check hook, which is still running.
unsafe fn proposed<'a>(value: *mut *mut c_char) -> Option<&'a str> {
    // SAFETY: the server passes a pointer to NULL or to a text that ends with a zero byte.
    unsafe {
        if value.is_null() || (*value).is_null() {
            return None;
        }
        CStr::from_ptr(*value).to_str().ok()
    }
}

/// # Safety
/// Only the server may call it, as a check hook.
#[pg_guard]
unsafe extern "C-unwind" fn check_timezone(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the value is the hook's.
    unsafe { proposed(value) }.is_some_and(|name| Zone::parse(name).is_ok())
}

/// NOTIFY refuses empty and overlong names of channels only when it runs: in the dispatcher, which is too late.
///
/// # Safety
/// Only the server may call it, as a check hook.
#[pg_guard]
unsafe extern "C-unwind" fn check_channel(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the value is the hook's.
    unsafe { proposed(value) }
        .is_some_and(|name| !name.is_empty() && name.len() < pg_sys::NAMEDATALEN as usize)
}

/// # Safety
/// Only the server may call it, as a check hook.
#[pg_guard]
unsafe extern "C-unwind" fn check_detail(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the value is the hook's.
    unsafe { proposed(value) }.is_some_and(|name| name.parse::<Detail>().is_ok())
}
