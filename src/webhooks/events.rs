//! Events of endpoints.

use super::store::Key;
use crate::access::Actor;
use crate::history::events::{self, Change};
use crate::pg::jsonb::Jsonb;
use recur_core::action::Json;
use recur_core::event::EventKind;
use serde_json::{Value, json};
use uuid::Uuid;

/// Records what happened to an endpoint; `detail` is an object.
pub fn record(
    kind: EventKind,
    key: &Key,
    mut detail: Value,
    dispatch: Option<Uuid>,
    actor: &Actor,
) {
    detail["endpoint"] = json!(key.name);
    let change = Change {
        kind,
        action: None,
        dispatch,
        owner_id: key.owner_id,
        detail: Jsonb::from_text(&detail.to_string()),
    };
    events::record_changes(&[change], actor);
}
