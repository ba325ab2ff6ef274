//! The loop: claim, run, wait.

use crate::attempt::{Attempts, LAST_ANSWER};
use crate::connector::Connector;
use crate::handler::Handler;
use crate::{Claim, Completion, Dispatch, Error, Failure, Job, Session, events, link};
use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Claims dispatches and runs them; built with [`Consumer::builder`].
#[derive(Debug)]
pub struct Consumer;

impl Consumer {
    /// For the database of this connection string or URL, written as for psql (see [TLS](crate#tls) for what differs).
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), recur_client::Error> {
    /// use recur_client::{Consumer, Failure};
    ///
    /// Consumer::builder("postgresql://worker@db.example.com/app?sslmode=verify-full")
    ///     .providers(["mailer"])
    ///     .handler("email", |job| async move {
    ///         println!("mail to {}", job.dispatch.payload["to"]);
    ///         Ok::<_, Failure>(())
    ///     })
    ///     .run()
    ///     .await
    /// # }
    /// ```
    pub fn builder(connection: impl Into<String>) -> Builder {
        Builder {
            connection: connection.into(),
            tls: None,
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

/// The settings of a consumer.
pub struct Builder {
    connection: String,
    tls: Option<rustls::ClientConfig>,
    handlers: HashMap<String, Handler>,
    claim: Claim,
    concurrency: u16,
    lease: Duration,
    channel: Option<String>,
    poll: Duration,
    grace: Duration,
}

impl std::fmt::Debug for Builder {
    // The connection string may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("handlers", &self.handlers.keys())
            .field("claim", &self.claim)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// Runs dispatches of this action type, or of all that match a pattern: `task:*` means every type that begins with
    /// `task:`, `*` every type. Of several handlers that match, the most specific one runs: that of the type itself,
    /// else that of the longest pattern. Only types with a handler are claimed.
    ///
    /// A handler that blocks its thread runs its work in [`tokio::task::spawn_blocking`], so that leases are renewed
    /// meanwhile:
    ///
    /// ```no_run
    /// # fn render(_: serde_json::Value) -> Result<(), std::io::Error> { Ok(()) }
    /// # let builder = recur_client::Consumer::builder("host=db");
    /// use recur_client::Failure;
    ///
    /// builder.handler("report", |job| async move {
    ///     tokio::task::spawn_blocking(move || render(job.dispatch.payload)).await??;
    ///     Ok::<_, Failure>(())
    /// })
    /// # ;
    /// ```
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

    /// Claims only dispatches of these providers.
    #[must_use]
    pub fn providers<S: Into<String>>(mut self, providers: impl IntoIterator<Item = S>) -> Builder {
        self.claim.providers = Some(providers.into_iter().map(Into::into).collect());
        self
    }

    /// Claims as this agent: dispatches whose primary agent it is, or whose fallback where the primary agent has not
    /// taken them in time or has failed, and those that are for no agent. Without an agent, a consumer gets only those
    /// that are for none. When the time of a fallback comes, no notification is sent: the consumer finds the dispatch
    /// when it polls.
    #[must_use]
    pub fn agent(mut self, agent: impl Into<String>) -> Builder {
        self.claim.agent = Some(agent.into());
        self
    }

    /// Claims only dispatches of these tenants.
    #[must_use]
    pub fn tenants<S: Into<String>>(mut self, tenants: impl IntoIterator<Item = S>) -> Builder {
        self.claim.tenants = Some(tenants.into_iter().map(Into::into).collect());
        self
    }

    /// Claims only dispatches of these namespaces.
    #[must_use]
    pub fn namespaces<S: Into<String>>(
        mut self,
        namespaces: impl IntoIterator<Item = S>,
    ) -> Builder {
        self.claim.namespaces = Some(namespaces.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the consumer's name, for `claimed_by`; the connection's `application_name` by default.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.claim.consumer = Some(name.into());
        self
    }

    /// Sets how many dispatches run at once; 4 by default.
    #[must_use]
    pub fn concurrency(mut self, concurrency: u16) -> Builder {
        self.concurrency = concurrency;
        self
    }

    /// Sets how long a dispatch stays claimed when the consumer disappears; a minute by default.
    ///
    /// The lease is renewed while a handler works, so it can be shorter than the work. A handler whose lease can't be
    /// renewed in time is aborted, because another consumer may run the dispatch by then.
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

    /// Polls at this interval without listening: for a pooler in transaction mode, which passes no notifications on.
    #[must_use]
    pub fn polling(mut self, every: Duration) -> Builder {
        self.channel = None;
        self.poll = every;
        self
    }

    /// Sets how often the consumer polls while it listens; every ten seconds by default.
    #[must_use]
    pub fn poll_every(mut self, every: Duration) -> Builder {
        self.poll = every;
        self
    }

    /// Sets how long handlers and reports may take after a request to stop; 20 seconds by default.
    ///
    /// Dispatches whose handlers take longer are released for other consumers.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Builder {
        self.grace = grace;
        self
    }

    /// Uses a TLS configuration of one's own, for client certificates or another verification of the server's.
    ///
    /// The connection string's `sslmode` still decides whether TLS is used (see [TLS](crate#tls)).
    ///
    /// ```no_run
    /// # async fn example(roots: recur_client::rustls::RootCertStore) -> Result<(), recur_client::Error> {
    /// use recur_client::{Consumer, Failure, rustls::ClientConfig};
    ///
    /// let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    /// Consumer::builder("host=db.example.com dbname=app sslmode=require")
    ///     .tls(tls)
    ///     .handler("email", |_| async { Ok::<_, Failure>(()) })
    ///     .run()
    ///     .await
    /// # }
    /// ```
    #[must_use]
    pub fn tls(mut self, config: rustls::ClientConfig) -> Builder {
        self.tls = Some(config);
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

    /// Runs until `stop` is ready, then lets handlers finish, or releases their dispatches (see [`Builder::grace`]).
    ///
    /// An idle consumer returns at once, also while the database can't be reached. Dropping the returned future ends
    /// handlers and connections without a report; their leases expire.
    ///
    /// ```no_run
    /// # async fn example(builder: recur_client::Builder) -> Result<(), Box<dyn std::error::Error>> {
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let consumer = tokio::spawn(builder.run_until(async { drop(stopped.await) }));
    /// // … and whenever the program has other plans:
    /// drop(stop);
    /// consumer.await??;
    /// # Ok(()) }
    /// ```
    pub async fn run_until(self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        if self.handlers.is_empty() || self.concurrency == 0 {
            return Err(Error::Configuration(
                "a consumer needs a handler and a concurrency of at least 1".to_owned(),
            ));
        }
        let connector = Connector::new(&self.connection, self.tls)?;
        let mut claim = self.claim;
        claim.lease = Some(self.lease);
        claim.action_types = Some(self.handlers.keys().cloned().collect());
        // The connection ends with this handle, when the loop and its last reports are over.
        let (link, _connection) = link::establish(connector, self.channel);
        let mut running = Loop {
            attempts: Attempts {
                link,
                handlers: Arc::new(self.handlers),
                lease: self.lease,
                give_up: CancellationToken::new(),
            },
            claim,
            concurrency: usize::from(self.concurrency),
            poll: self.poll,
            jobs: JoinSet::new(),
        };
        running.run(pin!(stop)).await;
        running.finish(self.grace).await;
        Ok(())
    }
}

/// A consumer that runs.
struct Loop {
    attempts: Attempts,
    claim: Claim,
    concurrency: usize,
    poll: Duration,
    jobs: JoinSet<()>,
}

impl Loop {
    /// Claims and runs until `stop` is ready.
    async fn run(&mut self, mut stop: Pin<&mut impl Future<Output = ()>>) {
        loop {
            let free = self.concurrency - self.jobs.len();
            if free > 0 {
                match self.claim(free, stop.as_mut()).await {
                    Some(claimed) => self.start(claimed),
                    None => return,
                }
            }
            let has_room = self.jobs.len() < self.concurrency;
            tokio::select! {
                () = &mut stop => return,
                Some(_) = self.jobs.join_next() => {}
                () = self.attempts.link.wakeup(), if has_room => {}
                () = tokio::time::sleep(self.poll), if has_room => {}
            }
        }
    }

    /// Waits for a connection and claims; `None` if `stop` was ready first.
    async fn claim(
        &mut self,
        free: usize,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Option<Result<Vec<Dispatch>, Error>> {
        let session = tokio::select! {
            () = &mut stop => return None,
            session = self.attempts.link.session() => session,
        };
        self.claim.limit = u16::try_from(free).unwrap_or(u16::MAX);
        let mut claiming = pin!(session.claim(&self.claim));
        tokio::select! {
            claimed = &mut claiming => Some(claimed),
            () = &mut stop => {
                give_back(&session, claiming).await;
                None
            }
        }
    }

    fn start(&mut self, claimed: Result<Vec<Dispatch>, Error>) {
        match claimed {
            Ok(dispatches) => {
                events::claimed(dispatches.len());
                for dispatch in dispatches {
                    self.jobs.spawn(self.attempts.clone().run(dispatch));
                }
            }
            Err(error) => events::claim_failed(&error),
        }
    }

    /// Lets the jobs finish, or give up.
    async fn finish(mut self, grace: Duration) {
        events::stopping(self.jobs.len());
        let finished = async { while self.jobs.join_next().await.is_some() {} };
        if timeout(grace, finished).await.is_err() {
            self.attempts.give_up.cancel();
            while self.jobs.join_next().await.is_some() {}
        }
        events::stopped();
    }
}

/// The server may carry out a claim that it has received: what the claim returns is released.
async fn give_back(
    session: &Session,
    claiming: impl Future<Output = Result<Vec<Dispatch>, Error>>,
) {
    let released = timeout(LAST_ANSWER, async {
        let dispatches = claiming.await.map_err(|error| events::claim_failed(&error));
        for dispatch in dispatches.unwrap_or_default() {
            if let Err(error) = session.release(dispatch.id, dispatch.attempt).await {
                events::report_failed(&error);
            }
        }
    });
    if released.await.is_err() {
        events::claim_failed(&Error::Timeout);
    }
}
