//! `recurd check`: what is missing, with the statement that remedies it.

use crate::state::State;
use std::process::ExitCode;

pub async fn run(state: &State) -> ExitCode {
    let Some(database) = &state.database else {
        println!("no database is configured: set RECURD_DATABASE_URL, or database.url_file");
        return ExitCode::FAILURE;
    };
    if let Err(failure) = database.ping().await {
        println!("the database does not answer: {failure}");
        return ExitCode::FAILURE;
    }
    println!("all is well");
    ExitCode::SUCCESS
}
