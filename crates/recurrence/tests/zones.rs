//! Every clock change of every zone from 2000 to 2037, under every policy.

mod common;

use std::collections::{BTreeSet, HashSet};
use std::ops::Bound;
use std::sync::Arc;

use chrono::{DateTime, Duration, NaiveDateTime, Offset, TimeZone, Timelike, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};

use common::oracle::resolve;

fn offset(tz: Tz, instant: i64) -> i32 {
    let utc = DateTime::from_timestamp(instant, 0).unwrap().naive_utc();
    tz.offset_from_utc_datetime(&utc).fix().local_minus_utc()
}

/// The clock changes of a zone: the first second with the new offset, and both offsets.
fn changes(tz: Tz) -> Vec<(i64, i32, i32)> {
    const STEP: i64 = 86_400;
    let until = common::instant("2038-01-01T00:00:00Z").timestamp();
    let mut found = Vec::new();
    let mut at = common::instant("2000-01-01T00:00:00Z").timestamp();
    while at < until {
        let (before, after) = (offset(tz, at), offset(tz, at + STEP));
        if before != after {
            let (mut low, mut high) = (at, at + STEP);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                match offset(tz, middle) == before {
                    true => low = middle,
                    false => high = middle,
                }
            }
            found.push((high, before, after));
        }
        at += STEP;
    }
    found
}

fn recurrence(
    text: &str,
    zone: Zone,
    starts_at: Option<DateTime<Utc>>,
    gap: OnGap,
    fold: OnFold,
) -> Recurrence {
    let schedule = Arc::new(Schedule::parse(text).unwrap());
    let bounds = Bounds {
        starts_at,
        ..Bounds::default()
    };
    Recurrence::new(schedule, zone, bounds, gap, fold).unwrap()
}

fn found(
    recurrence: &Recurrence,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> BTreeSet<DateTime<Utc>> {
    let forward: BTreeSet<DateTime<Utc>> = recurrence
        .occurrences_after(from)
        .map(|occurrence| occurrence.at)
        .take_while(|at| *at <= until)
        .collect();
    assert_eq!(
        recurrence.count_between(from, until, u64::MAX),
        forward.len() as u64
    );
    let last = recurrence
        .previous_or_at(until)
        .map(|occurrence| occurrence.at);
    assert_eq!(last.filter(|at| *at > from), forward.last().copied());
    forward
}

/// A change and the days around it.
struct Case {
    tz: Tz,
    zone: Zone,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
}

impl Case {
    /// Wall-clock days that reach beyond the case on both sides.
    fn days(&self, time: NaiveDateTime) -> impl Iterator<Item = NaiveDateTime> {
        (-5..=5).map(move |day| time + Duration::days(day))
    }

    fn check_fixed(&self, wanted: NaiveDateTime, gap: OnGap, fold: OnFold) {
        let text = format!(
            "{} {} {} * * *",
            wanted.second(),
            wanted.minute(),
            wanted.hour()
        );
        let expected: BTreeSet<DateTime<Utc>> = self
            .days(wanted)
            .flat_map(|local| resolve(self.tz, local, gap, fold))
            .filter(|at| *at > self.from && *at <= self.until)
            .collect();
        let cron = recurrence(&text, self.zone, None, gap, fold);
        assert_eq!(
            found(&cron, self.from, self.until),
            expected,
            "{} {text} {gap} {fold}",
            self.tz
        );

        // From inside the gap or the repeated hour, and from its edges.
        let change = self.from + (self.until - self.from) / 2;
        for seconds in [-3600, -1800, -1, 0, 1, 1800, 3599, 3600] {
            let asked = change + Duration::seconds(seconds);
            let after = (Bound::Excluded(asked), Bound::Unbounded);
            let next = cron.next_after(asked).map(|occurrence| occurrence.at);
            assert_eq!(
                next,
                expected.range(after).next().copied(),
                "{} {text} {gap} {fold} after {asked}",
                self.tz
            );
        }

        let start = resolve(
            self.tz,
            wanted - Duration::days(4),
            OnGap::RollForward,
            fold,
        )[0];
        let daily = recurrence("1d", self.zone, Some(start), gap, fold);
        assert_eq!(
            found(&daily, self.from, self.until),
            expected,
            "{} 1d {start} {gap} {fold}",
            self.tz
        );
    }

    fn check_stepping(&self, text: &str, minutes: u32) {
        let mut expected = BTreeSet::new();
        let mut at = self.from.timestamp().div_euclid(60) * 60 + 60;
        while at <= self.until.timestamp() {
            let local = at + i64::from(offset(self.tz, at));
            if local.rem_euclid(60) == 0 && local.rem_euclid(3600) / 60 % i64::from(minutes) == 0 {
                expected.insert(DateTime::from_timestamp(at, 0).unwrap());
            }
            at += 60;
        }
        for gap in [OnGap::RollForward, OnGap::Skip] {
            let cron = recurrence(text, self.zone, None, gap, OnFold::First);
            assert_eq!(
                found(&cron, self.from, self.until),
                expected,
                "{} {text}",
                self.tz
            );
        }
    }

    fn check_elapsed(&self) {
        let step = recurrence("50m", self.zone, Some(self.from), OnGap::Skip, OnFold::Both);
        let expected = (1..)
            .map(|k| self.from + Duration::minutes(50 * k))
            .take_while(|at| *at <= self.until)
            .collect();
        assert_eq!(
            found(&step, self.from, self.until),
            expected,
            "{} 50m",
            self.tz
        );
    }
}

#[test]
fn every_clock_change_of_every_zone_under_every_policy() {
    let mut seen = HashSet::new();
    let mut checked = 0;
    for tz in TZ_VARIANTS {
        let changes = changes(tz);
        // Many names have the same clock changes.
        if !seen.insert(changes.clone()) {
            continue;
        }
        let zone = Zone::parse(tz.name()).unwrap();
        for (at, before, after) in changes {
            let instant = DateTime::from_timestamp(at, 0).unwrap();
            let case = Case {
                tz,
                zone,
                from: instant - Duration::hours(27),
                until: instant + Duration::hours(27),
            };
            let local = |offset: i32| instant.naive_utc() + Duration::seconds(offset.into());
            let (low, high) = (local(before.min(after)), local(before.max(after)));
            let policies = match before < after {
                true => vec![
                    (OnGap::RollForward, OnFold::First),
                    (OnGap::Skip, OnFold::First),
                ],
                false => [OnFold::First, OnFold::Second, OnFold::Both]
                    .map(|fold| (OnGap::RollForward, fold))
                    .to_vec(),
            };
            for (gap, fold) in policies {
                let middle = low + (high - low) / 2;
                let second = Duration::seconds(1);
                for wanted in [low - second, low, middle, high - second, high] {
                    case.check_fixed(wanted, gap, fold);
                }
            }
            let near = Case {
                from: instant - Duration::hours(3),
                until: instant + Duration::hours(3),
                ..case
            };
            near.check_stepping("*/15 * * * *", 15);
            near.check_stepping("0 * * * *", 60);
            near.check_elapsed();
            checked += 1;
        }
    }
    assert!(checked > 5000, "only {checked} clock changes");
}

#[test]
fn names_ignore_case_and_keep_the_database_spelling() {
    for tz in TZ_VARIANTS {
        for name in [
            tz.name().to_owned(),
            tz.name().to_lowercase(),
            tz.name().to_uppercase(),
        ] {
            assert_eq!(Zone::parse(&name).unwrap().name(), tz.name());
        }
    }
    assert_eq!(Zone::parse("utc").unwrap(), Zone::UTC);
    assert_eq!(Zone::parse("EST5EDT").unwrap().name(), "EST5EDT");
    let error = Zone::parse("Europe/Munich").unwrap_err();
    assert_eq!(
        error.to_string(),
        "time zone \"Europe/Munich\" is not in the IANA database"
    );
    assert_eq!(recurrence::tzdata_version().len(), 5);
}
