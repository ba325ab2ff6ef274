//! A queue as the database has it, as far as claims see it: an ordered index with dead entries, and a clock that runs
//! while the index is scanned.

use super::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Pending,
    Running,
    /// Finished, and still in the index.
    Dead,
}

#[derive(Clone, Copy, Debug)]
pub struct Dispatch {
    pub priority: i32,
    pub available_at: i64,
    pub action_type: &'static str,
    pub lock_group: Option<u32>,
}

/// Priority from the highest on, then position, then id.
type Key = (Reverse<i32>, Position, u32);

const FIRST: Position = Position {
    available_at: i64::MIN,
    created_at: i64::MIN,
};
const LAST: Position = Position {
    available_at: i64::MAX,
    created_at: i64::MAX,
};

pub struct Queue {
    index: BTreeMap<Key, (Dispatch, State)>,
    keys: Vec<Key>,
    busy_groups: BTreeSet<u32>,
    pub micros: i64,
    /// When the current claim began: it sees what is available by then.
    began: i64,
    /// How many entries all scans have visited, a microsecond each.
    pub visited: u64,
}

impl Queue {
    pub fn new() -> Queue {
        Queue {
            index: BTreeMap::new(),
            keys: Vec::new(),
            busy_groups: BTreeSet::new(),
            micros: 1_000_000_000,
            began: 0,
            visited: 0,
        }
    }

    pub fn clock(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.micros).unwrap()
    }

    pub fn begin_claim(&mut self) {
        self.began = self.micros;
    }

    pub fn add(&mut self, dispatch: Dispatch) -> u32 {
        let id = self.keys.len() as u32;
        let position = Position {
            available_at: dispatch.available_at,
            created_at: self.micros,
        };
        let key = (Reverse(dispatch.priority), position, id);
        self.keys.push(key);
        self.index.insert(key, (dispatch, State::Pending));
        self.micros += 1;
        id
    }

    /// A dispatch of type `x` that is available now.
    pub fn add_now(&mut self, priority: i32) -> u32 {
        let available_at = self.micros;
        self.add(Dispatch {
            priority,
            available_at,
            action_type: "x",
            lock_group: None,
        })
    }

    /// Dead entries of a priority, as a held snapshot leaves them.
    pub fn add_dead(&mut self, priority: i32, count: u32) {
        for _ in 0..count {
            let id = self.add_now(priority);
            self.set(id, State::Dead);
        }
    }

    pub fn set(&mut self, id: u32, state: State) {
        let (dispatch, current) = self.index.get_mut(&self.keys[id as usize]).unwrap();
        *current = state;
        match (dispatch.lock_group, state) {
            (Some(group), State::Running) => assert!(self.busy_groups.insert(group)),
            (Some(group), _) => assert!(self.busy_groups.remove(&group)),
            (None, _) => {}
        }
    }

    /// Finishes a dispatch without a lock group, and leaves one with a group running.
    pub fn finish_ungrouped(&mut self, id: u32) {
        let (dispatch, _) = &self.index[&self.keys[id as usize]];
        if dispatch.lock_group.is_none() {
            self.set(id, State::Dead);
        }
    }

    fn highest(&self, below: Option<i32>, above: Option<i32>) -> (Option<i32>, u64) {
        let from = below.map_or(Bound::Unbounded, |below| {
            Bound::Excluded((Reverse(below), LAST, u32::MAX))
        });
        let mut visited = 0;
        for ((Reverse(priority), _, _), (_, state)) in self.index.range((from, Bound::Unbounded)) {
            if above.is_some_and(|above| *priority <= above) {
                break;
            }
            visited += 1;
            if *state == State::Pending {
                return (Some(*priority), visited);
            }
        }
        (None, visited)
    }

    pub fn find_priority(&mut self, below: Option<i32>, above: Option<i32>) -> Option<i32> {
        let (found, visited) = self.highest(below, above);
        self.cost(visited);
        found
    }

    /// The claimable dispatches of a priority, in order, and how many entries were visited for them.
    fn scan(
        &self,
        filter: Option<&str>,
        priority: i32,
        from: Option<Position>,
        limit: usize,
    ) -> (Vec<Key>, u64) {
        let priority = Reverse(priority);
        let range = (priority, from.unwrap_or(FIRST), 0)..=(priority, LAST, u32::MAX);
        let mut busy = self.busy_groups.clone();
        let (mut found, mut visited) = (Vec::new(), 0);
        for (key, (dispatch, state)) in self.index.range(range) {
            if found.len() == limit || dispatch.available_at > self.began {
                break;
            }
            visited += 1;
            if *state == State::Pending
                && filter.is_none_or(|only| dispatch.action_type == only)
                && dispatch.lock_group.is_none_or(|group| busy.insert(group))
            {
                found.push(*key);
            }
        }
        (found, visited)
    }

    fn cost(&mut self, entries: u64) -> Cost {
        let began = self.clock();
        self.visited += entries;
        self.micros += entries as i64;
        let ended = self.clock();
        Cost {
            began,
            ended,
            cpu: ended - began,
        }
    }

    pub fn take(
        &mut self,
        filter: Option<&str>,
        priority: i32,
        from: Option<Position>,
        only_if_highest: bool,
        limit: u32,
    ) -> (Vec<u32>, Cost) {
        if only_if_highest {
            let (higher, visited) = self.highest(None, Some(priority));
            if higher.is_some() {
                return (Vec::new(), self.cost(visited));
            }
        }
        let (found, visited) = self.scan(filter, priority, from, limit as usize);
        for key in &found {
            self.set(key.2, State::Running);
        }
        (found.iter().map(|key| key.2).collect(), self.cost(visited))
    }

    pub fn first_claimable(
        &mut self,
        filter: Option<&str>,
        priority: i32,
        from: Option<Position>,
    ) -> (Position, Cost) {
        let (found, visited) = self.scan(filter, priority, from, 1);
        let nothing_left = Position {
            available_at: self.began,
            created_at: i64::MIN,
        };
        let position = found.first().map_or(nothing_left, |key| key.1);
        (position, self.cost(visited))
    }

    /// What a scan of the whole index would claim if it began now.
    pub fn expected(&mut self, filter: Option<&str>, limit: u32) -> Vec<u32> {
        self.begin_claim();
        let mut busy = self.busy_groups.clone();
        let mut claimable = |dispatch: &Dispatch, state: State| {
            state == State::Pending
                && dispatch.available_at <= self.began
                && filter.is_none_or(|only| dispatch.action_type == only)
                && dispatch.lock_group.is_none_or(|group| busy.insert(group))
        };
        let entries = self.index.iter();
        let claimed = entries.filter(|(_, (dispatch, state))| claimable(dispatch, *state));
        claimed.take(limit as usize).map(|(key, _)| key.2).collect()
    }
}
