//! pg_recur's functions for consumers, typed.
//!
//! Statements are sent unnamed, with the types of their parameters, so that they work through a pooler in transaction
//! mode.

use crate::connector::Connector;
use crate::{Dispatch, Error, Report};
use serde_json::Value;
use std::time::Duration;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

/// A connection that claims and reports, for programs with a loop of their own.
///
/// ```no_run
/// # async fn example() -> Result<(), recur_client::Error> {
/// use recur_client::{Claim, Session};
///
/// let session = Session::connect("host=/var/run/postgresql dbname=app").await?;
/// for dispatch in session.claim(&Claim::default()).await? {
///     println!("{} is due", dispatch.action_type);
///     session.complete(dispatch.id, dispatch.attempt, None, None).await?;
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Session {
    client: Client,
}

/// Which dispatches to claim, and how; `None` does not filter.
///
/// ```
/// use recur_client::Claim;
/// use std::time::Duration;
///
/// let claim = Claim {
///     limit: 10,
///     providers: Some(vec!["mailer".to_owned()]),
///     lease: Some(Duration::from_secs(60)),
///     ..Claim::default()
/// };
/// assert_eq!(claim.tenants, None);
/// ```
#[derive(Clone, Debug)]
pub struct Claim {
    /// At most this many; 1 by default.
    pub limit: u16,
    /// Only dispatches of these providers.
    pub providers: Option<Vec<String>>,
    /// Only dispatches of these action types, or patterns of them such as `task:*`.
    pub action_types: Option<Vec<String>>,
    /// Only dispatches of these namespaces.
    pub namespaces: Option<Vec<String>>,
    /// Only dispatches of these tenants.
    pub tenants: Option<Vec<String>>,
    /// How long the claim holds; `None` means the action's lease.
    pub lease: Option<Duration>,
    /// The consumer's name, for `claimed_by`.
    pub consumer: Option<String>,
    /// Claims as this agent, so that dispatches that are for it are claimed too; `*` means every agent.
    pub agent: Option<String>,
}

impl Default for Claim {
    fn default() -> Claim {
        Claim {
            limit: 1,
            providers: None,
            action_types: None,
            namespaces: None,
            tenants: None,
            lease: None,
            consumer: None,
            agent: None,
        }
    }
}

type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

impl Session {
    /// Connects, with TLS as the connection string asks for it (see [TLS](crate#tls)).
    ///
    /// Needs a tokio runtime, on which the connection runs until the session is dropped.
    pub async fn connect(connection: &str) -> Result<Session, Error> {
        Session::open(&Connector::new(connection, None)?).await
    }

    /// Connects with a TLS configuration of one's own (see [TLS](crate#tls)).
    pub async fn connect_with(
        connection: &str,
        tls: rustls::ClientConfig,
    ) -> Result<Session, Error> {
        Session::open(&Connector::new(connection, Some(tls))?).await
    }

    async fn open(connector: &Connector) -> Result<Session, Error> {
        let (client, connection) = connector.connect().await?;
        // An error of the connection is also the error of the call that waits for it.
        tokio::spawn(connection);
        Ok(Session::new(client))
    }

    /// Uses a client whose connection the caller polls, as tokio-postgres demands.
    #[must_use]
    pub fn new(client: Client) -> Session {
        Session { client }
    }

    /// The client, for statements of one's own.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Claims available dispatches, higher priorities first, then older ones.
    pub async fn claim(&self, claim: &Claim) -> Result<Vec<Dispatch>, Error> {
        let limit = i32::from(claim.limit);
        let lease = claim.lease.map(|lease| lease.as_secs_f64());
        let rows = self
            .rows(
                include_str!("../sql/claim.sql"),
                &[
                    (&limit, Type::INT4),
                    (&claim.providers, Type::TEXT_ARRAY),
                    (&claim.action_types, Type::TEXT_ARRAY),
                    (&claim.namespaces, Type::TEXT_ARRAY),
                    (&claim.tenants, Type::TEXT_ARRAY),
                    (&lease, Type::FLOAT8),
                    (&claim.consumer, Type::TEXT),
                    (&claim.agent, Type::TEXT),
                ],
            )
            .await?;
        rows.iter().map(Dispatch::from_row).collect()
    }

    /// Reports success; a context, if there is one, replaces the action's.
    ///
    /// ```no_run
    /// # use recur_client::{Dispatch, Error, Session};
    /// # async fn example(session: Session, dispatch: Dispatch) -> Result<(), Error> {
    /// use serde_json::json;
    ///
    /// let (result, context) = (json!({ "imported": 250 }), json!({ "page": 2 }));
    /// session.complete(dispatch.id, dispatch.attempt, Some(&result), Some(&context)).await?;
    /// # Ok(()) }
    /// ```
    pub async fn complete(
        &self,
        id: Uuid,
        attempt: i32,
        result: Option<&Value>,
        context: Option<&Value>,
    ) -> Result<Report, Error> {
        self.report(
            include_str!("../sql/complete.sql"),
            &[
                (&id, Type::UUID),
                (&attempt, Type::INT4),
                (&result, Type::JSONB),
                (&context, Type::JSONB),
            ],
        )
        .await
    }

    /// Reports a failure. The dispatch is tried again while it has attempts left, unless `retry` is false.
    ///
    /// ```no_run
    /// # use recur_client::{Dispatch, Error, Session};
    /// # async fn example(session: Session, dispatch: Dispatch) -> Result<(), Error> {
    /// use recur_client::Status;
    ///
    /// let report = session.fail(dispatch.id, dispatch.attempt, "mail server is down", true).await?;
    /// if report.status == Status::Pending {
    ///     println!("next attempt at {:?}", report.available_at);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn fail(
        &self,
        id: Uuid,
        attempt: i32,
        reason: &str,
        retry: bool,
    ) -> Result<Report, Error> {
        self.report_failure(id, attempt, reason, retry, None).await
    }

    /// Reports a failure that passes: while the dispatch has attempts left, it is tried again after this pause instead
    /// of that of its `retry_backoff`.
    ///
    /// ```no_run
    /// # use recur_client::{Dispatch, Error, Session};
    /// # async fn example(session: Session, dispatch: Dispatch) -> Result<(), Error> {
    /// use std::time::Duration;
    ///
    /// // As a header Retry-After asks for it.
    /// let pause = Duration::from_secs(120);
    /// session.fail_for(dispatch.id, dispatch.attempt, "too many requests", pause).await?;
    /// # Ok(()) }
    /// ```
    pub async fn fail_for(
        &self,
        id: Uuid,
        attempt: i32,
        reason: &str,
        pause: Duration,
    ) -> Result<Report, Error> {
        self.report_failure(id, attempt, reason, true, Some(pause))
            .await
    }

    async fn report_failure(
        &self,
        id: Uuid,
        attempt: i32,
        reason: &str,
        retry: bool,
        pause: Option<Duration>,
    ) -> Result<Report, Error> {
        let pause = pause.map(|pause| pause.as_secs_f64());
        self.report(
            include_str!("../sql/fail.sql"),
            &[
                (&id, Type::UUID),
                (&attempt, Type::INT4),
                (&reason, Type::TEXT),
                (&retry, Type::BOOL),
                (&pause, Type::FLOAT8),
            ],
        )
        .await
    }

    /// Renews the lease, from now on; `None` means the action's lease.
    ///
    /// ```no_run
    /// # use recur_client::{Dispatch, Error, Session};
    /// # async fn example(session: Session, dispatch: Dispatch) -> Result<(), Error> {
    /// use std::time::Duration;
    ///
    /// let report = session.extend(dispatch.id, dispatch.attempt, Some(Duration::from_secs(60))).await?;
    /// if report.cancel_requested {
    ///     session.fail(dispatch.id, dispatch.attempt, "stopped on request", false).await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn extend(
        &self,
        id: Uuid,
        attempt: i32,
        lease: Option<Duration>,
    ) -> Result<Report, Error> {
        let lease = lease.map(|lease| lease.as_secs_f64());
        self.report(
            include_str!("../sql/extend.sql"),
            &[
                (&id, Type::UUID),
                (&attempt, Type::INT4),
                (&lease, Type::FLOAT8),
            ],
        )
        .await
    }

    /// Returns the dispatch to the queue, available at once. The attempt does not count.
    pub async fn release(&self, id: Uuid, attempt: i32) -> Result<Report, Error> {
        self.give_back(id, attempt, None).await
    }

    /// Returns the dispatch to the queue, available after this delay. The attempt does not count.
    pub async fn release_for(
        &self,
        id: Uuid,
        attempt: i32,
        delay: Duration,
    ) -> Result<Report, Error> {
        self.give_back(id, attempt, Some(delay)).await
    }

    async fn give_back(
        &self,
        id: Uuid,
        attempt: i32,
        delay: Option<Duration>,
    ) -> Result<Report, Error> {
        let delay = delay.map(|delay| delay.as_secs_f64());
        self.report(
            include_str!("../sql/release.sql"),
            &[
                (&id, Type::UUID),
                (&attempt, Type::INT4),
                (&delay, Type::FLOAT8),
            ],
        )
        .await
    }

    async fn report(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Report, Error> {
        match self.rows(sql, parameters).await?.first() {
            Some(row) => Report::from_row(row),
            None => Err(Error::UnexpectedAnswer(
                "the server answered a report without a row".to_owned(),
            )),
        }
    }

    async fn rows(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Error> {
        Ok(self.client.query_typed(sql, parameters).await?)
    }
}
