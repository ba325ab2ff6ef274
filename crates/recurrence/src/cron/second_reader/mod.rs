//! The second reader of cron expressions: croner's parser.
//!
//! A text is stored only where two independent readers understand the same by it. croner reads the
//! text as written and its canonical form. Its readings are compared with this crate's field by
//! field ([`fields`]), then by the first occurrences in UTC ([`occurrences`]). A difference that an
//! error of croner explains ([`known_errors`]) is ignored; any other refuses the text.
//!
//! No search of this crate uses croner. The comparison reads no clock, and its work is bounded: croner
//! walks at most [`occurrences::REACH`] for each of a few occurrences.

mod fields;
mod known_errors;
mod occurrences;
#[cfg(test)]
mod tests;

use std::str::FromStr;

use croner::Cron;

use super::CronSpec;
use crate::error::ScheduleError;
use crate::text::excerpt;
use fields::Fields;
use known_errors::KnownError;

/// The result of the comparison.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Both readers understand the same.
    Agreed,
    /// Both readers understand the same once these errors of croner are avoided.
    Explained(Vec<KnownError>),
    /// The readers differ, and no known error of croner explains it.
    Refuted(Disagreement),
}

/// The first difference between the two readings.
#[derive(Debug, PartialEq, Eq)]
struct Disagreement {
    /// What is compared: a field, or an occurrence.
    subject: &'static str,
    ours: String,
    croners: String,
}

/// Refuses an expression that croner understands in another way than this crate does. `written` is
/// the text that the expression was read from.
pub(crate) fn confirm(written: &str, cron: &CronSpec) -> Result<(), ScheduleError> {
    match judge(written, cron) {
        Verdict::Agreed | Verdict::Explained(_) => Ok(()),
        Verdict::Refuted(disagreement) => Err(refuse(written, &disagreement)),
    }
}

fn refuse(written: &str, disagreement: &Disagreement) -> ScheduleError {
    let Disagreement {
        subject,
        ours,
        croners,
    } = disagreement;
    ScheduleError::new(format!(
        "cron expression \"{}\" has two readings, expected one: {subject} is {} to this reader and {} to croner",
        excerpt(written),
        excerpt(ours),
        excerpt(croners),
    ))
    .with_hint("Write it in another way, and report it: one of the two readers has an error.")
}

fn judge(written: &str, cron: &CronSpec) -> Verdict {
    let canonical = cron.to_string();
    if let Err(disagreement) = compare(&canonical, cron) {
        return judge_rewritten(cron, disagreement);
    }
    // Nicknames are words of a table, not expressions.
    let is_expression = written.contains(|c: char| c.is_ascii_whitespace());
    if !is_expression || written.eq_ignore_ascii_case(&canonical) || is_of_pg_cron(written) {
        return Verdict::Agreed;
    }
    match read(written).and_then(|theirs| compare_fields(cron, &theirs)) {
        Ok(()) => Verdict::Agreed,
        Err(disagreement) => {
            explain(known_errors::in_text(written)).unwrap_or(Verdict::Refuted(disagreement))
        }
    }
}

/// The verdict on an expression whose canonical text the readers disagree about. The text as written
/// would show the same error, so it is not compared.
fn judge_rewritten(cron: &CronSpec, disagreement: Disagreement) -> Verdict {
    let (rewritten, avoided) = known_errors::avoid(cron);
    match explain(avoided) {
        None => Verdict::Refuted(disagreement),
        Some(explained) => match compare(&rewritten.to_string(), &rewritten) {
            Ok(()) => explained,
            Err(disagreement) => Verdict::Refuted(disagreement),
        },
    }
}

/// Whether croner has no such text: pg_cron's `$` for the last day, and `*` as an item of a list.
fn is_of_pg_cron(written: &str) -> bool {
    written.contains('$') || written.contains("*,") || written.contains(",*")
}

fn explain(errors: Vec<KnownError>) -> Option<Verdict> {
    (!errors.is_empty()).then_some(Verdict::Explained(errors))
}

/// Reads a text with croner, and compares the fields and the first occurrences.
fn compare(text: &str, ours: &CronSpec) -> Result<(), Disagreement> {
    let theirs = read(text)?;
    compare_fields(ours, &theirs)?;
    occurrences::compare(ours, &theirs)
}

fn read(text: &str) -> Result<Cron, Disagreement> {
    Cron::from_str(text).map_err(|error| Disagreement {
        subject: "the text",
        ours: "valid".to_owned(),
        croners: format!("invalid ({error})"),
    })
}

fn compare_fields(ours: &CronSpec, theirs: &Cron) -> Result<(), Disagreement> {
    Fields::of_spec(ours).compare(&Fields::of_croner(&theirs.pattern))?;
    fields::compare_years(ours, &theirs.pattern)
}
