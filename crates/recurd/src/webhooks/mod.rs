//! Webhooks: dispatches go out signed, and what comes in is verified and becomes a dispatch.
//!
//! | module | does |
//! | --- | --- |
//! | `sign`, `verify`, `address`, `outcome` | decide, and know neither network nor database |
//! | `client` | posts one request to a vetted address |
//! | `delivery` | what the database hands out becomes a request |
//! | `deliver` | routes, claims and delivers until it is stopped |
//! | `report` | what deliveries came to goes back to the database |
//! | `ingress` | `POST /v1/hooks/{source}` |

pub mod address;
pub mod client;
pub mod deliver;
pub mod delivery;
pub mod ingress;
pub mod outcome;
pub mod report;
pub mod sign;
pub mod verify;
