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
    let state = State::new(config);
    match arguments.command {
        Command::Serve { deliver } => finish(until_signalled(&state, serve(&state, deliver)).await),
        Command::Deliver => finish(until_signalled(&state, deliver(&state)).await),
        Command::Check => check::run(&state).await,
        Command::Openapi => ExitCode::SUCCESS,
    }
}

/// A signal stops what runs, which then ends by itself.
async fn until_signalled(
    state: &State,
    runs: impl Future<Output = Result<(), String>>,
) -> Result<(), String> {
    let signalled = async {
        server::signalled().await;
        state.stop.cancel();
        std::future::pending().await
    };
    let result = tokio::select! {
        result = runs => result,
        never = signalled => never,
    };
    state.calls.finish().await;
    result
}

async fn serve(state: &State, delivers: bool) -> Result<(), String> {
    if !delivers {
        return server::serve(state).await;
    }
    // Where one of them can't start, neither goes on.
    tokio::try_join!(server::serve(state), deliver(state)).map(drop)
}

async fn deliver(state: &State) -> Result<(), String> {
    webhooks::deliver::run(state, state.stop.clone()).await
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
