use std::collections::BTreeMap;
use std::str::FromStr;

use croner::Cron;
use serde_json::Value;

use super::known_errors::avoid;
use super::{Disagreement, KnownError, Verdict, compare_fields, refuse};
use crate::cron::CronSpec;
use crate::schedule::{Kind, Schedule};

fn spec(text: &str) -> CronSpec {
    CronSpec::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn croner(text: &str) -> Cron {
    Cron::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn judge(text: &str) -> Verdict {
    super::judge(text, &spec(text))
}

fn explained_by(error: KnownError) -> Verdict {
    Verdict::Explained(vec![error])
}

/// The cron expressions of a vector file that are valid, with the ids of their cases.
fn vectors(file: &str) -> Vec<(String, String)> {
    let path = format!("{}/tests/vectors/{file}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let lines = std::fs::read_to_string(path).unwrap();
    let cases = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let texts = cases.filter_map(|case: Value| {
        let (id, text) = (case["id"].as_str()?, case["expr"].as_str()?);
        Some((id.to_owned(), text.to_owned()))
    });
    texts
        .filter(|(_, text)| {
            Schedule::parse(text).is_ok_and(|it| matches!(it.kind(), Kind::Cron(_)))
        })
        .collect()
}

#[test]
fn every_valid_vector_is_admitted() {
    let mut explained: BTreeMap<KnownError, Vec<String>> = BTreeMap::new();
    let mut agreed = 0;
    for (id, text) in ["cron", "dst", "describe"].into_iter().flat_map(vectors) {
        match judge(&text) {
            Verdict::Agreed => agreed += 1,
            Verdict::Explained(errors) => {
                for error in errors {
                    explained.entry(error).or_default().push(id.clone());
                }
            }
            Verdict::Refuted(disagreement) => panic!("{id} {text}: {disagreement:?}"),
        }
    }
    let expected = [
        (KnownError::YearStepsFromYear1, vec!["cron-0287".to_owned()]),
        (KnownError::LastSunday, vec!["cron-0266".to_owned()]),
        (
            KnownError::LastOfRange,
            vec!["cron-0108".to_owned(), "cron-0414".to_owned()],
        ),
    ];
    assert_eq!(explained, BTreeMap::from(expected));
    assert!(agreed > 500, "{agreed}");
}

#[test]
fn years_after_5000_are_refused_by_croner_alone() {
    for text in [
        "0 0 0 1 1 * 5001",
        "0 0 0 1 1 * 2027-9999",
        "0 0 0 29 2 * 2025,6000",
        "0 0 0 1 1 * 4000-9999/7",
    ] {
        assert!(Cron::from_str(text).is_err(), "{text}");
        assert_eq!(judge(text), explained_by(KnownError::YearsAfter5000));
    }
}

#[test]
fn croner_counts_year_steps_from_the_year_1() {
    let text = "0 0 0 1 1 * */4";
    let named = croner(text).pattern.years.values();
    assert!(named.contains(&2025) && !named.contains(&2026));
    let ours = spec(text);
    assert!(ours.sets.has_year(2026) && !ours.sets.has_year(2025));
    assert_eq!(judge(text), explained_by(KnownError::YearStepsFromYear1));
}

#[test]
fn forms_of_pg_cron_are_compared_in_their_canonical_text() {
    for text in ["0 9 $ * *", "0 9 1,$ * MON", "*,5 * * * *", "0 9 5,* * MON"] {
        assert_eq!(judge(text), Verdict::Agreed, "{text}");
    }
}

#[test]
fn croner_misses_the_last_sunday_of_a_range() {
    let text = "0 0 * * FRI-SUN#L";
    assert_eq!(
        croner(text).pattern.days_of_week.get_set_values(1 << 6),
        [5, 6, 7]
    );
    assert_eq!(judge(text), explained_by(KnownError::LastSunday));
    // The canonical text has a single Sunday as SUN#L, which croner reads right.
    for text in [
        "0 0 * * 7L",
        "0 0 * * 7#L",
        "0 0 * * 1,7l",
        "0 0 * * 7-SUN#L",
    ] {
        let last = croner(text).pattern.days_of_week.get_set_values(1 << 6);
        assert_eq!(last, [7], "{text}");
        assert_eq!(judge(text), explained_by(KnownError::LastSunday), "{text}");
    }
}

#[test]
fn croner_refuses_the_last_days_of_a_range_without_a_number_sign() {
    for text in ["0 0 * * MON-FRIL", "0 0 * * 1-5l"] {
        assert!(Cron::from_str(text).is_err(), "{text}");
        assert_eq!(judge(text), explained_by(KnownError::LastOfRange), "{text}");
    }
}

#[test]
fn an_error_of_this_reader_is_found_in_the_text_as_written() {
    // As if `4` were read as 5: the canonical text then has the error too.
    let found = super::judge("0  4 * * *", &spec("0 5 * * *"));
    let expected = Disagreement {
        subject: "hour",
        ours: "5".to_owned(),
        croners: "4".to_owned(),
    };
    assert_eq!(found, Verdict::Refuted(expected));
}

#[test]
fn croner_loses_the_last_day_beside_the_last_weekday() {
    let text = "0 0 L,LW * *";
    assert_eq!(croner(text).pattern.days, croner("0 0 LW * *").pattern.days);
    let expected = explained_by(KnownError::LastDayBesideLastWeekday);
    assert_eq!(judge(text), expected);
}

#[test]
fn several_known_errors_are_avoided_together() {
    let text = "0 0 0 L,LW * SAT-SUN#L */4,6000";
    let verdict = judge(text);
    let Verdict::Explained(mut errors) = verdict else {
        panic!("{verdict:?}");
    };
    errors.sort_unstable();
    let mut all = KnownError::IN_CANONICAL;
    all.sort_unstable();
    assert_eq!(errors, all);
}

#[test]
fn avoiding_an_error_keeps_the_meaning() {
    for text in ["0 0 * * FRI-SUN#L", "0 0 * * SUN-SUN#L"] {
        let cron = spec(text);
        let (rewritten, avoided) = avoid(&cron);
        assert!(!avoided.is_empty());
        assert_eq!(rewritten.sets, cron.sets, "{text}");
    }
    let cron = spec("0 0 0 1 1 * */7");
    let (rewritten, _) = avoid(&cron);
    for year in 1970..=5000 {
        assert_eq!(
            rewritten.sets.has_year(year),
            cron.sets.has_year(year),
            "{year}"
        );
    }
}

#[test]
fn an_expression_without_a_known_error_is_not_rewritten() {
    for text in ["0 9 * * MON-FRI", "0 0 LW * 5L", "0 0 0 L * * 1970-5000/3"] {
        let cron = spec(text);
        assert_eq!(avoid(&cron), (cron, vec![]), "{text}");
    }
}

/// Pairs of expressions that differ in one part, and what the message says of it.
const DIFFERENT: [(&str, &str, &str, &str, &str); 13] = [
    ("5 * * * * *", "6 * * * * *", "second", "5", "6"),
    ("5 * * * *", "5,6 * * * *", "minute", "5", "5,6"),
    ("0 9 * * *", "0 10 * * *", "hour", "9", "10"),
    ("0 9 1 * *", "0 9 2 * *", "day of month", "1", "2"),
    ("0 9 1W * *", "0 9 2W * *", "day of month with W", "1", "2"),
    (
        "0 9 L * *",
        "0 9 LW * *",
        "L in day of month",
        "set",
        "not set",
    ),
    (
        "0 9 1,LW * *",
        "0 9 1 * *",
        "LW in day of month",
        "set",
        "not set",
    ),
    ("0 9 * 1 *", "0 9 * 12 *", "month", "1", "12"),
    ("0 9 * * 1", "0 9 * * 2", "day of week", "1", "2"),
    (
        "0 9 * * 1#3",
        "0 9 * * 1#4",
        "day of week with #3",
        "1",
        "empty",
    ),
    ("0 9 * * 1L", "0 9 * * 2L", "day of week with #L", "1", "2"),
    (
        "0 9 1-31 * 1",
        "0 9 * * 1",
        "* in day of month",
        "not set",
        "set",
    ),
    (
        "0 9 1 * +1",
        "0 9 1 * 1",
        "+ in day of week",
        "set",
        "not set",
    ),
];

#[test]
fn a_difference_in_any_field_is_found() {
    for (ours, theirs, subject, our_value, croners_value) in DIFFERENT {
        let expected = Disagreement {
            subject,
            ours: our_value.to_owned(),
            croners: croners_value.to_owned(),
        };
        let found = compare_fields(&spec(ours), &croner(theirs));
        assert_eq!(found, Err(expected), "{ours} and {theirs}");
    }
    let found = compare_fields(&spec("0 0 0 1 1 * 2027"), &croner("0 0 0 1 1 * 2028"));
    assert_eq!(found.unwrap_err().subject, "year");
}

#[test]
fn a_difference_in_occurrences_is_found() {
    let occurrence = |ours: &str, theirs: &str| {
        super::occurrences::compare(&spec(ours), &croner(theirs)).map_err(|found| {
            assert_eq!(found.subject, "an occurrence");
            (found.ours, found.croners)
        })
    };
    assert_eq!(occurrence("0 0 * * *", "0 0 * * *"), Ok(()));
    let missing = ("1970-01-01T09:00:00Z".to_owned(), "not one".to_owned());
    assert_eq!(occurrence("0 9 * * *", "0 10 * * *"), Err(missing));
    let extra = (
        "1970-01-01T09:00:00Z".to_owned(),
        "1970-01-01T08:00:00Z".to_owned(),
    );
    assert_eq!(occurrence("0 9 * * *", "0 8,9 * * *"), Err(extra));
    // Every minute of the first of the month: the difference shows on a later day.
    let later = (
        "1970-02-01T00:00:00Z".to_owned(),
        "1970-01-02T00:00:00Z".to_owned(),
    );
    assert_eq!(occurrence("* * 1 * *", "* * 1,2 * *"), Err(later));
}

#[test]
fn rare_dates_are_compared_without_a_long_walk() {
    for text in [
        "0 0 29 2 +SUN",
        "0 0 0 29 2 * 4996",
        "0 0 0 31 12 +5#5 2400-2500",
    ] {
        assert_eq!(judge(text), Verdict::Agreed, "{text}");
    }
}

#[test]
fn the_year_in_which_croners_search_gives_up_is_not_searched() {
    for text in ["0 0 0 1 2 * 5000", "* * * 1-1/1 2 * 3485-5000/1515"] {
        let cron = croner(text);
        let from = "4999-12-31T00:00:00Z".parse::<chrono::DateTime<chrono::Utc>>();
        assert!(cron.find_next_occurrence(&from.unwrap(), false).is_err());
        assert_eq!(judge(text), Verdict::Agreed, "{text}");
    }
}

#[test]
fn a_refusal_names_both_readings() {
    let disagreement = Disagreement {
        subject: "hour",
        ours: "9".to_owned(),
        croners: "10".to_owned(),
    };
    let error = refuse("0 9 * * *", &disagreement);
    assert_eq!(
        error.to_string(),
        "cron expression \"0 9 * * *\" has two readings, expected one: hour is 9 to this reader and 10 to croner"
    );
    assert_eq!(
        error.hint(),
        Some("Write it in another way, and report it: one of the two readers has an error.")
    );
}
