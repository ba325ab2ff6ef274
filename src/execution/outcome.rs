//! What a run leaves behind, as JSON and as text.

use crate::pg::catch::ServerError;
use crate::pg::command::Completion;
use crate::pg::messages::Messages;
use crate::pg::receiver::Kept;
use recur_core::report::stored_reason;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Of more statements than this, only the number is kept.
const MOST_STATEMENTS: usize = 100;

/// What is known of a run when it has ended.
#[derive(Default)]
pub struct Observed {
    pub statements: Vec<Completion>,
    pub statement_count: usize,
    pub rows: Option<Kept>,
    pub messages: Messages,
    pub duration: Duration,
    /// Has the run committed something? It can't be undone then.
    pub has_committed: bool,
}

impl Observed {
    pub fn add(&mut self, completion: Completion) {
        self.statement_count += 1;
        if self.statements.len() < MOST_STATEMENTS {
            self.statements.push(completion);
        }
    }

    /// The result of a command, as JSON. `delivery` says how often its effects happen. The rows are not decoded: no
    /// number loses a digit.
    pub fn result(&self, delivery: &str) -> String {
        let mut result = Map::new();
        let commands = self
            .statements
            .iter()
            .map(|one| json!({ "tag": one.tag, "rows": one.rows }));
        result.insert("commands".into(), commands.collect());
        if self.statement_count > self.statements.len() {
            result.insert("command_count".into(), self.statement_count.into());
        }
        self.add_circumstances(&mut result);
        result.insert("delivery".into(), delivery.into());
        let Some(kept) = &self.rows else {
            return Value::Object(result).to_string();
        };
        result.insert("row_count".into(), kept.count.into());
        if kept.is_cut {
            result.insert("rows_are_cut".into(), true.into());
        }
        let rest = Value::Object(result).to_string();
        format!("{{\"rows\":[{}],{}", kept.rows.join(","), &rest[1..])
    }

    /// What is kept of a run that has failed.
    pub fn failure(&self, error: &ServerError) -> Value {
        let mut result = Map::new();
        let fields = [
            ("sqlstate", Some(error.sqlstate.clone())),
            ("message", Some(error.message.clone())),
            ("detail", error.detail.clone()),
            ("hint", error.hint.clone()),
            ("context", error.context.clone()),
            ("query", error.internal_query.clone()),
        ];
        let mut shown: Map<String, Value> = fields
            .into_iter()
            .filter_map(|(name, value)| {
                Some((name.to_owned(), stored_reason(Some(&value?)).into()))
            })
            .collect();
        let position = error.position.or(error.internal_position);
        if let Some(position) = position {
            shown.insert("position".into(), position.into());
        }
        result.insert("error".into(), Value::Object(shown));
        self.add_circumstances(&mut result);
        Value::Object(result)
    }

    fn add_circumstances(&self, result: &mut Map<String, Value>) {
        let milliseconds = self.duration.as_micros() as f64 / 1000.0;
        result.insert("duration_ms".into(), json!(milliseconds));
        if !self.messages.kept.is_empty() {
            let messages = self.messages.kept.iter();
            let shown = messages.map(|one| json!({ "severity": one.severity, "text": one.text }));
            result.insert("messages".into(), shown.collect());
        }
        if self.messages.omitted > 0 {
            result.insert("messages_omitted".into(), self.messages.omitted.into());
        }
    }
}

/// An error as `psql` shows it, for `error` and `errors` of the dispatch.
pub fn reason(error: &ServerError) -> String {
    let mut lines = vec![format!("{} (SQLSTATE {})", error.message, error.sqlstate)];
    let parts = [
        ("DETAIL", &error.detail),
        ("HINT", &error.hint),
        ("QUERY", &error.internal_query),
        ("CONTEXT", &error.context),
    ];
    for (name, part) in parts {
        if let Some(part) = part {
            lines.push(format!("{name}: {part}"));
        }
    }
    if let Some(position) = error.position.or(error.internal_position) {
        lines.push(format!("POSITION: {position}"));
    }
    lines.join("\n")
}
