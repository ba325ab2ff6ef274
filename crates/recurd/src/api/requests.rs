//! What all requests have: an id, a body of limited size, a rate.

use super::problem::Problem;
use crate::config::{Limits, Role};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::num::NonZeroU32;

const HEADER: &str = "x-request-id";
const LONGEST_ID: usize = 128;

/// What the request is called in logs and answers: as its sender calls it, or a new name.
pub struct RequestId(String);

impl RequestId {
    pub fn of(headers: &HeaderMap) -> RequestId {
        let given = headers.get(HEADER).and_then(|value| value.to_str().ok());
        let is_plain = |text: &&str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(&byte);
            (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(plain)
        };
        match given.filter(is_plain) {
            Some(text) => RequestId(text.to_owned()),
            None => RequestId(uuid::Uuid::new_v4().to_string()),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn mark(&self, mut response: Response) -> Response {
        if let Ok(value) = HeaderValue::try_from(&self.0) {
            response.headers_mut().insert(HEADER, value);
        }
        response
    }
}

pub async fn body(body: Body, limit: usize) -> Result<axum::body::Bytes, Problem> {
    use axum::body::HttpBody;
    let too_large = || {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body has more than {limit} bytes"),
        )
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    axum::body::to_bytes(body, limit).await.map_err(|error| {
        let source = std::error::Error::source(&error);
        if source.is_some_and(|source| source.is::<http_body_util::LengthLimitError>()) {
            too_large()
        } else {
            Problem::bad_request("the body could not be read")
        }
    })
}

/// How many requests each role may make.
pub struct Limiter {
    roles: DefaultKeyedRateLimiter<Role>,
    clock: DefaultClock,
}

impl Limiter {
    pub fn new(limits: &Limits) -> Limiter {
        let positive = |number: u32| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(positive(limits.requests_per_second))
            .allow_burst(positive(limits.burst));
        Limiter {
            roles: RateLimiter::keyed(quota),
            clock: DefaultClock::default(),
        }
    }

    pub fn admit(&self, role: &Role) -> Result<(), Problem> {
        self.roles.check_key(role).map_err(|refusal| {
            let wait = refusal.wait_time_from(self.clock.now());
            Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "the role makes more requests than are allowed",
            )
            .retry_after(wait.as_secs() + 1)
        })
    }
}
