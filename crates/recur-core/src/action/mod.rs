//! What an action is made of, and what follows from a change of it.
//!
//! Every write of an action, by function or by plain DML, takes the same way:
//!
//! 1. What was given becomes [`Changes`]: pairs of a [`Column`] and a [`Value`].
//! 2. [`create`] answers what a new action consists of. [`Change::new`] answers whether anything of an existing action
//!    changes, and [`Change::effect`] what follows from it: the next run, the state, the events.
//! 3. The extension writes the answer. An [`Invalid`] is the error that the client sees.
//!
//! [`columns`] is the one list of what can be set, with each column's kind and default. JSON stays opaque ([`Json`]):
//! a payload is neither decoded nor encoded on its way.

mod backoff;
mod change;
#[cfg(test)]
mod change_tests;
mod changes;
#[cfg(test)]
mod changes_tests;
mod check;
#[cfg(test)]
mod check_tests;
pub mod columns;
mod definition;
mod demands;
#[cfg(test)]
mod derived_tests;
mod effect;
#[cfg(test)]
mod effect_tests;
mod environment;
mod event;
mod existing;
#[cfg(test)]
mod fixtures;
mod interval;
mod invalid;
pub mod journey;
mod runs;
mod state;
#[cfg(test)]
mod state_tests;
mod value;

pub use change::{Change, Update, Withdrawn};
pub use changes::Changes;
pub use check::{check_bytes, check_name, check_object, checked};
pub use columns::{Column, DefaultValue, Kind, OVERLAP_WITHOUT_CONTEXT, Spec};
pub use definition::{Definition, window_without_key};
pub use demands::Demands;
pub use effect::{Created, Deleted, create, delete, pause, resume};
pub use environment::{Environment, Limits};
pub use event::{Detail, Event, EventKind};
pub use existing::OnExisting;
pub use interval::Interval;
pub use invalid::{Code, Invalid};
pub use journey::Journey;
pub use runs::{is_resumable, runs_at_once, warning};
pub use state::{Action, Timer};
pub use value::{Json, Value};
