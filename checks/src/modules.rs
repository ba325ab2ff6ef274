//! Which module of the extension uses which, read from paths: in `use`, in expressions and inside macros.

use crate::finding::Finding;
use crate::rust::{self, Tests, Token};
use crate::tree::Tree;
use proc_macro2::Delimiter;
use std::collections::{BTreeMap, BTreeSet};

/// The names from the crate's root to a module; lib.rs has none.
pub type ModulePath = Vec<String>;

/// A module's mention of another one.
#[derive(Debug, Eq, PartialEq)]
pub struct Reference {
    pub from: ModulePath,
    pub to: ModulePath,
    pub path: String,
    pub line: usize,
}

/// Every reference from one module of src/ to another, and what could not be read.
pub fn references(tree: &Tree) -> (Vec<Reference>, Vec<Finding>) {
    let mut findings = Vec::new();
    let mut sources = Vec::new();
    let mut modules = BTreeSet::new();
    for file in tree.rust_under("src/") {
        let module = module_of(&file.path);
        modules.insert(module.clone());
        match rust::parse(file, Tests::Dropped) {
            Ok(tokens) => sources.push((file, module, tokens)),
            Err(finding) => findings.push(finding),
        }
    }
    let mut mentions = Vec::new();
    for (file, module, tokens) in &sources {
        let mut reader = Reader {
            modules: &modules,
            mentions: Vec::new(),
        };
        reader.read(tokens, module);
        mentions.extend(
            reader
                .mentions
                .into_iter()
                .map(|mention| (*file, module, mention)),
        );
    }
    let exports: BTreeMap<ModulePath, ModulePath> = mentions
        .iter()
        .filter_map(|(_, module, mention)| {
            let name = mention.exported_as.clone()?;
            let alias = module.iter().cloned().chain([name]).collect();
            Some((alias, mention.path.clone()))
        })
        .collect();
    let mut references = Vec::new();
    for (file, module, mention) in &mentions {
        let to = resolve(&mention.path, &modules, &exports);
        // A module that hands on what its children have does not use it.
        let hands_on = mention.exported_as.is_some() && to.starts_with(module);
        if to != **module && !hands_on {
            references.push(Reference {
                from: (*module).clone(),
                to,
                path: file.path.clone(),
                line: mention.line,
            });
        }
    }
    (references, findings)
}

/// `src/queue/claim.rs` is `queue::claim`, `src/queue/mod.rs` is `queue`, `src/lib.rs` is the root.
fn module_of(path: &str) -> ModulePath {
    let path = path.trim_start_matches("src/").trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path == "lib" {
        return Vec::new();
    }
    path.split('/').map(str::to_owned).collect()
}

/// The module that the path leads to: its longest beginning that is one, through re-exports.
fn resolve(
    path: &[String],
    modules: &BTreeSet<ModulePath>,
    exports: &BTreeMap<ModulePath, ModulePath>,
) -> ModulePath {
    let longest = (0..=path.len())
        .rev()
        .find(|length| modules.contains(&path[..*length]));
    let length = longest.unwrap_or(0);
    let alias = path.get(..length + 1);
    match alias.and_then(|alias| exports.get(alias)) {
        Some(target) if Some(target.as_slice()) != alias => {
            let behind: ModulePath = target.iter().chain(&path[length + 1..]).cloned().collect();
            resolve(&behind, modules, exports)
        }
        _ => path[..length].to_vec(),
    }
}

struct Mention {
    /// From the crate's root, down to an item.
    path: ModulePath,
    line: usize,
    /// The name by which a `pub use` hands it on.
    exported_as: Option<String>,
}

struct Reader<'a> {
    modules: &'a BTreeSet<ModulePath>,
    mentions: Vec<Mention>,
}

impl Reader<'_> {
    fn read(&mut self, tokens: &[Token], module: &[String]) {
        let mut at = 0;
        while at < tokens.len() {
            let rest = &tokens[at..];
            if rest[0].is_word("use") {
                let end = rest
                    .iter()
                    .position(|t| t.is_char(';'))
                    .unwrap_or(rest.len());
                let exports = is_public(&tokens[..at]);
                self.read_tree(&rest[1..end], &[], module, exports);
                at += end;
            } else if let [
                Token::Word { text, .. },
                Token::Word { text: name, .. },
                body,
                ..,
            ] = rest
                && text == "mod"
                && let Some(body) = body.group(Delimiter::Brace)
            {
                let inner: ModulePath = module.iter().chain([name]).cloned().collect();
                self.read(body, &inner);
                at += 3;
            } else if rest[0].word().is_some()
                && is_path_separator(&rest[1..])
                && !ends_with_separator(&tokens[..at])
            {
                at += self.read_tree(rest, &[], module, false);
            } else {
                if let Token::Group { tokens, .. } = &rest[0] {
                    self.read(tokens, module);
                }
                at += 1;
            }
        }
    }

    /// Reads `a::b::{c, d as e}` and returns how many tokens the path took.
    fn read_tree(
        &mut self,
        tokens: &[Token],
        prefix: &[(String, usize)],
        module: &[String],
        exports: bool,
    ) -> usize {
        let mut segments = prefix.to_vec();
        let mut at = 0;
        while let Some(Token::Word { text, line }) = tokens.get(at) {
            segments.push((text.clone(), *line));
            at += 1;
            if !is_path_separator(&tokens[at..]) {
                break;
            }
            at += 2;
        }
        if let Some(group) = tokens
            .get(at)
            .and_then(|token| token.group(Delimiter::Brace))
            && (at == 0 || tokens[at - 1].is_char(':'))
        {
            for branch in group
                .split(|token| token.is_char(','))
                .filter(|branch| !branch.is_empty())
            {
                self.read_tree(branch, &segments, module, exports);
            }
            return at + 1;
        }
        let alias = match tokens.get(at..) {
            Some([keyword, Token::Word { text, .. }, ..]) if keyword.is_word("as") => {
                Some(text.clone())
            }
            _ => None,
        };
        self.mention(&segments, module, exports, alias);
        at.max(1)
    }

    fn mention(
        &mut self,
        segments: &[(String, usize)],
        module: &[String],
        exports: bool,
        alias: Option<String>,
    ) {
        let Some((_, line)) = segments.last() else {
            return;
        };
        let names: Vec<&str> = segments.iter().map(|(name, _)| name.as_str()).collect();
        let Some(path) = self.absolute(&names, module) else {
            return;
        };
        let name = alias.or_else(|| path.last().cloned());
        self.mentions.push(Mention {
            path,
            line: *line,
            exported_as: name.filter(|_| exports),
        });
    }

    /// The path from the crate's root; None where it leads out of the crate.
    fn absolute(&self, names: &[&str], module: &[String]) -> Option<ModulePath> {
        let mut base = match names.first()? {
            &"crate" => Vec::new(),
            &"self" if names.len() > 1 => module.to_vec(),
            &"super" => module[..module.len().checked_sub(1)?].to_vec(),
            child => {
                let path: ModulePath = module
                    .iter()
                    .cloned()
                    .chain([(*child).to_owned()])
                    .collect();
                self.modules.contains(&path).then_some(path)?
            }
        };
        for name in &names[1..] {
            match *name {
                "super" => drop(base.pop()?),
                "self" => {}
                name => base.push(name.to_owned()),
            }
        }
        Some(base)
    }
}

fn is_path_separator(tokens: &[Token]) -> bool {
    matches!(tokens, [first, second, ..] if first.is_char(':') && second.is_char(':'))
}

fn ends_with_separator(tokens: &[Token]) -> bool {
    matches!(tokens, [.., first, second] if first.is_char(':') && second.is_char(':'))
}

/// Does the item after these tokens begin with `pub` or `pub(…)`?
fn is_public(before: &[Token]) -> bool {
    match before {
        [.., token] if token.is_word("pub") => true,
        [.., token, group] => token.is_word("pub") && group.group(Delimiter::Parenthesis).is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each reference as "from -> to", in the order of the files.
    fn read(files: &[(&str, &str)]) -> Vec<String> {
        let (references, findings) = references(&Tree::of(files));
        assert_eq!(findings, []);
        let show = |path: &ModulePath| {
            if path.is_empty() {
                "lib".to_owned()
            } else {
                path.join("::")
            }
        };
        references
            .iter()
            .map(|reference| format!("{} -> {}", show(&reference.from), show(&reference.to)))
            .collect()
    }

    const PG: (&str, &str) = ("src/pg/time.rs", "");
    const ROOT: (&str, &str) = ("src/pg/mod.rs", "mod time;");

    #[test]
    fn a_use_is_read_with_its_branches() {
        let user = (
            "src/a.rs",
            "use crate::{pg::{self, time::{now, Clock as C}}};\nuse std::time;",
        );
        assert_eq!(
            read(&[ROOT, PG, user]),
            ["a -> pg", "a -> pg::time", "a -> pg::time"]
        );
    }

    #[test]
    fn paths_in_expressions_types_and_macros_are_read() {
        let user = (
            "src/a/b.rs",
            "fn f(x: super::super::pg::time::T) { crate::pg::g::<u8>(); m!(\"\", $crate::pg::time::now()); }",
        );
        assert_eq!(
            read(&[ROOT, PG, user]),
            ["a::b -> pg::time", "a::b -> pg", "a::b -> pg::time"]
        );
    }

    #[test]
    fn super_in_an_inline_module_is_its_file() {
        let user = (
            "src/a.rs",
            "mod inner { use super::x; use super::super::pg::y; }",
        );
        assert_eq!(read(&[ROOT, user]), ["a -> pg"]);
    }

    #[test]
    fn a_child_is_named_without_a_prefix() {
        assert_eq!(
            read(&[("src/lib.rs", "fn f() { pg::start(); Vec::new(); }"), ROOT]),
            ["lib -> pg"]
        );
    }

    #[test]
    fn what_a_module_hands_on_is_looked_up_behind_it() {
        let facade = (
            "src/q/mod.rs",
            "mod claim; pub use claim::{Claim, take as grab}; pub(crate) use self::claim::Lease;",
        );
        let claim = ("src/q/claim.rs", "");
        let user = ("src/u.rs", "use crate::q::{Claim, grab, Lease, other};");
        assert_eq!(
            read(&[facade, claim, user]),
            ["u -> q::claim", "u -> q::claim", "u -> q::claim", "u -> q"]
        );
    }

    #[test]
    fn handing_on_what_is_elsewhere_is_a_use() {
        assert_eq!(
            read(&[ROOT, ("src/a.rs", "pub use crate::pg::x;")]),
            ["a -> pg"]
        );
    }

    #[test]
    fn tests_are_not_read() {
        assert_eq!(
            read(&[
                ROOT,
                ("src/a.rs", "#[cfg(test)] mod tests { use crate::pg::x; }")
            ]),
            [""; 0]
        );
    }
}
