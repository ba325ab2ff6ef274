//! How late does an occurrence fire? One action a second on an idle server with default settings.
//!
//! Lateness is the time from the due instant to the commit of its dispatch, by the server's own commit timestamps,
//! and to the arrival of the NOTIFY in a client.

use chrono::{DateTime, Utc};
use pg_recur_tests::Cluster;

const OCCURRENCES: usize = 100;

fn main() {
    let cluster = Cluster::with(
        "shared_preload_libraries = 'pg_recur'\nfsync = on\ntrack_commit_timestamp = on\nrecur.check_interval = '5s'",
    );
    let mut session = cluster.database("bench");
    let mut listener = cluster.session("bench");
    listener.batch("LISTEN recur");
    session.execute(
        "SELECT recur.create('tick', '* * * * * *', 'bench', 'noop')",
        &[],
    );

    let mut heard = Vec::with_capacity(OCCURRENCES);
    // The first two also pay for preparing queries and warming caches.
    for number in 0..OCCURRENCES + 2 {
        let due = listener.notification()["scheduled_at"]
            .as_str()
            .map(|text| text.parse::<DateTime<Utc>>());
        let now = Utc::now();
        if number >= 2 {
            let due = due.expect("a single dispatch").expect("a time");
            heard.push(millis(now - due));
        }
        if number % 10 == 0 {
            eprintln!("{number} of {OCCURRENCES}");
        }
    }
    let committed = session
        .rows(
            "SELECT extract(epoch FROM pg_xact_commit_timestamp(xmin) - scheduled_at)::float8 * 1000
               FROM recur.dispatches ORDER BY scheduled_at OFFSET 2",
            &[],
        )
        .iter()
        .map(|row| row.get(0))
        .collect();

    println!("lateness of {OCCURRENCES} one-second occurrences, in milliseconds");
    println!("{:<22} {:>8} {:>8} {:>8}", "", "median", "p99", "max");
    report("dispatch committed", committed);
    report("NOTIFY received", heard);
}

fn millis(duration: chrono::TimeDelta) -> f64 {
    duration.num_microseconds().unwrap_or(i64::MAX) as f64 / 1000.0
}

fn report(what: &str, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    let quantile = |q: f64| values[((values.len() - 1) as f64 * q).round() as usize];
    println!(
        "{what:<22} {:>8.2} {:>8.2} {:>8.2}",
        quantile(0.5),
        quantile(0.99),
        quantile(1.0)
    );
}
