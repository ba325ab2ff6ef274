//! Shows dispatches as they arrive through LISTEN: a live table.
//!
//! Usage: watch "host=… dbname=…" [SECONDS]

use chrono::{DateTime, Utc};
use postgres::fallible_iterator::FallibleIterator;
use postgres::{Client, NoTls};
use serde_json::Value;
use std::error::Error;
use std::time::{Duration, Instant};
use uuid::Uuid;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let connection = arguments
        .next()
        .ok_or("usage: watch \"host=… dbname=…\" [SECONDS]")?;
    let seconds = arguments.next().map_or(Ok(15), |text| text.parse())?;
    let until = Instant::now() + Duration::from_secs(seconds);

    // One session listens, the other queries: a query would delay notifications.
    let mut listener = Client::connect(&connection, NoTls)?;
    let mut session = Client::connect(&connection, NoTls)?;
    listener.batch_execute("LISTEN recur")?;

    println!(
        "{:<13}  {:<18}  {:<18}  {:<13}  {:>9}",
        "arrived (UTC)", "action", "time zone", "local time", "late"
    );
    println!("{}", "─".repeat(79));
    let mut arrived = 0;
    let mut notifications = listener.notifications();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let Some(notification) = notifications.timeout_iter(left).next()? else {
            break;
        };
        let now = Utc::now();
        let message: Value = serde_json::from_str(notification.payload())?;
        // A large batch is announced as a count per provider, without ids.
        let (Some(id), Some(due)) = (message["id"].as_str(), message["scheduled_at"].as_str())
        else {
            println!("{:<13}  {message}", now.format("%H:%M:%S%.3f"));
            continue;
        };
        let id: Uuid = id.parse()?;
        let due = DateTime::parse_from_rfc3339(due)?.with_timezone(&Utc);
        let Some(row) = session.query_opt(include_str!("../watch.sql"), &[&id])? else {
            continue;
        };
        println!(
            "{:<13}  {:<18}  {:<18}  {:<13}  {:>6.1} ms",
            now.format("%H:%M:%S%.3f").to_string(),
            row.get::<_, String>("name"),
            row.get::<_, String>("timezone"),
            row.get::<_, String>("local_time"),
            (now - due).num_microseconds().unwrap_or(0) as f64 / 1000.0,
        );
        arrived += 1;
    }
    println!("{}", "─".repeat(79));
    println!("{arrived} dispatches arrived in {seconds} seconds");
    Ok(())
}
