//! Connections: prepared once, replaced when they are lost.

use super::Failure;
use crate::config::{DatabaseConfig, Secret};
use deadpool::Runtime;
use deadpool::managed::{Manager, Metrics, Object, Pool, PoolError, RecycleError, RecycleResult};
use recur_client::Connector;
use std::collections::HashMap;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_postgres::{Client, Statement, Transaction};

pub type Connections = Pool<Dial>;

/// How long the server is asked to give a statement up. The connection counts as used until then.
const CANCELLING: Duration = Duration::from_secs(5);

/// A connection with the statements that it has prepared, by their text.
pub struct Link {
    client: Client,
    connector: Connector,
    statements: HashMap<&'static str, Statement>,
}

impl Link {
    /// Rolled back unless it is committed, also where a request is given up.
    pub async fn begin(
        &mut self,
    ) -> Result<(Transaction<'_>, &mut HashMap<&'static str, Statement>), Failure> {
        Ok((self.client.transaction().await?, &mut self.statements))
    }
}

pub struct Dial {
    url: Secret,
    statement_timeout: Duration,
    lock_timeout: Duration,
}

impl Manager for Dial {
    type Type = Link;
    type Error = Failure;

    async fn create(&self) -> Result<Link, Failure> {
        let unavailable = |error: recur_client::Error| Failure::Unavailable(error.to_string());
        let connector = Connector::new(self.url.expose(), None).map_err(unavailable)?;
        let (client, _) = connector.open().await.map_err(unavailable)?;
        let milliseconds = |limit: Duration| limit.as_millis().to_string();
        let sql = include_str!("../../sql/prepare_session.sql");
        let row = client
            .query_one(
                sql,
                &[
                    &milliseconds(self.statement_timeout),
                    &milliseconds(self.lock_timeout),
                ],
            )
            .await?;
        if row.get("is_superuser") {
            return Err(Failure::Unavailable(
                "recurd does not log in as a superuser: CREATE ROLE recurd LOGIN NOINHERIT"
                    .to_owned(),
            ));
        }
        Ok(Link {
            client,
            connector,
            statements: HashMap::new(),
        })
    }

    async fn recycle(&self, link: &mut Link, _: &Metrics) -> RecycleResult<Failure> {
        if link.client.is_closed() {
            return Err(RecycleError::message("closed"));
        }
        Ok(())
    }
}

pub fn open(config: &DatabaseConfig) -> Connections {
    let dial = Dial {
        url: config.url.clone(),
        statement_timeout: config.statement_timeout,
        lock_timeout: config.lock_timeout,
    };
    Pool::builder(dial)
        .max_size(config.pool_size)
        .wait_timeout(Some(config.pool_timeout))
        .create_timeout(Some(config.pool_timeout))
        .runtime(Runtime::Tokio1)
        .build()
        .expect("a runtime is given")
}

pub async fn take(pool: &Connections) -> Result<Lent, Failure> {
    match pool.get().await {
        Ok(object) => Ok(Lent(Some(object))),
        Err(PoolError::Backend(failure)) => Err(failure),
        Err(PoolError::Timeout(deadpool::managed::TimeoutType::Wait)) => Err(Failure::Busy),
        Err(other) => Err(Failure::Unavailable(other.to_string())),
    }
}

/// A connection in use, given back when its transaction has ended. One that is dropped before, since a request was
/// given up, may still run a statement: the server is asked to end it, and the connection is closed.
pub struct Lent(Option<Object<Dial>>);

impl Lent {
    pub fn link(&mut self) -> &mut Link {
        self.0.as_mut().expect("only its end takes it")
    }

    /// To the pool.
    pub fn give_back(mut self) {
        drop(self.0.take());
    }

    /// Closed: it is not worth keeping.
    pub fn discard(mut self) {
        drop(self.0.take().map(Object::take));
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(object) = self.0.take() else { return };
        let Ok(runtime) = Handle::try_current() else {
            return drop(Object::take(object));
        };
        runtime.spawn(async move {
            let running = object.client.cancel_token();
            let cancelled = object.connector.cancel(&running);
            if let Ok(Err(error)) = tokio::time::timeout(CANCELLING, cancelled).await {
                tracing::warn!(event = "database.cancel_failed", %error);
            }
            // The request to cancel may arrive late, so no other request may use this connection.
            drop(Object::take(object));
        });
    }
}
