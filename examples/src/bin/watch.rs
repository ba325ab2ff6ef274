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

/// Where and when a dispatch is due, as people there would say it.
const DETAILS: &str = "
    SELECT a.name,
           a.timezone::text,
           to_char(d.scheduled_at AT TIME ZONE a.timezone, 'Dy HH24:MI:SS') AS local_time
      FROM recur.dispatches AS d
      JOIN recur.recurring_actions AS a ON a.id = d.action_id
     WHERE d.id = $1";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let connection = arguments
        .next()
        .ok_or("usage: watch \"host=… dbname=…\" [SECONDS]")?;
    let seconds = arguments.next().map_or(Ok(15), |text| text.parse())?;
    let until = Instant::now() + Duration::from_secs(seconds);

    // One session listens, the other asks: a query would delay what is heard.
    let mut listener = Client::connect(&connection, NoTls)?;
    let mut session = Client::connect(&connection, NoTls)?;
    listener.batch_execute("LISTEN recur")?;

    println!(
        "{:<12}  {:<18}  {:<18}  {:<13}  {:>9}",
        "heard (UTC)", "action", "time zone", "due there", "late"
    );
    println!("{}", "─".repeat(78));
    let mut heard = 0;
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
        // Large batches are announced as a count per provider: then there is no id to look up.
        let (Some(id), Some(due)) = (message["id"].as_str(), message["scheduled_at"].as_str())
        else {
            println!("{:<12}  {message}", now.format("%H:%M:%S%.3f"));
            continue;
        };
        let id: Uuid = id.parse()?;
        let due = DateTime::parse_from_rfc3339(due)?.with_timezone(&Utc);
        let Some(row) = session.query_opt(DETAILS, &[&id])? else {
            continue;
        };
        println!(
            "{:<12}  {:<18}  {:<18}  {:<13}  {:>6.1} ms",
            now.format("%H:%M:%S%.3f").to_string(),
            row.get::<_, String>("name"),
            row.get::<_, String>("timezone"),
            row.get::<_, String>("local_time"),
            (now - due).num_microseconds().unwrap_or(0) as f64 / 1000.0,
        );
        heard += 1;
    }
    println!("{}", "─".repeat(78));
    println!("{heard} dispatches heard in {seconds} seconds");
    Ok(())
}
