//! recurd: HTTP beside pg_recur. It keeps no state: the database decides, authorizes and remembers.

mod api;
mod auth;
mod check;
mod config;
mod db;
mod health;
mod logs;
mod metrics;
mod server;
mod state;
mod webhooks;

use clap::{Parser, Subcommand};
use config::Config;
use state::State;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio_util::sync::CancellationToken;

#[derive(Parser)]
#[command(name = "recurd", version, about = "HTTP beside pg_recur")]
struct Arguments {
    /// The configuration, a TOML file. Without one, all that is configured comes from the environment.
    #[arg(long, short, env = "RECURD_CONFIG", global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves the API, health and metrics.
    Serve {
        /// Delivers webhooks as well.
        #[arg(long)]
        deliver: bool,
    },
    /// Delivers webhooks.
    Deliver,
    /// Verifies the configuration and the rights of its roles, and says what is missing.
    Check,
    /// Prints the OpenAPI document of the API.
    Openapi,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Command::Openapi = arguments.command {
        print!("{}", api::openapi::text());
        return ExitCode::SUCCESS;
    }
    // Libraries find the provider here. A second installation, which can't happen, would be refused.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = match Config::read(arguments.config.as_deref()) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    logs::start(&config);
    match arguments.command {
        Command::Serve { deliver } => finish(serve(State::new(config), deliver).await),
        Command::Deliver => finish(deliver(&State::new(config)).await),
        Command::Check => check::run(&State::new(config)).await,
        Command::Openapi => ExitCode::SUCCESS,
    }
}

async fn serve(state: State, delivers: bool) -> Result<(), String> {
    if !delivers {
        return server::serve(state).await;
    }
    // Where one of them can't start, neither goes on.
    tokio::try_join!(server::serve(state.clone()), deliver(&state)).map(drop)
}

async fn deliver(state: &State) -> Result<(), String> {
    let stop = CancellationToken::new();
    let signalled = async {
        server::stopped().await;
        stop.cancel();
        std::future::pending().await
    };
    tokio::select! {
        delivered = webhooks::deliver::run(state, stop.clone()) => delivered,
        never = signalled => never,
    }
}

fn finish(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
