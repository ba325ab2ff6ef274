//! Lists of columns that stand in more than one place.

use crate::finding::Finding;
use crate::rust::{self, Tests};
use crate::sql::{self, Kind};
use crate::tree::{SourceFile, Tree};
use std::collections::{HashMap, HashSet};

/// Shorter lists happen to be alike.
const SHORTEST: usize = 8;

/// Columns that follow each other, separated by commas.
struct Run<'a> {
    path: &'a str,
    columns: Vec<(String, usize)>,
}

pub fn check(tree: &Tree) -> Vec<Finding> {
    let columns = known_columns(tree);
    let mut findings = Vec::new();
    let mut runs = Vec::new();
    for file in &tree.files {
        match file.kind() {
            "sql" if file.path.starts_with("sql/") => {
                collect(&file.path, &sql_items(&file.text, 1), &columns, &mut runs);
            }
            "rs" if file.path.starts_with("src/") => match rust_items(file) {
                Ok(sequences) => {
                    for items in sequences {
                        collect(&file.path, &items, &columns, &mut runs);
                    }
                }
                Err(finding) => findings.push(finding),
            },
            _ => {}
        }
    }
    findings.extend(repetitions(&runs));
    findings
}

/// Where a run repeats columns of an earlier place.
fn repetitions(runs: &[Run]) -> Vec<Finding> {
    let mut first_seen: HashMap<Vec<&str>, (usize, usize)> = HashMap::new();
    let mut findings = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let names: Vec<&str> = run.columns.iter().map(|(name, _)| name.as_str()).collect();
        let mut reported_to = 0;
        for (start, window) in names.windows(SHORTEST).enumerate() {
            let (other, offset) = *first_seen.entry(window.to_vec()).or_insert((index, start));
            if (other, offset) == (index, start) || start < reported_to {
                continue;
            }
            let earlier = &runs[other].columns[offset..];
            let length = names[start..]
                .iter()
                .zip(earlier)
                .take_while(|(name, (earlier, _))| *name == earlier)
                .count();
            reported_to = start + length;
            let message = format!(
                "the {length} columns {} … {} stand at {}:{} already",
                names[start],
                names[reported_to - 1],
                runs[other].path,
                earlier[0].1
            );
            findings.push(Finding::new(run.path, run.columns[start].1, message));
        }
    }
    findings
}

/// The columns of the tables that hold dispatches and definitions.
fn known_columns(tree: &Tree) -> HashSet<String> {
    let mut columns = HashSet::new();
    for file in tree
        .of_kind(&["sql"])
        .filter(|file| file.path.starts_with("sql/"))
    {
        let tokens = sql::tokenize(&file.text);
        for at in 0..tokens.len() {
            let opening = tokens[at..]
                .iter()
                .take(9)
                .position(|token| token.is_char("("));
            if !tokens[at].is("table") || at == 0 || tokens[at - 1].text == "ON" {
                continue;
            }
            let Some(opening) = opening else { continue };
            let name = &tokens[at + opening - 1].text;
            if ["dispatch", "definition", "action"]
                .iter()
                .any(|part| name.contains(part))
            {
                columns.extend(columns_of(&tokens[at + opening + 1..]));
            }
        }
    }
    columns
}

/// The first word of each entry of a CREATE TABLE, up to its closing parenthesis.
fn columns_of(tokens: &[sql::Token]) -> Vec<String> {
    const NOT_COLUMNS: [&str; 7] = [
        "constraint",
        "primary",
        "unique",
        "check",
        "foreign",
        "exclude",
        "like",
    ];
    let mut columns = Vec::new();
    let mut depth = 0;
    let mut starts = true;
    for token in tokens {
        if starts && token.kind == Kind::Word && !NOT_COLUMNS.iter().any(|word| token.is(word)) {
            columns.push(token.text.clone());
        }
        starts = false;
        match token.text.as_str() {
            "(" if token.kind == Kind::Other => depth += 1,
            ")" if token.kind == Kind::Other && depth == 0 => break,
            ")" if token.kind == Kind::Other => depth -= 1,
            "," if token.kind == Kind::Other && depth == 0 => starts = true,
            _ => {}
        }
    }
    columns
}

/// What a list is made of.
enum Item {
    /// A name or a string, with its line.
    Name(String, usize),
    Comma,
    /// The dot between a name and its qualifier.
    Dot,
    /// What a list can begin after.
    Opening,
    /// What a list can end before.
    Closing,
    /// Part of an expression.
    Other,
}

fn sql_items(text: &str, first_line: usize) -> Vec<Item> {
    let line = |token: &sql::Token| first_line + token.line - 1;
    let item = |token: &sql::Token| match (&token.kind, token.text.as_str()) {
        (Kind::Word | Kind::Text, name) => Item::Name(name.to_owned(), line(token)),
        (Kind::Other, ",") => Item::Comma,
        (Kind::Other, ".") => Item::Dot,
        (Kind::Other, "(" | "[") => Item::Opening,
        (Kind::Other, ")" | "]" | ";") | (Kind::Dollar, _) => Item::Closing,
        _ => Item::Other,
    };
    sql::tokenize(text).iter().map(item).collect()
}

/// The lists of a Rust file: those of each group of tokens, and those inside each string.
fn rust_items(file: &SourceFile) -> Result<Vec<Vec<Item>>, Finding> {
    let tokens = rust::parse(file, Tests::Dropped)?;
    let mut sequences = Vec::new();
    rust::each_level(&tokens, &mut |level| {
        let mut items = vec![Item::Opening];
        for token in level {
            items.push(match token {
                rust::Token::Word { text, line } => Item::Name(text.clone(), *line),
                rust::Token::Text { text, line } => {
                    sequences.push(sql_items(text, *line));
                    Item::Name(text.clone(), *line)
                }
                rust::Token::Punctuation(',') => Item::Comma,
                rust::Token::Punctuation('.') => Item::Dot,
                rust::Token::Punctuation(';') => Item::Closing,
                _ => Item::Other,
            });
        }
        sequences.push(items);
    });
    Ok(sequences)
}

/// Adds the runs of known columns in these items.
fn collect<'a>(path: &'a str, items: &[Item], columns: &HashSet<String>, runs: &mut Vec<Run<'a>>) {
    let mut run: Vec<(String, usize)> = Vec::new();
    let mut finish = |run: &mut Vec<(String, usize)>| {
        let columns = std::mem::take(run);
        if columns.len() >= SHORTEST {
            runs.push(Run { path, columns });
        }
    };
    for (at, item) in items.iter().enumerate() {
        let Item::Name(name, line) = item else {
            continue;
        };
        let next = items.get(at + 1);
        if matches!(next, Some(Item::Dot)) {
            continue;
        }
        // A name after an operator is the end of an expression, and one before an operator the start.
        let start = start_of(items, at);
        let follows_comma = start > 0 && matches!(items[start - 1], Item::Comma);
        let can_start = start == 0 || !matches!(items[start - 1], Item::Other | Item::Dot);
        if !follows_comma {
            finish(&mut run);
        }
        let ends_item = matches!(
            next,
            None | Some(Item::Comma | Item::Name(..) | Item::Closing)
        );
        if columns.contains(name) && can_start && ends_item {
            run.push((name.clone(), *line));
        } else {
            finish(&mut run);
        }
        if !matches!(next, Some(Item::Comma)) {
            finish(&mut run);
        }
    }
    finish(&mut run);
}

/// Where the qualified name that ends here starts.
fn start_of(items: &[Item], mut at: usize) -> usize {
    while at >= 2
        && matches!(
            (&items[at - 1], &items[at - 2]),
            (Item::Dot, Item::Name(..))
        )
    {
        at -= 2;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
CREATE TABLE recur.live_dispatches (
    id uuid NOT NULL,
    a numeric(3, 1), b int, c int, d int, e int, f int, g int, h int,
    CONSTRAINT x CHECK (a IN (1, 2)),
    LIKE y
);";

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut all = vec![("sql/0_schema.sql", TABLE)];
        all.extend_from_slice(files);
        check(&Tree::of(&all))
            .into_iter()
            .map(|finding| finding.to_string())
            .collect()
    }

    #[test]
    fn columns_are_read_from_the_table() {
        let mut columns: Vec<String> = known_columns(&Tree::of(&[("sql/a.sql", TABLE)]))
            .into_iter()
            .collect();
        columns.sort();
        assert_eq!(columns, ["a", "b", "c", "d", "e", "f", "g", "h", "id"]);
    }

    #[test]
    fn a_repeated_list_is_found_with_and_without_qualifiers() {
        let found = found(&[
            ("sql/a.sql", "SELECT id, a, b, c, d, e, f, g, h FROM t;"),
            (
                "sql/b.sql",
                "INSERT INTO t\nSELECT 1, x.a, x.b, x.c, x.d, x.e, x.f, x.g, x.h, 2;",
            ),
        ]);
        assert_eq!(
            found,
            ["sql/b.sql:2: the 8 columns a … h stand at sql/a.sql:1 already"]
        );
    }

    #[test]
    fn a_list_twice_in_one_file_is_found_once() {
        let found = found(&[(
            "sql/a.sql",
            "SELECT id, a, b, c, d, e, f, g, h FROM t\nUNION ALL\nSELECT id, a, b, c, d, e, f, g, h FROM u;",
        )]);
        assert_eq!(
            found,
            ["sql/a.sql:3: the 9 columns id … h stand at sql/a.sql:1 already"]
        );
    }

    #[test]
    fn a_list_in_a_rust_string_or_array_is_found() {
        let found = found(&[
            ("sql/a.sql", "SELECT a, b, c, d, e, f, g, h FROM t;"),
            (
                "src/a.rs",
                "const A: &str = \"a, b, c, d, e, f, g, h\";\n\
                 const B: [&str; 8] = [\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\", \"h\"];",
            ),
        ]);
        assert_eq!(
            found,
            [
                "src/a.rs:1: the 8 columns a … h stand at sql/a.sql:1 already",
                "src/a.rs:2: the 8 columns a … h stand at sql/a.sql:1 already",
            ]
        );
    }

    #[test]
    fn short_lists_expressions_and_other_names_are_not() {
        assert_eq!(
            found(&[
                (
                    "sql/a.sql",
                    "SELECT a, b, c, d, e, f, g FROM t; SELECT a, b, c, d, e, f, g FROM t;"
                ),
                (
                    "sql/b.sql",
                    "SELECT a, b, c, d, e + 1, e, f, g, h; SELECT a, b, c, d, e::text, e, f, g, h;"
                ),
                (
                    "sql/d.sql",
                    "SELECT 1 + a, b, c, d, e, f, g, h; SELECT 2 + a, b, c, d, e, f, g, h;",
                ),
                (
                    "sql/e.sql",
                    "SELECT a, b, c, d, e, f, g, h + 1; SELECT a, b, c, d, e, f, g, h + 2;",
                ),
                (
                    "sql/c.sql",
                    "SELECT p, q, r, s, t, u, v, w; SELECT p, q, r, s, t, u, v, w;"
                ),
            ]),
            [""; 0]
        );
    }
}
