//! The state machine drives a small queue in memory, whose index keeps an entry for every dispatch that was ever
//! pending.

mod behaviour;
mod memory;
mod model;

use super::*;
use chrono::{DateTime, Utc};
use model::{Dispatch, Queue};

/// Claims as one session does, and says which dispatches it got.
struct Session {
    memory: Memory,
    filter: Filter,
    /// What the last claim did.
    steps: Vec<Step>,
}

impl Session {
    fn new(filter: Filter) -> Session {
        Session {
            memory: Memory::new(),
            filter,
            steps: Vec::new(),
        }
    }

    fn claim(&mut self, queue: &mut Queue, limit: u32) -> Vec<u32> {
        let mut claim = Claim::start(&self.memory, self.filter.clone(), limit, queue.clock());
        let mut claimed = Vec::new();
        self.steps.clear();
        queue.begin_claim();
        loop {
            let step = claim.step();
            self.steps.push(step);
            match step {
                Step::FindPriority { below, above } => {
                    claim.found_priority(queue.find_priority(below, above));
                }
                Step::Take {
                    priority,
                    from,
                    only_if_highest,
                    limit,
                } => {
                    let filter = self.action_type();
                    let (ids, cost) = queue.take(filter, priority, from, only_if_highest, limit);
                    claim.took(ids.len() as u32, cost);
                    claimed.extend(ids);
                }
                Step::MoveCursor { priority, from } => {
                    let filter = self.action_type();
                    let (position, cost) = queue.first_claimable(filter, priority, from);
                    claim.moved_cursor(position, cost);
                }
                Step::Done => break,
            }
        }
        claim.finish(&mut self.memory);
        claimed
    }

    /// The tests' filters are one action type, or all.
    fn action_type(&self) -> Option<&'static str> {
        match self.filter == only("x") {
            true => Some("x"),
            false => None,
        }
    }

    fn moved_cursor(&self) -> bool {
        let moves = |step: &Step| matches!(step, Step::MoveCursor { .. });
        self.steps.iter().any(moves)
    }

    /// Did the last claim begin at a cursor?
    fn used_cursor(&self) -> bool {
        let used = |step: &Step| matches!(step, Step::Take { from: Some(_), .. });
        self.steps.iter().any(used)
    }
}

fn all() -> Filter {
    Filter::of_role(10)
}

fn only(action_type: &str) -> Filter {
    all().with_action_types(Some(vec![action_type.to_owned()]))
}

/// A small generator of numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
