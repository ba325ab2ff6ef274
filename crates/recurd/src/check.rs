//! `recurd check`: what is missing, with the statement that remedies it.

use crate::config::{Config, Role};
use crate::state::State;
use std::process::ExitCode;

const CHECK: &str = include_str!("../sql/check.sql");

/// A function that recurd calls for itself: (the role, the function, the level that has it).
type Need<'a> = (&'a Role, &'static str, &'static str);

pub async fn run(state: &State) -> ExitCode {
    match problems(state).await {
        Ok(problems) if problems.is_empty() => {
            println!("all is well");
            ExitCode::SUCCESS
        }
        Ok(problems) => {
            for (problem, remedy) in problems {
                println!("{problem}: {remedy};");
            }
            ExitCode::FAILURE
        }
        Err(problem) => {
            println!("{problem}");
            ExitCode::FAILURE
        }
    }
}

async fn problems(state: &State) -> Result<Vec<(String, String)>, String> {
    let Some(database) = &state.database else {
        return Err(
            "no database is configured: set RECURD_DATABASE_URL, or database.url_file".to_owned(),
        );
    };
    let roles: Vec<String> = state
        .config
        .auth
        .allowed()
        .map(|role| role.as_str().to_owned())
        .collect();
    if roles.is_empty() {
        return Err("auth.allowed_roles is empty: nothing but liveness is open".to_owned());
    }
    let needs = needs(&state.config);
    let callers: Vec<&str> = needs.iter().map(|(role, _, _)| role.as_str()).collect();
    let functions: Vec<&str> = needs.iter().map(|(_, function, _)| *function).collect();
    let levels: Vec<&str> = needs.iter().map(|(_, _, level)| *level).collect();
    let rows = database
        .inspect(CHECK, &[&roles, &callers, &functions, &levels])
        .await
        .map_err(|failure| format!("the database does not answer: {failure}"))?;
    Ok(rows
        .iter()
        .map(|row| (row.get("problem"), row.get("remedy")))
        .collect())
}

fn needs(config: &Config) -> Vec<Need<'_>> {
    let metrics = config
        .metrics
        .as_ref()
        .map(|metrics| (&metrics.role, "metrics", "monitor"));
    let process = config
        .process
        .as_ref()
        .map(|process| (&process.role, "tick", "ticker"));
    let deliver = config
        .deliver
        .as_ref()
        .map(|deliver| (&deliver.role, "claim_webhooks", "deliverer"));
    let sources = config
        .sources
        .iter()
        .map(|source| (&source.role, "receive", "author"));
    let own = metrics.into_iter().chain(process).chain(deliver);
    own.chain(sources).collect()
}
