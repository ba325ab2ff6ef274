//! The TLS options of a connection string, with libpq's names and meanings.
//!
//! tokio-postgres knows three values of `sslmode` and no `sslrootcert`. Both are taken out of the string here, and the
//! rest is left to tokio-postgres, which also reports whatever is malformed.

use crate::Error;
use percent_encoding::percent_decode_str;
use std::ops::Range;

/// libpq's `sslmode`, from the weakest to the strongest. libpq's `allow` is refused: it means no TLS on nearly every
/// server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Mode {
    fn parse(text: &str) -> Result<Mode, Error> {
        match text {
            "disable" => Ok(Mode::Disable),
            "prefer" => Ok(Mode::Prefer),
            "require" => Ok(Mode::Require),
            "verify-ca" => Ok(Mode::VerifyCa),
            "verify-full" => Ok(Mode::VerifyFull),
            _ => Err(Error::Configuration(format!(
                "sslmode is {text:?}, but must be disable, prefer, require, verify-ca or verify-full"
            ))),
        }
    }
}

/// Which certificate authorities are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    System,
    File(String),
}

/// A connection string in its parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// What tokio-postgres parses.
    pub rest: String,
    pub mode: Mode,
    /// `None` where the string names none.
    pub roots: Option<Roots>,
}

impl Options {
    pub fn parse(connection: &str) -> Result<Options, Error> {
        let is_url = ["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| connection.starts_with(scheme));
        let found = if is_url {
            url_parameters(connection)
        } else {
            keywords(connection)
        };
        let mut rest = String::new();
        let (mut mode, mut roots, mut copied) = (None, None, 0);
        for parameter in found {
            match parameter.key.as_str() {
                "sslmode" => mode = Some(Mode::parse(&parameter.value)?),
                "sslrootcert" if parameter.value == "system" => roots = Some(Roots::System),
                "sslrootcert" => roots = Some(Roots::File(parameter.value)),
                _ => continue,
            }
            rest.push_str(&connection[copied..parameter.at.start]);
            copied = parameter.at.end;
        }
        rest.push_str(&connection[copied..]);
        let mode = effective_mode(mode, roots.as_ref())?;
        Ok(Options { rest, mode, roots })
    }
}

/// libpq's rules: `system` verifies fully and refuses less, and a root file turns `require` into `verify-ca`.
fn effective_mode(mode: Option<Mode>, roots: Option<&Roots>) -> Result<Mode, Error> {
    match (mode, roots) {
        (None, Some(Roots::System)) => Ok(Mode::VerifyFull),
        (Some(mode), Some(Roots::System)) if mode < Mode::VerifyFull => Err(Error::Configuration(
            "sslrootcert=system needs sslmode=verify-full".to_owned(),
        )),
        (Some(Mode::Require), Some(Roots::File(_))) => Ok(Mode::VerifyCa),
        (mode, _) => Ok(mode.unwrap_or(Mode::Prefer)),
    }
}

/// One option, and the bytes that it takes up.
struct Parameter {
    key: String,
    value: String,
    at: Range<usize>,
}

/// The options of `host=… sslmode=…`. Stops at the first that is malformed.
fn keywords(text: &str) -> Vec<Parameter> {
    let mut found = Vec::new();
    let mut position = 0;
    while let Some(parameter) = next_keyword(text, position) {
        position = parameter.at.end;
        found.push(parameter);
    }
    found
}

fn next_keyword(text: &str, position: usize) -> Option<Parameter> {
    let start = text.len() - text[position..].trim_start().len();
    let (key, after) = text[start..].split_once('=')?;
    let after = after.trim_start();
    let (quoted, body) = match after.strip_prefix('\'') {
        Some(body) => (true, body),
        None => (false, after),
    };
    let mut value = String::new();
    let mut characters = body.char_indices();
    let mut length = body.len();
    while let Some((at, character)) = characters.next() {
        let ends = if quoted {
            character == '\''
        } else {
            character.is_whitespace()
        };
        if ends {
            length = at + usize::from(quoted);
            break;
        }
        match character {
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            _ => value.push(character),
        }
    }
    Some(Parameter {
        key: key.trim_end().to_owned(),
        value,
        at: start..text.len() - body.len() + length,
    })
}

/// The options after the `?` of a URL. Each takes up its `&` as well, so that what stays is well formed.
fn url_parameters(url: &str) -> Vec<Parameter> {
    // A password may hold a question mark.
    let host = url.find('@').unwrap_or(0);
    let Some(mark) = url[host..].find('?') else {
        return Vec::new();
    };
    let mut position = host + mark + 1;
    url[position..]
        .split_inclusive('&')
        .map(|parameter| {
            let at = position..position + parameter.len();
            position = at.end;
            let parameter = parameter.trim_end_matches('&');
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let decode = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
            Parameter {
                key: decode(key),
                value: decode(value),
                at,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (String, Mode, Option<Roots>) {
        let options = Options::parse(text).unwrap();
        (options.rest, options.mode, options.roots)
    }

    fn file(path: &str) -> Option<Roots> {
        Some(Roots::File(path.to_owned()))
    }

    #[test]
    fn keywords_keep_all_but_tls_options() {
        assert_eq!(
            parse("host=db sslmode=verify-full dbname=app"),
            ("host=db  dbname=app".to_owned(), Mode::VerifyFull, None)
        );
        assert_eq!(
            parse(
                r"password='it\'s sslmode=disable' sslrootcert = '/etc/my \'own\'.crt' sslmode='verify-ca'"
            ),
            (
                r"password='it\'s sslmode=disable'  ".to_owned(),
                Mode::VerifyCa,
                file("/etc/my 'own'.crt")
            )
        );
        assert_eq!(
            parse(r"password=a\ b=c sslmode=require"),
            (r"password=a\ b=c ".to_owned(), Mode::Require, None)
        );
        assert_eq!(
            parse("  dbname=app  "),
            ("  dbname=app  ".to_owned(), Mode::Prefer, None)
        );
        assert_eq!(parse(""), (String::new(), Mode::Prefer, None));
        // tokio-postgres reports what is wrong.
        assert_eq!(parse("dbname='app").0, "dbname='app");
        assert_eq!(parse("nonsense").0, "nonsense");
    }

    #[test]
    fn urls_keep_all_but_tls_options() {
        let rest = |url| parse(url).0.parse::<tokio_postgres::Config>().unwrap();
        assert_eq!(
            parse("postgresql://db/app?sslmode=require&application_name=x"),
            (
                "postgresql://db/app?application_name=x".to_owned(),
                Mode::Require,
                None
            )
        );
        assert_eq!(
            parse("postgres://u:p?q@db/app?application_name=x&sslrootcert=%2Fetc%2Fa%20b.crt"),
            (
                "postgres://u:p?q@db/app?application_name=x&".to_owned(),
                Mode::Prefer,
                file("/etc/a b.crt")
            )
        );
        let config = rest("postgres://u:p?q@db/app?application_name=x&sslmode=disable");
        assert_eq!(config.get_application_name(), Some("x"));
        assert_eq!(config.get_password(), Some(&b"p?q"[..]));
        assert_eq!(
            rest("postgres://db/app?sslmode=disable").get_dbname(),
            Some("app")
        );
        assert_eq!(
            parse("postgres://db/app"),
            ("postgres://db/app".to_owned(), Mode::Prefer, None)
        );
    }

    #[test]
    fn modes_follow_libpq() {
        assert_eq!(
            parse("sslmode=require sslrootcert=/ca").1,
            Mode::VerifyCa,
            "a root file is there to be used"
        );
        assert_eq!(parse("sslmode=prefer sslrootcert=/ca").1, Mode::Prefer);
        assert_eq!(
            parse("sslrootcert=system"),
            (String::new(), Mode::VerifyFull, Some(Roots::System))
        );
        assert_eq!(
            parse("sslrootcert=system sslmode=verify-full").1,
            Mode::VerifyFull
        );
        for (text, problem) in [
            (
                "sslmode=require sslrootcert=system",
                "sslrootcert=system needs sslmode=verify-full",
            ),
            (
                "sslmode=allow",
                "sslmode is \"allow\", but must be disable, prefer, require, verify-ca or verify-full",
            ),
        ] {
            assert_eq!(Options::parse(text).unwrap_err().to_string(), problem);
        }
    }
}
