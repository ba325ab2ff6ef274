//! How many actions an owner may have in a tenant, and of a subject.

use crate::pg::error::SqlError;
use crate::pg::query::queries;
use crate::runtime::cached_table::CachedTable;
use crate::runtime::settings;
use pgrx::prelude::*;

queries! {
    ANY_QUOTA = "actions/queries/any_quota.sql" ();
    QUOTA_OF_TENANT = "actions/queries/quota_of_tenant.sql" (TEXTOID);
    ENTER_TENANT = "actions/queries/enter_tenant.sql" (INT4OID, TEXTOID);
    COUNT_OF_TENANT = "actions/queries/count_of_tenant.sql" (INT4OID, TEXTOID);
    COUNT_OF_SUBJECT = "actions/queries/count_of_subject.sql" (INT4OID, TEXTOID, TEXTOID);
}

thread_local! {
    /// Are there quotas at all?
    static HAS_QUOTAS: CachedTable<bool> = const { CachedTable::new(c"quotas", has_quotas) };
}

fn has_quotas() -> bool {
    !ANY_QUOTA
        .with(|query| query.latest_rows(&[], |_| ()))
        .is_empty()
}

#[derive(Clone, Copy, Default)]
struct Quota {
    actions: Option<i64>,
    actions_per_subject: Option<i64>,
}

impl Quota {
    /// What `recur.set_quota` says, and the setting: the smaller one counts.
    fn of(tenant: &str) -> Quota {
        let of_server = Some(settings::max_actions_per_tenant()).filter(|most| *most > 0);
        let stored = match HAS_QUOTAS.with(CachedTable::get) {
            true => QUOTA_OF_TENANT.with(|query| {
                query.row(&[tenant.into()], |row| Quota {
                    actions: row.get::<i32>(1).map(i64::from),
                    actions_per_subject: row.get::<i32>(2).map(i64::from),
                })
            }),
            false => None,
        };
        let stored = stored.unwrap_or_default();
        Quota {
            actions: stored.actions.into_iter().chain(of_server).min(),
            ..stored
        }
    }
}

/// Raises an error if the tenant or the subject has more actions than allowed. The new action is counted.
pub fn check(owner_id: i32, tenant: &str, subject: Option<&str>) -> Result<(), SqlError> {
    let quota = Quota::of(tenant);
    let of_subject = subject.zip(quota.actions_per_subject);
    if quota.actions.is_none() && of_subject.is_none() {
        return Ok(());
    }
    ENTER_TENANT.with(|query| query.execute(&[owner_id.into(), tenant.into()]));
    if let Some(most) = quota.actions {
        let arguments = [owner_id.into(), tenant.into()];
        let present = COUNT_OF_TENANT.with(|query| query.row(&arguments, |row| row.required(1)));
        if present.is_some_and(|present: i64| present > most) {
            let who = format!("tenant \"{tenant}\"");
            let hint = "Delete an action, or raise recur.max_actions_per_tenant or the quota of the tenant.";
            return Err(exceeded(&who, most, hint));
        }
    }
    if let Some((subject, most)) = of_subject {
        let arguments = [owner_id.into(), tenant.into(), subject.into()];
        let present = COUNT_OF_SUBJECT.with(|query| query.row(&arguments, |row| row.required(1)));
        if present.is_some_and(|present: i64| present > most) {
            let who = format!("subject \"{subject}\" of tenant \"{tenant}\"");
            let hint = "Delete an action of the subject, or raise the quota with recur.set_quota.";
            return Err(exceeded(&who, most, hint));
        }
    }
    Ok(())
}

fn exceeded(who: &str, most: i64, hint: &str) -> SqlError {
    let code = PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED;
    let message = format!("{who} has all of the {most} actions that it may have");
    SqlError::new(code, message).with_hint(hint)
}
