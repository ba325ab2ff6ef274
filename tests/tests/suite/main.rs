//! Drives real servers from outside, one module for each slice of the code.

mod access;
mod actions;
mod alerts;
mod attacks;
mod clients;
mod deliveries;
mod dispatch;
mod execution;
mod history;
mod http;
mod inspect;
mod install;
mod journeys;
mod model;
mod queue;
mod recovery;
mod requests;
mod webhooks;
mod workers;
