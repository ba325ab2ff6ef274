//! The transaction of a request: idempotency key, statement, what is shown of the result.

use super::inputs::Values;
use super::operations::{Answer, Operation};
use crate::db::{Failure, Session, ToSql, Work};
use tokio_postgres::Row;

const BEGIN: &str = include_str!("../../sql/requests/begin.sql");
const FINISH: &str = include_str!("../../sql/requests/finish.sql");

/// A request that happens once, however often it is sent.
pub struct Key {
    pub text: String,
    /// A hash of the request.
    pub fingerprint: String,
}

pub struct Exchange<'a> {
    pub operation: &'a Operation,
    pub values: &'a Values,
    pub key: Option<&'a Key>,
}

/// What the database said.
pub enum Outcome {
    /// The rows of the statement.
    Rows(Vec<Row>),
    /// The answer of an earlier request with the same key.
    Replayed { status: i32, body: String },
}

impl Work for Exchange<'_> {
    type Output = Outcome;

    async fn run(&self, session: &mut Session<'_>) -> Result<Outcome, Failure> {
        let Some(key) = self.key else {
            return Ok(Outcome::Rows(self.rows(session).await?));
        };
        let known = session.query(BEGIN, &[&key.text, &key.fingerprint]).await?;
        if let Some(row) = known.first() {
            let (status, body): (Option<i32>, Option<String>) =
                (row.get("status"), row.get("body"));
            return Ok(Outcome::Replayed {
                status: status.unwrap_or(201),
                body: body.unwrap_or_default(),
            });
        }
        let rows = self.rows(session).await?;
        let body: Option<&str> = rows.first().map(|row| row.get("body"));
        session.query(FINISH, &[&key.text, &"201", &body]).await?;
        Ok(Outcome::Rows(rows))
    }
}

impl Exchange<'_> {
    async fn rows(&self, session: &mut Session<'_>) -> Result<Vec<Row>, Failure> {
        let parameters: Vec<&(dyn ToSql + Sync)> = self
            .values
            .bound
            .iter()
            .map(|value| value as &(dyn ToSql + Sync))
            .collect();
        let rows = session.query(self.operation.sql, &parameters).await?;
        match &self.operation.answer {
            Answer::Changed { then }
            | Answer::Created {
                then: Some(then), ..
            } => {
                let Some(row) = rows.first() else {
                    return Ok(rows);
                };
                let id: &str = row.get("id");
                session.query(then, &[&id]).await
            }
            Answer::Page {
                exists: Some(exists),
            } if rows.is_empty() => {
                session.query(exists, &parameters[..1]).await?;
                Ok(rows)
            }
            _ => Ok(rows),
        }
    }
}
