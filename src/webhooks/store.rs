//! The statements that read and write endpoints and their secrets. Everything here runs as the engine.

use crate::access::Visible;
use crate::pg::error::SqlError;
use crate::pg::interval;
use crate::pg::jsonb::Jsonb;
use crate::pg::query::{Row, queries};
use crate::pg::time;
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::datum::{DatumWithOid, Interval};
use pgrx::pg_sys;
use pgrx::prelude::*;
use recur_core::action::Json;
use recur_core::webhook::{self, Settings};

queries! {
    INSERT_ENDPOINT = "webhooks/queries/insert_endpoint.sql"
        (INT4OID, TEXTOID, TEXTOID, TEXTARRAYOID, JSONBOID, INTERVALOID, FLOAT8OID, INT4OID, BOOLOID, TEXTOID,
         TIMESTAMPTZOID);
    UPDATE_ENDPOINT = "webhooks/queries/update_endpoint.sql"
        (INT4OID, TEXTOID, TEXTOID, TEXTARRAYOID, JSONBOID, INTERVALOID, FLOAT8OID, INT4OID, BOOLOID, TEXTOID,
         TIMESTAMPTZOID);
    LOCK_ENDPOINT = "webhooks/queries/lock_endpoint.sql" (INT4OID, TEXTOID);
    DELETE_ENDPOINT = "webhooks/queries/delete_endpoint.sql" (INT4OID, TEXTOID);
    COUNT_ENDPOINTS = "webhooks/queries/count_endpoints.sql" (INT4OID, INT8OID);
    FIND_ENDPOINTS = "webhooks/queries/find_endpoints.sql"
        (TEXTOID, INT4ARRAYOID, INT4ARRAYOID, TEXTOID, INT4OID);
    URL_OF_ENDPOINT = "webhooks/queries/url_of_endpoint.sql" (INT4OID, TEXTOID);
    ADD_SECRET = "webhooks/queries/add_secret.sql" (INT4OID, TEXTOID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID);
}

/// How long a former secret signs as well.
const OVERLAP: TimeDelta = TimeDelta::hours(24);
/// Every delivery is signed with all that hold.
const MOST_SECRETS: i64 = 5;
/// What one owner's webhook can become, and how much a claim has to look at.
const MOST_ENDPOINTS: i64 = 1_000;
/// How many owners an error names.
const MOST_NAMED: i32 = 5;

/// What identifies an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub owner_id: i32,
    pub name: String,
}

/// An endpoint of a name.
struct Found {
    owner_id: i32,
    is_own: bool,
    owner: Option<String>,
}

/// The endpoint that a name means to a caller: its own, or the only one that it sees.
pub fn find(
    name: &str,
    owner: Option<&str>,
    own: Option<i32>,
    visible: &Visible,
) -> Result<Key, SqlError> {
    let own: Vec<i32> = own.into_iter().collect();
    let arguments = [
        name.into(),
        own.into(),
        visible.parameter().into(),
        owner.into(),
        (MOST_NAMED + 1).into(),
    ];
    let read = |row: &Row| Found {
        owner_id: row.required(1),
        is_own: row.required(2),
        owner: row.get(3),
    };
    let found = FIND_ENDPOINTS.with(|query| query.rows(&arguments, read));
    let owner_id = match found.as_slice() {
        [] => return Err(unknown(name)),
        [first, ..] if first.is_own => first.owner_id,
        [only] => only.owner_id,
        several => {
            let owners = several.iter().take(MOST_NAMED as usize);
            let owners: Vec<&str> = owners
                .map(|one| one.owner.as_deref().unwrap_or("?"))
                .collect();
            let message = format!(
                "several owners have an endpoint \"{name}\": {}",
                owners.join(", ")
            );
            let code = PgSqlErrorCode::ERRCODE_TOO_MANY_ROWS;
            return Err(SqlError::new(code, message).with_hint("Give its owner as well."));
        }
    };
    Ok(Key {
        owner_id,
        name: name.to_owned(),
    })
}

/// The error for an endpoint that the caller does not see.
pub fn unknown(name: &str) -> SqlError {
    let shown = crate::pg::error::abbreviated(name);
    SqlError::no_data_found(format!("no endpoint has the name \"{shown}\"")).with_hint(
        "recur.webhook_endpoints shows those that you can see; recur.create_endpoint makes one.",
    )
}

impl Key {
    /// False if the owner has such an endpoint already.
    pub fn insert(&self, settings: &Settings, now: DateTime<Utc>) -> Result<bool, SqlError> {
        let counted = [self.owner_id.into(), MOST_ENDPOINTS.into()];
        let number: i64 = COUNT_ENDPOINTS
            .with(|query| query.row(&counted, |row| row.required(1)))
            .unwrap_or_default();
        let is_inserted = self.url().is_none()
            && number < MOST_ENDPOINTS
            && INSERT_ENDPOINT.with(|query| query.execute(&self.with_settings(settings, now))) > 0;
        if is_inserted || number < MOST_ENDPOINTS || self.url().is_some() {
            return Ok(is_inserted);
        }
        let message = format!("an owner has at most {MOST_ENDPOINTS} endpoints");
        let code = PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED;
        Err(SqlError::new(code, message)
            .with_hint("recur.drop_endpoint deletes those that are not needed any more."))
    }

    pub fn update(&self, settings: &Settings, now: DateTime<Utc>) {
        UPDATE_ENDPOINT.with(|query| query.execute(&self.with_settings(settings, now)));
    }

    /// False if there is none.
    pub fn delete(&self) -> bool {
        DELETE_ENDPOINT.with(|query| query.execute(&self.parameters())) > 0
    }

    /// Locks the endpoint. None if there is none.
    pub fn lock(&self) -> Option<Settings> {
        LOCK_ENDPOINT.with(|query| {
            query.row(&self.parameters(), |row| Settings {
                url: row.required(1),
                patterns: row
                    .required::<Vec<Option<String>>>(2)
                    .into_iter()
                    .flatten()
                    .collect(),
                headers: row.required::<Jsonb>(3).text(),
                timeout: interval::parts(&row.required::<Interval>(4)),
                rate: row.get(5),
                concurrency: row.required(6),
                enabled: row.required(7),
                description: row.get(8),
            })
        })
    }

    /// None if there is no such endpoint.
    pub fn url(&self) -> Option<String> {
        URL_OF_ENDPOINT.with(|query| query.row(&self.parameters(), |row| row.required(1)))
    }

    /// Gives the endpoint, which is locked, a signing secret: the one given, or one that is made.
    pub fn add_secret(&self, given: Option<&str>, now: DateTime<Utc>) -> Result<String, SqlError> {
        let secret = given.map_or_else(random_secret, str::to_owned);
        let arguments = [
            self.owner_id.into(),
            self.name.as_str().into(),
            secret.as_str().into(),
            time::timestamptz(now).into(),
            time::timestamptz(now + OVERLAP).into(),
        ];
        let others: i64 = ADD_SECRET
            .with(|query| query.row(&arguments, |row| row.required(1)))
            .unwrap_or_default();
        if others < MOST_SECRETS {
            return Ok(secret);
        }
        let message = format!(
            "endpoint \"{}\" has {MOST_SECRETS} secrets that hold",
            self.name
        );
        let code = PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED;
        Err(SqlError::new(code, message)
            .with_hint("A former secret holds for 24 hours: rotate again when one has expired."))
    }

    pub fn parameters(&self) -> [DatumWithOid<'_>; 2] {
        [self.owner_id.into(), self.name.as_str().into()]
    }

    fn with_settings(&self, settings: &Settings, now: DateTime<Utc>) -> [DatumWithOid<'_>; 11] {
        let [owner_id, name] = self.parameters();
        [
            owner_id,
            name,
            settings.url.clone().into(),
            settings.patterns.clone().into(),
            Jsonb::from_text(&settings.headers).into(),
            interval::from_parts(settings.timeout).into(),
            settings.rate.into(),
            settings.concurrency.into(),
            settings.enabled.into(),
            settings.description.clone().into(),
            time::timestamptz(now).into(),
        ]
    }
}

fn random_secret() -> String {
    const BYTES: usize = 32;
    let mut bytes = [0_u8; BYTES];
    // SAFETY: the buffer has room for that many bytes.
    if !unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), BYTES) } {
        pgrx::error!("pg_recur: the server has no random bytes for a secret");
    }
    webhook::secret(&bytes)
}
