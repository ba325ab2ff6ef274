//! The search behind `recur.list`.

use super::access;
use crate::pg::role;
use pgrx::JsonB;
use pgrx::datum::Uuid;
use pgrx::iter::SetOfIterator;
use pgrx::prelude::*;

const LIST: &str = include_str!("../../sql/queries/list_actions.sql");
const SEARCH: &str = include_str!("../../sql/queries/search_actions.sql");
const COUNT: &str = include_str!("../../sql/queries/count_found.sql");

/// So many are sorted in a few milliseconds; where there are more, a page is soon filled by reading in order.
const FEW: i64 = 10_000;

/// `recur._matching(…)`: the ids of the actions that match, of those that the caller sees. Planned for each call: every
/// combination of filters has its own best index.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn matching(
    namespace: Option<&str>,
    tenant: Option<&str>,
    enabled: Option<bool>,
    labels: Option<JsonB>,
    subject: Option<&str>,
    owner: Option<&str>,
    search: Option<&str>,
    limit: Option<i32>,
    after_namespace: Option<&str>,
    after_tenant: Option<&str>,
    after_name: Option<&str>,
    after_id: Option<Uuid>,
) -> SetOfIterator<'static, Uuid> {
    // Who asks is known only before the change of roles.
    let owners = (!access::is_admin()).then(access::visible_owners);
    let arguments = [
        namespace.into(),
        tenant.into(),
        enabled.into(),
        labels.into(),
        subject.into(),
        owner.into(),
        search.into(),
        limit.into(),
        after_namespace.into(),
        after_tenant.into(),
        after_name.into(),
        after_id.into(),
        owners.into(),
    ];
    let found = role::as_owner(|| {
        Spi::connect(|client| {
            let mut query = LIST;
            if search.is_some() {
                let count = client.select(COUNT, None, &[search.into(), (FEW + 1).into()])?;
                if count.first().get_one::<i64>()?.unwrap_or(0) <= FEW {
                    query = SEARCH;
                }
            }
            client
                .select(query, None, &arguments)?
                .map(|row| row.get::<Uuid>(1))
                .filter_map(Result::transpose)
                .collect::<Result<Vec<_>, _>>()
        })
    });
    SetOfIterator::new(found.expect("the query is ours"))
}
