//! What SQL calls. Each function is declared, commented and granted by hand under `sql/`.

mod access;
mod check;
mod claim_marks;
mod dispatching;
mod history;
mod listing;
mod lock_groups;
mod notice;
mod operating;
mod running;
mod schedule;
