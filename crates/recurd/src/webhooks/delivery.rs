//! What the database hands out becomes a request.

use super::client::Request;
use super::sign::{self, Key};
use crate::config::webhooks::{Deliver, Endpoint};
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::{HeaderMap, header};
use reqwest::Url;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio_postgres::Row;
use uuid::Uuid;

/// What the database calls an endpoint of the operator: this, and its name.
const OPERATOR: &str = "operator:";

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const ACTION_TYPE: HeaderName = HeaderName::from_static("recur-action-type");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Headers that are the connection's, or would make a server read the body otherwise than it was signed.
const NOT_SETTABLE: [HeaderName; 12] = [
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// One attempt of one dispatch, claimed.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub id: Uuid,
    pub attempt: i32,
    /// None where the role is gone.
    owner: Option<String>,
    pub endpoint: String,
    url: Option<String>,
    headers: Option<String>,
    timeout: Option<f64>,
    secrets: Vec<String>,
    action_type: String,
    payload: Option<String>,
    raw_payload: Option<Vec<u8>>,
    content_type: Option<String>,
    traceparent: Option<String>,
    tracestate: Option<String>,
}

impl Delivery {
    pub fn of(row: &Row) -> Delivery {
        Delivery {
            id: row.get("id"),
            attempt: row.get("attempt"),
            owner: row.get("owner"),
            endpoint: row.get("endpoint"),
            url: row.get("url"),
            headers: row.get("headers"),
            timeout: row.get("timeout"),
            secrets: row
                .get::<_, Option<Vec<String>>>("secrets")
                .unwrap_or_default(),
            action_type: row.get("action_type"),
            payload: row.get("payload"),
            raw_payload: row.get("raw_payload"),
            content_type: row.get("content_type"),
            traceparent: row.get("traceparent"),
            tracestate: row.get("tracestate"),
        }
    }

    /// What a report locks beside its dispatch, the endpoint's health: by name, and whose endpoint it is. All owners
    /// share those of the operator.
    pub fn locked(&self) -> (String, Option<String>) {
        let owner = self.owner.clone();
        let owner = owner.filter(|_| !self.endpoint.starts_with(OPERATOR));
        (self.endpoint.clone(), owner)
    }

    /// The request, signed now.
    ///
    /// # Errors
    /// With the reason, where nothing can be sent.
    pub fn request(&mut self, config: &Deliver) -> Result<Request, String> {
        let target = self.target(config)?;
        let body = match self.raw_payload.take() {
            Some(raw) => raw,
            None => self.payload.take().unwrap_or_default().into_bytes(),
        };
        let mut headers = target.headers;
        headers.retain_settable();
        let id = self.id.to_string();
        let now = seconds_since_1970();
        let mut set = |name: HeaderName, value: &str| match HeaderValue::from_str(value) {
            Ok(value) => {
                headers.0.insert(name, value);
            }
            Err(_) => {
                headers.0.remove(name);
            }
        };
        set(
            CONTENT_TYPE,
            self.content_type.as_deref().unwrap_or("application/json"),
        );
        set(WEBHOOK_ID, &id);
        set(WEBHOOK_TIMESTAMP, &now.to_string());
        set(ACTION_TYPE, &self.action_type);
        if let Some(parent) = self
            .traceparent
            .as_deref()
            .filter(|text| is_traceparent(text))
        {
            set(TRACEPARENT, parent);
            if let Some(state) = self.tracestate.as_deref().filter(|text| text.len() <= 512) {
                set(TRACESTATE, state);
            }
        }
        if !target.keys.is_empty() {
            set(
                WEBHOOK_SIGNATURE,
                &sign::signature_header(&target.keys, &id, now, &body),
            );
        }
        Ok(Request {
            url: target.url,
            headers: headers.0,
            body,
            timeout: target.timeout,
            is_private: target.is_private,
        })
    }

    fn target(&self, config: &Deliver) -> Result<Target, String> {
        let own = |name| {
            let of_operator = config
                .endpoints
                .iter()
                .find(|endpoint| endpoint.name == name);
            of_operator
                .ok_or_else(|| format!("endpoint {:?} is not configured here", self.endpoint))
        };
        // Only for endpoints of the operator does the database know no URL: no name that a user gives leads there.
        match (&self.url, self.endpoint.strip_prefix(OPERATOR)) {
            (None, Some(name)) => Target::of_operator(own(name)?, config),
            _ => self.target_of_user(config),
        }
    }

    fn target_of_user(&self, config: &Deliver) -> Result<Target, String> {
        let url = self.url.as_deref().unwrap_or_default();
        let mut keys = Vec::new();
        for secret in &self.secrets {
            keys.push(
                Key::parse(secret).map_err(|error| format!("the endpoint's secret: {error}"))?,
            );
        }
        let seconds = self
            .timeout
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Ok(Target {
            url: Url::parse(url).map_err(|error| format!("the endpoint's URL: {error}"))?,
            headers: Headers::parse(self.headers.as_deref())?,
            timeout: seconds.unwrap_or(config.timeout),
            keys,
            is_private: false,
        })
    }
}

/// Where a delivery goes.
struct Target {
    url: Url,
    headers: Headers,
    timeout: Duration,
    keys: Vec<Key>,
    is_private: bool,
}

impl Target {
    fn of_operator(endpoint: &Endpoint, config: &Deliver) -> Result<Target, String> {
        Ok(Target {
            url: Url::parse(endpoint.url.expose()).map_err(|error| error.to_string())?,
            headers: Headers(endpoint.headers.clone()),
            timeout: endpoint.timeout.unwrap_or(config.timeout),
            keys: endpoint.keys.clone(),
            is_private: endpoint.is_private,
        })
    }
}

/// An endpoint's own headers.
struct Headers(HeaderMap);

impl Headers {
    fn parse(object: Option<&str>) -> Result<Headers, String> {
        let object: BTreeMap<String, String> = match object {
            Some(text) => serde_json::from_str(text)
                .map_err(|_| "the endpoint's headers are no object of texts".to_owned())?,
            None => BTreeMap::new(),
        };
        let mut headers = HeaderMap::new();
        for (name, value) in object {
            let parsed = (HeaderName::try_from(&name), HeaderValue::try_from(value));
            let (Ok(key), Ok(value)) = parsed else {
                return Err(format!("the endpoint's header {name:?} is no header"));
            };
            headers.insert(key, value);
        }
        Ok(Headers(headers))
    }

    fn retain_settable(&mut self) {
        for name in NOT_SETTABLE {
            self.0.remove(name);
        }
        // An unsigned delivery must not look like a signed one.
        self.0.remove(WEBHOOK_SIGNATURE);
    }
}

fn seconds_since_1970() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

/// The endpoints of the operator, as the database routes to them.
pub fn operator(endpoints: &[Endpoint]) -> String {
    let document = endpoints.iter().map(|endpoint| {
        let patterns: Vec<String> = endpoint.patterns.iter().map(ToString::to_string).collect();
        let mut object = serde_json::json!({ "name": endpoint.name, "patterns": patterns });
        if let Some(owners) = &endpoint.owners {
            object["owners"] = owners.clone().into();
        }
        if let Some(concurrency) = endpoint.concurrency {
            object["concurrency"] = concurrency.into();
        }
        if let Some(rate) = endpoint.rate {
            object["rate"] = rate.into();
        }
        object
    });
    serde_json::Value::Array(document.collect()).to_string()
}

/// `VERSION-TRACE-PARENT-FLAGS`, as W3C's Trace Context has it.
fn is_traceparent(text: &str) -> bool {
    let fields: Vec<&str> = text.split('-').collect();
    let lengths = [2, 32, 16, 2];
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    fields.len() == lengths.len()
        && fields
            .iter()
            .zip(lengths)
            .all(|(field, length)| field.len() == length && field.chars().all(is_hex))
        && fields[0] != "ff"
        && fields[1..3]
            .iter()
            .all(|field| field.contains(|c| c != '0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn config() -> Config {
        Config::parse("[auth]\nallowed_roles = [\"a\"]\n[deliver]\nrole = \"a\"").unwrap()
    }

    fn delivery() -> Delivery {
        Delivery {
            id: Uuid::from_u128(7),
            attempt: 1,
            owner: None,
            endpoint: "e".to_owned(),
            url: Some("https://example.com/hook".to_owned()),
            headers: None,
            timeout: None,
            secrets: vec!["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned()],
            action_type: "task:created".to_owned(),
            payload: Some(r#"{"n": 1e400}"#.to_owned()),
            raw_payload: None,
            content_type: None,
            traceparent: None,
            tracestate: None,
        }
    }

    #[track_caller]
    fn request(mut delivery: Delivery) -> Result<Request, String> {
        delivery.request(config().deliver.as_ref().unwrap())
    }

    #[test]
    fn a_request_carries_the_payload_byte_for_byte_and_its_signature() {
        let request = request(delivery()).unwrap();
        assert_eq!(request.body, br#"{"n": 1e400}"#);
        assert_eq!(
            request.headers["webhook-id"],
            Uuid::from_u128(7).to_string()
        );
        assert_eq!(request.headers["content-type"], "application/json");
        assert_eq!(request.headers["recur-action-type"], "task:created");
        let webhook = standardwebhooks::Webhook::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        webhook
            .unwrap()
            .verify(&request.body, &request.headers)
            .unwrap();
        assert!(!request.is_private);
    }

    #[test]
    fn headers_of_an_endpoint_never_replace_those_of_the_delivery() {
        let mut given = delivery();
        given.headers = Some(
            r#"{"Host": "internal", "Content-Length": "0", "Transfer-Encoding": "chunked", "webhook-id": "x",
                "Webhook-Signature": "v1,x", "authorization": "Bearer x", "content-type": "text/plain"}"#
                .to_owned(),
        );
        given.secrets.clear();
        let headers = request(given).unwrap().headers;
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        let expected = [
            "authorization",
            "content-type",
            "recur-action-type",
            "webhook-id",
            "webhook-timestamp",
        ];
        assert_eq!(names, expected);
        assert_eq!(headers["content-type"], "application/json");
        for wrong in [
            r#"{"a b": "c"}"#,
            r#"{"a": "b\nc: d"}"#,
            r#"{"a": 1}"#,
            "[]",
        ] {
            let mut given = delivery();
            given.headers = Some(wrong.to_owned());
            assert!(request(given).is_err(), "{wrong}");
        }
    }

    #[test]
    fn traces_are_passed_through_where_they_are_ones() {
        const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let traced = |parent: &str| {
            let mut given = delivery();
            given.traceparent = Some(parent.to_owned());
            given.tracestate = Some("vendor=1".to_owned());
            request(given).unwrap().headers
        };
        assert_eq!(traced(PARENT)["traceparent"], PARENT);
        assert_eq!(traced(PARENT)["tracestate"], "vendor=1");
        for wrong in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nx: y",
        ] {
            let headers = traced(wrong);
            assert!(!headers.contains_key("traceparent") && !headers.contains_key("tracestate"));
        }
    }

    #[test]
    fn what_can_not_be_sent_says_why() {
        for (url, endpoint, expected) in [
            (
                Some("not a url"),
                "e",
                "the endpoint's URL: relative URL without a base",
            ),
            (
                Some("not a url"),
                "operator:e",
                "the endpoint's URL: relative URL without a base",
            ),
            (None, "e", "the endpoint's URL: relative URL without a base"),
            (
                None,
                "operator:gone",
                "endpoint \"operator:gone\" is not configured here",
            ),
        ] {
            let mut given = delivery();
            given.url = url.map(str::to_owned);
            given.endpoint = endpoint.to_owned();
            assert_eq!(request(given).err().unwrap(), expected);
        }
        let mut given = delivery();
        given.secrets = vec!["hunter2".to_owned()];
        let error = request(given).err().unwrap();
        assert_eq!(error, "the endpoint's secret: a secret begins with whsec_");
    }
}
