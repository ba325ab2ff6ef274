//! Roles: what each may see and do, and what it can not get around.

mod forgery;
mod handover;
mod hostility;
mod owners;
mod privileges;
mod public;
mod table_locks;
