//! The loop: claim, hand over, wait.

use crate::handler::Handler;
use crate::link::Link;
use crate::work::work;
use crate::{Claim, Completion, Error, Failure, Job};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Claims dispatches and runs them; made with [`Consumer::builder`].
#[derive(Debug)]
pub struct Consumer;

impl Consumer {
    /// For the database of this connection string, or URL.
    pub fn builder(connection: impl Into<String>) -> Builder {
        Builder {
            connection: connection.into(),
            handlers: HashMap::new(),
            claim: Claim::default(),
            concurrency: 4,
            lease: Duration::from_secs(60),
            channel: Some("recur".to_owned()),
            poll: Duration::from_secs(10),
            grace: Duration::from_secs(20),
        }
    }
}

/// What a consumer is to do, and how.
pub struct Builder {
    connection: String,
    handlers: HashMap<String, Handler>,
    claim: Claim,
    concurrency: u16,
    lease: Duration,
    channel: Option<String>,
    poll: Duration,
    grace: Duration,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("handlers", &self.handlers.keys())
            .field("claim", &self.claim)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// Runs dispatches of this action type. Only types that have a handler are claimed.
    #[must_use]
    pub fn handler<F, R, T, E>(mut self, action_type: impl Into<String>, handler: F) -> Builder
    where
        F: Fn(Job) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, E>> + Send + 'static,
        T: Into<Completion>,
        E: Into<Failure>,
    {
        let handler: Handler = Box::new(move |job| {
            let running = handler(job);
            Box::pin(async move { running.await.map(Into::into).map_err(Into::into) })
        });
        self.handlers.insert(action_type.into(), handler);
        self
    }

    /// Only dispatches of these providers.
    #[must_use]
    pub fn providers<S: Into<String>>(mut self, providers: impl IntoIterator<Item = S>) -> Builder {
        self.claim.providers = Some(providers.into_iter().map(Into::into).collect());
        self
    }

    /// Only dispatches of these tenants.
    #[must_use]
    pub fn tenants<S: Into<String>>(mut self, tenants: impl IntoIterator<Item = S>) -> Builder {
        self.claim.tenants = Some(tenants.into_iter().map(Into::into).collect());
        self
    }

    /// Only dispatches of these namespaces.
    #[must_use]
    pub fn namespaces<S: Into<String>>(
        mut self,
        namespaces: impl IntoIterator<Item = S>,
    ) -> Builder {
        self.claim.namespaces = Some(namespaces.into_iter().map(Into::into).collect());
        self
    }

    /// The name under which it claims.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.claim.consumer = Some(name.into());
        self
    }

    /// How many dispatches run at once; 4 unless it is said otherwise.
    #[must_use]
    pub fn concurrency(mut self, concurrency: u16) -> Builder {
        self.concurrency = concurrency;
        self
    }

    /// How long a dispatch is held without word of life; a minute unless it is said otherwise. It is renewed while a
    /// handler works, so it need not be as long as the work.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Builder {
        self.lease = lease;
        self
    }

    /// Listens on this channel instead of `recur`.
    #[must_use]
    pub fn channel(mut self, channel: impl Into<String>) -> Builder {
        self.channel = Some(channel.into());
        self
    }

    /// Does not listen but asks this often: for a pooler in transaction mode, through which nothing can be heard.
    #[must_use]
    pub fn polling(mut self, every: Duration) -> Builder {
        self.channel = None;
        self.poll = every;
        self
    }

    /// Asks this often although it listens; every ten seconds unless it is said otherwise.
    #[must_use]
    pub fn poll_every(mut self, every: Duration) -> Builder {
        self.poll = every;
        self
    }

    /// How long running handlers may take to finish after a request to stop; the rest is given back. 20 seconds unless
    /// it is said otherwise.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Builder {
        self.grace = grace;
        self
    }

    /// Runs until SIGTERM or SIGINT.
    pub async fn run(self) -> Result<(), Error> {
        let problem = |error: std::io::Error| Error::Configuration(format!("no signals: {error}"));
        let mut terminate = signal(SignalKind::terminate()).map_err(problem)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(problem)?;
        self.run_until(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
        .await
    }

    /// Runs until `stop` is done, then finishes what it has begun, or gives it back.
    pub async fn run_until(self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let config = self
            .connection
            .parse::<tokio_postgres::Config>()
            .map_err(|error| Error::Configuration(error.to_string()))?;
        if self.handlers.is_empty() || self.concurrency == 0 {
            return Err(Error::Configuration(
                "a consumer needs a handler and a concurrency of at least 1".to_owned(),
            ));
        }
        let mut claim = self.claim;
        claim.lease = Some(self.lease);
        claim.action_types = Some(self.handlers.keys().cloned().collect());
        let handlers = Arc::new(self.handlers);
        let (time_is_up, out_of_time) = watch::channel(false);
        let (mut link, keeper) = Link::establish(config, self.channel);
        let mut jobs = JoinSet::new();

        let mut stop = std::pin::pin!(stop);
        loop {
            let free = usize::from(self.concurrency) - jobs.len();
            let mut more = false;
            if free > 0 {
                claim.limit = u16::try_from(free).unwrap_or(u16::MAX);
                // Not interrupted half-way: what was claimed is known.
                let session = tokio::select! {
                    () = &mut stop => break,
                    session = link.session() => session?,
                };
                match session.claim(&claim).await {
                    Ok(dispatches) => {
                        more = dispatches.len() == free;
                        for dispatch in dispatches {
                            jobs.spawn(work(
                                link.clone(),
                                dispatch,
                                Arc::clone(&handlers),
                                self.lease,
                                out_of_time.clone(),
                            ));
                        }
                    }
                    Err(error) => eprintln!("recur-client: {error}"),
                }
            }
            let full = jobs.len() >= usize::from(self.concurrency);
            tokio::select! {
                () = &mut stop => break,
                Some(_) = jobs.join_next() => {}
                () = link.bell.notified(), if !full => {}
                () = tokio::time::sleep(self.poll), if !full && !more => {}
            }
        }

        let finish = async { while jobs.join_next().await.is_some() {} };
        if tokio::time::timeout(self.grace, finish).await.is_err() {
            time_is_up.send_replace(true);
            while jobs.join_next().await.is_some() {}
        }
        keeper.abort();
        Ok(())
    }
}
