//! A fuzzer for the stable compiler: it mutates texts of the vectors, parses and evaluates them, and
//! checks the invariants of all schedules.
//!
//! A test run has a few thousand inputs. For a longer run:
//! `RECURRENCE_FUZZ_SECONDS=300 cargo test --release -p recurrence --test fuzz -- --nocapture`,
//! with `RECURRENCE_FUZZ_SEED` to repeat a run or to start another.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use chrono_tz::TZ_VARIANTS;
use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};

/// xorshift64*, which is small and repeats from its seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }
}

/// Fragments of the notations.
const PIECES: [&str; 72] = [
    "*",
    "?",
    "/",
    "-",
    ",",
    "#",
    "L",
    "W",
    "LW",
    "+",
    " ",
    "0",
    "1",
    "2",
    "5",
    "7",
    "29",
    "30",
    "31",
    "59",
    "60",
    "9999",
    "1970",
    "65535",
    "4294967296",
    "18446744073709551616",
    "SUN",
    "MON",
    "FRI",
    "JAN",
    "FEB",
    "@daily",
    "@",
    "P",
    "T",
    "D",
    "M",
    "Y",
    "H",
    "S",
    ".",
    "s",
    "m",
    "h",
    "d",
    "w",
    "mo",
    "every-",
    "{",
    "}",
    "[",
    "]",
    ":",
    "\"",
    "null",
    "-1",
    "1e9",
    "\"every\"",
    "\"unit\"",
    "\"month\"",
    "\"days_of_week\"",
    "\"between_hours\"",
    "\"nth_weekday\"",
    "RRULE:",
    "FREQ=YEARLY;",
    "BYSETPOS=-1;",
    "BYDAY=5SU;",
    "\nEXDATE:",
    "at ",
    "2027-01-31T09:00:00",
    "Z",
    "é",
];

fn seeds() -> Vec<String> {
    let mut seeds = Vec::new();
    for file in ["cron", "dst", "duration", "invalid"] {
        let texts = common::vectors(file);
        seeds.extend(
            texts
                .iter()
                .filter_map(|case| case["expr"].as_str())
                .map(str::to_owned),
        );
    }
    for case in common::vectors("rrule") {
        if let Some(rule) = case["rrule"].as_str() {
            seeds.push(format!("RRULE:{}", rule.trim_start_matches("RRULE:")));
        }
    }
    for unit in ["minute", "hour", "day", "week", "month"] {
        seeds.push(format!(
            r#"{{"every":3,"unit":"{unit}","days_of_week":["tue",5],"week_parity":"odd","between_hours":[22,6]}}"#
        ));
    }
    seeds.push(r#"{"every":1,"unit":"month","day_of_month":31}"#.to_owned());
    seeds.push(r#"{"every":1,"unit":"month","nth_weekday":{"nth":5,"day":"sun"}}"#.to_owned());
    seeds.push("at 2027-01-31T09:00:00.25+01:30".to_owned());
    for rule in ["FREQ=HOURLY", "FREQ=DAILY;BYHOUR=1,2;BYMINUTE=0,30"] {
        seeds.push(format!(
            "RRULE:{rule}\nEXDATE:20251102T063000Z,20251102T013000\nRDATE:20251102T053000Z,20260308T070000Z"
        ));
    }
    seeds
}

fn mutate(random: &mut Random, seeds: &[String]) -> String {
    let mut text: Vec<char> = random.pick(seeds).chars().collect();
    for _ in 0..random.below(6) {
        let at = random.below(text.len() + 1);
        let end = (at + random.below(4)).min(text.len());
        match random.below(5) {
            0 => drop(text.drain(at..end)),
            1 => drop(text.splice(at..end, random.pick(&PIECES).chars())),
            2 => drop(text.splice(at..at, random.pick(&PIECES).chars())),
            3 => {
                let piece: Vec<char> = text[at..end].to_vec();
                drop(text.splice(at..at, piece));
            }
            _ => {
                let other: Vec<char> = random.pick(seeds).chars().collect();
                let from = random.below(other.len() + 1);
                drop(text.splice(at..end, other[from..].iter().copied()));
            }
        }
    }
    text.into_iter().collect()
}

fn instant(random: &mut Random) -> DateTime<Utc> {
    let nanos = if random.one_in(2) {
        0
    } else {
        (random.next() % 1_000_000_000) as u32
    };
    let seconds = match random.below(10) {
        0 => return DateTime::<Utc>::MAX_UTC,
        1 => return DateTime::<Utc>::MIN_UTC,
        2 => (random.next() % 500_000_000_000) as i64 - 100_000_000_000,
        _ => 1_000_000_000 + (random.next() % 1_500_000_000) as i64,
    };
    DateTime::from_timestamp(seconds, nanos).expect("within chrono's range")
}

/// The time limit of one input, unoptimised and on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(3);

fn check(random: &mut Random, text: &str) -> bool {
    let Ok(schedule) = Schedule::parse(text) else {
        return false;
    };
    assert_eq!(Schedule::admit(text).as_ref(), Ok(&schedule), "{text:?}");
    let canonical = schedule.to_string();
    let again = Schedule::parse(&canonical);
    assert_eq!(
        again.as_ref(),
        Ok(&schedule),
        "canonical {canonical:?} of {text:?}"
    );
    let shortest = schedule.shortest_gap();

    let zone = Zone::parse(random.pick(&TZ_VARIANTS).name()).expect("a zone");
    let bounds = Bounds {
        starts_at: (!random.one_in(4)).then(|| instant(random)),
        ends_at: random.one_in(4).then(|| instant(random)),
        max_runs: random.one_in(4).then(|| random.below(50) as u32 + 1),
    };
    let gap = *random.pick(&[OnGap::RollForward, OnGap::Skip]);
    let fold = *random.pick(&[OnFold::First, OnFold::Second, OnFold::Both]);
    let Ok(recurrence) = Recurrence::new(Arc::new(schedule), zone, bounds, gap, fold) else {
        return true;
    };
    for _ in 0..3 {
        let from = instant(random);
        let found: Vec<_> = recurrence.occurrences_after(from).take(5).collect();
        let context = format!("{text:?} {zone} {bounds:?} {gap} {fold} from {from}");
        let mut after = from;
        for (index, occurrence) in found.iter().enumerate() {
            assert!(occurrence.at > after, "increasing: {context}");
            assert!(
                bounds.starts_at.is_none_or(|start| occurrence.at >= start),
                "{context}"
            );
            assert!(
                bounds.ends_at.is_none_or(|end| occurrence.at <= end),
                "{context}"
            );
            if bounds.max_runs.is_none() || bounds.starts_at.is_some() {
                assert_eq!(
                    recurrence.next_after(after).as_ref(),
                    Some(occurrence),
                    "{context}"
                );
                assert_eq!(
                    recurrence.previous_or_at(occurrence.at).as_ref(),
                    Some(occurrence),
                    "previous: {context}"
                );
                let count = recurrence.count_between(from, occurrence.at, 1000);
                assert_eq!(count, index as u64 + 1, "count: {context}");
            }
            after = occurrence.at;
        }
        assert!(found.len() < 2 || shortest.is_some(), "no gap: {context}");
    }
    true
}

#[test]
fn invariants_hold_for_any_text() {
    let variable = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse().ok())
    };
    let seed = variable("RECURRENCE_FUZZ_SEED").unwrap_or(0x5eed);
    let seconds = variable("RECURRENCE_FUZZ_SECONDS");
    let seeds = seeds();
    let mut random = Random(seed.max(1));
    let start = Instant::now();
    let (mut inputs, mut valid) = (0, 0);
    let mut slowest = (Duration::ZERO, String::new());
    loop {
        let is_over = match seconds {
            Some(seconds) => start.elapsed() >= Duration::from_secs(seconds),
            None => inputs >= 3000,
        };
        if is_over {
            break;
        }
        let text = mutate(&mut random, &seeds);
        let begun = Instant::now();
        valid += usize::from(check(&mut random, &text));
        let took = begun.elapsed();
        assert!(took < TIME_LIMIT, "{text:?} took {took:?}");
        if took > slowest.0 {
            slowest = (took, text);
        }
        inputs += 1;
    }
    println!("{inputs} inputs, {valid} valid, slowest {slowest:?}");
    assert!(
        valid * 10 > inputs,
        "most inputs are refused: {valid} of {inputs}"
    );
}
