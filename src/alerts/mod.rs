//! What people learn of trouble: messages to contacts, and alarms.

pub mod alarms;
pub mod contacts;
