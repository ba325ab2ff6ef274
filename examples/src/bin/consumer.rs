//! A consumer in Rust: prints mails and reports instead of sending them.
//!
//! Usage: consumer "host=… dbname=…"
//!
//! Environment, all optional: CONSUMER (its name), CONCURRENCY, LEASE, POLL and GRACE (seconds), LISTEN=no (only polls,
//! as is needed behind a pooler in transaction mode).

use recur_client::{Builder, Completion, Consumer, Failure, Job};
use serde_json::json;
use std::error::Error;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

/// Mails the payload's `to`; takes as long as its `seconds` say.
async fn email(job: Job) -> Result<Completion, Failure> {
    let payload = &job.dispatch.payload;
    // Another attempt would find the same payload.
    let to = payload["to"]
        .as_str()
        .ok_or_else(|| Failure::permanent("the payload has no \"to\""))?;
    let seconds = payload["seconds"].as_f64().unwrap_or(0.0);
    tokio::select! {
        () = tokio::time::sleep(Duration::try_from_secs_f64(seconds)?) => {} // the work
        () = job.cancelled() => return Err(Failure::new("stopped on request")),
    }
    println!("mail to {to}{}", details(&job));
    Ok(Completion::result(json!({ "sent_to": to })))
}

/// Makes the report that is due, for the payload's `to`.
async fn report(job: Job) -> Result<(), Failure> {
    let to = job.dispatch.payload["to"].as_str().unwrap_or("all");
    println!("report for {to}{}", details(&job));
    Ok(())
}

fn details(job: &Job) -> String {
    let dispatch = &job.dispatch;
    let subject = dispatch.subject.as_deref().unwrap_or("none");
    format!(
        " (due {}, tenant {}, subject {subject}, attempt {})",
        dispatch.scheduled_at, dispatch.tenant, dispatch.attempt
    )
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    match run() {
        Ok(()) => {
            println!("stopped");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("consumer: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let consumer = consumer()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let result = runtime.block_on(consumer.run());
    // A name lookup that hangs in a thread must not delay the end.
    runtime.shutdown_background();
    Ok(result?)
}

fn consumer() -> Result<Builder, Box<dyn Error>> {
    let connection = std::env::args()
        .nth(1)
        .ok_or("usage: consumer \"host=… dbname=…\"")?;
    let seconds = |name, default| -> Result<Duration, Box<dyn Error>> {
        Ok(Duration::try_from_secs_f64(setting(name, default)?)?)
    };
    let consumer = Consumer::builder(connection)
        .name(setting("CONSUMER", "rust".to_owned())?)
        .providers(["mailer"])
        .handler("email", email)
        .handler("report", report)
        .concurrency(setting("CONCURRENCY", 4)?)
        .lease(seconds("LEASE", 60.0)?)
        .grace(seconds("GRACE", 20.0)?);
    let poll = seconds("POLL", 10.0)?;
    Ok(match setting("LISTEN", "yes".to_owned())?.as_str() {
        "no" => consumer.polling(poll),
        _ => consumer.poll_every(poll),
    })
}

/// The value of an environment variable.
fn setting<T: FromStr>(name: &str, default: T) -> Result<T, String> {
    match std::env::var(name) {
        Ok(text) => text.parse().map_err(|_| {
            format!(
                "{name} is {text:?}, which is no {}",
                std::any::type_name::<T>()
            )
        }),
        Err(_) => Ok(default),
    }
}
