//! One run of a claimed dispatch, from its first statement to its report.

use super::claim::{self, Claimed, Job};
use super::outcome::{self, Observed};
use super::report::{self, Success};
use crate::access::Actor;
use crate::commands::armed::Armed;
use crate::commands::handlers::Call;
use crate::pg::catch::ServerError;
use crate::pg::function::Function;
use crate::pg::jsonb::Jsonb;
use crate::pg::planner::PlannerPins;
use crate::pg::receiver::RowReceiver;
use crate::pg::session::{self, Pinned, PlainTransactions};
use crate::pg::transaction::{self, Failure};
use crate::pg::{command, compat, function, messages, statement_timeout, time};
use crate::runtime::shared::executors::{self, Interrupt};
use crate::runtime::{clock, engine, home, hooks, settings};
use chrono::{DateTime, Utc};
use pgrx::pg_sys;
use recur_core::action::Json;
use recur_core::command::{Command, PROVIDER};
use recur_core::pace::{MOST_TOGETHER, Pace};
use std::cell::{Cell, RefCell};
use std::ffi::CString;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};
use uuid::Uuid;

const EXACTLY_ONCE: &str = "exactly once";
const AT_LEAST_ONCE: &str = "at least once";
/// The SQLSTATE of a statement that was cancelled.
pub(super) const CANCELLED: &str = "57014";

/// At least this many runs alone come before calls share a transaction: a call that has crashed the server is among
/// them, as it was no further behind.
const FIRST_ALONE: u32 = MOST_TOGETHER as u32;
/// No call is added to others after this time: other processes wait for rows that the first ones have locked.
pub(super) const ADDS_FOR: Duration = Duration::from_millis(20);
/// Where something else comes first, this many runs alone are made before the next look.
const ALONE_IN_BETWEEN: u32 = 16;
/// A handler with less time than this is called alone.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);

/// Whose dispatches this process runs, and where it says what it does.
pub struct Executor {
    pub slot: usize,
    pub owner: Armed,
    pub actor: Actor,
    /// When this process takes nothing more.
    pub until: Instant,
    /// How fast the handlers are.
    pub pace: RefCell<Pace>,
    /// Runs alone that are still to come before calls share a transaction.
    pub left_alone: Cell<u32>,
    /// Is the owner proven when they are over?
    pub is_to_prove: Cell<bool>,
}

/// What a run has come to before it is reported.
enum Ran {
    Command,
    Handler(function::Answer<String>),
    /// There is no handler any more.
    NotHere,
}

impl Executor {
    pub fn new(slot: usize, owner: Armed, actor: Actor, until: Instant) -> Executor {
        Executor {
            slot,
            owner,
            actor,
            until,
            pace: RefCell::default(),
            left_alone: Cell::new(0),
            is_to_prove: Cell::new(false),
        }
    }

    /// Claims the next dispatch of the owner.
    pub fn claim(&self) -> Result<Option<Claimed>, Failure> {
        self.keep_books(AssertUnwindSafe(|| match self.may_take() {
            true => claim::next(self.slot, self.owner),
            false => None,
        }))
    }

    /// Claims one dispatch of the owner, if it still waits.
    pub fn claim_one(&self, dispatch: Uuid) -> Result<Option<Claimed>, Failure> {
        self.keep_books(AssertUnwindSafe(|| match self.may_take() {
            true => claim::one(self.slot, self.owner, dispatch),
            false => None,
        }))
    }

    /// Are there action types whose calls share a transaction?
    pub fn may_group(&self) -> bool {
        self.left_alone.get() == 0 && self.pace.borrow().has_groupable()
    }

    /// Has enough of the owner run alone? Another process of the owner may have ended meanwhile, in the middle of a
    /// group.
    pub fn is_proven(&self) -> bool {
        let is_proven = executors::is_proven(self.slot);
        if !is_proven {
            self.left_alone.set(FIRST_ALONE);
            self.is_to_prove.set(true);
        }
        is_proven
    }

    /// What comes next runs alone, though there are such action types.
    pub fn put_groups_off(&self) {
        self.left_alone.set(ALONE_IN_BETWEEN);
    }

    /// Locks the dispatches that come next, as far as they may share a transaction.
    pub(super) fn take_group(&self, now: DateTime<Utc>) -> Vec<Job> {
        let may_run = |call: &Call| has_time(call.timeout.and_then(|time| time.to_std().ok()));
        match self.may_take() {
            true => {
                let pace = self.pace.borrow();
                let which = (&pace.groupable()[..], pace.fit_into(ADDS_FOR));
                claim::together(self.owner, now, which, may_run)
            }
            false => Vec::new(),
        }
    }

    /// A run alone was reported.
    fn note_run(&self) {
        match self.left_alone.get() {
            0 => {}
            1 if self.is_to_prove.replace(false) => {
                self.left_alone.set(0);
                executors::note_proven(self.slot);
            }
            left => self.left_alone.set(left - 1),
        }
    }

    /// Runs a claimed dispatch and reports on it; returns the next one, claimed in the same transaction, unless this
    /// process is to leave.
    pub fn run(&self, claimed: &Claimed) -> Result<Option<Claimed>, Failure> {
        executors::begin_run(self.slot);
        let outcome = self.run_and_report(claimed);
        self.note_run();
        session::show_idle();
        outcome
    }

    fn run_and_report(&self, claimed: &Claimed) -> Result<Option<Claimed>, Failure> {
        let mut observed = Observed::default();
        let began = Instant::now();
        let ended_before = command::ended_transactions();
        let committed_before = command::committed_transactions();
        let commands_before = hooks::utility_commands();
        messages::begin();
        let ran = self.execute(claimed, &mut observed);
        statement_timeout::disarm();
        observed.duration = began.elapsed();
        observed.has_committed = command::committed_transactions() != committed_before;
        observed.messages = messages::take();
        let ran = match ran {
            Ok(ran) => ran,
            Err(error) => return self.fail(claimed, &observed, error, began),
        };
        let is_same = command::ended_transactions() == ended_before;
        if let Ran::Handler(_) = ran
            && (!is_same || session::is_read_only())
        {
            let message = "a handler must not end its transaction, nor make it read-only";
            let error = ServerError::new("25006", message);
            return self.fail(claimed, &observed, error, began);
        }
        if let (Ran::Handler(answer), Some(handler)) = (&ran, &claimed.handler) {
            let is_fit = hooks::utility_commands() == commands_before
                && !session::has_used_temporary_objects()
                && claimed.context.is_none()
                && answer.context.is_none()
                && has_time(handler.timeout.and_then(|time| time.to_std().ok()));
            let mut pace = self.pace.borrow_mut();
            pace.ran_alone(&claimed.action_type, observed.duration, is_fit);
        }
        if is_same && !command::needs_immediate_commit() && !session::is_read_only() {
            return self
                .complete_inside(claimed, &ran, &observed)
                .or_else(|error| self.fail(claimed, &observed, error, began));
        }
        if let Err(error) = command::commit() {
            return self.fail(claimed, &observed, error, began);
        }
        let completed = self.keep_books(AssertUnwindSafe(|| {
            self.complete(claimed, &ran, &observed, AT_LEAST_ONCE)
                .map(|()| self.claim_next())
        }))?;
        completed.or_else(|error| self.fail(claimed, &observed, error, began))
    }

    /// Runs the command or the handler. Afterwards a transaction is open, unless there was an error.
    fn execute(&self, claimed: &Claimed, observed: &mut Observed) -> Result<Ran, Box<ServerError>> {
        let title = claimed.name.as_deref().unwrap_or(&claimed.action_type);
        let title = format!("pg_recur: {title}");
        if claimed.provider == PROVIDER {
            let stored = Command::from_payload(&claimed.payload)
                .map_err(|error| ServerError::new("22023", error.to_string()))?;
            let text = CString::new(stored.text).unwrap_or_default();
            self.begin(
                &title,
                &text,
                stored.timeout.and_then(|timeout| timeout.to_std().ok()),
            )?;
            let mut rows = RowReceiver::new(settings::result_rows());
            // SAFETY: no transaction is open, and the receiver lives until the statements have run.
            unsafe {
                let receiver = rows.as_receiver();
                command::run(&text, receiver, |completion| observed.add(completion))?;
            }
            observed.rows = rows.take();
            return Ok(Ran::Command);
        }
        let Some(handler) = &claimed.handler else {
            command::begin()?;
            return Ok(Ran::NotHere);
        };
        let text = CString::new(handler.function.as_str()).unwrap_or_default();
        let timeout = handler.timeout.and_then(|timeout| timeout.to_std().ok());
        self.begin(&title, &text, timeout)?;
        {
            // The call must be able to complete its dispatch, whatever the role has set.
            let _plain = PlainTransactions::set();
            command::begin()?;
        }
        call_handler(claimed, handler)
    }

    /// Shows what runs, and bounds how long. What was interrupted before it began does not begin.
    fn begin(
        &self,
        title: &str,
        text: &CString,
        timeout: Option<Duration>,
    ) -> Result<(), Box<ServerError>> {
        session::forget_cancellation();
        session::show(title, text);
        if executors::interruption(self.slot).is_some() {
            return Err(ServerError::new(CANCELLED, "cancelled before it began"));
        }
        if let Some(timeout) = timeout.or_else(statement_timeout::of_session) {
            statement_timeout::arm(timeout);
            let micros = i64::try_from(timeout.as_micros()).unwrap_or(i64::MAX / 2);
            executors::set_deadline(self.slot, time::now_micros().saturating_add(micros));
        }
        Ok(())
    }

    /// Completes the dispatch in the transaction of its run, and commits.
    fn complete_inside(
        &self,
        claimed: &Claimed,
        ran: &Ran,
        observed: &Observed,
    ) -> Result<Option<Claimed>, Box<ServerError>> {
        let done = transaction::attempt(AssertUnwindSafe(|| {
            let _names = Pinned::names();
            let _pins = PlannerPins::set();
            engine::as_engine(|| {
                self.complete(claimed, ran, observed, EXACTLY_ONCE)?;
                // Elsewhere another process could have taken the same one.
                Ok::<_, Box<ServerError>>(match session::is_plain_transaction() {
                    true => self.claim_next(),
                    false => None,
                })
            })
        }));
        let next: Option<Claimed> = done??;
        if let Err(error) = command::commit() {
            executors::forget_claimed(self.slot);
            return Err(error);
        }
        Ok(next)
    }

    fn complete(
        &self,
        claimed: &Claimed,
        ran: &Ran,
        observed: &Observed,
        delivery: &str,
    ) -> Result<(), Box<ServerError>> {
        let success = match ran {
            Ran::NotHere => {
                report::hand_to_consumers(claimed, &self.actor);
                return Ok(());
            }
            Ran::Command => Success {
                result: Some(Jsonb::from_text(&observed.result(delivery))),
                context: None,
            },
            Ran::Handler(answer) => Success {
                result: answer.result.as_deref().map(Jsonb::from_text),
                context: answer.context.as_deref().map(Jsonb::from_text),
            },
        };
        report::complete(claimed, success, &self.actor)
    }

    /// The next dispatch is claimed with the report on this one: one commit a run.
    fn claim_next(&self) -> Option<Claimed> {
        match self.may_take() && !self.may_group() {
            true => claim::next(self.slot, self.owner),
            false => None,
        }
    }

    /// Nothing runs where nothing fires, or if this process is to leave.
    fn may_take(&self) -> bool {
        let is_over = executors::is_to_leave(self.slot)
            || Instant::now() >= self.until
            || clock::is_for_tests()
            || !settings::enabled()
            || settings::executors() == 0;
        !is_over && home::may_fire()
    }

    /// Gives a dispatch back that was claimed and not begun.
    pub fn give_back(&self, claimed: &Claimed) -> Result<(), Failure> {
        self.keep_books(AssertUnwindSafe(|| report::release(claimed, &self.actor)))
    }

    /// Rolls back what is open, and ends the attempt.
    fn fail(
        &self,
        claimed: &Claimed,
        observed: &Observed,
        error: Box<ServerError>,
        began: Instant,
    ) -> Result<Option<Claimed>, Failure> {
        command::roll_back();
        executors::forget_claimed(self.slot);
        session::forget_cancellation();
        let interrupt = executors::interruption(self.slot).filter(|_| error.sqlstate == CANCELLED);
        let error = match interrupt {
            None if error.sqlstate == CANCELLED => explain_timeout(error, began),
            _ => error,
        };
        self.keep_books(AssertUnwindSafe(|| {
            let result = observed.failure(&error).to_string();
            match interrupt {
                // What it has committed would happen again.
                Some(Interrupt::Vacate) if !observed.has_committed => {
                    report::release(claimed, &self.actor)
                }
                Some(Interrupt::Cancel) => report::stop(claimed, &result, &self.actor),
                _ => report::fail(claimed, &outcome::reason(&error), &result, &self.actor),
            }
            self.claim_next()
        }))
    }

    /// Runs `work` as the engine, in a transaction of its own with none of the role's settings.
    fn keep_books<R>(
        &self,
        work: impl FnOnce() -> R + std::panic::UnwindSafe,
    ) -> Result<R, Failure> {
        let _plain = PlainTransactions::set();
        let outcome = transaction::run(c"pg_recur executor", move || {
            let _names = Pinned::names();
            let _pins = PlannerPins::set();
            engine::as_engine(work)
        });
        if outcome.is_err() {
            executors::forget_claimed(self.slot);
        }
        outcome
    }
}

/// May the call of a handler share a transaction, which bounds all of its calls, as far as its time is concerned?
fn has_time(timeout: Option<Duration>) -> bool {
    let timeout = timeout.or_else(statement_timeout::of_session);
    timeout.is_none_or(|timeout| timeout >= SHORTEST_TIMEOUT)
}

/// Calls the handler as the role that this process is.
fn call_handler(claimed: &Claimed, handler: &Call) -> Result<Ran, Box<ServerError>> {
    let answer = transaction::attempt(AssertUnwindSafe(|| {
        let function = find_function(handler)?;
        let context = claimed.context.as_deref().unwrap_or("{}");
        let texts = [claimed.payload.as_str(), context, claimed.shown.as_str()];
        let given = texts.iter().take(function.arguments.len());
        let arguments: Vec<Jsonb> = given.map(|text| Jsonb::from_text(text)).collect();
        // SAFETY: the function takes that many jsonb.
        unsafe { function::call(function, &arguments) }
    }));
    Ok(Ran::Handler(answer??))
}

/// The function is looked up anew: it may have been replaced since the handler was set, but not by another role.
pub(super) fn find_function(handler: &Call) -> Result<Function, Box<ServerError>> {
    let name = &handler.function;
    let found = {
        let _names = Pinned::names();
        function::named(name).and_then(function::look_up)
    };
    let refuse = |sqlstate, message| {
        let mut error = ServerError::new(sqlstate, message);
        error.hint =
            Some("recur.drop_handler removes the handler, recur.set_handler sets it anew.".into());
        Err(error)
    };
    let Some(function) = found.filter(Function::is_handler) else {
        return refuse("42883", format!("the handler {name} does not exist"));
    };
    if function.owner != handler.function_owner {
        let (before, now) = (&handler.function_owner, &function.owner);
        let message = format!("the handler {name} belonged to {before}, and belongs to {now} now");
        return refuse("42501", message);
    }
    // SAFETY: a variable of this process.
    if !compat::can_execute(unsafe { pg_sys::GetUserId() }, function.oid) {
        return refuse("42501", format!("permission denied for function {name}"));
    }
    Ok(function)
}

/// The server says that a statement timeout has passed. People want to know which.
fn explain_timeout(mut error: Box<ServerError>, began: Instant) -> Box<ServerError> {
    if error.message.contains("statement timeout") {
        let seconds = began.elapsed().as_secs_f64();
        error.message = format!("timed out after {seconds:.1} s");
        let hint = "Give the action a longer timeout, or its command less to do.";
        error.hint = Some(hint.to_owned());
    }
    error
}
