//! Wall clocks: zones, clock changes and policies.

use crate::input::Choices;
use chrono::{DateTime, Duration, LocalResult, NaiveDateTime, TimeZone, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use recurrence::{OnFold, OnGap, Zone};

/// Clock changes of many kinds: half hours, midnight, a whole day, two hours, odd minutes.
pub const CHANGES: [(&str, i64); 17] = [
    ("UTC", 1_709_208_000),
    ("America/New_York", 1_741_503_600),
    ("America/New_York", 1_762_063_200),
    ("Europe/London", 1_743_296_400),
    ("Europe/London", 1_761_440_400),
    ("Australia/Lord_Howe", 1_728_142_200),
    ("Australia/Lord_Howe", 1_712_415_600),
    ("America/Sao_Paulo", 1_541_300_400),
    ("America/Sao_Paulo", 1_518_919_200),
    ("Pacific/Apia", 1_325_239_200),
    ("Antarctica/Troll", 1_711_846_800),
    ("Antarctica/Troll", 1_729_990_800),
    ("America/Nuuk", 1_711_846_800),
    ("Pacific/Chatham", 1_727_532_000),
    ("Asia/Beirut", 1_729_976_400),
    ("America/Caracas", 1_462_086_000),
    ("Europe/Dublin", 1_743_296_400),
];

/// A zone with an instant near one of its clock changes, or anywhere between 1990 and 2037.
pub fn zone_and_instant(choices: &mut Choices<'_>) -> (Tz, DateTime<Utc>) {
    let (name, change) = choices.pick(&CHANGES);
    let tz: Tz = name.parse().expect("a zone");
    let seconds = match choices.below(4) {
        0 => change,
        1 => change + choices.within(-200, 200) * 60,
        2 => change + choices.within(-5_000, 5_000) * 60 + choices.within(0, 59),
        _ => choices.within(631_152_000, 2_114_380_800),
    };
    let tz = match choices.below(8) {
        7 => TZ_VARIANTS[choices.below(TZ_VARIANTS.len())],
        _ => tz,
    };
    (
        tz,
        DateTime::from_timestamp(seconds, 0).expect("within the calendar"),
    )
}

/// The engine's zone of the same name.
pub fn zone(tz: Tz) -> Zone {
    Zone::parse(tz.name()).expect("a zone of the database")
}

/// The policies for clock changes.
pub fn policies(choices: &mut Choices<'_>) -> (OnGap, OnFold) {
    let gap = choices.pick(&[OnGap::RollForward, OnGap::Skip]);
    let fold = choices.pick(&[OnFold::First, OnFold::Second, OnFold::Both]);
    (gap, fold)
}

/// What the clock shows at an instant.
pub fn shown(tz: Tz, at: DateTime<Utc>) -> NaiveDateTime {
    tz.from_utc_datetime(&at.naive_utc()).naive_local()
}

/// The instants of a wall-clock time under a policy.
pub fn resolve(tz: Tz, local: NaiveDateTime, gap: OnGap, fold: OnFold) -> Vec<DateTime<Utc>> {
    match tz.from_local_datetime(&local) {
        LocalResult::Single(at) => vec![at.to_utc()],
        LocalResult::Ambiguous(first, second) => match fold {
            OnFold::First => vec![first.to_utc()],
            OnFold::Second => vec![second.to_utc()],
            OnFold::Both => vec![first.to_utc(), second.to_utc()],
        },
        LocalResult::None if gap == OnGap::Skip => vec![],
        LocalResult::None => vec![end_of_gap(tz, local)],
    }
}

/// The first instant after the gap around a missing wall-clock time.
fn end_of_gap(tz: Tz, missing: NaiveDateTime) -> DateTime<Utc> {
    let mut local = missing;
    loop {
        // All gaps end on a whole minute, except a few before standard time.
        let step = match local.and_utc().timestamp() % 60 {
            0 => Duration::minutes(1),
            _ => Duration::seconds(1),
        };
        local += step;
        if let Some(at) = tz.from_local_datetime(&local).earliest() {
            return at.to_utc();
        }
    }
}
