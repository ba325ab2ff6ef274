//! The end of a run: completed, failed, cancelled or given back. Everything here runs as the engine.

use super::claim::Claimed;
use crate::access::{Actor, Visible};
use crate::history::contexts::{self, NewContext};
use crate::pg::catch::ServerError;
use crate::pg::jsonb::{self, Jsonb};
use crate::pg::query::{pg_uuid, queries};
use crate::queue::finish::{self, End, Reports, Results};
use crate::queue::report::{Reported, lock_reported};
use crate::queue::requeue::{self, Requeue};
use crate::runtime::clock;
use recur_core::action::Json;
use recur_core::report::{Outcome, stored_reason};
use std::rc::Rc;

queries! {
    UNFLAG = "execution/queries/unflag.sql" (UUIDOID);
}

/// What a run that went well leaves.
pub struct Success {
    pub result: Option<Jsonb>,
    /// For the next run.
    pub context: Option<Jsonb>,
}

fn visible(claimed: &Claimed) -> Visible {
    Visible::Owners(Rc::new([claimed.owner_id]))
}

/// Completes a dispatch, or says why that is not possible.
pub fn complete(
    claimed: &Claimed,
    success: Success,
    actor: &Actor,
) -> Result<(), Box<ServerError>> {
    let finished = finish::complete(Reports {
        ids: &[claimed.attempt.dispatch],
        attempts: &[claimed.attempt.number],
        results: match success.result {
            Some(result) => Results::One(jsonb::array_of_one(Some(result))),
            None => Results::None,
        },
        visible: &visible(claimed),
        actor,
    });
    let Some(one) = finished.first() else {
        return Err(ServerError::new(
            "RC001",
            "the dispatch was ended while it ran",
        ));
    };
    if let (Some(context), Some(action)) = (success.context, one.action) {
        let set = contexts::set(NewContext {
            action,
            context: Some(context),
            expected_version: one.context_version,
            dispatch: Some(one.id),
            actor: &actor.name,
        });
        if set.is_err() {
            let message = "the context of the action has changed since the run began";
            return Err(ServerError::new("RC002", message));
        }
    }
    Ok(())
}

/// Ends an attempt that has failed: tried again, failed for good, or cancelled.
pub fn fail(claimed: &Claimed, reason: &str, result: &str, actor: &Actor) {
    let reason = stored_reason(Some(reason));
    end(claimed, Some(&reason), Some(result), actor, |reported| {
        reported.fail(true, clock::now())
    });
}

/// Ends an attempt that was cancelled; why is what the cancellation said.
pub fn stop(claimed: &Claimed, result: &str, actor: &Actor) {
    end(claimed, None, Some(result), actor, |reported| {
        reported.running.release(clock::now())
    });
}

/// Gives an attempt back that was interrupted through no fault of its own.
pub fn release(claimed: &Claimed, actor: &Actor) {
    end(claimed, None, None, actor, |reported| {
        reported.running.release(clock::now())
    });
}

/// Gives a dispatch back that is for consumers: its handler is gone.
pub fn hand_to_consumers(claimed: &Claimed, actor: &Actor) {
    UNFLAG.with(|query| query.execute(&[pg_uuid(claimed.attempt.dispatch).into()]));
    release(claimed, actor);
}

fn end(
    claimed: &Claimed,
    reason: Option<&str>,
    result: Option<&str>,
    actor: &Actor,
    decide: impl FnOnce(&Reported) -> Outcome,
) {
    let (id, number) = (claimed.attempt.dispatch, claimed.attempt.number);
    let locked = lock_reported(&[id], &[number], &visible(claimed));
    // Otherwise somebody else has ended it.
    let Some(reported) = locked.first() else {
        return;
    };
    let end = match decide(reported) {
        Outcome::Retry { available_at } => {
            let requeued = requeue::requeue(
                &[Requeue {
                    id,
                    available_at,
                    reason,
                }],
                actor,
            );
            requeue::announce_each(&requeued, clock::now());
            return;
        }
        Outcome::Failed => End::Failed,
        Outcome::Cancelled => End::Cancelled,
    };
    let result = result.map(Jsonb::from_text);
    finish::end_locked_with(&[(id, reason)], result, end, actor);
}
