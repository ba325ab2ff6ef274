//! SQL statements in string literals of the extension.

use crate::finding::Finding;
use crate::rust::{self, Tests, Token};
use crate::tree::Tree;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_under("src/") {
        let tokens = match rust::parse(file, Tests::Dropped) {
            Ok(tokens) => tokens,
            Err(finding) => {
                findings.push(finding);
                continue;
            }
        };
        rust::each_level(&tokens, &mut |level| {
            for token in level {
                if let Token::Text { text, line } = token
                    && let Some(statement) = statement(text)
                {
                    let message =
                        format!("a {statement} in a string: it belongs in a file under sql/");
                    findings.push(Finding::new(&file.path, *line, message));
                }
            }
        });
    }
    findings.sort();
    findings
}

/// The first statement in the text. A statement that prose mentions, as a hint does, is none: it follows a word with
/// a lower-case letter.
fn statement(text: &str) -> Option<&'static str> {
    let words: Vec<&str> = text
        .split(|c: char| !(c.is_alphanumeric() || "_.$".contains(c)))
        .filter(|word| !word.is_empty())
        .collect();
    let follows = |at: usize, wanted: &str| words[at + 1..].contains(&wanted);
    words.iter().enumerate().find_map(|(at, word)| {
        let in_prose = at > 0 && words[at - 1].contains(|c: char| c.is_ascii_lowercase());
        let next = words.get(at + 1).copied();
        match *word {
            // An empty list of columns is allowed, and so is a SELECT without FROM.
            "SELECT" if next.is_some() && !in_prose => Some("SELECT"),
            "INSERT" if next == Some("INTO") && !in_prose => Some("INSERT"),
            "DELETE" if next == Some("FROM") && !in_prose => Some("DELETE"),
            "UPDATE" if follows(at, "SET") && !in_prose => Some("UPDATE"),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<String> {
        let tree = Tree::of(&[("src/a.rs", source), ("tests/b.rs", source)]);
        check(&tree)
            .into_iter()
            .map(|finding| finding.to_string())
            .collect()
    }

    #[test]
    fn a_statement_in_a_call_or_a_macro_is_found() {
        let found = found(
            "fn f() {\n  run(\"SELECT recur.tick()\");\n  sql!(r\"INSERT INTO t\nVALUES (1)\");\n  \
             run(\"UPDATE t SET a = 1\"); run(\"DELETE FROM t\"); run(\"EXPLAIN SELECT 1\");\n}",
        );
        let kinds = [
            (2, "SELECT"),
            (3, "INSERT"),
            (5, "DELETE"),
            (5, "SELECT"),
            (5, "UPDATE"),
        ];
        let expected = kinds.map(|(line, kind)| {
            format!("src/a.rs:{line}: a {kind} in a string: it belongs in a file under sql/")
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn prose_comments_and_tests_are_not() {
        assert_eq!(
            found(
                "/// \"SELECT 1 FROM t\"\nfn f() {\n\
                 hint(\"run SELECT * FROM recur.doctor()\"); say(\"UPDATE was refused\"); }\n\
                 #[cfg(test)]\nmod tests { const A: &str = \"SELECT 1\"; }"
            ),
            [""; 0]
        );
    }
}
