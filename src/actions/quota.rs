//! How many actions an owner may have in a tenant.

use crate::pg::error::SqlError;
use crate::pg::query::queries;
use crate::runtime::settings;
use pgrx::prelude::*;

queries! {
    ENTER_TENANT = "actions/queries/enter_tenant.sql" (INT4OID, TEXTOID);
    COUNT_OF_TENANT = "actions/queries/count_of_tenant.sql" (INT4OID, TEXTOID);
}

/// Raises an error if the tenant has more actions than allowed. The new action is counted.
pub fn check(owner_id: i32, tenant: &str) -> Result<(), SqlError> {
    let quota = settings::max_actions_per_tenant();
    if quota == 0 {
        return Ok(());
    }
    ENTER_TENANT.with(|query| query.execute(&[owner_id.into(), tenant.into()]));
    let arguments = [owner_id.into(), tenant.into()];
    let present = COUNT_OF_TENANT.with(|query| query.row(&arguments, |row| row.required::<i64>(1)));
    if present.is_none_or(|present| present <= quota) {
        return Ok(());
    }
    let message = format!("tenant \"{tenant}\" has all of the {quota} actions that it may have");
    Err(SqlError::new(
        PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
        message,
    )
    .with_hint("Delete an action, or raise recur.max_actions_per_tenant."))
}
