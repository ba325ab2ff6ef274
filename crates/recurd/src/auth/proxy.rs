//! The header of a trusted proxy.

use super::Refusal;
use crate::config::Proxy;
use axum::http::HeaderMap;
use std::net::IpAddr;

/// The role that the header names; None without the header. From elsewhere than the proxy it is refused, not ignored:
/// a caller who sets it may believe that it counts.
pub fn role<'a>(
    proxy: &Proxy,
    headers: &'a HeaderMap,
    peer: IpAddr,
) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(&proxy.header).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let peer = peer.to_canonical();
    let is_trusted = proxy
        .addresses
        .iter()
        .any(|network| network.contains(&peer));
    if !is_trusted || values.next().is_some() {
        return Err(Refusal::Invalid);
    }
    value.to_str().map(Some).map_err(|_| Refusal::Invalid)
}
