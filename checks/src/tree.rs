//! The files that the checks read.

use std::path::Path;
use std::{fs, io};
use walkdir::{DirEntry, WalkDir};

pub struct SourceFile {
    /// Relative to the root, with slashes.
    pub path: String,
    pub text: String,
}

/// Every text file of a known kind, in the order of their paths.
pub struct Tree {
    pub files: Vec<SourceFile>,
}

const KINDS: [&str; 8] = ["rs", "sql", "sh", "py", "js", "mjs", "ts", "md"];
/// What others wrote, or a program did.
const SKIPPED_FOLDERS: [&str; 3] = ["target", "node_modules", "vectors"];

impl Tree {
    pub fn read(root: &Path) -> io::Result<Tree> {
        let mut files = Vec::new();
        let entries = WalkDir::new(root)
            .sort_by_file_name()
            .into_iter()
            .filter_entry(|entry| entry.depth() == 0 || !is_skipped(entry));
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            let kind = path.extension().and_then(|extension| extension.to_str());
            if !entry.file_type().is_file() || !kind.is_some_and(|kind| KINDS.contains(&kind)) {
                continue;
            }
            let relative = path.strip_prefix(root).unwrap_or(path);
            let relative = relative.to_string_lossy().replace('\\', "/");
            if !is_frozen(&relative) {
                files.push(SourceFile {
                    path: relative,
                    text: fs::read_to_string(path)?,
                });
            }
        }
        Ok(Tree { files })
    }

    pub fn rust_under<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a SourceFile> {
        self.of_kind(&["rs"])
            .filter(move |file| file.path.starts_with(folder))
    }

    pub fn of_kind<'a>(&'a self, kinds: &'a [&'a str]) -> impl Iterator<Item = &'a SourceFile> {
        self.files
            .iter()
            .filter(|file| kinds.contains(&file.kind()))
    }

    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Tree {
        let files = files.iter().map(|(path, text)| SourceFile {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        });
        Tree {
            files: files.collect(),
        }
    }
}

impl SourceFile {
    pub fn kind(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(_, kind)| kind)
    }
}

fn is_skipped(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy();
    entry.file_type().is_dir()
        && (name.starts_with('.') || SKIPPED_FOLDERS.contains(&name.as_ref()))
}

/// A released script is never edited again.
fn is_frozen(path: &str) -> bool {
    path.starts_with("sql/upgrades/") && path.ends_with(".sql")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_scripts_are_frozen_and_their_description_is_not() {
        assert!(is_frozen("sql/upgrades/pg_recur--0.1.0.sql"));
        assert!(!is_frozen("sql/upgrades/README.md"));
        assert!(!is_frozen("sql/queue/schema.sql"));
    }

    #[test]
    fn the_repository_is_read_without_what_was_built_or_generated() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let tree = Tree::read(&root).expect("the repository");
        let paths: Vec<&str> = tree.files.iter().map(|file| file.path.as_str()).collect();
        assert!(paths.contains(&"checks/src/tree.rs"));
        assert!(paths.contains(&"README.md"));
        for folder in ["target/", "/vectors/", "node_modules/"] {
            assert!(!paths.iter().any(|path| path.contains(folder)), "{folder}");
        }
    }
}
