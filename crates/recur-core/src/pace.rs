//! Which action types are so fast that several calls of their handlers share a transaction.
//!
//! A type earns it by calls alone that were fast and left nothing behind, and loses it when a call holds up the others.
//! Each time it does, it needs twice as many calls alone, up to a limit; a group that goes well halves the number.

use std::collections::HashMap;
use std::time::Duration;

/// At most this many calls share a transaction. More than 64 subtransactions would slow down every other session.
pub const MOST_TOGETHER: usize = 50;
/// A call that takes longer does not share a transaction: others wait for the rows that it has locked.
const FAST: Duration = Duration::from_millis(5);
/// This many fast calls alone come before the first group.
const FIRST_ALONE: u32 = 4;
/// A type that has held up groups again and again is tried at least once in this many calls.
const MOST_ALONE: u32 = 1024;
/// Of more types than this nothing is known.
const MOST_TYPES: usize = 1000;

/// What is known of the calls of one process.
#[derive(Debug, Default)]
pub struct Pace {
    types: HashMap<String, Type>,
}

#[derive(Debug)]
struct Type {
    /// How many fast calls alone are still to come.
    left_alone: u32,
    /// How many will be after the next trouble.
    penalty: u32,
    /// How long a call has taken lately.
    usual: Duration,
}

impl Type {
    const NEW: Type = Type {
        left_alone: FIRST_ALONE,
        penalty: FIRST_ALONE,
        usual: Duration::ZERO,
    };

    /// The latest call counts for a quarter.
    fn note(&mut self, took: Duration) {
        self.usual = match self.usual.is_zero() {
            true => took,
            false => (self.usual * 3 + took) / 4,
        };
    }

    fn punish(&mut self) {
        self.penalty = (self.penalty * 2).min(MOST_ALONE);
        self.left_alone = self.penalty;
    }
}

impl Pace {
    /// A call alone went well. `is_fit` says whether it has left nothing behind that others could see.
    pub fn ran_alone(&mut self, action_type: &str, took: Duration, is_fit: bool) {
        if !self.types.contains_key(action_type) {
            if self.types.len() >= MOST_TYPES {
                self.types.clear();
            }
            self.types.insert(action_type.to_owned(), Type::NEW);
        }
        if let Some(known) = self.types.get_mut(action_type) {
            known.note(took);
            match is_fit && took <= FAST {
                true => known.left_alone = known.left_alone.saturating_sub(1),
                false => known.punish(),
            }
        }
    }

    /// A group with calls of the type was committed, and none of them held it up. Each has taken about this long.
    pub fn ran_in_group(&mut self, action_type: &str, took: Duration) {
        if let Some(known) = self.types.get_mut(action_type) {
            known.note(took);
            known.penalty = (known.penalty / 2).max(FIRST_ALONE);
        }
    }

    /// A call of the type held up a group, or left something behind.
    pub fn held_up(&mut self, action_type: &str) {
        if let Some(known) = self.types.get_mut(action_type) {
            known.punish();
        }
    }

    /// The types whose calls may share a transaction.
    pub fn groupable(&self) -> Vec<&str> {
        let fast = self.types.iter().filter(|(_, known)| known.left_alone == 0);
        fast.map(|(name, _)| name.as_str()).collect()
    }

    /// How many calls of those types fit into this time: what is locked and not called is kept from others.
    pub fn fit_into(&self, time: Duration) -> usize {
        let groupable = self.types.values().filter(|known| known.left_alone == 0);
        let usual = groupable.map(|known| known.usual).max();
        let usual = usual.unwrap_or_default().max(Duration::from_micros(1));
        let number = time.as_nanos() / usual.as_nanos();
        usize::try_from(number).map_or(MOST_TOGETHER, |number| number.clamp(1, MOST_TOGETHER))
    }

    /// Is there any such type?
    pub fn has_groupable(&self) -> bool {
        self.types.values().any(|known| known.left_alone == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_micros(100);

    fn calls_until_groupable(pace: &mut Pace) -> u32 {
        (1..=5000)
            .find(|_| {
                pace.ran_alone("a", QUICK, true);
                pace.has_groupable()
            })
            .unwrap_or_default()
    }

    #[test]
    fn a_type_earns_groups_by_fast_calls() {
        let mut pace = Pace::default();
        assert_eq!(calls_until_groupable(&mut pace), FIRST_ALONE);
        assert_eq!(pace.groupable(), ["a"]);
        pace.ran_alone("slow", Duration::from_millis(6), true);
        for _ in 0..5000 {
            pace.ran_alone("slow", Duration::from_millis(6), true);
            pace.ran_alone("unfit", QUICK, false);
        }
        assert_eq!(pace.groupable(), ["a"]);
    }

    #[test]
    fn trouble_costs_more_each_time_and_is_forgotten() {
        let mut pace = Pace::default();
        calls_until_groupable(&mut pace);
        let mut needed = Vec::new();
        for _ in 0..10 {
            pace.held_up("a");
            assert!(!pace.has_groupable());
            needed.push(calls_until_groupable(&mut pace));
        }
        assert_eq!(needed[..3], [8, 16, 32]);
        assert_eq!(needed[9], MOST_ALONE);
        for _ in 0..20 {
            pace.ran_in_group("a", QUICK);
        }
        pace.held_up("a");
        assert_eq!(calls_until_groupable(&mut pace), 2 * FIRST_ALONE);
    }

    #[test]
    fn a_slow_call_takes_the_groups_away() {
        let mut pace = Pace::default();
        calls_until_groupable(&mut pace);
        pace.ran_alone("a", Duration::from_secs(1), true);
        assert!(!pace.has_groupable());
    }

    #[test]
    fn the_number_of_types_is_bounded() {
        let mut pace = Pace::default();
        for number in 0..3 * MOST_TYPES {
            pace.ran_alone(&format!("type {number}"), QUICK, true);
        }
        assert!(pace.types.len() <= MOST_TYPES);
        pace.held_up("unknown");
        pace.ran_in_group("unknown", QUICK);
    }

    #[test]
    fn slower_calls_make_smaller_groups() {
        let time = Duration::from_millis(20);
        let mut pace = Pace::default();
        calls_until_groupable(&mut pace);
        assert_eq!(pace.fit_into(time), MOST_TOGETHER);
        for _ in 0..100 {
            pace.ran_in_group("a", Duration::from_millis(4));
        }
        assert_eq!(pace.fit_into(time), 5);
        for _ in 0..100 {
            pace.ran_in_group("a", Duration::from_secs(1));
        }
        assert_eq!(pace.fit_into(time), 1);
    }
}
