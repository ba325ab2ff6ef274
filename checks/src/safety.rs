//! Unsafe code without a comment that says why it is sound.

use crate::finding::Finding;
use crate::rust::{self, Tests, Token};
use crate::tree::Tree;
use proc_macro2::Delimiter;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_under("src/") {
        let tokens = match rust::parse(file, Tests::Kept) {
            Ok(tokens) => tokens,
            Err(finding) => {
                findings.push(finding);
                continue;
            }
        };
        let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
        rust::each_level(&tokens, &mut |level| {
            for (at, token) in level.iter().enumerate() {
                if let Token::Word { text, line } = token
                    && text == "unsafe"
                    && let Some(kind) = kind(&level[at + 1..])
                    && !is_documented(&lines, *line)
                {
                    let message = format!("an unsafe {kind} without a SAFETY comment");
                    findings.push(Finding::new(&file.path, *line, message));
                }
            }
        });
    }
    findings.sort();
    findings
}

/// What `unsafe` introduces here. The type of a function pointer needs no comment, and neither does an extern block.
fn kind(following: &[Token]) -> Option<&'static str> {
    let first = following.first()?;
    if first.group(Delimiter::Brace).is_some() {
        return Some("block");
    }
    if first.is_word("impl") {
        return Some("impl");
    }
    let function = following.iter().take(3).position(|t| t.is_word("fn"))?;
    following.get(function + 1)?.word().map(|_| "function")
}

/// Is there a comment at the end of the line, on the line below, or above the statement that the line belongs to?
fn is_documented(lines: &[&str], line: usize) -> bool {
    let says_why = |text: &str| text.contains("SAFETY") || text.contains("# Safety");
    let is_comment = |text: &str| text.starts_with("//");
    let index = line - 1;
    if says_why(lines[index])
        || lines
            .get(index + 1)
            .is_some_and(|l| is_comment(l) && says_why(l))
    {
        return true;
    }
    let mut above = lines[..index].iter().rev().peekable();
    let continues =
        |text: &str| !is_comment(text) && !text.is_empty() && !text.ends_with([';', '{', '}', ',']);
    while above.next_if(|text| continues(text)).is_some() {}
    above
        .take_while(|text| is_comment(text) || text.starts_with("#["))
        .any(|text| says_why(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_found(source: &str) -> Vec<usize> {
        let tree = Tree::of(&[("src/a.rs", source)]);
        check(&tree)
            .into_iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn a_block_a_function_and_an_impl_need_a_comment() {
        let source = "\
fn f() {
    let a =
        unsafe { g() };
}
pub unsafe fn g() {}
unsafe impl Sync for S {}
m! { unsafe { g() } }";
        assert_eq!(lines_found(source), [3, 5, 6, 7]);
    }

    #[test]
    fn a_comment_above_the_statement_or_inside_is_enough() {
        let source = "\
fn f() {
    // SAFETY: a reason
    // on two lines.
    let a =
        unsafe { g() };
    unsafe {
        // SAFETY: another.
        g()
    }
}
/// # Safety
/// Only here.
#[inline]
pub unsafe fn g() {}";
        assert_eq!(lines_found(source), [0; 0]);
    }

    #[test]
    fn the_comment_of_another_statement_is_not() {
        let source =
            "fn f() {\n    // SAFETY: a reason.\n    unsafe { g() };\n    unsafe { g() };\n}";
        assert_eq!(lines_found(source), [4]);
    }

    #[test]
    fn types_and_attributes_need_none() {
        let source = "#[unsafe(no_mangle)]\ntype Hook = unsafe extern \"C-unwind\" fn(i32);\nunsafe extern \"C\" {}\n";
        assert_eq!(lines_found(source), [0; 0]);
    }
}
