//! Calls of handlers that share a transaction: its beginning, its commit and its statements cost more than a fast call.
//!
//! The dispatches are locked and stay pending. Each call is a subtransaction; at the end, one statement completes those
//! that went well, in the transaction of their effects. A call that does not go well is rolled back and made again
//! alone, where its error counts. So is every call of a transaction that can't be committed. What a call leaves for the
//! rest of the transaction is undone before the next one, and where that is not possible, it is the last one.

use super::claim::Job;
use super::run::{ADDS_FOR, CANCELLED, Executor, find_function};
use crate::access::Visible;
use crate::pg::catch::ServerError;
use crate::pg::function::Callable;
use crate::pg::jsonb::Jsonb;
use crate::pg::planner::PlannerPins;
use crate::pg::session::{self, Pinned, PlainTransactions};
use crate::pg::transaction::{self, Failure};
use crate::pg::{self, command, messages, statement_timeout, subtransaction, time};
use crate::queue::finish::{self, Taken};
use crate::runtime::shared::executors;
use crate::runtime::{clock, engine, hooks};
use chrono::{DateTime, Utc};
use pgrx::memcxt::PgMemoryContexts;
use pgrx::pg_sys;
use recur_core::action::Json;
use recur_core::pace::MOST_TOGETHER;
use std::ffi::CString;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// A call that still runs after this time, because it is slow or waits for a lock, is made again alone.
const ENDS_AFTER: Duration = Duration::from_millis(60);
/// Results of more than this are not collected.
const MOST_BYTES: usize = 1024 * 1024;

/// What has become of a group.
struct Group {
    jobs: Vec<Job>,
    since: DateTime<Utc>,
    /// The calls that went well, by the place of their job.
    done: Vec<(usize, Option<Jsonb>)>,
    /// Those that did not.
    failed: Vec<usize>,
    /// Those because of which others had to wait, or to be made alone.
    held_up: Vec<usize>,
    functions: Vec<(String, Callable)>,
    bytes: usize,
    took: Duration,
}

impl Executor {
    /// Runs what may share a transaction, if that comes next. Returns the dispatches that are to be run alone now; None
    /// if nothing was run.
    pub fn run_group(&self) -> Result<Option<Vec<Uuid>>, Failure> {
        session::forget_cancellation();
        messages::begin();
        let mut group = Group::new();
        let outcome = self.begin_and_run(&mut group);
        statement_timeout::disarm();
        messages::take();
        if let Err(error) = outcome {
            command::roll_back();
            session::forget_cancellation();
            if group.jobs.is_empty() {
                return Err(Failure {
                    sqlstate: error.sqlstate.clone(),
                    message: error.message,
                });
            }
            group.give_up();
        }
        if group.jobs.is_empty() {
            return Ok(None);
        }
        session::show_idle();
        self.judge(&group);
        if group.done.len() + group.failed.len() < group.jobs.len() {
            // Those that have found all of it locked, and sleep.
            executors::wake_idle(pg::my_database(), self.owner.owner_id);
        }
        let alone = group.failed.iter().map(|place| group.jobs[*place].id);
        Ok(Some(alone.collect()))
    }

    fn begin_and_run(&self, group: &mut Group) -> Result<(), Box<ServerError>> {
        {
            let _plain = PlainTransactions::set();
            command::begin()?;
        }
        group.jobs = transaction::attempt(AssertUnwindSafe(|| {
            let _names = Pinned::names();
            let _pins = PlannerPins::set();
            engine::as_engine(|| self.take_group(group.since))
        }))?;
        if let Some(first) = group.jobs.first() {
            executors::begin_group(self.slot, first.attempt());
            statement_timeout::arm(ENDS_AFTER);
            // A call that catches the cancellation is cancelled again, and reported.
            let micros = i64::try_from(ENDS_AFTER.as_micros()).unwrap_or(i64::MAX / 2);
            executors::set_deadline(self.slot, time::now_micros().saturating_add(micros));
            self.call_each(group)?;
            statement_timeout::disarm();
            session::forget_cancellation();
            transaction::attempt(AssertUnwindSafe(|| {
                let _names = Pinned::names();
                let _pins = PlannerPins::set();
                engine::as_engine(|| self.complete_group(group))
            }))??;
        }
        command::commit()
    }

    fn call_each(&self, group: &mut Group) -> Result<(), Box<ServerError>> {
        let began = Instant::now();
        let mut memory = PgMemoryContexts::new("pg_recur call");
        let mut title = String::new();
        for place in 0..group.jobs.len() {
            group.show(place, &mut title);
            let goes_on = group.call(place, &mut memory)?;
            // SAFETY: nothing that the call has left there is used any more.
            unsafe { memory.reset() };
            group.took = began.elapsed();
            if !goes_on
                || group.took >= ADDS_FOR
                || group.bytes > MOST_BYTES
                || session::written_subtransactions() >= MOST_TOGETHER
            {
                break;
            }
        }
        Ok(())
    }

    /// Everything here runs as the engine.
    fn complete_group(&self, group: &Group) -> Result<(), Box<ServerError>> {
        if group.done.is_empty() {
            return Ok(());
        }
        let jobs = || group.done.iter().map(|(place, _)| &group.jobs[*place]);
        let ids: Vec<Uuid> = jobs().map(|job| job.id).collect();
        let versions: Vec<&str> = jobs().map(|job| job.version.as_str()).collect();
        let results: Vec<Option<Jsonb>> = group.done.iter().map(|(_, result)| *result).collect();
        let finished = finish::complete_taken(Taken {
            ids: &ids,
            versions: &versions,
            results: &results,
            consumer: &format!("executor {}", pg::my_pid()),
            since: group.since,
            visible: &Visible::Owners(Rc::new([self.owner.owner_id])),
            actor: &self.actor,
        });
        match finished.len() == ids.len() {
            true => Ok(()),
            // One of the calls has written to the dispatch of another, or to its own.
            false => Err(ServerError::new(
                "RC001",
                "a dispatch was ended while it ran",
            )),
        }
    }

    /// Remembers which action types share transactions.
    fn judge(&self, group: &Group) {
        let mut pace = self.pace.borrow_mut();
        let mut held_up: Vec<&str> = group.types(&group.held_up);
        if group.failed.len() > group.done.len() {
            held_up.extend(group.types(&group.failed));
        }
        held_up.sort_unstable();
        held_up.dedup();
        let each = group.took / u32::try_from(group.done.len()).map_or(1, |count| count.max(1));
        let places: Vec<usize> = group.done.iter().map(|(place, _)| *place).collect();
        let mut went_well = group.types(&places);
        went_well.sort_unstable();
        went_well.dedup();
        for action_type in went_well {
            if !held_up.contains(&action_type) {
                pace.ran_in_group(action_type, each);
            }
        }
        for action_type in held_up {
            pace.held_up(action_type);
        }
    }
}

impl Group {
    fn new() -> Group {
        Group {
            jobs: Vec::new(),
            since: clock::now(),
            done: Vec::new(),
            failed: Vec::new(),
            held_up: Vec::new(),
            functions: Vec::new(),
            bytes: 0,
            took: Duration::ZERO,
        }
    }

    fn types(&self, places: &[usize]) -> Vec<&str> {
        let types = places.iter().map(|place| &self.jobs[*place].action_type);
        types.map(String::as_str).collect()
    }

    /// The transaction is rolled back: what has been called is called alone.
    fn give_up(&mut self) {
        let done = self.done.drain(..).map(|(place, _)| place);
        self.failed.extend(done);
        self.failed.sort_unstable();
        self.held_up.extend(&self.failed);
        if self.failed.is_empty() {
            // The first call has not got that far.
            self.failed.push(0);
            self.held_up.push(0);
        }
    }

    /// Shows in `pg_stat_activity` what runs, where it is another than before.
    fn show(&self, place: usize, title: &mut String) {
        let job = &self.jobs[place];
        let name = job.name.as_deref().unwrap_or(&job.action_type);
        if title != name {
            name.clone_into(title);
            let text = CString::new(job.handler.function.as_str()).unwrap_or_default();
            session::show(&format!("pg_recur: {name}"), &text);
        }
    }

    /// Calls one handler. Returns whether another call may follow; an error ends the whole transaction.
    fn call(
        &mut self,
        place: usize,
        memory: &mut PgMemoryContexts,
    ) -> Result<bool, Box<ServerError>> {
        let commands = hooks::utility_commands();
        let job = &self.jobs[place];
        let functions = &mut self.functions;
        let answer: Result<Option<Jsonb>, Box<ServerError>> =
            subtransaction::keep_if_ok(|| call_alone(job, functions, memory));
        match answer {
            Ok(result) => {
                if let Err(failure) = transaction::attempt(AssertUnwindSafe(session::end_call)) {
                    // Its error counts where it is called alone.
                    self.failed.push(place);
                    self.held_up.push(place);
                    return Err(failure.into());
                }
                self.bytes += result.map_or(0, |result| result.size());
                self.done.push((place, result));
            }
            Err(error) => {
                // What the server keeps with the function may be half done.
                self.functions.clear();
                self.failed.push(place);
                if error.sqlstate == CANCELLED {
                    self.held_up.push(place);
                    return Ok(false);
                }
            }
        }
        let is_clean =
            hooks::utility_commands() == commands && !session::has_used_temporary_objects();
        if !is_clean {
            self.held_up.push(place);
        }
        Ok(is_clean)
    }
}

/// Calls the handler of a job in the subtransaction that is open. The result lives as long as the transaction.
fn call_alone(
    job: &Job,
    functions: &mut Vec<(String, Callable)>,
    memory: &mut PgMemoryContexts,
) -> Result<Option<Jsonb>, Box<ServerError>> {
    // SAFETY: a variable of this process; the memory is the transaction's.
    let home = unsafe { pg_sys::CurrentMemoryContext };
    let name = &job.handler.function;
    if !functions.iter().any(|(known, _)| known == name) {
        let function = find_function(&job.handler)?;
        functions.push((name.clone(), Callable::new(function)?));
    }
    let found = functions.iter().find(|(known, _)| known == name);
    let Some((_, callable)) = found else {
        return Err(ServerError::new("RC003", "the handler is not known"));
    };
    // SAFETY: a snapshot is pushed and popped, or dropped with the subtransaction. The function takes as many jsonb as
    // are given.
    unsafe {
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let answer = memory.switch_to(|_| {
            let no_context = (callable.takes() > 1).then(|| Jsonb::from_text("{}"));
            let arguments = [Some(job.payload), no_context, job.shown];
            let arguments: Option<Vec<Jsonb>> =
                arguments.into_iter().take(callable.takes()).collect();
            let Some(arguments) = arguments else {
                return Err(ServerError::new("RC003", "the handler has changed"));
            };
            session::with_settings_restored(|| callable.call(&arguments))
        })?;
        pg_sys::PopActiveSnapshot();
        if session::is_read_only() || answer.context.is_some() {
            return Err(ServerError::new(
                "RC003",
                "the handler needs a transaction of its own",
            ));
        }
        Ok(answer.result.map(|result| result.copy_to(home)))
    }
}
