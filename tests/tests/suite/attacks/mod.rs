//! Attacks. Each tries to succeed with real roles and sessions, and must fail while the victim's work goes on.

mod catalog;
mod damage;
mod field;
mod indexes;
mod install;
mod matrix;
mod matrix_calls;
mod memory;
mod neighbours;
mod ownership;
mod rows;
mod settings;
mod strangers;
