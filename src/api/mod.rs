//! What SQL calls. Each function is declared, commented and granted by hand under `sql/`.

mod access;
mod check;
mod claiming;
mod dispatching;
mod listing;
mod notice;
mod operating;
mod running;
mod schedule;
