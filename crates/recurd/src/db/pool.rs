//! Connections: prepared once, replaced when they are lost.

use super::Failure;
use crate::config::{DatabaseConfig, Secret};
use deadpool::Runtime;
use deadpool::managed::{Manager, Metrics, Object, Pool, PoolError, RecycleError, RecycleResult};
use recur_client::Connector;
use std::collections::HashMap;
use std::time::Duration;
use tokio_postgres::{Client, Statement, Transaction};

pub type Connections = Pool<Dial>;

/// A connection with the statements that it has prepared, by their text.
pub struct Link {
    client: Client,
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

pub async fn take(pool: &Connections) -> Result<Object<Dial>, Failure> {
    pool.get().await.map_err(|error| match error {
        PoolError::Backend(failure) => failure,
        PoolError::Timeout(deadpool::managed::TimeoutType::Wait) => Failure::Busy,
        other => Failure::Unavailable(other.to_string()),
    })
}
