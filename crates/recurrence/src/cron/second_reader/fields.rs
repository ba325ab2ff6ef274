//! The fields of an expression as both readers have them, in one form.

use croner::{CronComponent, CronPattern};

use super::Disagreement;
use crate::cron::{CronSpec, FieldKind};

/// croner's flags, which it keeps private: a value as such, the n-th weekday of a month, the last
/// one, and the weekday (Monday to Friday) nearest to a day.
const PLAIN: u8 = 1;
const NTH: [u8; 5] = [1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5];
const LAST: u8 = 1 << 6;
const NEAREST: u8 = 1 << 7;

/// The years that both readers can name: this crate's begin in 1970, croner's end in 5000.
pub(super) const COMMON_YEARS: std::ops::RangeInclusive<u16> =
    1970..=croner::YEAR_UPPER_LIMIT as u16;

/// Everything that a reader understands of an expression, apart from its years.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fields([Part; 18]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    name: &'static str,
    value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// Bit `n` is the number `n`.
    Numbers(u64),
    Flag(bool),
}

/// The parts of an expression, in one order for both readers.
struct Reading {
    seconds: u64,
    minutes: u64,
    hours: u64,
    months: u64,
    month_days: u64,
    nearest_weekdays: u64,
    last_day: bool,
    last_weekday: bool,
    weekdays: u64,
    nth_weekdays: [u64; 5],
    last_weekdays: u64,
    any_day_of_month: bool,
    any_day_of_week: bool,
    both_days: bool,
}

impl Fields {
    pub fn of_spec(spec: &CronSpec) -> Fields {
        let sets = &spec.sets;
        let days = &sets.days;
        Fields::new(Reading {
            seconds: sets.seconds,
            minutes: sets.minutes,
            hours: sets.hours.into(),
            months: u64::from(sets.months) << 1,
            month_days: u64::from(days.month_days) << 1,
            nearest_weekdays: u64::from(days.nearest_weekdays) << 1,
            last_day: days.last_day,
            last_weekday: days.last_weekday,
            weekdays: days.weekdays.into(),
            nth_weekdays: days.nth_weekdays.map(u64::from),
            last_weekdays: days.last_weekdays.into(),
            any_day_of_month: spec.field(FieldKind::DayOfMonth).is_any(),
            any_day_of_week: spec.field(FieldKind::DayOfWeek).is_any(),
            both_days: spec.requires_both_days(),
        })
    }

    pub fn of_croner(pattern: &CronPattern) -> Fields {
        let has_last = pattern.days.is_feature_enabled(LAST);
        let has_weekday = pattern.days.is_feature_enabled(NEAREST);
        let restricts_both = !pattern.is_dom_wildcard() && !pattern.is_dow_wildcard();
        Fields::new(Reading {
            seconds: bits(&pattern.seconds, PLAIN),
            minutes: bits(&pattern.minutes, PLAIN),
            hours: bits(&pattern.hours, PLAIN),
            months: bits(&pattern.months, PLAIN),
            month_days: bits(&pattern.days, PLAIN),
            nearest_weekdays: bits(&pattern.days, NEAREST),
            // Both flags together are croner's LW.
            last_day: has_last && !has_weekday,
            last_weekday: has_last && has_weekday,
            weekdays: bits(&pattern.days_of_week, PLAIN),
            nth_weekdays: NTH.map(|nth| bits(&pattern.days_of_week, nth)),
            last_weekdays: bits(&pattern.days_of_week, LAST),
            any_day_of_month: pattern.is_dom_wildcard(),
            any_day_of_week: pattern.is_dow_wildcard(),
            // `+` beside a `*` changes nothing.
            both_days: pattern.matches_dom_and_dow() && restricts_both,
        })
    }

    fn new(reading: Reading) -> Fields {
        let numbers = |name, bits| Part {
            name,
            value: Value::Numbers(bits),
        };
        let flag = |name, is_set| Part {
            name,
            value: Value::Flag(is_set),
        };
        let [first, second, third, fourth, fifth] = reading.nth_weekdays;
        Fields([
            numbers("second", reading.seconds),
            numbers("minute", reading.minutes),
            numbers("hour", reading.hours),
            numbers("month", reading.months),
            numbers("day of month", reading.month_days),
            numbers("day of month with W", reading.nearest_weekdays),
            flag("L in day of month", reading.last_day),
            flag("LW in day of month", reading.last_weekday),
            numbers("day of week", reading.weekdays),
            numbers("day of week with #1", first),
            numbers("day of week with #2", second),
            numbers("day of week with #3", third),
            numbers("day of week with #4", fourth),
            numbers("day of week with #5", fifth),
            numbers("day of week with #L", reading.last_weekdays),
            flag("* in day of month", reading.any_day_of_month),
            flag("* in day of week", reading.any_day_of_week),
            flag("+ in day of week", reading.both_days),
        ])
    }

    pub fn compare(&self, croners: &Fields) -> Result<(), Disagreement> {
        let pairs = self.0.iter().zip(&croners.0);
        let mut differing = pairs.filter(|(ours, theirs)| ours != theirs);
        match differing.next() {
            None => Ok(()),
            Some((ours, theirs)) => Err(Disagreement {
                subject: ours.name,
                ours: ours.value.to_text(),
                croners: theirs.value.to_text(),
            }),
        }
    }
}

impl Value {
    fn to_text(self) -> String {
        match self {
            Value::Numbers(bits) => list((0..64).filter(|number| bits & 1 << number != 0)),
            Value::Flag(true) => "set".to_owned(),
            Value::Flag(false) => "not set".to_owned(),
        }
    }
}

fn list(numbers: impl Iterator<Item = u16>) -> String {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    match numbers.is_empty() {
        true => "empty".to_owned(),
        false => numbers.join(","),
    }
}

/// The values of a field that have one of croner's flags.
fn bits(component: &CronComponent, flag: u8) -> u64 {
    component
        .get_set_values(flag)
        .into_iter()
        .fold(0, |bits, value| bits | 1 << value)
}

/// Compares the year fields over the years that both readers can name.
pub(super) fn compare_years(spec: &CronSpec, pattern: &CronPattern) -> Result<(), Disagreement> {
    // croner has 5,000 years, one byte each: going through them takes longer than all the rest.
    let years = &pattern.years;
    if spec.field(FieldKind::Year).is_any() && years.from_wildcard && years.step == 1 {
        return Ok(());
    }
    let ours = || COMMON_YEARS.filter(|year| spec.sets.has_year(i32::from(*year)));
    let named = years.values();
    let theirs = || {
        let named = named.iter().copied();
        named.filter(|year| COMMON_YEARS.contains(year))
    };
    match ours().eq(theirs()) {
        true => Ok(()),
        false => Err(Disagreement {
            subject: "year",
            ours: list(ours()),
            croners: list(theirs()),
        }),
    }
}
