//! How much one call makes of webhooks that go to several endpoints, and how many of them an owner may have waiting.
//! Everything here runs as the engine.

use crate::pg::query::{pg_uuids, queries};
use crate::runtime::settings;
use std::collections::HashMap;
use uuid::Uuid;

queries! {
    SIZES = "webhooks/queries/sizes.sql" (UUIDARRAYOID);
    COUNT_ROUTED = "webhooks/queries/count_routed.sql" (INT4OID, INT8OID);
}

/// How many dispatches a call makes for each webhook that it looks at.
const CHILDREN_FOR_EACH: i64 = 10;
/// How many bytes of payloads a call copies.
const MOST_BYTES: i64 = 64 * 1024 * 1024;

/// What is made of webhooks.
#[derive(Clone, Copy, Default)]
pub struct Amount {
    pub children: i64,
    pub bytes: i64,
}

/// When a webhook may become several.
pub enum Fit {
    Now,
    /// The call has made enough.
    NextCall,
    /// The owner has enough that waits.
    Later,
}

/// What a call may still make.
pub struct Room {
    most: Amount,
    share: Amount,
    made: Amount,
    made_for: HashMap<i32, Amount>,
    /// How many webhooks of an owner wait for their endpoints.
    waiting: HashMap<i32, i64>,
}

impl Room {
    /// Owners share what a call that looks at `limit` webhooks makes.
    pub fn new(limit: i32, owners: usize) -> Room {
        let owners = i64::try_from(owners).unwrap_or(i64::MAX).max(1);
        let most = Amount {
            children: CHILDREN_FOR_EACH * i64::from(limit),
            bytes: MOST_BYTES,
        };
        Room {
            most,
            share: Amount {
                children: (most.children / owners).max(1),
                bytes: most.bytes / owners,
            },
            made: Amount::default(),
            made_for: HashMap::new(),
            waiting: HashMap::new(),
        }
    }

    /// Takes the room for what an owner's webhook becomes. The last one may exceed the share: else one that alone does
    /// would never fit. In the same way, an owner for whom nothing waits may have one.
    pub fn take(&mut self, owner_id: i32, more: Amount) -> Fit {
        let made_for = self.made_for.entry(owner_id).or_default();
        if self.made.reaches(self.most) || made_for.reaches(self.share) {
            return Fit::NextCall;
        }
        let limit = settings::max_pending_per_owner();
        if limit > 0 {
            let count = || {
                let arguments = [owner_id.into(), limit.into()];
                let counted =
                    COUNT_ROUTED.with(|query| query.row(&arguments, |row| row.required(1)));
                counted.unwrap_or_default()
            };
            let waiting = self.waiting.entry(owner_id).or_insert_with(count);
            if *waiting > 0 && *waiting + more.children > limit {
                return Fit::Later;
            }
            *waiting += more.children;
        }
        made_for.add(more);
        self.made.add(more);
        Fit::Now
    }
}

impl Amount {
    fn reaches(self, most: Amount) -> bool {
        self.children >= most.children || self.bytes >= most.bytes
    }

    fn add(&mut self, more: Amount) {
        self.children += more.children;
        self.bytes += more.bytes;
    }
}

/// How many bytes each of these webhooks has.
pub fn sizes(ids: &[Uuid]) -> HashMap<Uuid, i64> {
    if ids.is_empty() {
        return HashMap::new();
    }
    let arguments = [pg_uuids(ids.iter().copied()).into()];
    let sizes = SIZES.with(|query| query.rows(&arguments, |row| (row.uuid(1), row.required(2))));
    sizes.into_iter().collect()
}
