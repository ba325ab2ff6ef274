//! A consumer in Rust: prints mails instead of sending them.
//!
//! Usage: consumer "host=… dbname=…"
//!
//! Environment, all optional: CONSUMER (its name), CONCURRENCY, LEASE, POLL and GRACE (seconds), LISTEN=no (polls only, as is
//! needed behind a pooler in transaction mode).

use recur_client::{Completion, Consumer, Failure};
use serde_json::json;
use std::error::Error;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let connection = std::env::args()
        .nth(1)
        .ok_or("usage: consumer \"host=… dbname=…\"")?;
    let number = |name: &str, otherwise: f64| -> Result<f64, Box<dyn Error>> {
        Ok(std::env::var(name).map_or(Ok(otherwise), |text| text.parse())?)
    };
    let poll = Duration::from_secs_f64(number("POLL", 10.0)?);
    let mut consumer = Consumer::builder(connection)
        .name(std::env::var("CONSUMER").unwrap_or_else(|_| "rust".to_owned()))
        .concurrency(number("CONCURRENCY", 4.0)? as u16)
        .lease(Duration::from_secs_f64(number("LEASE", 60.0)?))
        .grace(Duration::from_secs_f64(number("GRACE", 20.0)?))
        .handler("email", |mut job| async move {
            let payload = job.dispatch.payload.clone();
            let to = payload["to"]
                .as_str()
                .ok_or_else(|| Failure::for_good("the payload has no \"to\""))?
                .to_owned();
            // The work. It stops when somebody asks for it.
            let seconds = payload["seconds"].as_f64().unwrap_or(0.0);
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => {}
                () = job.cancelled() => return Err(Failure::new("stopped on request")),
            }
            println!("mail to {to} (attempt {})", job.dispatch.attempt);
            Ok::<_, Failure>(Completion::result(json!({ "sent_to": to })))
        });
    consumer = match std::env::var("LISTEN").as_deref() {
        Ok("no") => consumer.polling(poll),
        _ => consumer.poll_every(poll),
    };
    consumer.run().await?;
    println!("stopped");
    Ok(())
}
