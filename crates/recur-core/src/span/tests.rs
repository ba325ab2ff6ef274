use super::*;

fn span(months: i32, days: i32, micros: i64) -> Span {
    Span {
        months,
        days,
        micros,
    }
}

/// What PostgreSQL 15 reads from the same text, in months, days and microseconds, and how it shows it.
#[test]
fn spans_are_read_as_postgresql_reads_intervals() {
    for (text, months, days, micros, shown) in [
        ("30 seconds", 0, 0, 30_000_000, "00:00:30"),
        ("1 hour 30 minutes", 0, 0, 5_400_000_000, "01:30:00"),
        ("90m", 0, 0, 5_400_000_000, "01:30:00"),
        ("90 M", 0, 0, 5_400_000_000, "01:30:00"),
        ("1.5 hours", 0, 0, 5_400_000_000, "01:30:00"),
        (".5 s", 0, 0, 500_000, "00:00:00.5"),
        ("00:00:30", 0, 0, 30_000_000, "00:00:30"),
        ("00:30", 0, 0, 1_800_000_000, "00:30:00"),
        ("1 day 02:00:00", 0, 1, 7_200_000_000, "1 day 02:00:00"),
        ("-1 day +02:00", 0, -1, 7_200_000_000, "-1 days +02:00:00"),
        ("-00:00:01.25", 0, 0, -1_250_000, "-00:00:01.25"),
        ("1 mon -40 days", 1, -40, 0, "1 mon -40 days"),
        ("-1 year 364 days", -12, 364, 0, "-1 years +364 days"),
        ("PT30S", 0, 0, 30_000_000, "00:00:30"),
        ("P1D", 0, 1, 0, "1 day"),
        (
            "P1Y2M3DT4H5M6.5S",
            14,
            3,
            14_706_500_000,
            "1 year 2 mons 3 days 04:05:06.5",
        ),
        ("P2W", 0, 14, 0, "14 days"),
        ("1.5 weeks", 0, 10, 43_200_000_000, "10 days 12:00:00"),
        ("1.5 days", 0, 1, 43_200_000_000, "1 day 12:00:00"),
        ("1.5 months", 1, 15, 0, "1 mon 15 days"),
        ("1.05 months", 1, 1, 43_200_000_000, "1 mon 1 day 12:00:00"),
        ("1.5 years", 18, 0, 0, "1 year 6 mons"),
        ("1 century", 1_200, 0, 0, "100 years"),
        ("1000000 years", 12_000_000, 0, 0, "1000000 years"),
        ("250 ms", 0, 0, 250_000, "00:00:00.25"),
        ("0 seconds", 0, 0, 0, "00:00:00"),
        ("100:00", 0, 0, 360_000_000_000, "100:00:00"),
        ("1 us", 0, 0, 1, "00:00:00.000001"),
    ] {
        let read = parse(text).unwrap();
        assert_eq!(read, span(months, days, micros), "{text}");
        assert_eq!(read.to_string(), shown, "{text}");
        assert_eq!(parse(shown), Ok(read), "{shown}");
    }
}

#[test]
fn errors_say_which_part_is_wrong() {
    for (text, problem) in [
        ("", "is empty, expected a span such as \"30 seconds\""),
        ("  ", "is empty, expected a span such as \"30 seconds\""),
        ("30", "\"30\" has no unit, as in \"30 seconds\""),
        ("1 day 30", "\"30\" has no unit, as in \"30 seconds\""),
        ("-1.5", "\"-1.5\" has no unit, as in \"-1.5 seconds\""),
        (
            "soon",
            "\"soon\" is no number, expected a span such as \"30 seconds\"",
        ),
        (
            "infinity",
            "\"infinity\" is no number, expected a span such as \"30 seconds\"",
        ),
        ("3 apples", "\"apples\" is no unit of time"),
        (
            "1 hour ago",
            "\"ago\" is no number, expected a span such as \"30 seconds\"",
        ),
        (
            "1 hour, 2 minutes",
            "\",\" is no number, expected a span such as \"30 seconds\"",
        ),
        ("1e3 s", "\"e\" is no unit of time"),
        ("1 h 1 hour", "\"1 hour\" repeats a unit"),
        ("1 h 01:00", "\"01:00\" repeats a unit"),
        ("01:60", "\"01:60\" is no time such as \"02:30:00\""),
        ("01:00:60", "\"01:00:60\" is no time such as \"02:30:00\""),
        ("01:5", "\"01:5\" is no time such as \"02:30:00\""),
        ("1.5:00", "\"1.5:00\" is no time such as \"02:30:00\""),
        (
            "01:30.5:00",
            "\"01:30.5:00\" is no time such as \"02:30:00\"",
        ),
        ("01:-5", "\"01:-5\" is no time such as \"02:30:00\""),
        ("01:00h", "\"01:00\" is no time such as \"02:30:00\""),
        (
            "01:00:00:00",
            "\"01:00:00\" is no time such as \"02:30:00\"",
        ),
        ("P", "ends where a number is expected, as in \"PT30S\""),
        ("P1DT", "ends where a number is expected, as in \"PT30S\""),
        ("P30S", "\"30\" has no designator, as in \"PT30S\""),
        ("PT1D", "\"1\" has no designator, as in \"PT30S\""),
        ("P1D1D", "\"1D\" repeats a unit"),
        (
            "P1DTT1S",
            "\"T1S\" is no number, expected a span such as \"30 seconds\"",
        ),
        ("99999999999999999999 s", "is too long"),
        ("999999999999999999 years", "is too long"),
        ("9999999999999 s", "is too long"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.problem(), problem, "{text}");
        assert_eq!(error.value(), text);
    }
}

#[test]
fn the_length_is_that_of_extract_epoch() {
    for (text, seconds) in [
        ("1 mon", 2_592_000),
        ("13 mons", 34_149_600),
        ("1 year", 31_557_600),
        ("100 years", 3_155_760_000),
        ("-1 year 364 days", -108_000),
        ("1 mon -40 days", -864_000),
        ("1 day -1 hour", 82_800),
    ] {
        let length = parse(text).unwrap().length();
        assert_eq!(length, TimeDelta::seconds(seconds), "{text}");
    }
    assert_eq!(parse("100 years").unwrap().length(), HUNDRED_YEARS);
    // The largest parts that there are.
    for (part, micros) in [(i32::MAX, i64::MAX), (i32::MIN, i64::MIN)] {
        let most = span(part, part, micros);
        assert_eq!(parse(&most.to_string()), Ok(most));
        assert_eq!(most.length() > TimeDelta::zero(), part > 0);
    }
}

/// A small generator of numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[test]
fn every_span_is_read_back_from_what_it_shows() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut signed = |limit: usize| numbers.below(2 * limit) as i64 - limit as i64;
    for _ in 0..20_000 {
        let one = span(
            signed(3_000) as i32,
            signed(3_000) as i32,
            signed(1_000_000_000_000),
        );
        assert_eq!(parse(&one.to_string()), Ok(one), "{one}");
    }
}

#[test]
fn whatever_is_written_is_a_span_or_an_error() {
    const PIECES: [&str; 28] = [
        "1",
        "90",
        ".5",
        "00",
        "-",
        "+",
        ":",
        " ",
        "P",
        "T",
        "D",
        "S",
        "h",
        "m",
        "mon",
        "seconds",
        "days",
        "year",
        "ü",
        "🦀",
        ".",
        ",",
        "999999999999",
        "\u{a0}",
        "e",
        "ago",
        "\"",
        "w",
    ];
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let mut read = 0;
    for _ in 0..100_000 {
        let length = 1 + numbers.below(6);
        let text: String = (0..length)
            .map(|_| PIECES[numbers.below(PIECES.len())])
            .collect();
        if let Ok(one) = parse(&text) {
            read += 1;
            assert_eq!(parse(&one.to_string()), Ok(one), "{text}");
            let _ = one.length();
        }
    }
    assert!(read > 1_000, "{read}");
}
