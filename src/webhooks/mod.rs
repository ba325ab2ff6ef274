//! Webhooks: endpoints, which dispatch goes to which of them, and what a program that delivers them claims and
//! reports.
//!
//! A dispatch of provider `webhook` waits until it is routed: [`route`] binds it to the endpoint that matches, or makes
//! a dispatch for each. [`claim`] takes what is bound, within the limits of each endpoint. [`report`] ends it, and
//! notes how the endpoint is doing. What follows from a delivery is decided in recur-core.

mod claim;
mod endpoints;
mod events;
mod health;
mod report;
mod room;
mod round;
mod route;
mod send;
mod store;

/// The owner that stands for the operator, whose endpoints get webhooks of every owner.
const OPERATOR: i32 = 0;

/// Under which owner an endpoint's health is kept.
fn keeper(owner_id: i32, endpoint: &str) -> i32 {
    match endpoint.starts_with(recur_core::webhook::OPERATOR_PREFIX) {
        true => OPERATOR,
        false => owner_id,
    }
}
