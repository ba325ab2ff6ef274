//! Values of other kinds.

use super::schedules::{any_text, iso8601, zone};
use super::{near, with_choices};
use crate::input::Input;
use crate::random::Random;

/// Pauses before retries, as JSON.
pub fn backoff(random: &mut Random) -> Input {
    let base = span_text(random);
    let cap = if random.one_in(3) {
        "1 hour".to_owned()
    } else {
        span_text(random)
    };
    let factor = random.pick(&[
        "2", "1", "100", "1.5", "\"3\"", "0.99", "100.1", "1e2", "-1", "\" 2 \"", "null", "1e400",
    ]);
    let mut parts = vec![
        format!(r#""base": "{base}""#),
        format!(r#""factor": {factor}"#),
        format!(r#""cap": "{cap}""#),
    ];
    if random.one_in(20) {
        parts.remove(random.below(3));
    }
    if random.one_in(20) {
        parts.push(r#""more": 1"#.to_owned());
    }
    with_choices(random, format!("{{{}}}", parts.join(", ")))
}

fn span_text(random: &mut Random) -> String {
    const UNITS: &[&str] = &[
        "second",
        "seconds",
        "minutes",
        "hour",
        "hours",
        "day",
        "days",
        "weeks",
        "mon",
        "mons",
        "months",
        "year",
        "years",
        "milliseconds",
        "microseconds",
        "s",
        "m",
        "h",
        "decades",
        "fortnight",
    ];
    match random.below(8) {
        0 => format!(
            "{:02}:{:02}:{:02}",
            random.below(30),
            near(random, 0, 59),
            near(random, 0, 59)
        ),
        1 => iso8601(random).text,
        2 => format!(
            "{}.{} {}",
            random.below(30),
            random.below(1_000),
            random.pick(UNITS)
        ),
        _ => {
            let parts = 1 + random.below(3);
            let one = |random: &mut Random| {
                let sign = random.pick(&["", "", "", "", "-", "+"]);
                format!("{sign}{} {}", random.below(500), random.pick(UNITS))
            };
            let parts: Vec<String> = (0..parts).map(|_| one(random)).collect();
            parts.join(" ")
        }
    }
}

/// Spans of time.
pub fn span(random: &mut Random) -> Input {
    let text = span_text(random);
    Input::new(text, Vec::new())
}

/// Patterns of action types.
pub fn pattern(random: &mut Random) -> Input {
    const PARTS: &[&str] = &["task", ":", "created", "*", "a", "ü", " ", "mail:"];
    let count = random.below(5);
    let mut text: String = (0..count).map(|_| random.pick(PARTS)).collect();
    if random.one_in(3) {
        text.push('*');
    }
    if random.one_in(40) {
        text = text.repeat(60);
    }
    with_choices(random, text)
}

/// Names of four kinds, one in a line, for messages.
pub fn names(random: &mut Random) -> Input {
    let name = |random: &mut Random| {
        let name = random.pick(&[
            "default",
            "acme",
            "mail",
            "digest",
            "\"q\"",
            "back\\slash",
            "\u{1}",
            "ü",
            "é\t",
            "",
        ]);
        name.repeat(if random.one_in(12) { 255 } else { 1 })
    };
    let lines: Vec<String> = (0..5).map(|_| name(random)).collect();
    with_choices(random, lines.join("\n"))
}

/// A value of some column of an action.
pub fn value(random: &mut Random) -> Input {
    let text = match random.below(8) {
        0 => any_text(random),
        1 => span_text(random),
        2 => backoff(random).text,
        3 => zone(random).text,
        4 => random
            .pick(&[
                "",
                " ",
                "once",
                "skip",
                "allow",
                "first",
                "both",
                "all",
                "none",
                "roll_forward",
            ])
            .to_owned(),
        5 => random
            .pick(&[
                "{}",
                "[]",
                r#"{"a":"b"}"#,
                r#"{"a":1}"#,
                "null",
                r#"{"a":{}}"#,
                "{",
            ])
            .to_owned(),
        6 => "n".repeat(random.within(250, 260) as usize),
        _ => near(random, 0, i64::from(i32::MAX)).to_string(),
    };
    with_choices(random, text)
}

/// Connection strings.
pub fn connection(random: &mut Random) -> Input {
    const OPTIONS: &[&str] = &[
        "sslmode=require",
        "sslmode=verify-full",
        "sslmode=disable",
        "sslmode=allow",
        "sslmode=prefer",
        "sslmode",
        "sslrootcert=system",
        "sslrootcert=/ca.pem",
        "application_name=x",
        "connect_timeout=5",
        "sslmode='verify-ca'",
        "sslrootcert='a b'",
        "password='it\\'s'",
        "dbname=app",
        "sslrootcert=%2Fa%20b",
        "host=db",
    ];
    let count = random.below(4);
    let options: Vec<&str> = (0..count).map(|_| random.pick(OPTIONS)).collect();
    let text = match random.one_in(2) {
        true => options.join(random.pick(&[" ", "  ", "\t"])),
        false => {
            let start = random.pick(&[
                "postgres://db/app",
                "postgresql://u:p?q@db",
                "postgres://u@db:5432/app",
                "postgres://",
            ]);
            format!("{start}?{}", options.join("&"))
        }
    };
    Input::new(text, Vec::new())
}
