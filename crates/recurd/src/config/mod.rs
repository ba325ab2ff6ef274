//! The configuration: TOML and environment in, validated types out.

pub mod file;
pub mod secret;
pub mod webhooks;

use ipnet::IpNet;
pub use secret::Secret;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// The environment variable of the connection string, where the file names none.
const DATABASE_URL: &str = "RECURD_DATABASE_URL";
/// A secret that can be guessed protects nothing: 16 characters of base64 are 96 bits.
const SHORTEST_SECRET: usize = 16;
/// A call that lasts longer is a service: proxies in between have hung up.
const LONGEST_CALL: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub struct Config {
    pub listen: SocketAddr,
    pub log: Log,
    pub database: Option<DatabaseConfig>,
    pub auth: Auth,
    pub limits: Limits,
    pub process: Option<Process>,
    pub metrics: Option<Metrics>,
    /// Webhooks out.
    pub deliver: Option<webhooks::Deliver>,
    /// Webhooks in.
    pub sources: Vec<webhooks::Source>,
}

#[derive(Debug)]
pub struct Log {
    pub format: LogFormat,
    pub filter: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Json,
    Text,
}

#[derive(Debug)]
pub struct DatabaseConfig {
    /// It may hold a password.
    pub url: Secret,
    pub pool_size: usize,
    pub pool_timeout: Duration,
    pub statement_timeout: Duration,
    pub lock_timeout: Duration,
}

/// A role that the allow-list names: the only kind that the database door takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Role(String);

impl Role {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Default)]
pub struct Auth {
    allowed: BTreeSet<String>,
    pub tokens: Vec<Token>,
    pub proxy: Option<Proxy>,
}

impl Auth {
    /// The role, if the allow-list names it.
    pub fn role(&self, name: &str) -> Option<Role> {
        self.allowed.get(name).cloned().map(Role)
    }

    pub fn allowed(&self) -> impl Iterator<Item = Role> + '_ {
        self.allowed.iter().cloned().map(Role)
    }
}

#[derive(Debug)]
pub struct Token {
    pub role: Role,
    pub sha256: [u8; 32],
}

#[derive(Debug)]
pub struct Proxy {
    pub header: String,
    pub addresses: Vec<IpNet>,
}

#[derive(Debug)]
pub struct Limits {
    pub body_bytes: usize,
    pub requests_per_second: u32,
    pub burst: u32,
    pub request_timeout: Duration,
    pub connections: usize,
    /// From connecting to the first request.
    pub header_timeout: Duration,
    /// From the end of a request to the next.
    pub idle_timeout: Duration,
}

#[derive(Debug)]
pub struct Process {
    pub role: Role,
    pub secret: Secret,
    /// How long each call delivers webhooks as well.
    pub deliver: Option<Duration>,
}

#[derive(Debug)]
pub struct Metrics {
    pub role: Role,
    /// Without one, all who reach the listener may read.
    pub token: Option<[u8; 32]>,
}

impl Config {
    /// Reads a file, if there is one, and the environment.
    pub fn read(path: Option<&Path>) -> Result<Config, String> {
        let text = match path {
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| format!("{}: {error}", path.display()))?,
            None => String::new(),
        };
        Config::parse(&text)
    }

    pub fn parse(text: &str) -> Result<Config, String> {
        let parsed: file::File =
            toml::from_str(text).map_err(|error| file::unreadable(text, &error))?;
        Config::validate(parsed)
    }

    fn validate(file: file::File) -> Result<Config, String> {
        let auth = auth(file.auth)?;
        let process = file
            .process
            .map(|section| process(section, &auth))
            .transpose()?;
        let metrics = file
            .metrics
            .map(|section| metrics(section, &auth))
            .transpose()?;
        let deliver = file
            .deliver
            .map(|section| webhooks::deliver(section, &auth))
            .transpose()?;
        if deliver.is_none()
            && process
                .as_ref()
                .is_some_and(|process| process.deliver.is_some())
        {
            return Err("process.deliver_seconds needs the section [deliver]".to_owned());
        }
        let sources = webhooks::sources(file.sources, &auth)?;
        Ok(Config {
            listen: listen(file.listen)?,
            log: Log {
                format: file.log.format,
                filter: std::env::var("RECURD_LOG").unwrap_or(file.log.filter),
            },
            database: database(file.database)?,
            auth,
            limits: limits(&file.limits)?,
            process,
            metrics,
            deliver,
            sources,
        })
    }
}

fn listen(file: Option<SocketAddr>) -> Result<SocketAddr, String> {
    if let Ok(text) = std::env::var("RECURD_LISTEN") {
        return text.parse().map_err(|_| {
            format!(
                "RECURD_LISTEN = {text:?}: expected an address and a port, such as 127.0.0.1:8032"
            )
        });
    }
    Ok(file.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8032))))
}

pub fn seconds(key: &str, value: f64) -> Result<Duration, String> {
    match Duration::try_from_secs_f64(value) {
        Ok(duration) if (0.001..=86_400.0).contains(&value) => Ok(duration),
        _ => Err(format!(
            "{key} = {value}: expected seconds, from 0.001 to 86400"
        )),
    }
}

fn at_least_1(key: &str, value: u32) -> Result<u32, String> {
    if value == 0 {
        return Err(format!("{key} = 0: expected a number from 1 on"));
    }
    Ok(value)
}

fn limits(file: &file::Limits) -> Result<Limits, String> {
    let seconds = |key: &str, value: f64| seconds(&format!("limits.{key}_seconds"), value);
    let at_least_1 = |key: &str, value: u32| at_least_1(&format!("limits.{key}"), value);
    Ok(Limits {
        body_bytes: at_least_1("body_bytes", file.body_bytes)? as usize,
        requests_per_second: at_least_1("requests_per_second", file.requests_per_second)?,
        burst: at_least_1("burst", file.burst)?,
        request_timeout: seconds("request_timeout", file.request_timeout_seconds)?,
        connections: at_least_1("connections", file.connections)? as usize,
        header_timeout: seconds("header_timeout", file.header_timeout_seconds)?,
        idle_timeout: seconds("idle_timeout", file.idle_timeout_seconds)?,
    })
}

fn database_url(file: &file::Database) -> Result<Option<Secret>, String> {
    let from_environment = std::env::var_os(DATABASE_URL).is_some();
    match (&file.url, file.url_env.as_deref(), file.url_file.as_ref()) {
        (None, None, None) if from_environment => {
            secret::read("database.url", Some(DATABASE_URL), None)
        }
        (None, variable, path) => secret::read("database.url", variable, path),
        (Some(url), None, None) => {
            // What can't be read may hold one, too.
            let problem = match recur_client::has_password(url) {
                Ok(false) => return Ok(Some(Secret::new(url.clone()))),
                Ok(true) => "holds a password",
                Err(_) => "can't be read, and may hold a password",
            };
            Err(format!(
                "database.url {problem}: name a variable by url_env or a file by url_file instead"
            ))
        }
        _ => Err(
            "database.url, url_env and url_file exclude each other: keep one of them".to_owned(),
        ),
    }
}

fn database(file: file::Database) -> Result<Option<DatabaseConfig>, String> {
    let url = database_url(&file)?;
    url.map(|url| {
        Ok(DatabaseConfig {
            url,
            pool_size: at_least_1("database.pool_size", file.pool_size)? as usize,
            pool_timeout: seconds("database.pool_timeout_seconds", file.pool_timeout_seconds)?,
            statement_timeout: seconds(
                "database.statement_timeout_seconds",
                file.statement_timeout_seconds,
            )?,
            lock_timeout: seconds("database.lock_timeout_seconds", file.lock_timeout_seconds)?,
        })
    })
    .transpose()
}

fn auth(file: file::Auth) -> Result<Auth, String> {
    let mut auth = Auth {
        allowed: file.allowed_roles.into_iter().collect(),
        ..Auth::default()
    };
    if let Some(name) = auth
        .allowed
        .iter()
        .find(|name| name.is_empty() || name.len() > 63)
    {
        return Err(format!(
            "auth.allowed_roles: {name:?}: expected the name of a role, of 1 to 63 bytes"
        ));
    }
    for (index, token) in file.tokens.into_iter().enumerate() {
        let key = format!("auth.tokens[{index}]");
        let role = allowed(&auth, &format!("{key}.role"), &token.role)?;
        let hash = hash(
            &format!("{key}.sha256"),
            token.sha256,
            token.sha256_env,
            token.sha256_file,
        )?;
        let sha256 = hash.ok_or_else(|| {
            format!("{key}: expected sha256, sha256_env or sha256_file, the SHA-256 of the token in hexadecimal")
        })?;
        if auth.tokens.iter().any(|other| other.sha256 == sha256) {
            return Err(format!(
                "{key}: another entry has the same token: each token belongs to one role"
            ));
        }
        auth.tokens.push(Token { role, sha256 });
    }
    auth.proxy = file.proxy.map(proxy).transpose()?;
    Ok(auth)
}

fn proxy(file: file::Proxy) -> Result<Proxy, String> {
    let header = file.header.to_ascii_lowercase();
    if axum::http::HeaderName::from_bytes(header.as_bytes()).is_err() || header == "authorization" {
        return Err(format!(
            "auth.proxy.header = {:?}: expected the name of a header, other than Authorization",
            file.header
        ));
    }
    if file.addresses.is_empty() {
        return Err(
            "auth.proxy.addresses is empty: expected the proxy's networks, such as 127.0.0.1/32"
                .to_owned(),
        );
    }
    Ok(Proxy {
        header,
        addresses: file.addresses,
    })
}

fn process(file: file::Process, auth: &Auth) -> Result<Process, String> {
    let role = allowed(auth, "process.role", &file.role)?;
    let secret = secret::read(
        "process.secret",
        file.secret_env.as_deref(),
        file.secret_file.as_ref(),
    )?
    .ok_or("process: expected secret_env or secret_file")?;
    if secret.expose().len() < SHORTEST_SECRET {
        return Err(format!(
            "process.secret has fewer than {SHORTEST_SECRET} characters: make a longer one"
        ));
    }
    let deliver = file
        .deliver_seconds
        .map(|given| seconds("process.deliver_seconds", given));
    let deliver = deliver.transpose()?;
    if deliver.is_some_and(|given| given > LONGEST_CALL) {
        return Err(format!(
            "process.deliver_seconds: expected at most {}, and `recurd deliver` for what runs all the time",
            LONGEST_CALL.as_secs()
        ));
    }
    Ok(Process {
        role,
        secret,
        deliver,
    })
}

fn metrics(file: file::Metrics, auth: &Auth) -> Result<Metrics, String> {
    let role = allowed(auth, "metrics.role", &file.role)?;
    let token = hash(
        "metrics.sha256",
        file.sha256,
        file.sha256_env,
        file.sha256_file,
    )?;
    if token.is_none() && !file.open {
        return Err(
            "metrics: expected sha256, sha256_env or sha256_file of a bearer token, or open = true to let all read \
             who reach the listener"
                .to_owned(),
        );
    }
    Ok(Metrics { role, token })
}

/// The role that a section names, which the allow-list must name as well.
pub fn allowed(auth: &Auth, key: &str, name: &str) -> Result<Role, String> {
    auth.role(name)
        .ok_or_else(|| format!("{key} = {name:?}: expected one of auth.allowed_roles"))
}

/// A SHA-256 in hexadecimal: in the file, since it is no secret, or where a secret may be.
fn hash(
    key: &str,
    inline: Option<String>,
    variable: Option<String>,
    path: Option<std::path::PathBuf>,
) -> Result<Option<[u8; 32]>, String> {
    let text = match inline {
        Some(text) if variable.is_none() && path.is_none() => text,
        Some(_) => {
            return Err(format!(
                "{key}, {key}_env and {key}_file exclude each other: keep one of them"
            ));
        }
        None => match secret::read(key, variable.as_deref(), path.as_ref())? {
            Some(secret) => secret.expose().to_owned(),
            None => return Ok(None),
        },
    };
    let expected =
        || format!("{key}: expected 64 hexadecimal digits, as of: printf %s TOKEN | sha256sum");
    if text.len() != 64 || !text.is_ascii() {
        return Err(expected());
    }
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| expected())?;
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests;
