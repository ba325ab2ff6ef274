//! pg_recur's functions, with types.
//!
//! Statements are sent unnamed, with the types of their parameters: that works through a pooler in transaction mode.

use crate::dispatch::COLUMNS;
use crate::{Dispatch, Error};
use serde_json::Value;
use std::time::Duration;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

/// A connection that claims and reports.
///
/// ```no_run
/// # async fn example(client: tokio_postgres::Client) -> Result<(), recur_client::Error> {
/// use recur_client::{Claim, Session};
///
/// let session = Session::new(client);
/// for dispatch in session.claim(&Claim::default()).await? {
///     session.complete(dispatch.id, dispatch.attempt, None, None).await?;
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Session {
    client: Client,
}

/// Which dispatches to claim, and how; `None` means any.
#[derive(Clone, Debug)]
pub struct Claim {
    pub limit: u16,
    pub providers: Option<Vec<String>>,
    pub action_types: Option<Vec<String>>,
    pub namespaces: Option<Vec<String>>,
    pub tenants: Option<Vec<String>>,
    /// How long the claim holds; `None` means as long as the dispatch says.
    pub lease: Option<Duration>,
    /// Who claims, for people who look.
    pub consumer: Option<String>,
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
        }
    }
}

type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

impl Session {
    /// The connection of the client must be driven by somebody, as always with tokio-postgres.
    #[must_use]
    pub fn new(client: Client) -> Session {
        Session { client }
    }

    /// The client itself, for statements of one's own.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    async fn rows(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Error> {
        Ok(self.client.query_typed(sql, parameters).await?)
    }

    /// Takes up to `limit` dispatches.
    pub async fn claim(&self, claim: &Claim) -> Result<Vec<Dispatch>, Error> {
        let limit = i32::from(claim.limit);
        let lease = claim.lease.map(|lease| lease.as_secs_f64());
        let sql = format!(
            "SELECT {COLUMNS} FROM recur.claim($1, $2, $3, $4, $5, make_interval(secs => $6), $7)"
        );
        let rows = self
            .rows(
                &sql,
                &[
                    (&limit, Type::INT4),
                    (&claim.providers, Type::TEXT_ARRAY),
                    (&claim.action_types, Type::TEXT_ARRAY),
                    (&claim.namespaces, Type::TEXT_ARRAY),
                    (&claim.tenants, Type::TEXT_ARRAY),
                    (&lease, Type::FLOAT8),
                    (&claim.consumer, Type::TEXT),
                ],
            )
            .await?;
        rows.iter()
            .map(|row| Ok(Dispatch::from_row(row)?))
            .collect()
    }

    /// It has been done. A context is left for the action's next run.
    pub async fn complete(
        &self,
        id: Uuid,
        attempt: i32,
        result: Option<&Value>,
        context: Option<&Value>,
    ) -> Result<(), Error> {
        self.rows(
            "SELECT FROM recur.complete($1, $2, $3, $4)",
            &[
                (&id, Type::UUID),
                (&attempt, Type::INT4),
                (&result, Type::JSONB),
                (&context, Type::JSONB),
            ],
        )
        .await
        .map(drop)
    }

    /// It has not been done. It is tried again while it has attempts left, unless `retry` is false.
    pub async fn fail(
        &self,
        id: Uuid,
        attempt: i32,
        reason: &str,
        retry: bool,
    ) -> Result<(), Error> {
        self.rows(
            "SELECT FROM recur.fail($1, $2, $3, $4)",
            &[
                (&id, Type::UUID),
                (&attempt, Type::INT4),
                (&reason, Type::TEXT),
                (&retry, Type::BOOL),
            ],
        )
        .await
        .map(drop)
    }

    /// Renews the lease; true if somebody wants the run to stop.
    pub async fn extend(
        &self,
        id: Uuid,
        attempt: i32,
        lease: Option<Duration>,
    ) -> Result<bool, Error> {
        let lease = lease.map(|lease| lease.as_secs_f64());
        let rows = self
            .rows(
                "SELECT cancel_requested FROM recur.extend($1, $2, make_interval(secs => $3))",
                &[
                    (&id, Type::UUID),
                    (&attempt, Type::INT4),
                    (&lease, Type::FLOAT8),
                ],
            )
            .await?;
        match rows.first() {
            Some(row) => Ok(row.try_get(0)?),
            None => Ok(false),
        }
    }

    /// Gives it back, undone: anybody may claim it at once, and the attempt does not count.
    pub async fn release(&self, id: Uuid, attempt: i32) -> Result<(), Error> {
        self.rows(
            "SELECT FROM recur.release($1, $2)",
            &[(&id, Type::UUID), (&attempt, Type::INT4)],
        )
        .await
        .map(drop)
    }
}
