//! The search behind `recur.list`.

use crate::access;
use crate::pg::jsonb::Jsonb;
use crate::runtime::engine;
use pgrx::datum::Uuid;
use pgrx::iter::SetOfIterator;
use pgrx::prelude::*;

const LIST: &str = include_str!("../../sql/inspect/queries/list_actions.sql");
const SEARCH: &str = include_str!("../../sql/inspect/queries/search_actions.sql");
/// In the order of namespace, tenant and name.
const BY_NAME: &str = include_str!("../../sql/inspect/queries/page_by_name.sql");
/// An id begins with the microsecond in which its action was created.
const NEWEST: &str = include_str!("../../sql/inspect/queries/page_of_newest.sql");
const COUNT: &str = include_str!("../../sql/inspect/queries/count_found.sql");

/// This many actions are sorted in a few milliseconds; if there are more, reading in order soon fills a page.
const FEW: i64 = 10_000;

/// `recur_internal.matching(…)`: the ids of the actions that match, of those that the caller sees. Planned for each
/// call: every combination of filters has its own best index, also one that only a bitmap scan can read. So no planner
/// settings are pinned here.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn matching(
    namespace: Option<&str>,
    tenant: Option<&str>,
    enabled: Option<bool>,
    labels: Option<Jsonb>,
    subject: Option<&str>,
    owner: Option<&str>,
    search: Option<&str>,
    limit: Option<i32>,
    after_namespace: Option<&str>,
    after_tenant: Option<&str>,
    after_name: Option<&str>,
    after_id: Option<Uuid>,
    newest: Option<bool>,
) -> SetOfIterator<'static, Uuid> {
    // Before the change of roles: afterwards, the caller is the engine.
    let visible = access::visible().parameter();
    let owner_ids = owner.map(access::owner_ids_of);
    let arguments = [
        namespace.into(),
        tenant.into(),
        enabled.into(),
        labels.into(),
        subject.into(),
        owner_ids.into(),
        search.into(),
        limit.into(),
        after_namespace.into(),
        after_tenant.into(),
        after_name.into(),
        after_id.into(),
        visible.into(),
    ];
    let found = engine::as_engine(|| {
        Spi::connect(|client| {
            let mut query = LIST;
            if search.is_some() {
                let count = client.select(COUNT, None, &[search.into(), (FEW + 1).into()])?;
                if count.first().get_one::<i64>()?.unwrap_or(0) <= FEW {
                    query = SEARCH;
                }
            }
            let page = if newest == Some(true) {
                NEWEST
            } else {
                BY_NAME
            };
            let query = query.replace("{{page}}", page);
            client
                .select(query.as_str(), None, &arguments)?
                .map(|row| row.get::<Uuid>(1))
                .filter_map(Result::transpose)
                .collect::<Result<Vec<_>, _>>()
        })
    });
    SetOfIterator::new(found.unwrap_or_else(|error| pgrx::error!("pg_recur: {error}")))
}
