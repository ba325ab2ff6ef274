//! Who calls: a request becomes a role of the allow-list, or is refused.

mod proxy;
mod tokens;

pub use tokens::{is_digest, is_secret};

use crate::config::{Auth, Role};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use std::net::IpAddr;

/// Why a request has no identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Neither a token nor a trusted header.
    Missing,
    /// A token or header that is not valid. What is wrong with it is not said.
    Invalid,
    /// The role of the trusted header is not on the allow-list.
    NotAllowed,
}

/// The role of the request. A token and a proxy's header exclude each other.
pub fn identify(auth: &Auth, headers: &HeaderMap, peer: IpAddr) -> Result<Role, Refusal> {
    let named = match &auth.proxy {
        Some(proxy) => proxy::role(proxy, headers, peer)?,
        None => None,
    };
    match (named, headers.contains_key(AUTHORIZATION)) {
        (Some(_), true) => Err(Refusal::Invalid),
        (Some(name), false) => auth.role(name).ok_or(Refusal::NotAllowed),
        (None, true) => {
            let token = bearer(headers).ok_or(Refusal::Invalid)?;
            tokens::role(&auth.tokens, token)
                .cloned()
                .ok_or(Refusal::Invalid)
        }
        (None, false) => Err(Refusal::Missing),
    }
}

/// The token of the one Authorization header.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    if values.next().is_some() {
        return None;
    }
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests;
