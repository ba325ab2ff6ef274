mod events;
mod explain;
mod list;
mod statistics;
