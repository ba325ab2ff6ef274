//! `recur_internal.with_changes`: an action as changes would make it. No row is locked or written.

use super::changes_json;
use super::resolve::{find_visible, unknown_id};
use super::store;
use super::values;
use crate::access::{self, Visible};
use crate::pg::error::{OrRaise, SqlError, given};
use crate::pg::jsonb::Jsonb;
use crate::pg::planner::PlannerPins;
use crate::pg::query::plain_uuid;
use crate::pg::srf::ResultSet;
use crate::runtime::environment::environment;
use crate::runtime::{clock, engine};
use pgrx::datum::Uuid as PgUuid;
use pgrx::pg_sys::FunctionCallInfo;
use pgrx::prelude::*;
use recur_core::action::{Change, Changes, Column, Definition};
use uuid::Uuid;

/// The columns of the result: what occurrences depend on.
const RETURNED: [Column; 7] = [
    Column::Schedule,
    Column::Timezone,
    Column::StartsAt,
    Column::EndsAt,
    Column::MaxRuns,
    Column::OnDstGap,
    Column::OnDstFold,
];

/// `recur_internal.with_changes(id, changes)`. Refuses what `recur.update` refuses.
#[pg_extern(sql = false)]
fn with_changes(id: Option<PgUuid>, changes: Option<Jsonb>, call: FunctionCallInfo) {
    let id = id
        .map(plain_uuid)
        .ok_or_else(|| unknown_id("NULL"))
        .or_raise();
    let changes = given("changes", changes)
        .and_then(changes_json::read)
        .or_raise();
    let visible = access::visible();
    let result = ResultSet::begin(call);
    let _pins = PlannerPins::set();
    let definition = engine::as_engine(|| changed_definition(id, &changes, &visible)).or_raise();
    result.put(&RETURNED.map(|column| values::parameter(column, definition.get(column))));
}

fn changed_definition(
    id: Uuid,
    changes: &Changes<Jsonb>,
    visible: &Visible,
) -> Result<Definition<Jsonb>, SqlError> {
    let id = find_visible(id, visible)?;
    let stored = store::read(id, false).ok_or_else(|| unknown_id(&id.to_string()))?;
    let (action, environment) = (stored.action(), environment());
    match Change::new(action.clone(), changes, &environment)? {
        None => Ok(action.definition),
        Some(change) => {
            let now = clock::now();
            let update = change.effect(store::withdrawable(id, now), now, &environment)?;
            Ok(update.action.definition)
        }
    }
}
