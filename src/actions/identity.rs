//! The identity of an owner's action: name, namespace, tenant and subject. Everything here runs as the engine.

use crate::pg::error::SqlError;
use crate::pg::jsonb::Jsonb;
use crate::pg::query::{Query, pg_uuid, queries};
use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;
use pgrx::{check_for_interrupts, pg_sys};
use recur_core::action::{
    Changes, Column, DefaultValue, Definition, Environment, Invalid, checked,
};
use std::thread::LocalKey;
use uuid::Uuid;

queries! {
    FIND_HOLDER = "actions/queries/find_holder.sql" {subject: "d.subject = $5", lock: ""}
        (TEXTOID, TEXTOID, TEXTOID, INT4OID, TEXTOID);
    FIND_HOLDER_WITHOUT_SUBJECT = "actions/queries/find_holder.sql"
        {subject: "d.subject IS NULL AND $5 IS NULL", lock: ""}
        (TEXTOID, TEXTOID, TEXTOID, INT4OID, TEXTOID);
    LOCK_HOLDER = "actions/queries/find_holder.sql" {subject: "d.subject = $5", lock: "FOR SHARE"}
        (TEXTOID, TEXTOID, TEXTOID, INT4OID, TEXTOID);
    LOCK_HOLDER_WITHOUT_SUBJECT = "actions/queries/find_holder.sql"
        {subject: "d.subject IS NULL AND $5 IS NULL", lock: "FOR SHARE"}
        (TEXTOID, TEXTOID, TEXTOID, INT4OID, TEXTOID);
    FIND_DUPLICATE = "actions/queries/find_duplicate.sql" {subject: "d.subject = $5"}
        (TEXTOID, TEXTOID, TEXTOID, INT4OID, TEXTOID);
    FIND_DUPLICATE_WITHOUT_SUBJECT = "actions/queries/find_duplicate.sql"
        {subject: "d.subject IS NULL AND $5 IS NULL"}
        (TEXTOID, TEXTOID, TEXTOID, INT4OID, TEXTOID);
    PROMOTE_DUPLICATE = "actions/queries/promote_duplicate.sql" (UUIDOID);
}

/// The identity of an action.
#[derive(PartialEq, Eq)]
pub struct Identity {
    name: String,
    namespace: String,
    tenant: String,
    subject: Option<String>,
    owner_id: i32,
}

impl Identity {
    pub fn of(definition: &Definition<Jsonb>, owner_id: i32) -> Identity {
        Identity {
            name: definition.name().to_owned(),
            namespace: definition.namespace().to_owned(),
            tenant: definition.tenant().to_owned(),
            subject: definition.subject().map(str::to_owned),
            owner_id,
        }
    }

    /// The identity that a creation asks for. Other columns are not checked.
    pub fn asked_for(
        changes: &Changes<Jsonb>,
        owner_id: i32,
        environment: &Environment<'_>,
    ) -> Result<Identity, Invalid> {
        let text = |column: Column| match (changes.given(column), column.spec().default) {
            (Some(value), _) => Ok(checked(column, value, environment)?
                .as_text()
                .map(str::to_owned)),
            (None, DefaultValue::Text(default)) => Ok(Some(default.to_owned())),
            (None, _) => Ok(None),
        };
        let required =
            |column: Column| text(column)?.ok_or_else(|| Invalid::missing(column.name()));
        Ok(Identity {
            name: required(Column::Name)?,
            namespace: required(Column::Namespace)?,
            tenant: required(Column::Tenant)?,
            subject: text(Column::Subject)?,
            owner_id,
        })
    }

    /// The action that holds this identity: of several, the one that the others were added to.
    pub fn holder(&self) -> Option<Uuid> {
        let query = self.either(&FIND_HOLDER, &FIND_HOLDER_WITHOUT_SUBJECT);
        query.with(|query| query.row(&self.parameters(), |row| row.uuid(1)))
    }

    /// Keeps the holder from being deleted or renamed until this transaction ends; false if there is no holder.
    pub fn lock_holder(&self) -> bool {
        let query = self.either(&LOCK_HOLDER, &LOCK_HOLDER_WITHOUT_SUBJECT);
        query.with(|query| query.execute(&self.parameters())) > 0
    }

    /// Gives the identity, after its holder was deleted or renamed, to the oldest of the actions that were added beside
    /// it.
    ///
    /// An action that was added after this transaction took its snapshot is found, too, but can't be written: the
    /// transaction must be repeated, or no action would hold the identity.
    pub fn promote_duplicate(&self) -> Result<(), SqlError> {
        let query = self.either(&FIND_DUPLICATE, &FIND_DUPLICATE_WITHOUT_SUBJECT);
        loop {
            let found =
                query.with(|query| query.latest_rows(&self.parameters(), |row| row.uuid(1)));
            let Some(id) = found.first() else {
                return Ok(());
            };
            let arguments = [pg_uuid(*id).into()];
            if PROMOTE_DUPLICATE.with(|query| query.execute(&arguments)) > 0 {
                return Ok(());
            }
            // SAFETY: a variable of this process, set when the transaction began.
            if unsafe { pg_sys::XactIsoLevel } >= pg_sys::XACT_REPEATABLE_READ as i32 {
                let code = PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE;
                return Err(SqlError::new(
                    code,
                    "could not serialize access due to concurrent update",
                ));
            }
            // Another session has deleted or renamed this one: try the next one.
            check_for_interrupts!();
        }
    }

    fn either(
        &self,
        with_subject: &'static LocalKey<Query>,
        without: &'static LocalKey<Query>,
    ) -> &'static LocalKey<Query> {
        match self.subject {
            Some(_) => with_subject,
            None => without,
        }
    }

    fn parameters(&self) -> [DatumWithOid<'static>; 5] {
        [
            self.name.as_str().into(),
            self.namespace.as_str().into(),
            self.tenant.as_str().into(),
            self.owner_id.into(),
            self.subject.as_deref().into(),
        ]
    }
}
