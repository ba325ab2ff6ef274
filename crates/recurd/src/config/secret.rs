//! Values that are never shown.

use std::fmt;
use std::path::PathBuf;

/// A secret from a file or the environment. Neither its Debug form nor an error shows it.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: String) -> Secret {
        Secret(value)
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[secret]")
    }
}

/// Reads a secret that the configuration names by `KEY_env` or `KEY_file`; None where it names none.
pub fn read(
    key: &str,
    variable: Option<&str>,
    file: Option<&PathBuf>,
) -> Result<Option<Secret>, String> {
    let text = match (variable, file) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(format!(
                "{key}_env and {key}_file exclude each other: keep one of them"
            ));
        }
        (Some(name), None) => std::env::var(name).map_err(|_| {
            format!(
                "{key}_env = {name:?}: expected the name of a variable that is set to UTF-8 text"
            )
        })?,
        (None, Some(path)) => std::fs::read_to_string(path).map_err(|error| {
            format!("{key}_file = {path:?}: expected a readable file, got: {error}")
        })?,
    };
    let value = text.trim_end_matches(['\r', '\n']);
    if value.is_empty() {
        return Err(format!(
            "{key}_env or {key}_file: expected a secret, got an empty text"
        ));
    }
    Ok(Some(Secret::new(value.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_from_a_file_and_not_shown() {
        let path = std::env::temp_dir().join(format!("recurd-secret-{}", std::process::id()));
        std::fs::write(&path, "s3cret\n").unwrap();
        let secret = read("x", None, Some(&path)).unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(secret.expose(), "s3cret");
        assert_eq!(format!("{secret:?}"), "[secret]");
    }

    #[test]
    fn what_is_misconfigured_is_named() {
        let path = PathBuf::from("/nowhere/secret");
        let error = read("token", None, Some(&path)).unwrap_err();
        assert!(
            error.starts_with("token_file = \"/nowhere/secret\": expected a readable file"),
            "{error}"
        );
        let error = read("token", Some("A"), Some(&path)).unwrap_err();
        assert_eq!(
            error,
            "token_env and token_file exclude each other: keep one of them"
        );
        assert!(read("token", None, None).unwrap().is_none());
    }
}
