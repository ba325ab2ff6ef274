//! A queue in memory, as far as claims see it: an ordered index with dead entries, and a clock that runs while the
//! index is scanned.

use chrono::{DateTime, Utc};
use recur_core::cursor::{Cost, Position};
use std::cmp::Reverse;

/// The state of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Can be claimed.
    Pending,
    /// Was claimed.
    Running,
    /// Is finished, and still in the index.
    Dead,
}

/// An entry of the index.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Which dispatch it is.
    pub id: u32,
    /// Its priority.
    pub priority: i32,
    /// Its place within the priority.
    pub position: Position,
    /// Whether a claim of one type returns it.
    pub is_of_type: bool,
    /// At most one of a group runs.
    pub group: Option<u8>,
    /// Its state.
    pub state: State,
}

/// The queue and its clock.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// In the order of the index.
    pub entries: Vec<Entry>,
    /// Microseconds since 1970.
    pub micros: i64,
    /// What a visit of an entry takes.
    pub micros_each: i64,
    /// When the claim began.
    pub began: i64,
    created: u32,
}

impl Queue {
    /// The clock.
    pub fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.micros).expect("within the calendar")
    }

    /// Writes a dispatch.
    pub fn add(&mut self, priority: i32, available_at: i64, is_of_type: bool, group: Option<u8>) {
        self.micros += 1;
        self.created += 1;
        let position = Position {
            available_at,
            created_at: self.micros,
        };
        let entry = Entry {
            id: self.created,
            priority,
            position,
            is_of_type,
            group,
            state: State::Pending,
        };
        self.entries.push(entry);
        self.entries
            .sort_by_key(|entry| (Reverse(entry.priority), entry.position, entry.id));
    }

    /// Changes the state of a dispatch.
    pub fn set(&mut self, id: u32, state: State) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id) {
            entry.state = state;
        }
    }

    /// The ids of all dispatches in a state.
    pub fn in_state(&self, state: State) -> Vec<u32> {
        self.entries
            .iter()
            .filter(|entry| entry.state == state)
            .map(|entry| entry.id)
            .collect()
    }

    /// What a scan of entries would claim, and how many it visits.
    fn scan<'a>(
        &'a self,
        entries: impl Iterator<Item = &'a Entry>,
        of_type: bool,
        limit: usize,
    ) -> (Vec<&'a Entry>, i64) {
        let running = |group: u8| {
            self.entries
                .iter()
                .any(|entry| entry.group == Some(group) && entry.state == State::Running)
        };
        let mut found: Vec<&Entry> = Vec::new();
        let mut visited = 0;
        for entry in entries {
            if found.len() == limit {
                break;
            }
            visited += 1;
            let is_free = entry.group.is_none_or(|group| {
                !running(group) && found.iter().all(|other| other.group != Some(group))
            });
            let is_available = entry.position.available_at <= self.began;
            if entry.state == State::Pending
                && is_available
                && is_free
                && (entry.is_of_type || !of_type)
            {
                found.push(entry);
            }
        }
        (found, visited)
    }

    /// The priorities and ids that a scan of the whole index would claim.
    pub fn expected(&self, of_type: bool, limit: usize) -> Vec<(i32, u32)> {
        let (found, _) = self.scan(self.entries.iter(), of_type, limit);
        found
            .iter()
            .map(|entry| (entry.priority, entry.id))
            .collect()
    }

    fn cost(&mut self, visited: i64) -> Cost {
        let began = self.now();
        self.micros += visited * self.micros_each;
        let ended = self.now();
        Cost {
            began,
            ended,
            cpu: ended - began,
        }
    }

    /// Answers `FindPriority`.
    pub fn highest(&self, below: Option<i32>, above: Option<i32>) -> Option<i32> {
        let is_within = |priority: i32| {
            below.is_none_or(|below| priority < below) && above.is_none_or(|above| priority > above)
        };
        let pending = self
            .entries
            .iter()
            .filter(|entry| entry.state == State::Pending);
        pending
            .map(|entry| entry.priority)
            .find(|priority| is_within(*priority))
    }

    /// Answers `Take`.
    pub fn take(
        &mut self,
        of_type: bool,
        priority: i32,
        from: Option<Position>,
        limit: usize,
    ) -> (Vec<(i32, u32)>, Cost) {
        let (found, visited) = self.scan(self.behind(priority, from), of_type, limit);
        let found: Vec<(i32, u32)> = found
            .iter()
            .map(|entry| (entry.priority, entry.id))
            .collect();
        for (_, id) in &found {
            self.set(*id, State::Running);
        }
        (found, self.cost(visited))
    }

    /// Answers `MoveCursor`.
    pub fn first_claimable(
        &mut self,
        of_type: bool,
        priority: i32,
        from: Option<Position>,
    ) -> (Position, Cost) {
        let (found, visited) = self.scan(self.behind(priority, from), of_type, 1);
        let nothing_left = Position {
            available_at: self.began,
            created_at: i64::MIN,
        };
        let position = found.first().map_or(nothing_left, |entry| entry.position);
        (position, self.cost(visited))
    }

    fn behind(&self, priority: i32, from: Option<Position>) -> impl Iterator<Item = &Entry> {
        let is_behind = move |entry: &&Entry| {
            entry.priority == priority && from.is_none_or(|from| entry.position >= from)
        };
        self.entries.iter().filter(is_behind)
    }
}
