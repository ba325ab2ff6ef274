//! What a handler receives and returns.

use crate::Dispatch;
use serde_json::Value;
use std::collections::HashMap;
use std::pin::Pin;
use tokio_util::sync::CancellationToken;

/// One attempt at a dispatch, as a handler receives it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Job {
    /// The dispatch to run.
    pub dispatch: Dispatch,
    pub(crate) cancel: CancellationToken,
}

impl Job {
    /// Whether the run has been asked to stop, with `recur.cancel`.
    ///
    /// A handler that stops returns a [`Failure`], and the dispatch becomes cancelled.
    #[must_use]
    pub fn cancel_requested(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Returns as soon as the run is asked to stop.
    ///
    /// The consumer learns of the request when it renews the lease, three times per lease.
    ///
    /// ```no_run
    /// use recur_client::{Failure, Job};
    ///
    /// # async fn send(_: &serde_json::Value) -> Result<(), Failure> { Ok(()) }
    /// async fn email(job: Job) -> Result<(), Failure> {
    ///     tokio::select! {
    ///         sent = send(&job.dispatch.payload) => sent,
    ///         () = job.cancelled() => Err(Failure::new("stopped on request")),
    ///     }
    /// }
    /// ```
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }
}

/// The work has been done.
///
/// ```
/// use recur_client::Completion;
/// use serde_json::json;
///
/// let nothing_to_add = Completion::default();
/// let with_result = Completion::result(json!({ "imported": 250 }));
/// let with_context = Completion::default().with_context(json!({ "page": 2 }));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Completion {
    pub(crate) result: Option<Value>,
    pub(crate) context: Option<Value>,
}

impl Completion {
    /// With a result that is stored with the dispatch.
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

/// The work has not been done.
///
/// Every error converts into a failure that is tried again, so `?` works in handlers.
///
/// ```
/// use recur_client::Failure;
///
/// fn address(payload: &serde_json::Value) -> Result<&str, Failure> {
///     payload["to"].as_str().ok_or_else(|| Failure::permanent("the payload has no \"to\""))
/// }
///
/// fn number(text: &str) -> Result<i32, Failure> {
///     Ok(text.parse()?)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Failure {
    pub(crate) reason: String,
    pub(crate) retry: bool,
}

impl Failure {
    /// The dispatch is tried again while it has attempts left.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Failure {
        Failure {
            reason: reason.into(),
            retry: true,
        }
    }

    /// Another attempt would fail as well, so there is none.
    #[must_use]
    pub fn permanent(reason: impl Into<String>) -> Failure {
        Failure {
            reason: reason.into(),
            retry: false,
        }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::new(error.to_string())
    }
}

pub(crate) type Outcome = Result<Completion, Failure>;
pub(crate) type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;
pub(crate) type Handler = Box<dyn Fn(Job) -> Running + Send + Sync>;

/// The handler of an action type: that of the type itself, else that of the longest pattern that matches.
pub(crate) fn of_type<'a, H>(handlers: &'a HashMap<String, H>, action_type: &str) -> Option<&'a H> {
    let prefix_of = |pattern: &'a str| pattern.strip_suffix('*');
    let matching = handlers.iter().filter_map(|(pattern, handler)| {
        let prefix = prefix_of(pattern)?;
        action_type
            .starts_with(prefix)
            .then_some((prefix.len(), handler))
    });
    handlers.get(action_type).or_else(|| {
        matching
            .max_by_key(|(length, _)| *length)
            .map(|(_, handler)| handler)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_handler_runs() {
        let patterns = ["*", "task:*", "task:c*", "task:created", "mail"];
        let handlers = patterns
            .iter()
            .map(|pattern| ((*pattern).to_owned(), *pattern))
            .collect();
        for (action_type, expected) in [
            ("task:created", "task:created"),
            ("task:closed", "task:c*"),
            ("task:open", "task:*"),
            ("mail", "mail"),
            ("mails", "*"),
        ] {
            assert_eq!(of_type(&handlers, action_type), Some(&expected));
        }
        let only = HashMap::from([("task:*".to_owned(), ())]);
        assert_eq!(of_type(&only, "task"), None);
    }
}
