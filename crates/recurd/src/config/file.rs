//! The file as people write it. An unknown key is an error.

use super::LogFormat;
use super::webhooks::{DeliverFile, SourceFile};
use ipnet::IpNet;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    pub listen: Option<SocketAddr>,
    pub log: Log,
    pub database: Database,
    pub auth: Auth,
    pub limits: Limits,
    pub process: Option<Process>,
    pub metrics: Option<Metrics>,
    pub deliver: Option<DeliverFile>,
    pub sources: Vec<SourceFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    pub format: LogFormat,
    /// As in RUST_LOG.
    pub filter: String,
}

impl Default for Log {
    fn default() -> Log {
        Log {
            format: LogFormat::Json,
            filter: "info".to_owned(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Database {
    pub url: Option<String>,
    pub url_env: Option<String>,
    pub url_file: Option<PathBuf>,
    pub pool_size: u32,
    pub pool_timeout_seconds: f64,
    pub statement_timeout_seconds: f64,
    pub lock_timeout_seconds: f64,
}

impl Default for Database {
    fn default() -> Database {
        Database {
            url: None,
            url_env: None,
            url_file: None,
            pool_size: 10,
            pool_timeout_seconds: 5.0,
            statement_timeout_seconds: 15.0,
            lock_timeout_seconds: 5.0,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    /// The only roles that anything runs as.
    pub allowed_roles: Vec<String>,
    pub tokens: Vec<Token>,
    pub proxy: Option<Proxy>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    pub role: String,
    pub sha256: Option<String>,
    pub sha256_env: Option<String>,
    pub sha256_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    pub header: String,
    /// Where the proxy connects from; the header of others is refused.
    pub addresses: Vec<IpNet>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    pub body_bytes: u32,
    pub requests_per_second: u32,
    pub burst: u32,
    pub request_timeout_seconds: f64,
    pub connections: u32,
    pub header_timeout_seconds: f64,
    pub idle_timeout_seconds: f64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            // Twice recur.max_payload: a payload of the largest size, and the rest of the request.
            body_bytes: 2 * 1024 * 1024,
            requests_per_second: 1000,
            burst: 2000,
            request_timeout_seconds: 30.0,
            connections: 1024,
            header_timeout_seconds: 10.0,
            // Longer than proxies keep a connection that they don't use: they close it, and meet no closed one.
            idle_timeout_seconds: 75.0,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    pub role: String,
    /// How long each call delivers webhooks as well.
    pub deliver_seconds: Option<f64>,
    pub secret_env: Option<String>,
    pub secret_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    pub role: String,
    pub sha256: Option<String>,
    pub sha256_env: Option<String>,
    pub sha256_file: Option<PathBuf>,
    #[serde(default)]
    pub open: bool,
}

/// What is wrong, and where. The value is not shown: it may be a secret that stands in the wrong place.
pub fn unreadable(text: &str, error: &toml::de::Error) -> String {
    let start = error.span().map_or(0, |span| span.start);
    let before = text.get(..start).unwrap_or("");
    let line = before.matches('\n').count() + 1;
    let message = error.message();
    let names_value = [
        "invalid type",
        "invalid value",
        "invalid length",
        "unknown variant",
    ]
    .iter()
    .any(|what| message.starts_with(what));
    if !names_value {
        return format!("the configuration, line {line}: {message}");
    }
    let expected = message
        .rsplit_once(", expected ")
        .map_or("another value", |(_, rest)| rest);
    let key = before.trim_end().strip_suffix('=').unwrap_or("").trim_end();
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let key = key.rsplit(|c: char| !is_bare(c)).next().unwrap_or("");
    let key = if key.is_empty() { "a value" } else { key };
    format!("the configuration, line {line}: {key}: expected {expected}")
}
