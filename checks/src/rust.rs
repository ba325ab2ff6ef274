//! The tokens of Rust, as far as the checks need them: nested, with lines, without attributes.

use crate::finding::Finding;
use crate::tree::SourceFile;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

#[derive(Debug)]
pub enum Token {
    /// An identifier or a keyword.
    Word { text: String, line: usize },
    /// A string, without its quotes.
    Text { text: String, line: usize },
    /// A character of punctuation.
    Punctuation(char),
    /// Any other literal.
    Literal,
    Group {
        delimiter: Delimiter,
        tokens: Vec<Token>,
        last_line: usize,
    },
}

/// Whether items under `#[cfg(test)]` are among the tokens.
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum Tests {
    Kept,
    Dropped,
}

impl Token {
    pub fn is_word(&self, word: &str) -> bool {
        self.word() == Some(word)
    }

    pub fn word(&self) -> Option<&str> {
        match self {
            Token::Word { text, .. } => Some(text),
            _ => None,
        }
    }

    pub fn is_char(&self, character: char) -> bool {
        matches!(self, Token::Punctuation(found) if *found == character)
    }

    pub fn group(&self, wanted: Delimiter) -> Option<&[Token]> {
        match self {
            Token::Group {
                delimiter, tokens, ..
            } if *delimiter == wanted => Some(tokens),
            _ => None,
        }
    }
}

/// The file's tokens, or the place where they stop being Rust.
pub fn parse(file: &SourceFile, tests: Tests) -> Result<Vec<Token>, Finding> {
    let stream: TokenStream = file.text.parse().map_err(|error: proc_macro2::LexError| {
        Finding::new(&file.path, error.span().start().line, error.to_string())
    })?;
    Ok(convert(stream, tests))
}

fn convert(stream: TokenStream, tests: Tests) -> Vec<Token> {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < trees.len() {
        if let Some((length, attribute)) = attribute(&trees[at..]) {
            at += length;
            if tests == Tests::Dropped && is_for_tests(attribute) {
                at += item_length(&trees[at..]);
            }
            continue;
        }
        tokens.push(token(&trees[at], tests));
        at += 1;
    }
    tokens
}

fn token(tree: &TokenTree, tests: Tests) -> Token {
    let line = tree.span().start().line;
    match tree {
        TokenTree::Ident(word) => Token::Word {
            text: word.to_string(),
            line,
        },
        TokenTree::Punct(character) => Token::Punctuation(character.as_char()),
        TokenTree::Literal(literal) => match string_content(&literal.to_string()) {
            Some(text) => Token::Text { text, line },
            None => Token::Literal,
        },
        TokenTree::Group(group) => Token::Group {
            delimiter: group.delimiter(),
            tokens: convert(group.stream(), tests),
            last_line: group.span_close().end().line,
        },
    }
}

/// `#[…]` or `#![…]` at the start: how many trees it takes, and its content.
fn attribute(trees: &[TokenTree]) -> Option<(usize, &Group)> {
    let is_char = |at: usize, wanted: char| match trees.get(at) {
        Some(TokenTree::Punct(character)) => character.as_char() == wanted,
        _ => false,
    };
    if !is_char(0, '#') {
        return None;
    }
    let at = if is_char(1, '!') { 2 } else { 1 };
    match trees.get(at) {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => {
            Some((at + 1, group))
        }
        _ => None,
    }
}

fn is_for_tests(attribute: &Group) -> bool {
    let text = attribute.stream().to_string();
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
    words[0] == "cfg" && words.contains(&"test") && !words.contains(&"not")
}

/// How many trees the item at the start takes: up to its semicolon or its braces.
fn item_length(trees: &[TokenTree]) -> usize {
    let ends = |tree: &TokenTree| match tree {
        TokenTree::Punct(character) => character.as_char() == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    trees
        .iter()
        .position(ends)
        .map_or(trees.len(), |last| last + 1)
}

/// What stands between the quotes of a string literal, with the escapes that SQL in Rust would use.
fn string_content(literal: &str) -> Option<String> {
    let (prefix, rest) = literal.split_once('"')?;
    if prefix.starts_with('\'') || prefix.starts_with("b'") {
        return None;
    }
    let (content, _) = rest.rsplit_once('"')?;
    if prefix.contains('r') {
        return Some(content.to_owned());
    }
    let mut text = String::new();
    let mut characters = content.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('\\', Some('\n')) => while characters.next_if(|c| c.is_whitespace()).is_some() {},
            ('\\', Some('n')) => {
                characters.next();
                text.push('\n');
            }
            ('\\', Some(_)) => text.extend(characters.next()),
            _ => text.push(character),
        }
    }
    Some(text)
}

/// Calls the visitor with every run of tokens that share a group, the outermost first.
pub fn each_level(tokens: &[Token], visit: &mut impl FnMut(&[Token])) {
    visit(tokens);
    for token in tokens {
        if let Token::Group { tokens, .. } = token {
            each_level(tokens, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> SourceFile {
        SourceFile {
            path: "src/a.rs".to_owned(),
            text: text.to_owned(),
        }
    }

    fn words(text: &str, tests: Tests) -> Vec<String> {
        let mut words = Vec::new();
        each_level(&parse(&file(text), tests).expect("Rust"), &mut |level| {
            words.extend(level.iter().filter_map(Token::word).map(str::to_owned));
        });
        words
    }

    #[test]
    fn attributes_and_comments_are_left_out() {
        assert_eq!(
            words("#![allow(a)] /// b\n#[c] fn d() {}", Tests::Kept),
            ["fn", "d"]
        );
    }

    #[test]
    fn test_items_are_dropped_on_request() {
        let text = "#[cfg(test)] mod a { fn b() {} } #[cfg(not(test))] fn c() {} #[cfg(any(test, x))] use d; fn e() {}";
        assert_eq!(words(text, Tests::Dropped), ["fn", "c", "fn", "e"]);
        assert!(words(text, Tests::Kept).contains(&"b".to_owned()));
    }

    #[test]
    fn strings_lose_their_quotes_and_escapes() {
        assert_eq!(string_content(r#""a\"b""#).as_deref(), Some("a\"b"));
        assert_eq!(string_content("r#\"a\\n\"#").as_deref(), Some("a\\n"));
        assert_eq!(string_content("\"a\\\n    b\"").as_deref(), Some("ab"));
        assert_eq!(string_content("'\"'"), None);
        assert_eq!(string_content("12"), None);
    }

    #[test]
    fn what_is_not_rust_is_found_at_its_line() {
        let finding = parse(&file("fn a() {\n}\n}"), Tests::Kept).expect_err("one brace too many");
        assert_eq!(finding.line, 3);
    }
}
