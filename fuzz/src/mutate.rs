//! Changes of an input that keep most of it.

use crate::input::Input;
use crate::random::Random;

/// Fragments of all notations, for texts of any kind.
const PIECES: &[&str] = &[
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
    "  ",
    "\t",
    "\n",
    "0",
    "00",
    "1",
    "2",
    "5",
    "7",
    "23",
    "24",
    "28",
    "29",
    "30",
    "31",
    "53",
    "59",
    "60",
    "366",
    "1970",
    "9999",
    "10000",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    "SUN",
    "MON",
    "fri",
    "JAN",
    "@daily",
    "@",
    "P",
    "T",
    "PT",
    "D",
    "M",
    "Y",
    "H",
    "S",
    ".",
    ".5",
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
    "\\",
    "null",
    "true",
    "-1",
    "1e9",
    "1.0",
    "\"every\":",
    "\"unit\":",
    "\"day_of_month\":",
    "RRULE:",
    ";",
    "FREQ=YEARLY",
    ";BYSETPOS=-1",
    ";BYDAY=5SU",
    ";COUNT=3",
    ";UNTIL=",
    "\nEXDATE:",
    "\nRDATE:",
    "at ",
    "2027-01-31",
    "T09:00:00",
    "20270131T090000",
    "Z",
    "+01:30",
    "-00:00",
    " days",
    " mons",
    "infinity",
    "é",
    "ü",
    "\u{1f4a9}",
    "\u{0}",
    "\u{a0}",
    "\u{661}",
    "'",
    "&",
    "=",
    "%20",
    "?sslmode=",
    "sslrootcert=",
];

/// An input like this one, or like a mixture of both.
pub fn mutate(random: &mut Random, input: &Input, other: &Input) -> Input {
    let mut mutated = input.clone();
    let changes_text = !input.text.is_empty() || !other.text.is_empty();
    let changes_choices = !input.choices.is_empty();
    for _ in 0..=random.below(4) {
        if changes_text && (!changes_choices || random.one_in(2)) {
            change_text(random, &mut mutated.text, &other.text);
        } else if changes_choices {
            change_choices(random, &mut mutated.choices, &other.choices);
        }
    }
    mutated
}

/// Longer texts are refused by their length alone.
const LONGEST: usize = 4_000;

fn change_text(random: &mut Random, text: &mut String, other: &str) {
    let at = boundary(text, random.below(text.len() + 1));
    let end = boundary(text, (at + random.below(5)).min(text.len()));
    match random.below(9) {
        0 => text.replace_range(at..end, ""),
        1 => text.replace_range(at..end, random.pick(PIECES)),
        2 => text.insert_str(at, random.pick(PIECES)),
        3 => {
            let piece = text[at..end].to_owned();
            text.insert_str(at, &piece);
        }
        4 => {
            let from = boundary(other, random.below(other.len() + 1));
            let until = boundary(other, (from + random.below(12)).min(other.len()));
            text.replace_range(at..end, &other[from..until]);
        }
        5 | 6 => change_number(random, text, at),
        7 => {
            let changed = match random.one_in(2) {
                true => text[at..end].to_uppercase(),
                false => text[at..end].to_lowercase(),
            };
            text.replace_range(at..end, &changed);
        }
        _ => {
            let from = boundary(other, random.below(other.len() + 1));
            text.replace_range(at.., &other[from..]);
        }
    }
    if text.len() > LONGEST {
        let end = boundary(text, LONGEST);
        text.truncate(end);
    }
}

/// Puts another number in the place of the one behind a position: a neighbour, or an edge.
fn change_number(random: &mut Random, text: &mut String, at: usize) {
    let Some(start) = text[at..].find(|c: char| c.is_ascii_digit()) else {
        return;
    };
    let start = at + start;
    let length = text[start..].bytes().take_while(u8::is_ascii_digit).count();
    let number: i128 = text[start..start + length].parse().unwrap_or(0);
    let changed = match random.below(6) {
        0 => number + 1,
        1 => number - 1,
        2 => number * 2,
        3 => number / 2,
        4 => i128::from(random.within(0, 70)),
        _ => i128::from(random.within(0, 10_000)),
    };
    text.replace_range(start..start + length, &changed.to_string());
}

fn change_choices(random: &mut Random, choices: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(choices.len());
    match random.below(6) {
        0 if choices.len() > 1 => drop(choices.remove(at)),
        1 => choices.insert(at, random.any() as u8),
        2 => choices[at] = choices[at].wrapping_add(1),
        3 => choices[at] = choices[at].wrapping_sub(1),
        4 if !other.is_empty() => {
            let from = random.below(other.len());
            let until = (from + random.below(8)).min(other.len());
            choices.splice(at.., other[from..until].iter().copied());
        }
        _ => choices[at] = random.any() as u8,
    }
    if choices.is_empty() {
        choices.push(0);
    }
    choices.truncate(LONGEST);
}

/// The nearest boundary of characters at or before a position.
pub fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
