//! The sections of webhooks: where deliveries go, and where they come from.

use super::{Auth, Role, Secret, allowed, at_least_1, seconds, secret};
use crate::webhooks::sign::Key;
use crate::webhooks::verify::{Scheme, Verifier};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;
use recur_core::pattern::Pattern;
use reqwest::Url;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Longer ones would not fit into what the database calls an endpoint.
const LONGEST_NAME: usize = 63;
/// Ids are remembered for at most a year.
const LONGEST_MEMORY_SECONDS: u32 = 366 * 24 * 60 * 60;

/// `[deliver]` as people write it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DeliverFile {
    role: String,
    concurrency: u32,
    poll_seconds: f64,
    lease_seconds: f64,
    grace_seconds: f64,
    timeout_seconds: f64,
    /// Of endpoints that users have made; those of the operator say it themselves.
    allow_http: bool,
    allow_networks: Vec<IpNet>,
    notify_channel: String,
    endpoints: Vec<EndpointFile>,
}

impl Default for DeliverFile {
    fn default() -> DeliverFile {
        DeliverFile {
            role: String::new(),
            concurrency: 256,
            poll_seconds: 5.0,
            lease_seconds: 60.0,
            grace_seconds: 20.0,
            timeout_seconds: 15.0,
            allow_http: false,
            allow_networks: Vec::new(),
            notify_channel: "recur".to_owned(),
            endpoints: Vec::new(),
        }
    }
}

/// `[[deliver.endpoints]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EndpointFile {
    name: String,
    url_env: Option<String>,
    url_file: Option<PathBuf>,
    patterns: Vec<String>,
    /// All, if there are none.
    owners: Option<Vec<String>>,
    #[serde(default = "yes")]
    enabled: bool,
    #[serde(default)]
    private: bool,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Those whose values are secrets: the variables, or files, of the values.
    #[serde(default)]
    headers_env: BTreeMap<String, String>,
    #[serde(default)]
    headers_file: BTreeMap<String, PathBuf>,
    timeout_seconds: Option<f64>,
    concurrency: Option<u32>,
    rate: Option<f64>,
    secret_env: Option<String>,
    secret_file: Option<PathBuf>,
    previous_secret_env: Option<String>,
    previous_secret_file: Option<PathBuf>,
}

/// `[[sources]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    name: String,
    role: String,
    scheme: SchemeFile,
    /// Of a shared secret.
    header: Option<String>,
    provider: String,
    action_type: String,
    namespace: Option<String>,
    tenant: Option<String>,
    #[serde(default = "five_minutes")]
    tolerance_seconds: f64,
    #[serde(default = "three_days")]
    replay_window_seconds: u32,
    #[serde(default = "mebibyte")]
    max_body_bytes: u32,
    secret_env: Option<String>,
    secret_file: Option<PathBuf>,
    previous_secret_env: Option<String>,
    previous_secret_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum SchemeFile {
    StandardWebhooks,
    Github,
    Stripe,
    SharedSecret,
}

/// Where the current secret is, and the one before while it is rotated.
struct Secrets<'a> {
    current: (Option<&'a str>, Option<&'a PathBuf>),
    previous: (Option<&'a str>, Option<&'a PathBuf>),
}

macro_rules! secrets {
    ($file:expr) => {
        Secrets {
            current: ($file.secret_env.as_deref(), $file.secret_file.as_ref()),
            previous: (
                $file.previous_secret_env.as_deref(),
                $file.previous_secret_file.as_ref(),
            ),
        }
    };
}

fn yes() -> bool {
    true
}

fn five_minutes() -> f64 {
    300.0
}

fn three_days() -> u32 {
    3 * 24 * 60 * 60
}

fn mebibyte() -> u32 {
    1024 * 1024
}

/// Deliveries.
#[derive(Debug)]
pub struct Deliver {
    /// With level deliverer.
    pub role: Role,
    pub concurrency: usize,
    pub poll: Duration,
    pub lease: Duration,
    pub grace: Duration,
    /// Of endpoints that name none.
    pub timeout: Duration,
    pub allow_http: bool,
    pub allow_networks: Vec<IpNet>,
    pub notify_channel: String,
    /// The enabled ones.
    pub endpoints: Vec<Endpoint>,
}

/// An endpoint of the operator.
#[derive(Debug)]
pub struct Endpoint {
    pub name: String,
    /// It may hold a token.
    pub url: Secret,
    pub patterns: Vec<Pattern>,
    pub owners: Option<Vec<String>>,
    pub is_private: bool,
    pub headers: HeaderMap,
    pub timeout: Option<Duration>,
    pub concurrency: Option<u32>,
    pub rate: Option<f64>,
    /// The current one first; none where nothing is signed.
    pub keys: Vec<Key>,
}

/// Who may send to `/v1/hooks/NAME`.
#[derive(Debug)]
pub struct Source {
    pub name: String,
    pub role: Role,
    pub verifier: Verifier,
    pub provider: String,
    pub action_type: String,
    pub namespace: Option<String>,
    pub tenant: Option<String>,
    /// None where ids are not remembered.
    pub replay_window: Option<Duration>,
    pub max_body: usize,
}

pub fn deliver(file: DeliverFile, auth: &Auth) -> Result<Deliver, String> {
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for (index, endpoint) in file.endpoints.into_iter().enumerate() {
        let key = format!("deliver.endpoints[{index}]");
        check_name(&key, &endpoint.name)?;
        if endpoints.iter().any(|other| other.name == endpoint.name) {
            return Err(format!(
                "{key}.name = {:?}: another endpoint has it",
                endpoint.name
            ));
        }
        if endpoint.enabled {
            endpoints.push(self::endpoint(&key, endpoint)?);
        }
    }
    Ok(Deliver {
        role: allowed(auth, "deliver.role", &file.role)?,
        concurrency: at_least_1("deliver.concurrency", file.concurrency)? as usize,
        poll: seconds("deliver.poll_seconds", file.poll_seconds)?,
        lease: seconds("deliver.lease_seconds", file.lease_seconds)?,
        grace: seconds("deliver.grace_seconds", file.grace_seconds)?,
        timeout: seconds("deliver.timeout_seconds", file.timeout_seconds)?,
        allow_http: file.allow_http,
        allow_networks: file.allow_networks,
        notify_channel: file.notify_channel,
        endpoints,
    })
}

fn endpoint(key: &str, file: EndpointFile) -> Result<Endpoint, String> {
    let url = secret::read(
        &format!("{key}.url"),
        file.url_env.as_deref(),
        file.url_file.as_ref(),
    )?
    .ok_or_else(|| format!("{key}: expected url_env or url_file"))?;
    let is_url =
        Url::parse(url.expose()).is_ok_and(|url| ["http", "https"].contains(&url.scheme()));
    if !is_url {
        return Err(format!(
            "{key}.url_env or url_file: expected an URL of http or https"
        ));
    }
    if file.patterns.is_empty() {
        return Err(format!(
            "{key}.patterns is empty: expected action types such as task:*"
        ));
    }
    let patterns = file.patterns.iter().map(|text| {
        let parsed: Result<Pattern, _> = text.parse();
        parsed.map_err(|error| format!("{key}.patterns: {error}"))
    });
    let timeout = file
        .timeout_seconds
        .map(|given| seconds(&format!("{key}.timeout_seconds"), given));
    let concurrency = file
        .concurrency
        .map(|given| at_least_1(&format!("{key}.concurrency"), given));
    if let Some(rate) = file.rate.filter(|rate| !(*rate > 0.0 && rate.is_finite())) {
        return Err(format!(
            "{key}.rate = {rate}: expected deliveries a second, above 0"
        ));
    }
    Ok(Endpoint {
        patterns: patterns.collect::<Result<_, _>>()?,
        keys: keys(key, &Scheme::StandardWebhooks, &secrets!(file))?,
        headers: headers(key, &file)?,
        timeout: timeout.transpose()?,
        concurrency: concurrency.transpose()?,
        rate: file.rate,
        name: file.name,
        url,
        owners: file.owners,
        is_private: file.private,
    })
}

fn headers(key: &str, file: &EndpointFile) -> Result<HeaderMap, String> {
    let given = |(name, value): (&String, &String)| (name.clone(), Secret::new(value.clone()));
    let mut all: Vec<(String, Secret)> = file.headers.iter().map(given).collect();
    for (name, variable) in &file.headers_env {
        let value = secret::read(&format!("{key}.headers.{name}"), Some(variable), None)?;
        all.extend(value.map(|value| (name.clone(), value)));
    }
    for (name, path) in &file.headers_file {
        let value = secret::read(&format!("{key}.headers.{name}"), None, Some(path))?;
        all.extend(value.map(|value| (name.clone(), value)));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in all {
        let parsed = (
            HeaderName::try_from(&name),
            HeaderValue::try_from(value.expose()),
        );
        let (Ok(header), Ok(mut value)) = parsed else {
            return Err(format!("{key}.headers: {name:?} or its value is no header"));
        };
        value.set_sensitive(true);
        if headers.insert(header, value).is_some() {
            return Err(format!("{key}.headers: {name:?} is given twice"));
        }
    }
    Ok(headers)
}

pub fn sources(files: Vec<SourceFile>, auth: &Auth) -> Result<Vec<Source>, String> {
    let mut sources: Vec<Source> = Vec::new();
    for (index, file) in files.into_iter().enumerate() {
        let key = format!("sources[{index}]");
        check_name(&key, &file.name)?;
        if sources.iter().any(|other| other.name == file.name) {
            return Err(format!(
                "{key}.name = {:?}: another source has it",
                file.name
            ));
        }
        sources.push(source(&key, file, auth)?);
    }
    Ok(sources)
}

fn source(key: &str, file: SourceFile, auth: &Auth) -> Result<Source, String> {
    let scheme = scheme(key, file.scheme, file.header.as_deref())?;
    let keys = keys(key, &scheme, &secrets!(file))?;
    if keys.is_empty() {
        return Err(format!("{key}: expected secret_env or secret_file"));
    }
    if file.replay_window_seconds > LONGEST_MEMORY_SECONDS {
        return Err(format!(
            "{key}.replay_window_seconds = {}: expected at most {LONGEST_MEMORY_SECONDS}",
            file.replay_window_seconds
        ));
    }
    let tolerance = seconds(&format!("{key}.tolerance_seconds"), file.tolerance_seconds)?;
    for (argument, text) in [
        ("provider", &file.provider),
        ("action_type", &file.action_type),
    ] {
        if text.trim().is_empty() {
            return Err(format!("{key}.{argument} = {text:?}: expected a name"));
        }
    }
    Ok(Source {
        role: allowed(auth, &format!("{key}.role"), &file.role)?,
        verifier: Verifier::new(scheme, keys, tolerance),
        provider: file.provider,
        action_type: file.action_type,
        namespace: file.namespace,
        tenant: file.tenant,
        replay_window: (file.replay_window_seconds > 0)
            .then(|| Duration::from_secs(file.replay_window_seconds.into())),
        max_body: at_least_1(&format!("{key}.max_body_bytes"), file.max_body_bytes)? as usize,
        name: file.name,
    })
}

fn scheme(key: &str, scheme: SchemeFile, header: Option<&str>) -> Result<Scheme, String> {
    if header.is_some() && scheme != SchemeFile::SharedSecret {
        return Err(format!(
            "{key}.header: only the scheme shared-secret has one"
        ));
    }
    Ok(match scheme {
        SchemeFile::StandardWebhooks => Scheme::StandardWebhooks,
        SchemeFile::Github => Scheme::Github,
        SchemeFile::Stripe => Scheme::Stripe,
        SchemeFile::SharedSecret => {
            let name = header.unwrap_or("authorization");
            let parsed = HeaderName::try_from(name);
            let name = parsed
                .map_err(|_| format!("{key}.header = {name:?}: expected the name of a header"))?;
            Scheme::SharedSecret(name)
        }
    })
}

fn keys(key: &str, scheme: &Scheme, file: &Secrets<'_>) -> Result<Vec<Key>, String> {
    let read = |name: &str, (variable, path)| {
        let key = format!("{key}.{name}");
        let secret = secret::read(&key, variable, path)?;
        let parsed = secret.map(|secret| scheme.key(secret.expose()));
        parsed
            .transpose()
            .map_err(|error| format!("{key}_env or {key}_file: {error}"))
    };
    let current = read("secret", file.current)?;
    let previous = read("previous_secret", file.previous)?;
    if current.is_none() && previous.is_some() {
        return Err(format!(
            "{key}: a previous secret needs a current one, secret_env or secret_file"
        ));
    }
    Ok(current.into_iter().chain(previous).collect())
}

/// What stands in an URL, in the database and in logs.
fn check_name(key: &str, name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
        return Err(format!(
            "{key}.name = {name:?}: expected letters, digits, - and _, at most {LONGEST_NAME}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    const ROLE: &str = "[auth]\nallowed_roles = [\"a\"]\n";
    const SOURCE: &str =
        "[[sources]]\nname = \"s\"\nrole = \"a\"\nprovider = \"p\"\naction_type = \"t\"\n";
    const ENDPOINT: &str =
        "[deliver]\nrole = \"a\"\n[[deliver.endpoints]]\nname = \"e\"\npatterns = [\"*\"]\n";

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        match Config::parse(&format!("{ROLE}{text}")) {
            Ok(_) => panic!("accepted: {text}"),
            Err(error) => assert!(error.contains(expected), "{error}"),
        }
    }

    fn secret(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn sections_are_read() {
        let url = secret("http://10.0.0.1/hook?token=x\n");
        let key = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let token = secret("Bearer hidden-2\n");
        let text = format!(
            "{ROLE}{ENDPOINT}url_file = {:?}\nsecret_file = {:?}\nprivate = true\n\
             headers = {{ x-shown = \"hidden-1\" }}\nheaders_file = {{ authorization = {:?} }}\n\
             {SOURCE}scheme = \"github\"\nsecret_file = {:?}",
            url.path(),
            key.path(),
            token.path(),
            key.path()
        );
        let config = Config::parse(&text).unwrap();
        let shown = format!("{config:?}");
        for hidden in ["token=x", "MfKQ", "hidden-"] {
            assert!(!shown.contains(hidden), "{shown}");
        }
        let deliver = config.deliver.unwrap();
        assert_eq!(deliver.endpoints[0].headers["x-shown"], "hidden-1");
        assert_eq!(
            deliver.endpoints[0].headers["authorization"],
            "Bearer hidden-2"
        );
        assert_eq!(
            deliver.endpoints[0].url.expose(),
            "http://10.0.0.1/hook?token=x"
        );
        assert_eq!(deliver.endpoints[0].keys.len(), 1);
        assert_eq!(config.sources[0].max_body, 1024 * 1024);
    }

    #[test]
    fn what_is_wrong_is_named_and_no_secret_shown() {
        let short = secret("whsec_c2hvcnQ=");
        let path = short.path();
        for (text, expected) in [
            ("[deliver]\nrole = \"b\"".to_owned(), "deliver.role = \"b\": expected one of auth.allowed_roles"),
            ("[deliver]\nrole = \"a\"\nconcurrency = 0".to_owned(), "deliver.concurrency = 0"),
            ("[deliver]\nrole = \"a\"\nsecret = \"x\"".to_owned(), "unknown field `secret`"),
            (format!("{ENDPOINT}secret_file = {path:?}"), "expected url_env or url_file"),
            (format!("{ENDPOINT}url = \"http://x\""), "url"),
            (format!("{ENDPOINT}url_file = {path:?}"), "expected an URL of http or https"),
            (format!("{SOURCE}scheme = \"github\""), "expected secret_env or secret_file"),
            (
                format!("{SOURCE}scheme = \"standard-webhooks\"\nsecret_file = {path:?}"),
                "a key has 24 to 64 bytes, not 5",
            ),
            (
                format!("{SOURCE}scheme = \"stripe\"\nsecret_file = {path:?}\nheader = \"x\""),
                "only the scheme shared-secret has one",
            ),
            (format!("{SOURCE}scheme = \"none\""), "scheme: expected one of `standard-webhooks`, `github`"),
            (format!("{SOURCE}scheme = \"github\"\ncolour = 1"), "colour"),
            (
                "[[sources]]\nname = \"a/b\"\nrole = \"a\"\nprovider = \"p\"\naction_type = \"t\"\nscheme = \"github\""
                    .to_owned(),
                "expected letters, digits, - and _",
            ),
        ] {
            refused(&text, expected);
        }
    }
}
