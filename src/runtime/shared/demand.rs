//! Databases that wait for an executor. The one that has waited longest is next: a database whose executor has left for
//! another one does not get the slot back before that one had it.

use pgrx::pg_sys;

/// Of more databases than this, the rest wait without being noticed.
const MAX_WAITING: usize = 64;
/// What a database has said holds for this long.
const HOLDS_FOR_MICROS: i64 = 10_000_000;

/// What a database waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    Nothing,
    /// One of its own executors.
    Executor,
    /// A slot of the server.
    Slot,
}

#[derive(Clone, Copy)]
pub(super) struct Demands([Demand; MAX_WAITING]);

#[derive(Clone, Copy)]
struct Demand {
    database: pg_sys::Oid,
    since: pg_sys::TimestampTz,
    /// When its dispatcher has last said so.
    said_at: pg_sys::TimestampTz,
    lacks_slot: bool,
}

impl Demand {
    const NONE: Demand = Demand {
        database: pg_sys::InvalidOid,
        since: 0,
        said_at: 0,
        lacks_slot: false,
    };

    fn is_current(&self, now: pg_sys::TimestampTz) -> bool {
        self.database != pg_sys::InvalidOid && now - self.said_at < HOLDS_FOR_MICROS
    }
}

impl Demands {
    pub(super) const NONE: Demands = Demands([Demand::NONE; MAX_WAITING]);

    fn current(&self, now: pg_sys::TimestampTz) -> impl Iterator<Item = &Demand> {
        self.0.iter().filter(move |one| one.is_current(now))
    }

    /// How many databases have waited longer than this one for a slot.
    pub(super) fn ahead_of(&self, database: pg_sys::Oid, now: pg_sys::TimestampTz) -> usize {
        let own = self.current(now).find(|one| one.database == database);
        let since = own.map_or(now, |one| one.since);
        let is_ahead =
            |one: &&Demand| one.database != database && one.lacks_slot && one.since < since;
        self.current(now).filter(is_ahead).count()
    }

    /// Does a database wait for what an executor of this one has?
    pub(super) fn concern(&self, database: pg_sys::Oid, now: pg_sys::TimestampTz) -> bool {
        self.current(now)
            .any(|one| one.lacks_slot || one.database == database)
    }

    /// What the database waits for, from now on.
    pub(super) fn set(
        &mut self,
        database: pg_sys::Oid,
        waits_for: WaitsFor,
        now: pg_sys::TimestampTz,
    ) {
        let own = self.0.iter().position(|one| one.database == database);
        let free = || self.0.iter().position(|one| !one.is_current(now));
        let Some(place) = own.or_else(free) else {
            return;
        };
        let known = self.0[place];
        let goes_on = known.database == database && known.is_current(now);
        if waits_for != WaitsFor::Nothing {
            self.0[place] = Demand {
                database,
                since: if goes_on { known.since } else { now },
                said_at: now,
                lacks_slot: waits_for == WaitsFor::Slot,
            };
        } else if own.is_some() {
            self.0[place] = Demand::NONE;
        }
    }
}
