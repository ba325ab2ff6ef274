//! One attempt: the handler runs, its lease is renewed, and the outcome is reported.

use crate::handler::{self, Handler, Outcome};
use crate::link::Link;
use crate::{Dispatch, Error, Failure, Job, events};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;
use uuid::Uuid;

/// How long the last statements of a consumer that stops may take. A server that is there answers within milliseconds.
pub(crate) const LAST_ANSWER: Duration = Duration::from_secs(2);
/// Pause before a report is sent again on a new connection.
const REPORT_PAUSE: Duration = Duration::from_millis(50);

/// What all attempts of a consumer share.
#[derive(Clone)]
pub(crate) struct Attempts {
    pub link: Link,
    pub handlers: Arc<HashMap<String, Handler>>,
    pub lease: Duration,
    /// Cancelled when the time that handlers have to finish is over.
    pub give_up: CancellationToken,
}

/// How an attempt ended.
enum End {
    Finished(Outcome),
    /// The lease is lost, so a report would be refused.
    Lost(Error),
    /// The consumer stops before the handler has finished.
    GivenUp,
}

impl Attempts {
    /// Runs the handler and reports its outcome.
    pub async fn run(self, dispatch: Dispatch) {
        let span = events::attempt(&dispatch);
        async {
            let (id, attempt) = (dispatch.id, dispatch.attempt);
            match self.handle(dispatch).await {
                End::Lost(error) => events::lease_lost(&error),
                end => match self.report_in_time(id, attempt, end).await {
                    Ok(()) => {}
                    Err(error) => events::report_failed(&error),
                },
            }
        }
        .instrument(span)
        .await;
    }

    async fn handle(&self, dispatch: Dispatch) -> End {
        let Some(handler) = handler::of_type(&self.handlers, &dispatch.action_type) else {
            return End::Finished(Err(Failure::new("no handler for this action type")));
        };
        let (id, attempt) = (dispatch.id, dispatch.attempt);
        let cancel = CancellationToken::new();
        if dispatch.cancel_requested {
            cancel.cancel();
        }
        let job = Job {
            dispatch,
            cancel: cancel.clone(),
        };
        // A task of its own: a handler that panics ends nothing else.
        let running = AbortOnDropHandle::new(tokio::spawn(handler(job).in_current_span()));
        tokio::select! {
            outcome = running => End::Finished(outcome.unwrap_or_else(|error| {
                let reason = if error.is_panic() { "the handler panicked" } else { "the handler was aborted" };
                Err(Failure::new(reason))
            })),
            error = self.keep_lease(id, attempt, &cancel) => End::Lost(error),
            () = self.give_up.cancelled() => End::GivenUp,
        }
    }

    /// Renews the lease three times in its length; returns when the lease is lost.
    async fn keep_lease(&self, id: Uuid, attempt: i32, cancel: &CancellationToken) -> Error {
        let mut link = self.link.clone();
        let mut until = Instant::now() + self.lease;
        let mut pause = self.lease / 3;
        loop {
            tokio::time::sleep(pause).await;
            let sent = Instant::now();
            let renewal = async {
                let session = link.session().await;
                session.extend(id, attempt, Some(self.lease)).await
            };
            match tokio::time::timeout_at(until, renewal).await {
                Err(_) => return Error::Timeout,
                Ok(Ok(report)) => {
                    until = sent + self.lease;
                    pause = self.lease / 3;
                    if report.cancel_requested {
                        cancel.cancel();
                    }
                }
                Ok(Err(error @ (Error::AttemptOver(_) | Error::UnknownDispatch(_)))) => {
                    return error;
                }
                Ok(Err(error)) => {
                    events::renewal_failed(&error);
                    pause = self.lease / 10;
                }
            }
        }
    }

    /// Reports until the lease is over, since later reports are refused. A consumer that stops does not wait as long.
    async fn report_in_time(&self, id: Uuid, attempt: i32, end: End) -> Result<(), Error> {
        let given_up = async {
            self.give_up.cancelled().await;
            tokio::time::sleep(LAST_ANSWER).await;
        };
        tokio::select! {
            reported = self.report(id, attempt, end) => reported,
            () = tokio::time::sleep(self.lease) => Err(Error::Timeout),
            () = given_up => Err(Error::Timeout),
        }
    }

    /// A report that was lost with its connection is sent again. If the first one has arrived, the server refuses the
    /// second one, which does no harm.
    async fn report(&self, id: Uuid, attempt: i32, end: End) -> Result<(), Error> {
        let mut link = self.link.clone();
        loop {
            let session = link.session().await;
            let reported = match &end {
                End::Finished(Ok(done)) => {
                    let (result, context) = (done.result.as_ref(), done.context.as_ref());
                    match session.complete(id, attempt, result, context).await {
                        // Another run has changed the context. The next attempt starts with the new one.
                        Err(error @ Error::ContextChanged(_)) => {
                            session.fail(id, attempt, &error.to_string(), true).await
                        }
                        reported => reported,
                    }
                }
                End::Finished(Err(failure)) => {
                    let (reason, retry) = (&failure.reason, failure.retry);
                    session.fail(id, attempt, reason, retry).await
                }
                End::GivenUp | End::Lost(_) => session.release(id, attempt).await,
            };
            match reported {
                Err(error) if error.is_disconnected() => tokio::time::sleep(REPORT_PAUSE).await,
                Err(error) => return Err(error),
                Ok(_) => break,
            }
        }
        match &end {
            End::Finished(Ok(_)) => events::completed(),
            End::Finished(Err(failure)) => events::failed(failure),
            End::GivenUp | End::Lost(_) => events::released(),
        }
        Ok(())
    }
}
