//! What happens to dispatches other than by reports of their consumers: leases expire, people cancel and retry.

mod by_hand;
pub mod leases;
