//! No rule makes a search long. The tests count steps, which are the same on every machine.

use super::search::{LAST_TIME, MAX_STEPS, Pattern, Search};
use super::{RuleError, RuleSet};
use crate::civil::{Civil, Date};

const ANCHOR: Civil = Civil::new(Date::new(2026, 11, 16).days(), 19 * 3_600 + 15 * 60 + 33);

fn pattern(rule: &str) -> Pattern {
    let set = RuleSet::parse(&format!("RRULE:{rule}")).unwrap_or_else(|error| panic!("{error}"));
    Pattern::new(&set.rule, ANCHOR)
}

/// The first occurrence from the anchor on, and the steps of its search.
fn first(rule: &str) -> (Option<Civil>, u32) {
    let pattern = pattern(rule);
    if pattern.is_impossible() {
        return (None, 0);
    }
    let mut search = Search::new(&pattern, MAX_STEPS);
    let found = search.at_or_after(ANCHOR, LAST_TIME);
    (found, MAX_STEPS - search.steps_left)
}

/// Every number with both signs: the longest list that a part can have.
fn both_signs(max: u32) -> String {
    let items: Vec<String> = (1..=max).map(|n| format!("{n},-{n}")).collect();
    items.join(",")
}

#[test]
fn rules_without_an_occurrence_are_found_in_few_steps() {
    let days = both_signs(366);
    let positions = (3..=366)
        .map(|n| n.to_string())
        .collect::<Vec<_>>()
        .join(",");
    let cases = [
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30".to_owned(), 404),
        ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30".into(), 404),
        ("FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30".into(), 404),
        ("FREQ=YEARLY;BYMONTH=6;BYWEEKNO=53".into(), 404),
        ("FREQ=YEARLY;BYMONTH=1;BYYEARDAY=366".into(), 404),
        (
            format!("FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=31;BYYEARDAY={days}"),
            404,
        ),
        ("FREQ=MONTHLY;BYDAY=6MO".into(), 4_804),
        ("FREQ=YEARLY;BYDAY=53MO;BYYEARDAY=1".into(), 4_804),
        // The cadence never meets what is allowed.
        ("FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29".into(), 600),
        ("FREQ=DAILY;INTERVAL=7;BYDAY=SU".into(), 26_000),
        ("FREQ=SECONDLY;INTERVAL=604800;BYDAY=WE".into(), 26_000),
        ("FREQ=HOURLY;INTERVAL=2;BYHOUR=2".into(), 0),
        ("FREQ=MINUTELY;INTERVAL=2;BYMINUTE=2".into(), 0),
        ("FREQ=SECONDLY;INTERVAL=2;BYSECOND=2".into(), 0),
        ("FREQ=SECONDLY;INTERVAL=3600;BYMINUTE=16".into(), 0),
        // No set has these positions.
        ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6".into(), 9_700),
        ("FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=3".into(), 32_000),
        (
            format!("FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS={positions}"),
            32_000,
        ),
        ("FREQ=DAILY;BYHOUR=1,2;BYSETPOS=3".into(), 0),
        ("FREQ=SECONDLY;BYSECOND=1;BYSETPOS=2".into(), 0),
    ];
    for (rule, most) in cases {
        let (found, steps) = first(&rule);
        assert_eq!(found, None, "{rule}");
        assert!(steps <= most, "{rule} took {steps} steps");
    }
}

#[test]
fn a_search_takes_few_steps_from_any_time() {
    let cases = [
        ("FREQ=YEARLY", 15),
        ("FREQ=YEARLY;INTERVAL=4294967295", 4),
        ("FREQ=MONTHLY;BYDAY=-1FR", 4),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", 4),
        ("FREQ=WEEKLY;INTERVAL=3;BYDAY=TU,TH", 6),
        ("FREQ=DAILY;INTERVAL=9", 4),
        ("FREQ=HOURLY;INTERVAL=7", 4),
        ("FREQ=MINUTELY;INTERVAL=11;BYHOUR=9;BYDAY=MO", 30),
        ("FREQ=SECONDLY;INTERVAL=7", 4),
        ("FREQ=SECONDLY;INTERVAL=4294967295", 4),
        (
            "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=29;BYHOUR=1;BYMINUTE=2;BYSECOND=3",
            11,
        ),
    ];
    for (rule, most) in cases {
        let pattern = pattern(rule);
        // Just after the anchor, a thousand years later, and near the end of the calendar.
        for later in [1, 1_000 * 31_556_952, 7_900 * 31_556_952] {
            let from = Civil(ANCHOR.0 + later);
            let mut search = Search::new(&pattern, MAX_STEPS);
            search.at_or_after(from, LAST_TIME);
            let steps = MAX_STEPS - search.steps_left;
            assert!(
                steps <= most,
                "{rule} took {steps} steps forward after {later} s"
            );
            let mut search = Search::new(&pattern, MAX_STEPS);
            search.at_or_before(from, ANCHOR);
            let steps = MAX_STEPS - search.steps_left;
            assert!(
                steps <= most,
                "{rule} took {steps} steps back after {later} s"
            );
        }
    }
}

#[test]
fn a_contradictory_rule_ends_within_the_limit() {
    // 86,399 is coprime to the day: the one allowed second recurs once in 236 years.
    let rule = "FREQ=SECONDLY;INTERVAL=86399;BYMONTH=1;BYMONTHDAY=1;BYHOUR=1;BYMINUTE=1;BYSECOND=1";
    assert_eq!(first(rule).0, None);
    let set = RuleSet::parse(
        "RRULE:FREQ=SECONDLY;INTERVAL=86399;BYHOUR=1;BYMINUTE=1;BYSECOND=1;COUNT=100",
    );
    let error = set.unwrap().compile(ANCHOR, Civil).err();
    assert_eq!(error, Some(RuleError::CountOutOfReach { count: 100 }));
    assert_eq!(
        error.unwrap().to_string(),
        "RRULE part COUNT is 100, which a rule this sparse does not reach, expected 1 to 10000 \
         occurrences that can be counted out from the start"
    );
}

#[test]
fn the_largest_count_is_within_the_limit() {
    for rule in [
        "FREQ=SECONDLY",
        "FREQ=DAILY",
        "FREQ=DAILY;BYMONTHDAY=13;BYDAY=FR",
    ] {
        let set = RuleSet::parse(&format!("RRULE:{rule};COUNT=10000")).unwrap();
        assert!(set.compile(ANCHOR, Civil).is_ok(), "{rule}");
    }
}
