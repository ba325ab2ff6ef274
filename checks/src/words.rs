//! Turns of phrase that cost a reader a second look, and what to write instead.

use crate::finding::Finding;
use crate::tree::{SourceFile, Tree};

/// Found in any case, where no letter stands before or after.
const PHRASES: [(&str, &str); 26] = [
    ("so many", "at most N"),
    ("at the most", "at most"),
    ("whoever", "the role, the session, the caller"),
    ("whomever", "the role, the session, the caller"),
    ("nobody", "no session, no role"),
    ("he", "the session, the role"),
    ("his", "the session's, the role's"),
    ("him", "the session, the role"),
    ("himself", "the session, the role"),
    ("she", "the session, the role"),
    ("her", "the session's, the role's"),
    ("told", "announced; informed"),
    ("untold", "unannounced"),
    ("wade", "scan"),
    ("wades", "scans"),
    ("waded", "scanned"),
    ("wading", "scanning"),
    ("worn", "needs a refresh"),
    ("knocks", "calls, connects, writes"),
    ("far to walk", "scanned many dead index entries"),
    ("known_priority", "priority_hint"),
    ("know_priority", "set_priority_hint"),
    ("_standing", "_rejection_reason"),
    ("_accept", "_lock_reportable"),
    ("_answer", "_batch_result"),
    ("_make_room", "_cancel_overlapping"),
];

/// Names of types, found as they are.
const NAMES: [(&str, &str); 6] = [
    ("Care", "WritePath"),
    ("Fleet", "Registry"),
    ("Berth", "WorkerEntry"),
    ("Departs", "Exit"),
    ("Posted", "Wakeup"),
    ("enum From", "enum LowerBound"),
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| is_read(file)) {
        for (index, line) in file.text.lines().enumerate() {
            let lower = line.to_lowercase();
            let phrases = PHRASES
                .iter()
                .filter(|(phrase, _)| contains(&lower, phrase));
            let names = NAMES.iter().filter(|(name, _)| contains(line, name));
            for (phrase, better) in phrases.chain(names) {
                let message = format!("{phrase:?}: better {better:?}");
                findings.push(Finding::new(&file.path, index + 1, message));
            }
        }
    }
    findings
}

fn is_read(file: &SourceFile) -> bool {
    let folders = ["src/", "sql/", "crates/", "docs/", "scripts/", "examples/"];
    file.kind() == "md" || folders.iter().any(|folder| file.path.starts_with(folder))
}

fn contains(line: &str, phrase: &str) -> bool {
    line.match_indices(phrase).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + phrase.len()..].chars().next();
        let is_letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
        !is_letter(before) && !is_letter(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[(path, text)]);
        check(&tree)
            .into_iter()
            .map(|finding| finding.to_string())
            .collect()
    }

    #[test]
    fn a_phrase_is_found_in_comments_names_and_capitals() {
        assert_eq!(
            found("src/a.rs", "// Whoever\nfn is_told() {}\nstruct Fleet;"),
            [
                "src/a.rs:1: \"whoever\": better \"the role, the session, the caller\"",
                "src/a.rs:2: \"told\": better \"announced; informed\"",
                "src/a.rs:3: \"Fleet\": better \"Registry\"",
            ]
        );
    }

    #[test]
    fn part_of_a_word_is_not() {
        assert_eq!(
            found(
                "README.md",
                "this, the, shed, chimney, toldo, careful, fleet"
            ),
            [""; 0]
        );
    }

    #[test]
    fn names_of_functions_are_found_behind_their_schema() {
        assert_eq!(found("sql/a.sql", "SELECT recur._accept(1)").len(), 1);
        assert_eq!(found("sql/a.sql", "SELECT recur._accepted(1)").len(), 0);
    }

    #[test]
    fn other_folders_are_not_read() {
        assert_eq!(found("tests/a.rs", "// nobody"), [""; 0]);
    }
}
