//! Structured rules: a JSON object that says how often, and when not.

use std::fmt;

use crate::error::ScheduleError;

/// `{"every":2,"unit":"week","days_of_week":["tue","thu"]}`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StructuredRule {
    every: u32,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    Minute,
    Hour,
    Day,
    Week,
    Month,
}

impl StructuredRule {
    pub(crate) fn parse(_text: &str) -> Result<StructuredRule, ScheduleError> {
        Err(ScheduleError::new("JSON rules are not implemented yet"))
    }
    pub fn every(&self) -> u32 {
        self.every
    }
    pub fn unit(&self) -> Unit {
        self.unit
    }
}

impl fmt::Display for StructuredRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{\"every\":{}}}", self.every)
    }
}
