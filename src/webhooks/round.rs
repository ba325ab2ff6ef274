//! The way of a claim round the endpoints for which something waits.
//!
//! It goes by what it has seen, not by what it takes: whatever one owner lets wait, the endpoints behind that get their
//! turn.

use std::collections::HashMap;

/// A claim looks at no more endpoints for which something waits; the session's next claim goes on from there.
const MOST_LOOKED_AT: i32 = 20_000;
/// And at no more of one owner: twice as many as an owner can have. More are only there while webhooks wait for
/// endpoints that are gone.
const MOST_OF_OWNER: i32 = 2_000;
/// Webhooks of endpoints that are gone, ended by one claim.
const MOST_ORPHANS: i32 = 500;

/// The owner and the name of an endpoint.
pub type Place = (i32, String);

/// An endpoint for which something waits.
pub struct Seen {
    pub place: Place,
    pub is_operator: bool,
    pub has_health: bool,
    pub exists: bool,
    pub concurrency: Option<i32>,
    pub rate: Option<f64>,
    pub is_behind_start: bool,
    pub is_due: bool,
}

/// How far a claim has gone round the endpoints.
pub struct Round {
    pub start: Place,
    pub behind: Place,
    has_turned: bool,
    is_over: bool,
    looked_at: i32,
    of_owner: HashMap<i32, i32>,
    /// How many webhooks of endpoints that are gone it may still end.
    pub orphans: i32,
}

impl Round {
    pub fn begin_behind(start: Place) -> Round {
        Round {
            behind: start.clone(),
            start,
            has_turned: false,
            is_over: false,
            looked_at: 0,
            of_owner: HashMap::new(),
            orphans: MOST_ORPHANS,
        }
    }

    pub fn is_cut_short(&self) -> bool {
        self.looked_at >= MOST_LOOKED_AT
    }

    pub fn goes_on(&self) -> bool {
        !self.is_over && !self.is_cut_short()
    }

    /// Goes past an endpoint; false if the round does not go there.
    pub fn pass(&mut self, one: &Seen) -> bool {
        if self.has_turned && one.is_behind_start {
            self.is_over = true;
            return false;
        }
        let owner_id = one.place.0;
        let of_owner = self.of_owner.entry(owner_id).or_default();
        if *of_owner >= MOST_OF_OWNER {
            match owner_id.checked_add(1) {
                Some(next) => self.behind = (next, String::new()),
                None => self.is_over = true,
            }
            return false;
        }
        *of_owner += 1;
        self.looked_at += 1;
        self.behind = one.place.clone();
        true
    }

    /// Behind the last endpoint comes the first one.
    pub fn turn(&mut self) {
        self.is_over = self.has_turned || self.start.0 == 0;
        self.has_turned = true;
        self.behind = (0, String::new());
    }
}
