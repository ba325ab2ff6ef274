//! The claim cursor, as a state machine that drives a queue in memory.

use crate::input::{Choices, Input};
use crate::naive::queue::{Queue, State};
use crate::target::Signature;
use chrono::{DateTime, TimeDelta, Utc};
use recur_core::cursor::{Claim, Filter, MAX_TRUST, Memory, Step, TRUST_FACTOR};

/// No claim of so small a queue takes more steps.
const MOST_STEPS: usize = 60;

#[derive(Default)]
struct Session {
    memory: Memory,
    /// Until when the cursors of the two filters may be trusted.
    trusted_until: [Option<DateTime<Utc>>; 2],
    cursors_used: usize,
    cursors_moved: usize,
}

/// Claims between random changes of the queue.
pub fn cursor(input: &Input) -> Signature {
    let mut choices = input.choices();
    let mut queue = Queue::default();
    queue.micros = 1_000_000_000;
    queue.micros_each = choices.pick(&[400, 1, 30, 5_000]);
    let mut session = Session::default();
    let mut claimed = 0;
    while !choices.is_empty() {
        match choices.below(8) {
            0..=2 => add(&mut queue, &mut choices),
            3..=5 => claimed += session.claim(&mut queue, &mut choices),
            6 => {
                let state = choices.pick(&[State::Running, State::Running, State::Pending]);
                let ids = queue.in_state(state);
                if !ids.is_empty() {
                    let id = ids[choices.below(ids.len())];
                    // A dispatch that is given back keeps its place.
                    let after = if choices.one_in(4) {
                        State::Pending
                    } else {
                        State::Dead
                    };
                    queue.set(id, after);
                }
            }
            _ => queue.micros += choices.pick(&[1_000, 100_000, 10_000_000, 61_000_000]),
        }
    }
    Signature::of_numbers(&[
        claimed.min(12),
        session.cursors_used.min(6),
        session.cursors_moved.min(4),
    ])
}

fn add(queue: &mut Queue, choices: &mut Choices<'_>) {
    for _ in 0..=choices.below(4) {
        let priority = choices.pick(&[0, 0, 5, -1]);
        // In the past, now, or later.
        let available_at = queue.micros + choices.pick(&[0, 0, -3_000_000, 2_000_000]);
        let group = choices.one_in(4).then(|| choices.below(2) as u8);
        queue.add(priority, available_at, !choices.one_in(3), group);
    }
}

impl Session {
    fn claim(&mut self, queue: &mut Queue, choices: &mut Choices<'_>) -> usize {
        let of_type = choices.one_in(2);
        let limit = choices.pick(&[1, 1, 2, 5, 0]);
        let mut filter = Filter::of_role(10);
        if of_type {
            filter = filter.with_action_types(Some(vec!["x".to_owned()]));
        }
        let began = queue.now();
        queue.began = queue.micros;
        let expected = queue.expected(of_type, limit);
        let mut claim = Claim::start(&self.memory, filter, limit as u32, began);
        let (mut claimed, mut used_cursor, mut steps) = (Vec::new(), false, 0);
        let mut take_began = began;
        loop {
            steps += 1;
            assert!(steps < MOST_STEPS, "the claim does not end");
            match claim.step() {
                Step::FindPriority { below, above } => {
                    claim.found_priority(queue.highest(below, above))
                }
                Step::Take {
                    priority,
                    from,
                    only_if_highest,
                    limit: wanted,
                } => {
                    assert_eq!(
                        wanted as usize,
                        limit - claimed.len(),
                        "what is left to claim"
                    );
                    let until = self.trusted_until[usize::from(of_type)];
                    assert!(
                        from.is_none() || until.is_some_and(|until| began < until),
                        "a cursor outlives its trust"
                    );
                    used_cursor |= from.is_some();
                    take_began = queue.now();
                    let is_preempted =
                        only_if_highest && queue.highest(None, Some(priority)).is_some();
                    let most = if is_preempted { 0 } else { wanted as usize };
                    let (taken, cost) = queue.take(of_type, priority, from, most);
                    claim.took(taken.len() as u32, cost);
                    claimed.extend(taken);
                }
                Step::MoveCursor { priority, from } => {
                    let (position, cost) = queue.first_claimable(of_type, priority, from);
                    claim.moved_cursor(position, cost);
                    self.cursors_moved += 1;
                    if from.is_none() {
                        let elapsed = (cost.ended - take_began).min(MAX_TRUST);
                        let trust = (elapsed * TRUST_FACTOR)
                            .min(MAX_TRUST)
                            .max(TimeDelta::zero());
                        self.trusted_until[usize::from(of_type)] = Some(cost.ended + trust);
                    }
                }
                Step::Done => break,
            }
        }
        claim.finish(&mut self.memory);
        self.cursors_used += usize::from(used_cursor);
        let priorities = |claimed: &[(i32, u32)]| -> Vec<i32> {
            claimed.iter().map(|(priority, _)| *priority).collect()
        };
        assert_eq!(
            priorities(&claimed),
            priorities(&expected),
            "as much as could be claimed, the highest first"
        );
        if !used_cursor {
            assert_eq!(claimed, expected, "in the order of the index");
        }
        claimed.len()
    }
}
