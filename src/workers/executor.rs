//! An executor: runs SQL actions and handlers of one owner, as that role from the moment it connects.
//!
//! Whatever the code that it runs does, the process has no other rights than its owner: it was never anybody else.
//! Before each run, the state of the session is that of a new one.

use super::backoff::Backoff;
use crate::access::Actor;
use crate::commands::armed::Armed;
use crate::execution::claim::Claimed;
use crate::execution::run::Executor;
use crate::pg::transaction::{self, Failure};
use crate::pg::{catalog, command, compat, latch, messages, session, signals};
use crate::runtime::shared::executors::{self, ExecutorReservation, Post};
use crate::runtime::{installation, settings, shared};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// An executor that has had nothing to run for this long leaves.
const IDLE_AT_MOST: Duration = Duration::from_secs(60);
/// One that has worked for this long leaves when its run is over: what has accumulated in the process is gone then.
const LONGEST_SHIFT: Duration = Duration::from_secs(60 * 60);
/// One whose bookkeeping fails this often in a row leaves; another one may do better.
const MOST_FAILURES: usize = 5;

/// Connects as the owner that the slot is reserved for, runs what there is, and leaves.
pub fn main(reservation: ExecutorReservation) {
    let Some(post) = executors::occupy(reservation) else {
        return;
    };
    // SAFETY: a background worker connects once, at its start; the callback must be registered before an error can end
    // the process.
    unsafe {
        pg_sys::before_shmem_exit(Some(leave_slot), pg_sys::Datum::from(reservation.slot));
        compat::connect_as(post.database, post.role);
    }
    executors::note_connected(reservation.slot);
    messages::install();
    command::count_transactions();
    session::show_idle();
    Shift::new(reservation.slot, post).work();
}

#[pg_guard]
extern "C-unwind" fn leave_slot(_code: i32, slot: pg_sys::Datum) {
    let database = executors::leave(slot.value());
    // The first dispatcher looks after the runs that were left behind, and after those that wait.
    shared::publish(
        database,
        shared::Wakeup {
            has_work: true,
            ..shared::Wakeup::NOTHING
        },
    );
    shared::wake_workers_of(database);
}

/// What came of a turn.
enum Turn {
    Ran,
    Nothing,
    /// The session can't be made a new one: no other run may see what this one has left there.
    Spoiled,
}

/// The time from one executor's start to its end.
struct Shift {
    executor: Executor,
    post: Post,
    next: Option<Claimed>,
    /// What is to run alone next.
    alone: VecDeque<Uuid>,
    idle_since: Instant,
    backoff: Backoff,
    failures: usize,
}

impl Shift {
    fn new(slot: usize, post: Post) -> Shift {
        let role = post.role;
        let name = transaction::run(c"pg_recur executor", move || catalog::role_name(role));
        let name = name.ok().flatten().unwrap_or_default();
        let actor = Actor { name, login: None };
        let owner = Armed {
            owner_id: post.owner_id,
            role: post.role,
        };
        Shift {
            executor: Executor::new(slot, owner, actor, Instant::now() + LONGEST_SHIFT),
            post,
            next: None,
            alone: VecDeque::new(),
            idle_since: Instant::now(),
            backoff: Backoff::new(),
            failures: 0,
        }
    }

    fn work(&mut self) {
        loop {
            signals::reload_settings();
            if self.next.is_none() && self.is_over() {
                return;
            }
            match self.turn() {
                Ok(Turn::Spoiled) => return,
                Ok(Turn::Ran) => {
                    self.idle_since = Instant::now();
                    self.failures = 0;
                    self.backoff.reset();
                }
                Ok(Turn::Nothing) => {
                    self.wait(IDLE_AT_MOST.saturating_sub(self.idle_since.elapsed()))
                }
                Err(failure) => {
                    self.failures += 1;
                    let pause = self.backoff.pause();
                    warning!(
                        "pg_recur executor: bookkeeping failed role={:?} sqlstate={} retry_in={pause:?} message={:?}",
                        self.executor.actor.name,
                        failure.sqlstate,
                        failure.message
                    );
                    executors::end_run(self.executor.slot);
                    self.wait(pause);
                }
            }
        }
    }

    /// What runs can be cancelled; a process that waits has nothing to cancel.
    fn wait(&self, longest: Duration) {
        session::forget_cancellation();
        latch::wait(longest);
    }

    fn is_over(&self) -> bool {
        executors::is_to_leave(self.executor.slot)
            || self.failures >= MOST_FAILURES
            || self.idle_since.elapsed() >= IDLE_AT_MOST
            || Instant::now() >= self.executor.until
            || !settings::enabled_on_server()
            || shared::is_vacated(self.post.database)
    }

    /// Runs one dispatch, or several together.
    fn turn(&mut self) -> Result<Turn, Failure> {
        let next = match self.next.take() {
            Some(next) => Some(next),
            None if is_installed()? => {
                session::forget_cancellation();
                if self.has_run_group()? {
                    executors::end_run(self.executor.slot);
                    return self.make_new(None);
                }
                self.claim()?
            }
            None => None,
        };
        let Some(claimed) = next else {
            executors::end_run(self.executor.slot);
            session::report_statistics(true);
            return Ok(Turn::Nothing);
        };
        let next = self.executor.run(&claimed)?;
        self.make_new(next)
    }

    /// Runs those that come next together, if they may be.
    fn has_run_group(&mut self) -> Result<bool, Failure> {
        let may = self.alone.is_empty() && self.executor.may_group();
        if !may || !self.executor.is_proven() {
            return Ok(false);
        }
        let alone = self.executor.run_group()?;
        let has_run = alone.is_some();
        self.alone = alone.unwrap_or_default().into();
        Ok(has_run)
    }

    fn claim(&mut self) -> Result<Option<Claimed>, Failure> {
        while let Some(dispatch) = self.alone.pop_front() {
            let claimed = self.executor.claim_one(dispatch)?;
            if claimed.is_some() {
                return Ok(claimed);
            }
        }
        let claimed = self.executor.claim()?;
        if claimed.is_some() && self.executor.may_group() {
            self.executor.put_groups_off();
        }
        Ok(claimed)
    }

    /// Makes the session a new one.
    fn make_new(&mut self, next: Option<Claimed>) -> Result<Turn, Failure> {
        let Err(failure) = session::reset() else {
            self.next = next;
            return Ok(Turn::Ran);
        };
        warning!(
            "pg_recur executor: session not reset role={:?} sqlstate={} message={:?}",
            self.executor.actor.name,
            failure.sqlstate,
            failure.message
        );
        if let Some(next) = next {
            self.executor.give_back(&next)?;
        }
        Ok(Turn::Spoiled)
    }
}

/// The extension may have been dropped.
fn is_installed() -> Result<bool, Failure> {
    let _plain = session::PlainTransactions::set();
    transaction::run(c"pg_recur executor", || installation::find().is_some())
}
