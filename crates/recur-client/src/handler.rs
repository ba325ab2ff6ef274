//! What a handler is given, and what it gives back.

use crate::Dispatch;
use serde_json::Value;
use std::pin::Pin;
use tokio::sync::watch;

/// One attempt, for a handler.
#[derive(Debug)]
#[non_exhaustive]
pub struct Job {
    pub dispatch: Dispatch,
    pub(crate) cancel: watch::Receiver<bool>,
}

impl Job {
    /// Has somebody asked for this run to stop? Whoever heeds it returns a [`Failure`]; the dispatch is then cancelled.
    #[must_use]
    pub fn cancel_requested(&self) -> bool {
        *self.cancel.borrow()
    }

    /// Returns when that happens; for `tokio::select!`.
    pub async fn cancelled(&mut self) {
        if self.cancel.wait_for(|asked| *asked).await.is_err() {
            // Nobody can ask any more.
            std::future::pending::<()>().await;
        }
    }
}

/// It has been done.
#[derive(Clone, Debug, Default)]
pub struct Completion {
    pub(crate) result: Option<Value>,
    pub(crate) context: Option<Value>,
}

impl Completion {
    /// With something to show for it.
    #[must_use]
    pub fn result(result: Value) -> Completion {
        Completion {
            result: Some(result),
            context: None,
        }
    }

    /// Leaves a context, a JSON object, for the action's next run.
    #[must_use]
    pub fn with_context(mut self, context: Value) -> Completion {
        self.context = Some(context);
        self
    }
}

impl From<()> for Completion {
    fn from((): ()) -> Completion {
        Completion::default()
    }
}

/// It has not been done.
#[derive(Clone, Debug)]
pub struct Failure {
    pub(crate) reason: String,
    pub(crate) retry: bool,
}

impl Failure {
    /// It may succeed another time.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Failure {
        Failure {
            reason: reason.into(),
            retry: true,
        }
    }

    /// Another try would be of no use.
    #[must_use]
    pub fn for_good(reason: impl Into<String>) -> Failure {
        Failure {
            reason: reason.into(),
            retry: false,
        }
    }
}

/// So that `?` works in handlers.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::new(error.to_string())
    }
}

pub(crate) type Outcome = Result<Completion, Failure>;
pub(crate) type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;
pub(crate) type Handler = Box<dyn Fn(Job) -> Running + Send + Sync>;
