mod create;
mod existing;
mod refusals;
mod states;
mod update;
