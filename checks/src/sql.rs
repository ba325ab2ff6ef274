//! The tokens of SQL, as far as the checks need them.
//!
//! Comments are left out. The body of a function is tokenized like the rest: its dollar quotes are tokens of their own.

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Kind {
    /// An identifier or a keyword; a quoted identifier without its quotes.
    Word,
    /// A string, without its quotes.
    Text,
    /// One character of punctuation, or a run of digits.
    Other,
    /// The start of a dollar-quoted text, or its end.
    Dollar,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Token {
    pub kind: Kind,
    pub text: String,
    pub line: usize,
}

impl Token {
    /// Is this the unquoted keyword, in any case?
    pub fn is(&self, keyword: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(keyword)
    }

    pub fn is_char(&self, character: &str) -> bool {
        self.kind == Kind::Other && self.text == character
    }
}

pub fn tokenize(text: &str) -> Vec<Token> {
    Tokenizer {
        rest: text,
        line: 1,
        tokens: Vec::new(),
    }
    .run()
}

struct Tokenizer<'a> {
    rest: &'a str,
    line: usize,
    tokens: Vec<Token>,
}

impl Tokenizer<'_> {
    fn run(mut self) -> Vec<Token> {
        while let Some(first) = self.rest.chars().next() {
            if first.is_whitespace() {
                self.skip(first.len_utf8());
            } else if self.rest.starts_with("--") {
                self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                self.skip(block_comment(self.rest));
            } else if first == '\'' {
                self.quoted('\'', Kind::Text, false);
            } else if first == '"' {
                self.quoted('"', Kind::Word, false);
            } else if self.rest.starts_with("E'") || self.rest.starts_with("e'") {
                self.skip(1);
                self.quoted('\'', Kind::Text, true);
            } else if let Some(length) = dollar_quote(self.rest) {
                self.push(Kind::Dollar, length);
            } else if is_word_start(first) {
                let length = run_length(self.rest, |c| is_word_start(c) || c.is_ascii_digit());
                self.push(Kind::Word, length);
            } else if first.is_ascii_digit() {
                let length = run_length(self.rest, |c| c.is_ascii_digit());
                self.push(Kind::Other, length);
            } else {
                self.push(Kind::Other, first.len_utf8());
            }
        }
        self.tokens
    }

    fn push(&mut self, kind: Kind, length: usize) {
        self.tokens.push(Token {
            kind,
            text: self.rest[..length].to_owned(),
            line: self.line,
        });
        self.skip(length);
    }

    fn skip(&mut self, length: usize) {
        let (skipped, rest) = self.rest.split_at(length);
        self.line += skipped.matches('\n').count();
        self.rest = rest;
    }

    fn quoted(&mut self, quote: char, kind: Kind, backslashes: bool) {
        let line = self.line;
        let mut content = String::new();
        let mut length = self.rest.len();
        let mut characters = self.rest.char_indices().skip(1).peekable();
        while let Some((at, character)) = characters.next() {
            if backslashes && character == '\\' {
                content.extend(characters.next().map(|(_, escaped)| escaped));
            } else if character != quote {
                content.push(character);
            } else if characters.next_if(|(_, next)| *next == quote).is_some() {
                content.push(quote);
            } else {
                length = at + quote.len_utf8();
                break;
            }
        }
        self.skip(length);
        self.tokens.push(Token {
            kind,
            text: content,
            line,
        });
    }
}

fn is_word_start(character: char) -> bool {
    character.is_alphabetic() || character == '_'
}

fn run_length(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|character| !belongs(character))
        .unwrap_or(text.len())
}

/// The length of `$$` or `$tag$` at the start of the text. `$1` is a parameter.
fn dollar_quote(text: &str) -> Option<usize> {
    let tag = text.strip_prefix('$')?;
    let length = run_length(tag, |c| is_word_start(c) || c.is_ascii_digit());
    let named = tag.starts_with(is_word_start) || length == 0;
    (named && tag[length..].starts_with('$')).then_some(length + 2)
}

/// The length of the comment at the start of the text. Comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Where each CREATE FUNCTION or PROCEDURE begins and ends: name, first line, last line.
pub fn functions(tokens: &[Token]) -> Vec<(String, usize, usize)> {
    let mut functions = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let end = statement_end(tokens, at);
        let statement = &tokens[at..end];
        let keyword = statement
            .iter()
            .take(4)
            .position(|token| token.is("function") || token.is("procedure"));
        if let (true, Some(keyword)) = (statement[0].is("create"), keyword) {
            let name = statement[keyword + 1..]
                .iter()
                .take_while(|token| !token.is_char("("))
                .map(|token| token.text.as_str())
                .collect();
            let last = statement.last().map_or(0, |token| token.line);
            functions.push((name, statement[0].line, last));
        }
        at = end;
    }
    functions
}

/// The index after the semicolon that ends the statement: not one inside a body, dollar-quoted or BEGIN ATOMIC.
fn statement_end(tokens: &[Token], start: usize) -> usize {
    let mut quote: Option<&str> = None;
    let mut blocks = 0;
    let mut atomic = false;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match (&token.kind, quote) {
            (Kind::Dollar, None) => quote = Some(&token.text),
            (Kind::Dollar, Some(open)) if open == token.text => quote = None,
            (_, Some(_)) => {}
            (Kind::Word, None) if token.is("atomic") => {
                atomic = true;
                blocks += 1;
            }
            (Kind::Word, None) if atomic && token.is("case") => blocks += 1,
            (Kind::Word, None) if atomic && token.is("end") => blocks -= 1,
            (Kind::Other, None) if token.text == ";" && blocks == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sql: &str) -> Vec<String> {
        tokenize(sql).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_are_left_out_and_lines_are_counted_through_them() {
        let tokens = tokenize("a -- b\n/* c\n /* d */ e */ f");
        let seen: Vec<_> = tokens.iter().map(|t| (t.text.as_str(), t.line)).collect();
        assert_eq!(seen, [("a", 1), ("f", 3)]);
    }

    #[test]
    fn strings_keep_their_content_and_doubled_quotes_are_one() {
        assert_eq!(texts("'it''s; -- no' \"limit\""), ["it's; -- no", "limit"]);
        assert_eq!(texts(r"E'a\'b' c"), ["a'b", "c"]);
    }

    #[test]
    fn a_body_is_tokenized_and_a_parameter_is_no_dollar_quote() {
        assert_eq!(texts("$$ x $$"), ["$$", "x", "$$"]);
        assert_eq!(texts("$body$ x $body$"), ["$body$", "x", "$body$"]);
        assert_eq!(texts("$1"), ["$", "1"]);
    }

    #[test]
    fn a_function_ends_at_the_semicolon_after_its_body() {
        let sql = "\
SELECT 1;
CREATE OR REPLACE FUNCTION recur.f(a int) RETURNS int
    LANGUAGE plpgsql AS $$
BEGIN
    RETURN 1;
END
$$;
SELECT 2;";
        assert_eq!(functions(&tokenize(sql)), [("recur.f".to_owned(), 2, 7)]);
    }

    #[test]
    fn a_standard_body_ends_at_its_own_end() {
        let sql = "\
CREATE FUNCTION f() RETURNS int BEGIN ATOMIC
    SELECT CASE WHEN true THEN 1 END;
    SELECT 2;
END;
SELECT 3;";
        assert_eq!(functions(&tokenize(sql)), [("f".to_owned(), 1, 4)]);
    }

    #[test]
    fn a_trigger_is_no_function() {
        let sql = "CREATE TRIGGER t AFTER INSERT ON x FOR EACH ROW EXECUTE FUNCTION f();";
        assert_eq!(functions(&tokenize(sql)), []);
    }
}
