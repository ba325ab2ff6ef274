//! One run of a claimed dispatch, from its first statement to its report.

use super::claim::{self, Claimed};
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
use crate::runtime::{clock, engine, home, settings};
use pgrx::pg_sys;
use recur_core::action::Json;
use recur_core::command::{Command, PROVIDER};
use std::ffi::CString;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

const EXACTLY_ONCE: &str = "exactly once";
const AT_LEAST_ONCE: &str = "at least once";
/// The SQLSTATE of a statement that was cancelled.
const CANCELLED: &str = "57014";

/// Whose dispatches this process runs, and where it says what it does.
pub struct Executor {
    pub slot: usize,
    pub owner: Armed,
    pub actor: Actor,
    /// When this process takes nothing more.
    pub until: Instant,
}

/// What a run has come to before it is reported.
enum Ran {
    Command,
    Handler(function::Answer),
    /// There is no handler any more.
    NotHere,
}

impl Executor {
    /// Claims the next dispatch of the owner.
    pub fn claim(&self) -> Result<Option<Claimed>, Failure> {
        self.keep_books(AssertUnwindSafe(|| self.claim_next()))
    }

    /// Runs a claimed dispatch and reports on it; returns the next one, claimed in the same transaction, unless this
    /// process is to leave.
    pub fn run(&self, claimed: &Claimed) -> Result<Option<Claimed>, Failure> {
        executors::begin_run(self.slot);
        let outcome = self.run_and_report(claimed);
        session::show_idle();
        outcome
    }

    fn run_and_report(&self, claimed: &Claimed) -> Result<Option<Claimed>, Failure> {
        let mut observed = Observed::default();
        let began = Instant::now();
        let ended_before = command::ended_transactions();
        let committed_before = command::committed_transactions();
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
        let next: Option<Claimed> = done.map_err(from_failure)??;
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

    /// The next dispatch is claimed with the report on this one: one commit a run. Nothing runs where nothing fires.
    fn claim_next(&self) -> Option<Claimed> {
        let is_over = executors::is_to_leave(self.slot)
            || Instant::now() >= self.until
            || clock::is_for_tests()
            || !settings::enabled()
            || settings::executors() == 0;
        match is_over || !home::may_fire() {
            true => None,
            false => claim::next(self.slot, self.owner),
        }
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
            let _pins = PlannerPins::set();
            engine::as_engine(work)
        });
        if outcome.is_err() {
            executors::forget_claimed(self.slot);
        }
        outcome
    }
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
        unsafe { function::call(&function, &arguments) }
    }));
    Ok(Ran::Handler(answer.map_err(from_failure)??))
}

/// The function is looked up anew: it may have been replaced since the handler was set, but not by another role.
fn find_function(handler: &Call) -> Result<Function, Box<ServerError>> {
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

fn from_failure(failure: Failure) -> Box<ServerError> {
    ServerError::new(&failure.sqlstate, failure.message)
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
