//! Actions: creating and changing them, by function or by plain DML on `recur.recurring_actions`.
//!
//! Every write takes the same steps. The input becomes `Changes` (`arguments`, `changes_json`, `view`), recur-core
//! decides what follows from the changes, and `author` or `create` writes the result through `store`.
//!
//! Locks are taken in one order: the timer, dispatches by id, progress. A session reads the rows of an action only
//! after it has locked the timer: no other session changes the action from then on.

pub mod arguments;
pub mod author;
mod bulk;
mod changes_json;
mod checks;
pub mod create;
mod create_many;
mod delete;
mod events;
mod forget;
mod functions;
mod identity;
mod notices;
mod owner;
mod quota;
mod record;
pub mod resolve;
mod stop;
mod store;
mod values;
mod view;
mod with_changes;

pub use stop::stop_commands;
