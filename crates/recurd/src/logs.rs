//! Logs: one JSON object a line, or text for people.

use crate::config::{Config, LogFormat};
use tracing_subscriber::EnvFilter;

pub fn start(config: &Config) {
    let filter = EnvFilter::try_new(&config.log.filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // Where a logger is installed already, as in tests, it stays.
    let _ = match config.log.format {
        LogFormat::Json => logs.json().flatten_event(true).try_init().is_ok(),
        LogFormat::Text => logs.with_ansi(false).try_init().is_ok(),
    };
}
