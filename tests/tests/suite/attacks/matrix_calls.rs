//! Calls of every function of the extension, made from the catalog.

use pg_recur_tests::{Session, database_error};

pub struct Function {
    pub signature: String,
    /// With its schema.
    pub name: String,
    /// (name, type) of each argument.
    arguments: Vec<(String, String)>,
    pub is_trigger: bool,
    /// Does it only compute, and read no table?
    pub is_immutable: bool,
    /// Does an argument mean an action or a dispatch?
    pub takes_id: bool,
}

/// All functions of both schemas.
pub fn functions(root: &mut Session) -> Vec<Function> {
    let rows = root.rows(
        "SELECT p.oid::regprocedure::text, format('%s.%s', p.pronamespace::regnamespace, p.proname),
                ARRAY(SELECT coalesce(p.proargnames[n], '') FROM generate_series(1, p.pronargs) AS n ORDER BY n),
                ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS a (t, n) ORDER BY n),
                p.prorettype = 'trigger'::regtype, p.provolatile = 'i'
           FROM pg_proc AS p
          WHERE p.pronamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
          ORDER BY 1",
        &[],
    );
    rows.iter()
        .map(|row| {
            let (names, types): (Vec<String>, Vec<String>) = (row.get(2), row.get(3));
            let arguments: Vec<(String, String)> = names.into_iter().zip(types).collect();
            let means_row = |(name, kind): &(String, String)| {
                name == "action" || kind == "uuid" || kind == "uuid[]"
            };
            Function {
                signature: row.get(0),
                name: row.get(1),
                takes_id: arguments.iter().any(means_row),
                arguments,
                is_trigger: row.get(4),
                is_immutable: row.get(5),
            }
        })
        .collect()
}

impl Function {
    /// A call with this id wherever an action or a dispatch is meant, or with NULL for every argument.
    pub fn call(&self, id: Option<&str>) -> String {
        let value = |(name, kind): &(String, String)| {
            let Some(id) = id else {
                // For a constant, the planner would leave out the call of a strict function and the check of rights.
                return format!("(SELECT NULL::{kind})");
            };
            match (name.as_str(), kind.as_str()) {
                ("action", "text") => format!("'{id}'::text"),
                (_, "uuid") => format!("'{id}'::uuid"),
                (_, "uuid[]") => format!("ARRAY['{id}']::uuid[]"),
                ("role", "name") => "'stranger'::name".to_owned(),
                ("level", _) => "'reader'::text".to_owned(),
                ("schedule", _) => "'@daily'::text".to_owned(),
                ("timezone", _) => "'UTC'::text".to_owned(),
                (_, "text") => "'x'::text".to_owned(),
                (_, "text[]") => "ARRAY['x']".to_owned(),
                (_, "jsonb") => "'{\"priority\": 1}'::jsonb".to_owned(),
                (_, "integer[]") => "ARRAY[1]".to_owned(),
                (_, "integer" | "bigint" | "smallint") => format!("1::{kind}"),
                (_, "boolean") => "true".to_owned(),
                (_, "timestamp with time zone") => "now()".to_owned(),
                (_, "interval") => "interval '1 hour'".to_owned(),
                (_, kind) => format!("NULL::{kind}"),
            }
        };
        let (schema, name) = self.name.split_once('.').expect("a schema");
        let arguments: Vec<String> = self.arguments.iter().map(value).collect();
        let call = format!("{schema}.\"{name}\"({})", arguments.join(", "));
        match self.is_trigger {
            true => format!("SELECT {call}"),
            false => format!("SELECT to_jsonb(f)::text FROM {call} AS f"),
        }
    }
}

/// What became of a call.
pub enum Answer {
    Rows(Vec<String>),
    Error { code: String, message: String },
}

/// Calls, and undoes what the call did.
pub fn answer(session: &mut Session, call: &str) -> Answer {
    session.batch("BEGIN");
    let outcome = session.0.query(call, &[]);
    session.batch("ROLLBACK");
    match outcome {
        Ok(rows) => {
            let texts = rows
                .iter()
                .map(|row| row.try_get::<_, String>(0).unwrap_or_default());
            Answer::Rows(texts.collect())
        }
        Err(error) => {
            let (code, message, _) = database_error(&error);
            Answer::Error { code, message }
        }
    }
}

impl Answer {
    pub fn text(&self) -> String {
        match self {
            Answer::Rows(rows) => rows.join("\n"),
            Answer::Error { code, message } => format!("{code} {message}"),
        }
    }

    /// Is the right to call the function missing?
    pub fn is_denied(&self) -> bool {
        matches!(self, Answer::Error { code, message }
                 if code == "42501" && message.starts_with("permission denied for"))
    }

    pub fn is_internal(&self) -> bool {
        matches!(self, Answer::Error { code, .. } if code.starts_with("XX"))
    }

    /// For the page.
    pub fn word(&self) -> &'static str {
        match self {
            _ if self.is_denied() => "denied",
            Answer::Error { code, .. } if code == "P0002" => "no such row",
            Answer::Error { .. } => "refused",
            Answer::Rows(rows) if rows.iter().all(|row| row.is_empty() || row == "null") => {
                "nothing"
            }
            Answer::Rows(_) => "an answer",
        }
    }
}
