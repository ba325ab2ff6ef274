//! The door: everything that reaches the database runs as a role of the allow-list, in one transaction.

use super::Failure;
use super::pool::{self, Connections, Link};
use crate::config::{DatabaseConfig, Role};
use std::collections::HashMap;
use std::future::Future;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement, Transaction};

/// How often a transaction that another one stood in the way of is begun.
const ATTEMPTS: usize = 3;

const PING: &str = include_str!("../../sql/ping.sql");
const BECOME_ROLE: &str = include_str!("../../sql/become_role.sql");

#[derive(Clone)]
pub struct Database {
    pool: Connections,
}

/// What is done in one transaction. It may be run again from the beginning.
pub trait Work: Sync {
    type Output: Send;

    fn run(
        &self,
        session: &mut Session<'_>,
    ) -> impl Future<Output = Result<Self::Output, Failure>> + Send;
}

/// A transaction that runs as a role.
pub struct Session<'a> {
    transaction: Transaction<'a>,
    statements: &'a mut HashMap<&'static str, Statement>,
}

impl Session<'_> {
    pub async fn query(
        &mut self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Failure> {
        let statement = match self.statements.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                let statement = self.transaction.prepare(sql).await?;
                self.statements.insert(sql, statement.clone());
                statement
            }
        };
        Ok(self.transaction.query(&statement, parameters).await?)
    }
}

struct Query<'a> {
    sql: &'static str,
    parameters: &'a [&'a (dyn ToSql + Sync)],
}

impl Work for Query<'_> {
    type Output = Vec<Row>;

    async fn run(&self, session: &mut Session<'_>) -> Result<Vec<Row>, Failure> {
        session.query(self.sql, self.parameters).await
    }
}

impl Database {
    pub fn new(config: &DatabaseConfig) -> Database {
        Database {
            pool: pool::open(config),
        }
    }

    /// Does this work as the role, in a transaction that commits if it succeeds.
    pub async fn as_role<W: Work>(&self, role: &Role, work: &W) -> Result<W::Output, Failure> {
        let mut attempt = 1;
        loop {
            match self.once(role, work).await {
                Err(failure) if failure.is_worth_repeating() && attempt < ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }

    /// Runs one statement as the role.
    pub async fn query(
        &self,
        role: &Role,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Failure> {
        self.as_role(role, &Query { sql, parameters }).await
    }

    /// Does the database answer?
    pub async fn ping(&self) -> Result<(), Failure> {
        self.inspect(PING, &[]).await.map(drop)
    }

    /// Reads catalogs as the login, which has no rights of its own.
    pub async fn inspect(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Failure> {
        let mut link = pool::take(&self.pool).await?;
        let read = read(link.link(), sql, parameters).await;
        link.give_back();
        read
    }

    async fn once<W: Work>(&self, role: &Role, work: &W) -> Result<W::Output, Failure> {
        let mut lost = 0;
        loop {
            let mut link = pool::take(&self.pool).await?;
            let done = within(link.link(), role, work).await;
            // The server has ended idle connections. Nothing was done yet: another one will do.
            if let Err(Problem::NotBegun(_)) = &done
                && lost <= self.pool.status().max_size
            {
                lost += 1;
                link.discard();
                continue;
            }
            link.give_back();
            return done.map_err(|(Problem::NotBegun(failure) | Problem::Begun(failure))| failure);
        }
    }
}

enum Problem {
    NotBegun(Failure),
    Begun(Failure),
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        Problem::Begun(failure)
    }
}

async fn read(
    link: &mut Link,
    sql: &'static str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, Failure> {
    let (transaction, statements) = link.begin().await?;
    Session {
        transaction,
        statements,
    }
    .query(sql, parameters)
    .await
}

async fn within<W: Work>(link: &mut Link, role: &Role, work: &W) -> Result<W::Output, Problem> {
    let (transaction, statements) = link.begin().await.map_err(Problem::NotBegun)?;
    let mut session = Session {
        transaction,
        statements,
    };
    if session
        .query(BECOME_ROLE, &[&role.as_str()])
        .await?
        .is_empty()
    {
        return Err(Failure::RoleRefused(role.clone()).into());
    }
    let output = work.run(&mut session).await?;
    session.transaction.commit().await.map_err(Failure::from)?;
    Ok(output)
}
