//! A zone as a sorted list of its clock changes.
//!
//! chrono-tz gives the offset at an instant, but keeps its transitions private. The searches need
//! them: where an offset ends, and whether a reading is missing or repeated. So each zone is probed
//! once, on first use, and its table is kept for the life of the process.

use std::sync::OnceLock;

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};

use crate::civil::{Civil, DAY, Date, is_leap, iso_weekday};

/// An instant at which a zone's clocks are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transition {
    /// Unix seconds of the first instant with the new offset.
    pub at: i64,
    /// Seconds east of UTC before that instant.
    pub before: i32,
    /// Seconds east of UTC from that instant on.
    pub after: i32,
}

impl Transition {
    /// The first wall-clock reading that is missing or repeated.
    pub const fn low(&self) -> Civil {
        let smaller = if self.before < self.after {
            self.before
        } else {
            self.after
        };
        Civil(self.at + smaller as i64)
    }

    /// The first wall-clock reading after the missing or repeated ones.
    pub const fn high(&self) -> Civil {
        let larger = if self.before < self.after {
            self.after
        } else {
            self.before
        };
        Civil(self.at + larger as i64)
    }

    /// Whether the clocks go forward, so that readings are missing.
    pub const fn is_gap(&self) -> bool {
        self.after > self.before
    }
}

/// Which instants show a wall-clock reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading<'a> {
    /// Exactly one: these Unix seconds.
    Once(i64),
    /// None: the clocks jump over it.
    Missing(&'a Transition),
    /// Two: once before and once after the clocks go back.
    Twice(&'a Transition),
}

#[derive(Debug)]
pub(crate) struct ZoneTable {
    /// The offset before the first transition.
    first_offset: i32,
    transitions: Vec<Transition>,
    /// How many transitions there are up to the start of each [`BUCKET`] of time. A look-up begins
    /// there, and ends a step or two later. A binary search has eight levels of mispredicted branches,
    /// which took longer than the search for the next occurrence itself.
    buckets: Vec<u16>,
}

/// The bucket of an instant is `(instant - PROBE_FROM) >> BUCKET`: 97 days each.
const BUCKET: u32 = 23;

/// More than any zone's distance from UTC, in seconds.
const MAX_OFFSET: i64 = 26 * 3600;

/// The range of probing: from before the oldest transition in the IANA database (1845) to after the
/// newest of chrono-tz, which expands the current rules up to 2099.
const PROBE_FROM: i64 = -4_000_000_000;
const PROBE_UNTIL: i64 = 4_102_444_800;

/// Rules that are still in force in 2099 are expanded up to the end of this year. After it the last
/// offset holds.
const LAST_YEAR: i32 = 2199;
const TABLE_UNTIL: i64 = Date::new(LAST_YEAR + 1, 1, 1).days() * DAY;

/// Shorter than the shortest time between two transitions, which is 6 days and 23 hours (by an hourly
/// probe of all zones). Probing a zone takes about a millisecond. `tests/zones.rs` fails where a
/// transition is missed.
const PROBE_STEP: i64 = 3 * DAY;

impl ZoneTable {
    pub const UTC: ZoneTable = ZoneTable {
        first_offset: 0,
        transitions: Vec::new(),
        buckets: Vec::new(),
    };

    /// The table of a zone, built on first use.
    pub fn of(tz: Tz) -> &'static ZoneTable {
        static TABLES: [OnceLock<ZoneTable>; TZ_VARIANTS.len()] =
            [const { OnceLock::new() }; TZ_VARIANTS.len()];
        // `TZ_VARIANTS` lists each variant once, so every discriminant is a valid index.
        TABLES[tz as usize].get_or_init(|| ZoneTable::probe(tz))
    }

    fn probe(tz: Tz) -> ZoneTable {
        let first_offset = offset_by_chrono(tz, PROBE_FROM);
        let mut transitions = Vec::new();
        let mut known = (PROBE_FROM, first_offset);
        while known.0 < PROBE_UNTIL {
            let probe = known.0 + PROBE_STEP;
            let offset = offset_by_chrono(tz, probe);
            if offset != known.1 {
                // Bisect to the first second whose offset differs from the known one. Probing
                // continues from there, and so finds a second change before `probe`.
                let (mut same, mut changed) = (known.0, probe);
                while changed - same > 1 {
                    let middle = same + (changed - same) / 2;
                    if offset_by_chrono(tz, middle) == known.1 {
                        same = middle;
                    } else {
                        changed = middle;
                    }
                }
                let after = offset_by_chrono(tz, changed);
                transitions.push(Transition {
                    at: changed,
                    before: known.1,
                    after,
                });
                known = (changed, after);
            } else {
                known.0 = probe;
            }
        }
        transitions.extend(expand_rules(&transitions));
        let buckets = (PROBE_FROM..TABLE_UNTIL)
            .step_by(1 << BUCKET)
            .map(|start| transitions.partition_point(|t: &Transition| t.at <= start) as u16)
            .collect();
        ZoneTable {
            first_offset,
            transitions,
            buckets,
        }
    }

    /// How many transitions come before the bucket of an instant, at least.
    fn index_before(&self, instant: i64) -> usize {
        let instant = instant.clamp(PROBE_FROM, TABLE_UNTIL - 1);
        let bucket = ((instant - PROBE_FROM) >> BUCKET) as usize;
        self.buckets.get(bucket).copied().map_or(0, usize::from)
    }

    pub fn transitions(&self) -> &[Transition] {
        &self.transitions
    }

    /// Index of the first transition after the instant.
    pub fn index_after(&self, instant: i64) -> usize {
        let mut index = self.index_before(instant);
        while self.transitions.get(index).is_some_and(|t| t.at <= instant) {
            index += 1;
        }
        index
    }

    /// Seconds east of UTC in the span that ends with transition `index`.
    pub fn offset_before(&self, index: usize) -> i32 {
        match index.checked_sub(1).and_then(|i| self.transitions.get(i)) {
            Some(previous) => previous.after,
            None => self.first_offset,
        }
    }

    /// Seconds east of UTC at an instant.
    pub fn offset_at(&self, instant: i64) -> i32 {
        self.offset_before(self.index_after(instant))
    }

    /// What the wall clock shows at an instant.
    pub fn civil_at(&self, instant: i64) -> Civil {
        Civil(instant + self.offset_at(instant) as i64)
    }

    /// Which instants show this reading.
    pub fn read(&self, civil: Civil) -> Reading<'_> {
        // The ranges of missing and repeated readings don't overlap. So the last range that begins
        // at or before the reading is the only candidate.
        let mut index = self.index_before(civil.0 - MAX_OFFSET);
        while self
            .transitions
            .get(index)
            .is_some_and(|t| t.low() <= civil)
        {
            index += 1;
        }
        match index.checked_sub(1).and_then(|i| self.transitions.get(i)) {
            None => Reading::Once(civil.0 - self.first_offset as i64),
            Some(t) if civil >= t.high() => Reading::Once(civil.0 - t.after as i64),
            Some(t) if t.is_gap() => Reading::Missing(t),
            Some(t) => Reading::Twice(t),
        }
    }

    /// The first gap that ends after a reading.
    pub fn gap_at_or_after(&self, civil: Civil) -> Option<&Transition> {
        let first = self.index_before(civil.0 - MAX_OFFSET);
        self.transitions[first..]
            .iter()
            .find(|t| t.is_gap() && t.high() > civil)
    }

    /// The last gap that begins at or before a reading.
    pub fn gap_at_or_before(&self, civil: Civil) -> Option<&Transition> {
        let end = self.index_after(civil.0 + MAX_OFFSET);
        self.transitions[..end]
            .iter()
            .rfind(|t| t.is_gap() && t.low() <= civil)
    }
}

/// The transitions from 2100 on, for a zone that changes its clocks by a yearly rule.
///
/// Such rules name a month and a weekday. So two years have the same transitions where they begin on
/// the same weekday and have the same length. The 28 years up to 2099 have one year of each kind.
fn expand_rules(known: &[Transition]) -> Vec<Transition> {
    let of_year = |year: i32| {
        known
            .iter()
            .filter(move |t| Civil(t.at).date().year == year)
    };
    let models = 2072..=2099;
    let has_yearly_rule = models.clone().all(|year| of_year(year).count() == 2);
    if !has_yearly_rule {
        return Vec::new();
    }
    let first_day = |year: i32| Date::new(year, 1, 1).days();
    let kind = |year: i32| (iso_weekday(first_day(year)), is_leap(year));
    (2100..=LAST_YEAR)
        .filter_map(|year| {
            Some((
                year,
                models.clone().find(|model| kind(*model) == kind(year))?,
            ))
        })
        .flat_map(|(year, model)| {
            let later = (first_day(year) - first_day(model)) * DAY;
            of_year(model).map(move |t| Transition {
                at: t.at + later,
                ..*t
            })
        })
        .collect()
}

fn offset_by_chrono(tz: Tz, instant: i64) -> i32 {
    DateTime::from_timestamp(instant, 0).map_or(0, |utc| {
        tz.offset_from_utc_datetime(&utc.naive_utc())
            .fix()
            .local_minus_utc()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::LocalResult;

    #[test]
    fn ranges_of_missing_and_repeated_readings_do_not_overlap() {
        for tz in TZ_VARIANTS {
            let transitions = ZoneTable::of(tz).transitions();
            assert!(transitions.is_sorted_by(|a, b| a.at < b.at && a.high() <= b.low()));
        }
    }

    #[test]
    fn offsets_are_those_of_chrono_tz() {
        // Coprime to hours, days and the step of the probe.
        const STEP: i64 = 3_600_011;
        for tz in TZ_VARIANTS {
            let table = ZoneTable::of(tz);
            let mut instant = PROBE_FROM - 40 * STEP;
            while instant < PROBE_UNTIL {
                assert_eq!(
                    table.offset_at(instant),
                    offset_by_chrono(tz, instant),
                    "{tz} {instant}"
                );
                instant += STEP;
            }
        }
    }

    #[test]
    fn readings_are_those_of_chrono_tz_around_every_transition() {
        for tz in TZ_VARIANTS {
            let table = ZoneTable::of(tz);
            for t in table.transitions().iter().filter(|t| t.at < PROBE_UNTIL) {
                let (low, high) = (t.low().0, t.high().0);
                for civil in [low - 1, low, low + (high - low) / 2, high - 1, high] {
                    let naive = DateTime::from_timestamp(civil, 0).unwrap().naive_utc();
                    let expected = match tz.from_local_datetime(&naive) {
                        LocalResult::None => Reading::Missing(t),
                        LocalResult::Single(at) => Reading::Once(at.timestamp()),
                        LocalResult::Ambiguous(..) => Reading::Twice(t),
                    };
                    assert_eq!(table.read(Civil(civil)), expected, "{tz} {naive}");
                }
            }
        }
    }

    #[test]
    fn yearly_rules_continue_after_2099() {
        let table = ZoneTable::of(Tz::America__New_York);
        // The second Sunday of March and the first of November, at 02:00.
        for (instant, offset) in [
            ("2100-03-14T06:59:59Z", -5),
            ("2100-03-14T07:00:00Z", -4),
            ("2197-11-05T05:59:59Z", -4),
            ("2197-11-05T06:00:00Z", -5),
            ("2300-07-01T00:00:00Z", -5),
        ] {
            let at = DateTime::parse_from_rfc3339(instant).unwrap().timestamp();
            assert_eq!(table.offset_at(at), offset * 3600, "{instant}");
        }
        for tz in TZ_VARIANTS {
            let transitions = ZoneTable::of(tz).transitions();
            assert!(transitions.is_sorted_by(|a, b| a.after == b.before), "{tz}");
        }
    }
}
