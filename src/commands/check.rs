//! A command, checked when it is stored: it parses, and can run.

use crate::pg::catch::ServerError;
use crate::pg::error::{SqlError, abbreviated};
use crate::pg::jsonb::Jsonb;
use crate::pg::parse::{self, Statement};
use crate::runtime::environment::environment;
use pgrx::pg_sys;
use pgrx::prelude::*;
use recur_core::action::{Json, check_bytes};
use recur_core::command::{ACTION_TYPE, Command, PROVIDER};

/// Checks what the payload of an SQL action says.
pub fn check_payload(action_type: &str, payload: &Jsonb) -> Result<(), SqlError> {
    if action_type != ACTION_TYPE {
        let problem =
            format!("must be \"{ACTION_TYPE}\" for provider \"{PROVIDER}\", which is reserved");
        return Err(
            SqlError::invalid_argument("action_type", action_type, &problem)
                .with_hint("recur.create_sql makes SQL actions; consumers need another provider."),
        );
    }
    check_bytes("command", payload.size(), &environment())?;
    let command = Command::from_payload(&payload.text())?;
    check_command(&command.text)
}

/// An SQL action runs what its author wrote, and nothing that a caller gives.
pub fn check_override(provider: &str) -> Result<(), SqlError> {
    if provider != PROVIDER {
        return Ok(());
    }
    let problem = "an SQL action runs its own command";
    Err(SqlError::invalid_argument("payload", "…", problem)
        .with_hint("recur.update changes the command; recur.enqueue_sql runs another one once."))
}

fn check_command(text: &str) -> Result<(), SqlError> {
    let statements = parse::statements(text).map_err(|error| syntax_error(text, &error))?;
    if statements.is_empty() {
        return Err(
            SqlError::invalid_argument("command", text, "must not be empty")
                .with_hint("Give one or several SQL statements."),
        );
    }
    let are_several = statements.len() > 1;
    for statement in &statements {
        if let Some(problem) = problem(statement, are_several) {
            return Err(refused(text, statement.position, problem.0).with_hint(problem.1));
        }
    }
    Ok(())
}

/// Why a statement can't run, and the remedy.
fn problem(statement: &Statement, are_several: bool) -> Option<(&'static str, &'static str)> {
    use pg_sys::NodeTag::*;
    match statement.tag {
        T_TransactionStmt => Some((
            "must not control transactions",
            "Each run is a transaction of its own. A procedure that is called alone may COMMIT.",
        )),
        T_ListenStmt | T_UnlistenStmt => Some((
            "must not listen for notifications",
            "They would reach no client.",
        )),
        T_CopyStmt if statement.copies_to_client => Some((
            "must not copy from or to the client",
            "There is none. COPY with a file or a program works, for roles that may.",
        )),
        _ if are_several && statement.needs_own_transaction => Some((
            "has a statement that must run alone, outside of a transaction",
            "Several statements are one transaction. Give this statement an action of its own.",
        )),
        _ => None,
    }
}

fn syntax_error(text: &str, error: &ServerError) -> SqlError {
    let position = error
        .position
        .and_then(|position| usize::try_from(position).ok());
    let shown = refused(text, position.unwrap_or(1), &error.message);
    let code = match error.sqlstate.as_str() {
        "42601" => PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
        _ => PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
    };
    match &error.hint {
        Some(hint) => shown.with_hint(hint.as_str()),
        None => shown.with_hint("The command is checked when it is stored; nothing was stored."),
    }
    .with_code(code)
}

/// The error points at the place: the line of the command, and where in it.
fn refused(text: &str, position: usize, problem: &str) -> SqlError {
    let before: String = text.chars().take(position.saturating_sub(1)).collect();
    let line_number = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .map_or(0, |line| line.chars().count())
        + 1;
    let line = text.lines().nth(line_number - 1).unwrap_or_default();
    SqlError::invalid_argument("command", text, problem).with_detail(format!(
        "Line {line_number}, character {column}: {}",
        abbreviated(line)
    ))
}
