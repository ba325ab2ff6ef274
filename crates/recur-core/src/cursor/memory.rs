//! What a session remembers from one claim to the next.

use super::{MAX_FILTERS, MAX_TRUST, Position};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::HashMap;

/// Which dispatches a claim may return. Claims with equal filters share what is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Filter {
    providers: Option<Vec<String>>,
    action_types: Option<Vec<String>>,
    namespaces: Option<Vec<String>>,
    tenants: Option<Vec<String>>,
    agent: Option<String>,
    role: u32,
}

impl Filter {
    /// The filter of a role, by its oid, which decides what it may see, without further conditions.
    pub fn of_role(role: u32) -> Filter {
        Filter {
            providers: None,
            action_types: None,
            namespaces: None,
            tenants: None,
            agent: None,
            role,
        }
    }

    /// Restricts the providers.
    #[must_use]
    pub fn with_providers(mut self, names: Option<Vec<String>>) -> Filter {
        self.providers = as_set(names);
        self
    }

    /// Restricts the action types, or patterns of them.
    #[must_use]
    pub fn with_action_types(mut self, names: Option<Vec<String>>) -> Filter {
        self.action_types = as_set(names);
        self
    }

    /// Restricts the namespaces.
    #[must_use]
    pub fn with_namespaces(mut self, names: Option<Vec<String>>) -> Filter {
        self.namespaces = as_set(names);
        self
    }

    /// Restricts the tenants.
    #[must_use]
    pub fn with_tenants(mut self, names: Option<Vec<String>>) -> Filter {
        self.tenants = as_set(names);
        self
    }

    /// Names the agent that claims: without one, dispatches that are for an agent are left out.
    #[must_use]
    pub fn with_agent(mut self, agent: Option<String>) -> Filter {
        self.agent = agent;
        self
    }

    /// The provider, if there is exactly one: then the index by provider serves the claim.
    pub fn single_provider(&self) -> Option<&str> {
        match self.providers.as_deref() {
            Some([only]) => Some(only),
            _ => None,
        }
    }
}

/// The order and the number of times in which names are given make no difference.
fn as_set(mut names: Option<Vec<String>>) -> Option<Vec<String>> {
    if let Some(names) = &mut names {
        names.sort_unstable();
        names.dedup();
    }
    names
}

/// What a session remembers, for up to [`MAX_FILTERS`] filters.
#[derive(Debug, Default)]
pub struct Memory {
    entries: HashMap<Filter, (Entry, u64)>,
    /// Counts the claims, to know which filter was used last.
    claims: u64,
}

impl Memory {
    /// An empty memory.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    pub(super) fn get(&self, filter: &Filter) -> Entry {
        let entry = self.entries.get(filter);
        entry.map(|(entry, _)| *entry).unwrap_or_default()
    }

    pub(super) fn set(&mut self, filter: Filter, entry: Entry) {
        if entry == Entry::default() {
            self.entries.remove(&filter);
            return;
        }
        self.claims += 1;
        self.entries.insert(filter, (entry, self.claims));
        if self.entries.len() > MAX_FILTERS {
            let oldest = self.entries.iter().min_by_key(|(_, (_, used))| *used);
            if let Some(oldest) = oldest.map(|(filter, _)| filter.clone()) {
                self.entries.remove(&oldest);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// What is remembered for one filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub priority_hint: Option<i32>,
    /// Belongs to the priority of the hint.
    pub cursor: Option<Cursor>,
    /// A claim was expensive, and another one that begins before this instant makes two of them.
    pub suspicious_until: Option<DateTime<Utc>>,
}

/// Where the claimable dispatches of a priority begin, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub position: Position,
    pub trusted_until: DateTime<Utc>,
    pub uses: u32,
}

impl Cursor {
    /// A clock that was set back must not prolong the trust.
    pub fn is_trusted(&self, now: DateTime<Utc>) -> bool {
        let left = self.trusted_until - now;
        left > TimeDelta::zero() && left <= MAX_TRUST
    }
}

impl Entry {
    /// The priority of the cursor, if there is one.
    pub fn cursor_priority(&self) -> Option<i32> {
        self.priority_hint.filter(|_| self.cursor.is_some())
    }

    /// Where to begin within a priority.
    pub fn position_at(&self, priority: i32) -> Option<Position> {
        let cursor = self.cursor.filter(|_| self.priority_hint == Some(priority));
        cursor.map(|cursor| cursor.position)
    }

    /// Does too much lie dead behind the cursor?
    pub fn cursor_needs_refresh(&self) -> bool {
        self.cursor
            .is_some_and(|cursor| cursor.uses >= super::REFRESH_AFTER_USES)
    }
}
