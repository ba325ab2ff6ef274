//! Generators: texts that are valid or nearly so, with a preference for edges.

mod journeys;
mod schedules;
mod values;

pub use journeys::journey;
pub use schedules::{
    BETWEEN, at, cron, interval, iso8601, nickname, pair, rrule, rule, schedule, zone,
};
pub use values::{backoff, connection, names, pattern, span, value};

use crate::input::Input;
use crate::random::Random;

/// Choices are rarely needed beyond this number.
const CHOICES: usize = 24;

fn with_choices(random: &mut Random, text: String) -> Input {
    Input::new(text, random.bytes(CHOICES))
}

/// Targets that build what they test from choices alone.
pub fn choices_only(random: &mut Random) -> Input {
    let count = 8 + random.below(56);
    let mut choices = random.bytes(count);
    // Small numbers are edges.
    if random.one_in(3) {
        choices.iter_mut().for_each(|byte| *byte %= 4);
    }
    Input::new("", choices)
}

/// A long run of operations.
pub fn operations(random: &mut Random) -> Input {
    let count = 20 + random.below(240);
    Input::new("", random.bytes(count))
}

/// A value of a range, or one just outside of it.
fn near(random: &mut Random, min: i64, max: i64) -> i64 {
    match random.below(24) {
        0 => min - 1,
        1 => max + 1,
        2 | 3 => min,
        4 | 5 => max,
        _ => random.within(min, max),
    }
}

fn list(random: &mut Random, most: usize, mut item: impl FnMut(&mut Random) -> String) -> String {
    let count = match random.below(4) {
        0 | 1 => 1,
        _ => 1 + random.below(most),
    };
    let items: Vec<String> = (0..count).map(|_| item(random)).collect();
    items.join(",")
}
