use http::HeaderMap;
use standardwebhooks::{Webhook, WebhookError};

/// Was the request signed with this secret, less than five minutes ago?
pub fn verify(secret: &str, headers: &HeaderMap, body: &[u8]) -> Result<(), WebhookError> {
    Webhook::new(secret)?.verify(body, headers)
}
