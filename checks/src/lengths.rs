//! Lengths: of lines, functions and files.

use crate::finding::Finding;
use crate::rust::{self, Tests, Token};
use crate::sql;
use crate::tree::Tree;
use proc_macro2::Delimiter;

const COLUMNS: usize = 120;
const FUNCTION_LINES: usize = 80;
const FILE_LINES: usize = 500;

pub fn check_width(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.of_kind(&["rs", "sql", "sh", "py", "js", "mjs", "ts"]) {
        for (index, line) in file.text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS {
                findings.push(Finding::new(
                    &file.path,
                    index + 1,
                    format!("{columns} columns"),
                ));
            }
        }
    }
    findings
}

pub fn check_files(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.of_kind(&["rs", "sql"]) {
        let lines = file.text.lines().count();
        if lines > FILE_LINES {
            findings.push(Finding::new(&file.path, lines, format!("{lines} lines")));
        }
    }
    findings
}

pub fn check_functions(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.of_kind(&["rs", "sql"]) {
        let functions = if file.kind() == "sql" {
            sql::functions(&sql::tokenize(&file.text))
        } else {
            match rust::parse(file, Tests::Kept) {
                Ok(tokens) => rust_functions(&tokens),
                Err(finding) => {
                    findings.push(finding);
                    continue;
                }
            }
        };
        for (name, first, last) in functions {
            let lines = last - first + 1;
            if lines > FUNCTION_LINES {
                let message = format!("the function {name} has {lines} lines");
                findings.push(Finding::new(&file.path, first, message));
            }
        }
    }
    findings
}

/// Name, first line and last line of every function that has a body.
fn rust_functions(tokens: &[Token]) -> Vec<(String, usize, usize)> {
    let mut functions = Vec::new();
    rust::each_level(tokens, &mut |level| {
        for (at, token) in level.iter().enumerate() {
            let (Token::Word { text, line }, Some(name)) =
                (token, level.get(at + 1).and_then(Token::word))
            else {
                continue;
            };
            if text != "fn" {
                continue;
            }
            let body = level[at..]
                .iter()
                .take_while(|token| !token.is_char(';'))
                .find(|token| token.group(Delimiter::Brace).is_some());
            if let Some(Token::Group { last_line, .. }) = body {
                functions.push((name.to_owned(), *line, *last_line));
            }
        }
    });
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> String {
        let body = "    work();\n".repeat(lines - 2);
        format!("trait T {{\nfn declared(&self);\nfn long() {{\n{body}}}\n}}\n")
    }

    #[test]
    fn a_line_is_measured_in_characters() {
        let fits = "é".repeat(120);
        assert_eq!(check_width(&Tree::of(&[("a.rs", &fits)])), []);
        let too_long = format!("\n{fits}x");
        assert_eq!(
            check_width(&Tree::of(&[("a.rs", &too_long), ("a.md", &too_long)])),
            [Finding::new("a.rs", 2, "121 columns")]
        );
    }

    #[test]
    fn a_file_may_have_500_lines() {
        let fits = "\n".repeat(500);
        let too_long = "\n".repeat(501);
        assert_eq!(
            check_files(&Tree::of(&[("a.sql", &fits), ("b.sql", &too_long)])),
            [Finding::new("b.sql", 501, "501 lines")]
        );
    }

    #[test]
    fn a_rust_function_is_measured_from_its_name_to_its_brace() {
        assert_eq!(check_functions(&Tree::of(&[("a.rs", &function(80))])), []);
        assert_eq!(
            check_functions(&Tree::of(&[("a.rs", &function(81))])),
            [Finding::new("a.rs", 3, "the function long has 81 lines")]
        );
    }

    #[test]
    fn a_function_inside_a_macro_is_measured_too() {
        let text = format!("wrap! {{ {} }}", function(90));
        assert_eq!(check_functions(&Tree::of(&[("a.rs", &text)])).len(), 1);
    }

    #[test]
    fn a_sql_function_is_measured_to_the_end_of_its_body() {
        let function = |lines: usize| {
            let body = "    PERFORM 1;\n".repeat(lines - 2);
            format!("CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$\n{body}$$;\n")
        };
        assert_eq!(check_functions(&Tree::of(&[("a.sql", &function(80))])), []);
        assert_eq!(
            check_functions(&Tree::of(&[("a.sql", &function(81))])),
            [Finding::new("a.sql", 1, "the function f has 81 lines")]
        );
    }
}
