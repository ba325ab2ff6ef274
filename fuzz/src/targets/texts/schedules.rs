//! Schedules in each notation, and names of zones.

use super::{list, near, with_choices};
use crate::input::Input;
use crate::naive::clock::CHANGES;
use crate::random::Random;
use chrono_tz::TZ_VARIANTS;

const WEEKDAYS: &[&str] = &["SUN", "MON", "tue", "Wed", "THU", "FRI", "SAT"];
const MONTHS: &[&str] = &[
    "JAN", "feb", "MAR", "Apr", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];

fn cron_value(random: &mut Random, min: i64, max: i64) -> String {
    let is_named = random.one_in(3);
    match (min, max) {
        (0, 7) if is_named => random.pick(WEEKDAYS).to_owned(),
        (1, 12) if is_named => random.pick(MONTHS).to_owned(),
        _ => near(random, min, max).to_string(),
    }
}

fn cron_item(random: &mut Random, min: i64, max: i64) -> String {
    let one = cron_value(random, min, max);
    match random.below(12) {
        0..=3 => one,
        4 | 5 => {
            let (a, b) = (random.within(min, max), random.within(min, max));
            format!("{}-{}", a.min(b), a.max(b))
        }
        6 => format!("{one}-{}", cron_value(random, min, max)),
        7 => {
            let (a, b) = (random.within(min, max), random.within(min, max));
            format!("{}-{}/{}", a.min(b), a.max(b), near(random, 1, max))
        }
        8 => format!("*/{}", near(random, 1, max)),
        9 if max == 31 => random
            .pick(&[
                "L", "LW", "$", "*", "15W", "1W", "31W", "30W", "29W", "29", "30", "31",
            ])
            .to_owned(),
        10 if max == 31 => format!("{}W", near(random, 1, 31)),
        9 if max == 7 => format!(
            "{one}#{}",
            random.pick(&["1", "2", "3", "4", "5", "L", "0", "6"])
        ),
        10 if max == 7 => format!("{one}L"),
        11 if max == 7 => format!(
            "{one}-{}#{}",
            cron_value(random, min, max),
            random.pick(&["1", "5", "L"])
        ),
        _ => one,
    }
}

fn cron_field(random: &mut Random, min: i64, max: i64, any: usize) -> String {
    match random.below(10) < any {
        true => "*".to_owned(),
        false => list(random, 3, |random| cron_item(random, min, max)),
    }
}

fn cron_text(random: &mut Random) -> String {
    let mut fields = Vec::new();
    let form = random.below(8);
    if form >= 5 {
        fields.push(cron_field(random, 0, 59, 3));
    }
    fields.push(cron_field(random, 0, 59, 2));
    fields.push(cron_field(random, 0, 23, 3));
    fields.push(cron_field(random, 1, 31, 5));
    fields.push(cron_field(random, 1, 12, 6));
    let weekday = cron_field(random, 0, 7, 5);
    fields.push(if random.one_in(5) {
        format!("+{weekday}")
    } else {
        weekday
    });
    if form == 7 {
        fields.push(match random.one_in(3) {
            true => cron_field(random, 1970, 9999, 2),
            false => cron_field(random, 2000, 2050, 2),
        });
    }
    fields.join(random.pick(&[" ", " ", " ", "  ", "\t"]))
}

/// Cron expressions.
pub fn cron(random: &mut Random) -> Input {
    let text = cron_text(random);
    with_choices(random, text)
}

/// Nicknames and presets.
pub fn nickname(random: &mut Random) -> Input {
    const NAMES: &[&str] = &[
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
        "@reboot",
        "hourly",
        "daily",
        "Daily",
        "WEEKLY",
        "weekly",
        "monthly",
        "yearly",
        "@minutely",
        "annually",
        "midnight",
        "@",
        "@@daily",
        "@daily ",
        " @Daily",
    ];
    let name = random.pick(NAMES);
    let text = match random.below(4) {
        0 => name.to_uppercase(),
        1 => format!(" {name}\t"),
        _ => name.to_owned(),
    };
    Input::new(text, Vec::new())
}

fn count(random: &mut Random) -> String {
    match random.below(12) {
        0 => "0".to_owned(),
        1 => format!("00{}", random.below(100)),
        2 => random
            .pick(&[
                "12000",
                "12001",
                "366000",
                "366001",
                "4294967295",
                "4294967296",
            ])
            .to_owned(),
        3 => random
            .pick(&[
                "9999999999",
                "10000000000",
                "99999999999",
                "18446744073709551616",
            ])
            .to_owned(),
        4 => random
            .pick(&[
                "1193046", "1193047", "71582788", "71582789", "52285", "52286",
            ])
            .to_owned(),
        _ => random.below(1_000).to_string(),
    }
}

/// Intervals in shorthand and in words.
pub fn interval(random: &mut Random) -> Input {
    let number = count(random);
    let text = match random.below(3) {
        0 => {
            let unit = |random: &mut Random| {
                random.pick(&[
                    "second", "secs", "minutes", "min", "Hour", "days", "week", "months", "years",
                    "hr",
                ])
            };
            let (start, one, other) = (
                random.pick(&["every ", "", "Every ", "every"]),
                unit(random),
                unit(random),
            );
            match random.below(4) {
                0 => format!("{start}{one}"),
                1 => format!("{start}{number} {one} {} {other}", count(random)),
                _ => format!("{start}{number} {one}"),
            }
        }
        1 => format!(
            "{number}{}",
            random.pick(&["s", "m", "h", "d", "w", "mo", "y", "M", "", "ms", "min"])
        ),
        _ => {
            let unit = random.pick(&[
                "second", "minute", "hour", "day", "week", "month", "year", "s", "", "days ",
            ]);
            format!(
                "every-{number}-{unit}{}",
                random.pick(&["s", "s", "", "ss"])
            )
        }
    };
    Input::new(text, Vec::new())
}

/// ISO 8601 durations.
pub fn iso8601(random: &mut Random) -> Input {
    let mut text = "P".to_owned();
    let mut part = |random: &mut Random, designator: &str, chance: usize| {
        if random.one_in(chance) {
            let number = count(random);
            let fraction = match random.below(6) {
                0 => random.pick(&[
                    ".5",
                    ",25",
                    ".1",
                    ".",
                    ".000000001",
                    ".0000000001",
                    ".016666667",
                ]),
                _ => "",
            };
            text += &format!("{number}{fraction}{designator}");
        }
    };
    let chance = 2 + random.below(5);
    for designator in ["Y", "M", "W", "D", "T", "H", "M", "S"] {
        match designator {
            "T" if !random.one_in(3) => part(random, "DT", 3),
            "T" => part(random, "T", 8),
            _ => part(random, designator, chance),
        }
    }
    if random.one_in(2) {
        text = text.replacen("DT", "D", 1);
        text = format!(
            "{text}T{}{}",
            count(random),
            random.pick(&["H", "M", "S", "D", ""])
        );
    }
    Input::new(text, Vec::new())
}

fn rule_text(random: &mut Random) -> String {
    let unit = random.pick(&[
        "minute", "hour", "day", "week", "month", "month", "week", "year",
    ]);
    let every = match random.below(10) {
        0 => random
            .pick(&[
                "0", "12000", "52000", "366000", "60000000", "60000001", "1.0", "\"2\"",
            ])
            .to_owned(),
        1 | 2 => random.within(5, 400).to_string(),
        _ => random.within(1, 4).to_string(),
    };
    let mut keys = vec![format!(r#""every":{every}"#), format!(r#""unit":"{unit}""#)];
    if random.one_in(3) {
        let days = list(random, 5, |random| match random.one_in(3) {
            true => near(random, 1, 7).to_string(),
            false => format!(
                "\"{}\"",
                random.pick(&["mon", "Tue", "wednesday", "thu", "FRI", "sat", "sun", "su"])
            ),
        });
        keys.push(format!(r#""days_of_week":[{days}]"#));
    }
    if random.one_in(4) {
        keys.push(format!(
            r#""week_parity":"{}""#,
            random.pick(&["odd", "even", "even", "both"])
        ));
    }
    if random.one_in(4) {
        keys.push(format!(
            r#""between_hours":[{},{}]"#,
            near(random, 0, 23),
            near(random, 0, 24)
        ));
    }
    if random.one_in(if unit == "month" { 3 } else { 20 }) {
        keys.push(format!(r#""day_of_month":{}"#, near(random, -1, 31)));
    } else if random.one_in(if unit == "month" { 3 } else { 20 }) {
        let nth = random.pick(&["1", "2", "4", "5", "-1", "0", "6"]);
        keys.push(format!(
            r#""nth_weekday":{{"nth":{nth},"day":{}}}"#,
            near(random, 1, 7)
        ));
    }
    if random.one_in(2) {
        keys.reverse();
    }
    // The spellings of other systems.
    if random.one_in(6) {
        let others = [
            ("days_of_week", "daysOfWeek"),
            ("between_hours", "betweenHours"),
            ("every", "everyInterval"),
        ];
        let (own, other) = others[random.below(others.len())];
        for key in &mut keys {
            *key = key.replacen(&format!("\"{own}\""), &format!("\"{other}\""), 1);
        }
    }
    if random.one_in(30) {
        let key = random.pick(&[
            r#""extra":1"#,
            r#""week_parity":null"#,
            r#""weekParity":"any""#,
            r#""everyUnit":"day""#,
        ]);
        keys.push(key.to_owned());
    }
    format!("{{{}}}", keys.join(random.pick(&[",", ", "])))
}

/// Structured rules.
pub fn rule(random: &mut Random) -> Input {
    let text = rule_text(random);
    with_choices(random, text)
}

fn signed(random: &mut Random, max: i64) -> String {
    let sign = random.pick(&["", "", "-", "+"]);
    format!("{sign}{}", near(random, 1, max))
}

fn rrule_text(random: &mut Random) -> String {
    const DAYS: &[&str] = &["MO", "TU", "WE", "TH", "fr", "SA", "SU"];
    const FREQS: &[&str] = &[
        "YEARLY", "MONTHLY", "WEEKLY", "DAILY", "DAILY", "HOURLY", "MINUTELY", "secondly",
    ];
    let freq = random.pick(FREQS);
    let mut parts = vec![format!("FREQ={freq}")];
    let mut add =
        |random: &mut Random, chance: usize, name: &str, value: &dyn Fn(&mut Random) -> String| {
            if random.one_in(chance) {
                parts.push(format!("{name}={}", value(random)));
            }
        };
    let is_coarse = matches!(freq, "YEARLY" | "MONTHLY");
    add(random, 2, "INTERVAL", &|random| {
        near(random, 1, 6).to_string()
    });
    add(random, 12, "INTERVAL", &|random| {
        near(random, 7, 3_000).to_string()
    });
    add(random, 6, "COUNT", &|random| {
        near(random, 1, 30).to_string()
    });
    add(random, 12, "UNTIL", &|random| stamp(random));
    add(random, 5, "WKST", &|random| random.pick(DAYS).to_owned());
    add(random, 4, "BYMONTH", &|random| {
        list(random, 3, |random| near(random, 1, 12).to_string())
    });
    add(
        random,
        if freq == "YEARLY" { 6 } else { 60 },
        "BYWEEKNO",
        &|random| list(random, 2, |r| signed(r, 53)),
    );
    add(random, 16, "BYYEARDAY", &|random| {
        list(random, 3, |random| signed(random, 366))
    });
    add(random, 4, "BYMONTHDAY", &|random| {
        list(random, 3, |random| signed(random, 31))
    });
    add(random, 3, "BYDAY", &|random| {
        list(random, 3, |random| match is_coarse && random.one_in(2) {
            true => format!("{}{}", signed(random, 5), random.pick(DAYS)),
            false => random.pick(DAYS).to_owned(),
        })
    });
    add(random, 4, "BYHOUR", &|random| {
        list(random, 3, |random| near(random, 0, 23).to_string())
    });
    add(random, 4, "BYMINUTE", &|random| {
        list(random, 3, |random| near(random, 0, 59).to_string())
    });
    add(random, 8, "BYSECOND", &|random| {
        list(random, 2, |random| near(random, 0, 60).to_string())
    });
    add(random, 8, "BYSETPOS", &|random| {
        list(random, 2, |random| signed(random, 6))
    });
    let mut text = format!(
        "{}{}",
        random.pick(&["RRULE:", "RRULE:", "rrule:"]),
        parts.join(";")
    );
    for name in ["EXDATE", "RDATE"] {
        if random.one_in(10) {
            text += &format!("\n{name}:{}", list(random, 3, stamp));
        }
    }
    text
}

fn stamp(random: &mut Random) -> String {
    let (month, day) = (near(random, 1, 12), near(random, 1, 31));
    let date = format!("{:04}{month:02}{day:02}", random.within(2020, 2030));
    match random.below(8) {
        0 => date,
        1..=4 => format!(
            "{date}T{:02}{:02}00",
            random.within(0, 23),
            random.pick(&["00", "30"])
        ),
        _ => format!(
            "{date}T{:02}{:02}{:02}Z",
            random.within(0, 23),
            near(random, 0, 59),
            near(random, 0, 60)
        ),
    }
}

/// RFC 5545 rules.
pub fn rrule(random: &mut Random) -> Input {
    let text = rrule_text(random);
    with_choices(random, text)
}

fn at_text(random: &mut Random) -> String {
    let year = random.pick(&[
        "2027", "2024", "0001", "9999", "0000", "1970", "2026", "10000",
    ]);
    let (month, day) = (near(random, 1, 12), near(random, 1, 31));
    let separator = random.pick(&["T", " ", "t"]);
    let (hour, minute) = (near(random, 0, 23), near(random, 0, 59));
    let mut text = format!("{year}-{month:02}-{day:02}{separator}{hour:02}:{minute:02}");
    if !random.one_in(4) {
        text += &format!(":{:02}", near(random, 0, 60));
        text += random.pick(&["", "", "", ".5", ".000000001", ".1234567890", ".", ".250"]);
    }
    text += random.pick(&[
        "", "", "Z", "z", "+01:00", "-0330", "+14", "+24:00", "-00:00", "+1:00", "+05:60",
    ]);
    format!("{}{text}", random.pick(&["at ", "at ", "AT ", "at  "]))
}

/// Single times.
pub fn at(random: &mut Random) -> Input {
    Input::new(at_text(random), Vec::new())
}

/// Names of time zones.
pub fn zone(random: &mut Random) -> Input {
    let name = match random.below(4) {
        0 => CHANGES[random.below(CHANGES.len())].0,
        _ => TZ_VARIANTS[random.below(TZ_VARIANTS.len())].name(),
    };
    let name = match random.below(5) {
        0 => name.to_ascii_lowercase(),
        1 => name.to_ascii_uppercase(),
        2 => format!(" {name}"),
        _ => name.to_owned(),
    };
    with_choices(random, name)
}

pub(super) fn any_text(random: &mut Random) -> String {
    match random.below(12) {
        0..=3 => cron_text(random),
        4 | 5 => rule_text(random),
        6 | 7 => rrule_text(random),
        8 => at_text(random),
        9 => nickname(random).text,
        10 => iso8601(random).text,
        _ => interval(random).text,
    }
}

/// Schedules in any notation.
pub fn schedule(random: &mut Random) -> Input {
    let text = any_text(random);
    with_choices(random, text)
}

/// What stands between two schedules that are compared.
pub const BETWEEN: char = '\u{1f}';

/// Two schedules that differ little.
pub fn pair(random: &mut Random) -> Input {
    let one = any_text(random);
    let (same, another) = (
        Input::new(one.clone(), Vec::new()),
        Input::new(any_text(random), Vec::new()),
    );
    let other = crate::mutate::mutate(random, &same, &another);
    with_choices(random, format!("{one}{BETWEEN}{}", other.text))
}
