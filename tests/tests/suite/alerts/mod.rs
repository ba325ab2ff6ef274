//! What people learn of trouble.

mod alarms;
mod contacts;
mod events;
