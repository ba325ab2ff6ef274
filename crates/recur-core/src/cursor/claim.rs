//! One claim, step by step.
//!
//! | state | on | next |
//! | --- | --- | --- |
//! | start | a priority hint | `Take` at the hint, from the cursor, if it is the highest priority |
//! | | no hint | `FindPriority` |
//! | `FindPriority` | a priority | `Take` there, from the cursor if it is that of this priority |
//! | | none left | `Done` |
//! | `Take` | satisfied | `Done` |
//! | | nothing at the hint | `FindPriority`, from the highest on |
//! | | short behind the cursor | drop the cursor, `Take` the whole priority |
//! | | short of the whole priority | `FindPriority` below |
//! | | expensive again, or time to refresh | `MoveCursor`, then as without |

use super::memory::{Cursor, Entry};
use super::{Filter, MAX_TRUST, Memory, Position, TRUST_FACTOR, USUAL_COST, USUAL_COST_EACH};
use chrono::{DateTime, TimeDelta, Utc};

/// What the caller does next for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Find the highest priority of pending dispatches within these bounds, both exclusive, and answer with
    /// [`Claim::found_priority`].
    ///
    /// Only the index needs to be asked: a priority without a dispatch that the filter lets through costs time, but
    /// does no harm.
    FindPriority {
        /// Only priorities below it.
        below: Option<i32>,
        /// Only priorities above it. The lower bound keeps the search out of the dead entries that a cursor avoids.
        above: Option<i32>,
    },
    /// Claim dispatches of a priority in the order of the index, and answer with [`Claim::took`].
    Take {
        /// The priority.
        priority: i32,
        /// Begin at this position, inclusive.
        from: Option<Position>,
        /// Claim nothing if a higher priority is pending, by what [`Step::FindPriority`] would find.
        only_if_highest: bool,
        /// At most this many.
        limit: u32,
    },
    /// Find the position of the first dispatch of a priority that the filter lets through and that can be claimed
    /// now, and answer with [`Claim::moved_cursor`].
    MoveCursor {
        /// The priority.
        priority: i32,
        /// Nothing before this position can be claimed.
        from: Option<Position>,
    },
    /// The claim is complete: call [`Claim::finish`].
    Done,
}

/// What a statement took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// When it began.
    pub began: DateTime<Utc>,
    /// When it ended.
    pub ended: DateTime<Utc>,
    /// The CPU time that the process spent on it: a statement that only waited, for the machine or for a lock,
    /// scanned little.
    pub cpu: TimeDelta,
}

/// One claim: a state machine that says which statement comes next.
///
/// ```
/// use chrono::{DateTime, TimeDelta, Utc};
/// use recur_core::cursor::{Claim, Cost, Filter, Memory, Step};
///
/// let now = DateTime::<Utc>::UNIX_EPOCH;
/// let cost = Cost { began: now, ended: now, cpu: TimeDelta::zero() };
/// let mut memory = Memory::new();
/// let mut claim = Claim::start(&memory, Filter::of_role(10), 2, now);
/// loop {
///     match claim.step() {
///         // Two pending dispatches of priority 5 in a queue without others.
///         Step::FindPriority { .. } => claim.found_priority(Some(5)),
///         Step::Take { limit, .. } => claim.took(limit, cost),
///         Step::MoveCursor { .. } => unreachable!("not after one cheap claim"),
///         Step::Done => break,
///     }
/// }
/// claim.finish(&mut memory);
/// // The next claim begins there.
/// let next = Claim::start(&memory, Filter::of_role(10), 1, now);
/// assert!(matches!(next.step(), Step::Take { priority: 5, only_if_highest: true, .. }));
/// ```
#[derive(Debug)]
pub struct Claim {
    filter: Filter,
    /// What will be remembered. An error in between leaves the memory as it was.
    entry: Entry,
    limit: u32,
    wanted: u32,
    step: Step,
    /// The highest priority that was found, if it was looked for.
    highest: Option<i32>,
    /// The last statement that claimed.
    last_take: Option<Take>,
}

#[derive(Clone, Copy, Debug)]
struct Take {
    priority: i32,
    from: Option<Position>,
    is_hinted: bool,
    count: u32,
    cost: Cost,
}

impl Claim {
    /// Begins a claim of at most `limit` dispatches.
    pub fn start(memory: &Memory, filter: Filter, limit: u32, now: DateTime<Utc>) -> Claim {
        let mut entry = memory.get(&filter);
        entry.cursor = entry.cursor.filter(|cursor| cursor.is_trusted(now));
        if let Some(cursor) = &mut entry.cursor {
            cursor.uses += 1;
        }
        let step = match entry.priority_hint {
            _ if limit == 0 => Step::Done,
            Some(priority) => Step::Take {
                priority,
                from: entry.position_at(priority),
                only_if_highest: true,
                limit,
            },
            None => Step::FindPriority {
                below: None,
                above: None,
            },
        };
        Claim {
            filter,
            entry,
            limit,
            wanted: limit,
            step,
            highest: None,
            last_take: None,
        }
    }

    /// The filter of the claim.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// What to do next. It stays the same until it is answered; an answer to another step is ignored.
    pub fn step(&self) -> Step {
        self.step
    }

    /// Answers [`Step::FindPriority`].
    pub fn found_priority(&mut self, found: Option<i32>) {
        let Step::FindPriority { below, .. } = self.step else {
            return;
        };
        // The priority of the cursor was left out of the search.
        let is_below = |priority: &i32| below.is_none_or(|below| *priority < below);
        let priority = found.or(self.entry.cursor_priority().filter(is_below));
        let Some(priority) = priority else {
            self.step = Step::Done;
            return;
        };
        if self.highest.is_none() {
            self.highest = Some(priority);
            // No higher priority has pre-empted the hint, so the claim behind the cursor came up short.
            let at_most = |cursor: i32| priority <= cursor;
            if self.entry.cursor_priority().is_some_and(at_most) {
                self.forget();
            }
        }
        self.take(priority);
    }

    /// Answers [`Step::Take`] with the number of dispatches that it claimed.
    pub fn took(&mut self, count: u32, cost: Cost) {
        let Step::Take {
            priority,
            from,
            only_if_highest,
            ..
        } = self.step
        else {
            return;
        };
        self.wanted = self.wanted.saturating_sub(count);
        self.last_take = Some(Take {
            priority,
            from,
            is_hinted: only_if_highest,
            count,
            cost,
        });
        let moves_cursor = match from {
            _ if count == 0 => false,
            Some(_) => self.entry.cursor_needs_refresh(),
            None => self.is_expensive_again(cost),
        };
        if moves_cursor {
            self.step = Step::MoveCursor { priority, from };
        } else {
            self.after_take();
        }
    }

    /// Answers [`Step::MoveCursor`]. Where nothing is left, the position is the instant at which the claim began,
    /// created at `-infinity`: whatever can be claimed later becomes available from then on.
    pub fn moved_cursor(&mut self, position: Position, cost: Cost) {
        let (Step::MoveCursor { priority, from }, Some(take)) = (self.step, self.last_take) else {
            return;
        };
        let elapsed = (cost.ended - take.cost.began).clamp(TimeDelta::zero(), MAX_TRUST);
        let fresh = cost.ended + (elapsed * TRUST_FACTOR).min(MAX_TRUST);
        // Moving a cursor does not put off the scan of the whole priority.
        let before = self.entry.cursor.filter(|_| from.is_some());
        self.entry.priority_hint = Some(priority);
        self.entry.cursor = Some(Cursor {
            position,
            trusted_until: before.map_or(fresh, |cursor| cursor.trusted_until),
            uses: 0,
        });
        self.after_take();
    }

    /// Remembers what the next claim with the same filter needs to know.
    pub fn finish(mut self, memory: &mut Memory) {
        let last = self.last_take;
        let satisfied_by_hint = self.wanted == 0 && last.is_some_and(|take| take.is_hinted);
        if !satisfied_by_hint && self.entry.cursor.is_none() {
            let satisfied_at = last.map(|take| take.priority).filter(|_| self.wanted == 0);
            self.entry.priority_hint = satisfied_at.filter(|at| self.highest == Some(*at));
        }
        memory.set(self.filter, self.entry);
    }

    fn after_take(&mut self) {
        let Some(take) = self.last_take.filter(|_| self.wanted > 0) else {
            self.step = Step::Done;
            return;
        };
        if take.is_hinted && take.count > 0 {
            self.highest = Some(take.priority);
        }
        if take.is_hinted && take.count == 0 {
            // Nothing at the hint, or a higher priority is pending.
            self.find_priority(None);
        } else if take.from.is_some() {
            self.forget();
            self.take(take.priority);
        } else {
            self.find_priority(Some(take.priority));
        }
    }

    fn find_priority(&mut self, below: Option<i32>) {
        let is_below = |priority: &i32| below.is_none_or(|below| *priority < below);
        let above = self.entry.cursor_priority().filter(is_below);
        self.step = Step::FindPriority { below, above };
    }

    fn take(&mut self, priority: i32) {
        self.step = Step::Take {
            priority,
            from: self.entry.position_at(priority),
            only_if_highest: false,
            limit: self.wanted,
        };
    }

    fn forget(&mut self) {
        self.entry.priority_hint = None;
        self.entry.cursor = None;
    }

    /// Did a scan of a whole priority cost too much, and another one shortly before? One alone may have made its plans.
    fn is_expensive_again(&mut self, cost: Cost) -> bool {
        let each = i32::try_from(self.limit).unwrap_or(i32::MAX);
        let usual = USUAL_COST + USUAL_COST_EACH * each;
        if cost.cpu < usual {
            return false;
        }
        let elapsed = (cost.ended - cost.began).clamp(TimeDelta::zero(), MAX_TRUST);
        let until = cost.ended + elapsed * TRUST_FACTOR;
        let before = self.entry.suspicious_until.replace(until);
        before.is_some_and(|until| until > cost.began)
    }
}
