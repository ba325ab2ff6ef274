//! One POST to one endpoint: to vetted addresses only, without redirects, proxies or decompression, within limits of
//! time and size.

use super::address::{Policy, Refusal};
use super::outcome::{self, Body, Outcome};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, HeaderValue};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect;
use reqwest::{Response, Url};
use serde_json::{Value, json};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// For name lookup, TCP and TLS together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle connections are closed before most servers close theirs: a request on one that is being closed is lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// How much of a response is read, so that its connection can be used again. What is larger costs a new connection.
const LONGEST_BODY: usize = 64 * 1024;
/// How long a body may take once the status has arrived. The status decides; the body is for people.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// HTTP/2: the same bound that HTTP/1 has by its buffer.
const LONGEST_HEADERS: u32 = 64 * 1024;
/// Reasons are for people.
const LONGEST_REASON: usize = 500;

/// Two clients, because connections are pooled by host: what one endpoint may connect to, another may not.
pub struct Client {
    public: Side,
    private: Side,
}

struct Side {
    policy: Arc<Policy>,
    client: reqwest::Client,
}

pub struct Request {
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub timeout: Duration,
    pub is_private: bool,
}

/// What a delivery came to.
#[derive(Debug)]
pub struct Answer {
    pub outcome: Outcome,
    /// None where no response came.
    pub status: Option<u16>,
    pub result: Value,
    /// None where it was delivered.
    pub reason: Option<String>,
}

impl Answer {
    /// Nothing was sent, or no response came.
    pub fn none(reason: &str, result: Value) -> Answer {
        Answer {
            outcome: Outcome::Failed,
            status: None,
            result,
            reason: Some(reason.chars().take(LONGEST_REASON).collect()),
        }
    }
}

impl Client {
    pub fn new(policy: Policy) -> Result<Client, String> {
        Ok(Client {
            public: Side::new(policy)?,
            private: Side::new(Policy::private())?,
        })
    }

    pub async fn send(&self, request: Request) -> Answer {
        let side = if request.is_private {
            &self.private
        } else {
            &self.public
        };
        // The resolver is not asked for addresses: those are vetted here.
        if let Err(refusal) = side.policy.vet_url(&request.url) {
            return Answer::none(&format!("refused: {refusal}"), json!({}));
        }
        let started = Instant::now();
        let sent = side
            .client
            .post(request.url)
            .headers(request.headers)
            .body(request.body)
            .timeout(request.timeout)
            .send();
        match sent.await {
            Ok(response) => read(response, started).await,
            Err(error) => {
                let milliseconds = outcome::milliseconds(started.elapsed());
                let reason = explain(error, request.timeout);
                Answer::none(&reason, json!({ "milliseconds": milliseconds }))
            }
        }
    }
}

impl Side {
    fn new(policy: Policy) -> Result<Side, String> {
        let policy = Arc::new(policy);
        let client = reqwest::Client::builder()
            .dns_resolver(Resolver(Arc::clone(&policy)))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .retry(reqwest::retry::never())
            .referer(false)
            .user_agent(concat!("recurd/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .http2_max_header_list_size(LONGEST_HEADERS)
            .build()
            .map_err(|error| format!("the HTTP client: {error}"))?;
        Ok(Side { policy, client })
    }
}

/// Resolves a name once, and hands on only the addresses that were vetted: those are connected to.
struct Resolver(Arc<Policy>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = Arc::clone(&self.0);
        Box::pin(async move {
            // The URL's port replaces this one.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let vetted = policy.vet_all(name.as_str(), found, |address| address.ip());
            let vetted = vetted.inspect_err(|refusal| {
                tracing::warn!(event = "webhook.refused", refusal = ?refusal);
            })?;
            Ok(Box::new(vetted.into_iter()) as Addrs)
        })
    }
}

async fn read(mut response: Response, started: Instant) -> Answer {
    let status = response.status().as_u16();
    let headers = std::mem::take(response.headers_mut());
    let retry_after = headers.get(RETRY_AFTER).map(HeaderValue::to_str);
    let retry_after = retry_after.and_then(Result::ok);
    let outcome = Outcome::of_response(status, retry_after, SystemTime::now());
    let body = read_body(response).await;
    let pairs = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()));
    let result = outcome::result(status, pairs, &body, started.elapsed());
    let reason = (outcome != Outcome::Delivered).then(|| format!("the endpoint answered {status}"));
    Answer {
        outcome,
        status: Some(status),
        result,
        reason,
    }
}

async fn read_body(mut response: Response) -> Body {
    let mut body = Body::default();
    let mut length = 0;
    let all = async {
        // A body that breaks off is cut as well.
        while let Some(chunk) = response.chunk().await.ok()? {
            body.push(&chunk);
            length += chunk.len();
            if length > LONGEST_BODY {
                return None;
            }
        }
        Some(())
    };
    let is_whole = matches!(tokio::time::timeout(BODY_TIMEOUT, all).await, Ok(Some(())));
    if !is_whole {
        body.cut();
    }
    body
}

/// Why there was no response. The URL is left out: it may hold a token.
fn explain(error: reqwest::Error, timeout: Duration) -> String {
    let mut cause: &dyn Error = &error;
    loop {
        if let Some(refusal) = cause.downcast_ref::<Refusal>() {
            return format!("refused: {refusal}");
        }
        match cause.source() {
            Some(source) => cause = source,
            None => break,
        }
    }
    match (error.is_timeout(), error.is_connect()) {
        (true, true) => "no connection in time".to_owned(),
        (true, false) => format!("no response within {timeout:?}"),
        (false, true) => format!("no connection: {cause}"),
        (false, false) => format!("no response: {cause}"),
    }
}
