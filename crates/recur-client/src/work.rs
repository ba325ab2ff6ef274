//! One attempt: the handler runs, its lease is renewed, and the outcome is reported.

use crate::handler::{Handler, Outcome};
use crate::link::Link;
use crate::{Dispatch, Error, Failure, Job};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A task that ends when nobody waits for it any more.
struct Aborting(JoinHandle<Outcome>);

impl Drop for Aborting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// How an attempt ended, as far as this consumer is concerned.
enum End {
    Finished(Outcome),
    /// The lease could not be renewed: the attempt is over.
    Lost(Error),
    /// There is no more time.
    Stopped,
}

/// Works until the handler is done, the attempt is lost, or `stop` says that time is up.
pub(crate) async fn work(
    mut link: Link,
    dispatch: Dispatch,
    handlers: Arc<std::collections::HashMap<String, Handler>>,
    lease: Duration,
    mut stop: watch::Receiver<bool>,
) {
    let (id, attempt) = (dispatch.id, dispatch.attempt);
    let (asked, cancel) = watch::channel(dispatch.cancel_requested);
    let end = match handlers.get(&dispatch.action_type) {
        None => End::Finished(Err(Failure::new("no handler for this action type"))),
        Some(handler) => {
            let mut running = Aborting(tokio::spawn(handler(Job { dispatch, cancel })));
            tokio::select! {
                outcome = &mut running.0 => End::Finished(outcome.unwrap_or_else(|error| {
                    Err(Failure::new(if error.is_panic() { "the handler panicked" } else { "the handler was aborted" }))
                })),
                lost = renew(link.clone(), id, attempt, lease, asked) => End::Lost(lost),
                _ = stop.wait_for(|stop| *stop) => End::Stopped,
            }
        }
    };
    if let End::Lost(error) = end {
        eprintln!("recur-client: {error}");
        return;
    }
    // A report that got lost with its connection is sent again. Should it have arrived after all, the second one is
    // refused, and no harm is done. After the lease it would be refused in any case.
    let report = async {
        loop {
            let session = link.session().await?;
            let reported = match &end {
                End::Finished(Ok(done)) => {
                    let (result, context) = (done.result.as_ref(), done.context.as_ref());
                    match session.complete(id, attempt, result, context).await {
                        // Another run was faster. This one begins anew, with what that one left.
                        Err(error @ Error::ContextChanged(_)) => {
                            session.fail(id, attempt, &error.to_string(), true).await
                        }
                        reported => reported,
                    }
                }
                End::Finished(Err(failure)) => {
                    session
                        .fail(id, attempt, &failure.reason, failure.retry)
                        .await
                }
                End::Stopped | End::Lost(_) => session.release(id, attempt).await,
            };
            match reported {
                Err(error) if error.is_disconnected() => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                reported => return reported,
            }
        }
    };
    match tokio::time::timeout(lease, report).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => eprintln!("recur-client: {error}"),
        Err(_) => {
            eprintln!("recur-client: dispatch {id} could not be reported before its lease ended")
        }
    }
}

/// Renews the lease three times in its length; returns when it can't be renewed any more.
async fn renew(
    mut link: Link,
    id: uuid::Uuid,
    attempt: i32,
    lease: Duration,
    asked: watch::Sender<bool>,
) -> Error {
    loop {
        tokio::time::sleep(lease / 3).await;
        let session = match link.session().await {
            Ok(session) => session,
            Err(error) => return error,
        };
        match session.extend(id, attempt, Some(lease)).await {
            Ok(cancel_requested) => {
                asked.send_if_modified(|now| {
                    std::mem::replace(now, cancel_requested) != cancel_requested
                });
            }
            Err(error @ (Error::AttemptOver(_) | Error::UnknownDispatch(_))) => return error,
            // The next one may arrive, as long as the lease lasts.
            Err(error) => eprintln!("recur-client: {error}"),
        }
    }
}
