//! The implementations compared, with their patterns and instants.

mod floor;

use std::str::FromStr;
use std::sync::Arc;

use chrono::{DateTime, Duration, TimeZone, Utc};
use chrono_tz::Tz;
use croner::Cron;
use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};

use floor::BareSearch;

pub const PATTERNS: [&str; 12] = [
    "* * * * *",
    "*/5 * * * *",
    "*/10 * * * * *",
    "0 * * * *",
    "30 2 * * *",
    "0 9 * * MON-FRI",
    "0 12 * * 5#2",
    "0 0 L * *",
    "0 0 1 * *",
    "0 0 1 1 *",
    "0 0 13 * +FRI",
    "0 0 29 2 *",
];
pub const ZONES: [&str; 2] = ["UTC", "America/New_York"];

/// A thousand instants over ten years, at no particular minute, hour or day.
pub fn instants() -> Vec<DateTime<Utc>> {
    let start = DateTime::from_timestamp(1_704_067_200, 0).expect("an instant");
    (0..1000)
        .map(|i| start + Duration::seconds(i * 315_361))
        .collect()
}

pub struct Implementations {
    recurrence: Recurrence,
    cron: Cron,
    tz: Tz,
    bare: BareSearch,
}

impl Implementations {
    pub fn new(pattern: &str, zone: &str) -> Implementations {
        let recurrence = Recurrence::new(
            Arc::new(Schedule::parse(pattern).expect("a schedule")),
            Zone::parse(zone).expect("a zone"),
            Bounds::default(),
            OnGap::RollForward,
            OnFold::First,
        )
        .expect("a recurrence");
        let cron = Cron::from_str(pattern).expect("a pattern");
        let tz = Tz::from_str(zone).expect("a zone");
        let implementations = Implementations {
            bare: BareSearch::new(&cron, tz),
            recurrence,
            cron,
            tz,
        };
        implementations.check();
        implementations
    }

    /// Checks that all find the same occurrence, except within the hour of a clock change.
    fn check(&self) {
        for instant in instants() {
            let seconds = |at: Option<DateTime<Utc>>| at.map_or(0, |at| at.timestamp());
            let ours = seconds(self.ours(instant));
            assert!((ours - seconds(self.croner(instant))).abs() <= 3600);
            assert!((ours - self.floor(instant).unwrap_or(0)).abs() <= 3600);
        }
    }

    pub fn ours(&self, instant: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.recurrence
            .next_after(instant)
            .map(|occurrence| occurrence.at)
    }

    pub fn croner(&self, instant: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let local = self.tz.from_utc_datetime(&instant.naive_utc());
        let next = self.cron.find_next_occurrence(&local, false);
        next.ok().map(|at| at.to_utc())
    }

    pub fn floor(&self, instant: DateTime<Utc>) -> Option<i64> {
        self.bare.next_after(instant.timestamp())
    }
}
