//! What a creation does where the action exists already.

use super::check;
use super::invalid::Invalid;

/// What to do with an action of the same identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnExisting {
    /// Refuse.
    #[default]
    Fail,
    /// Change it.
    Upsert,
    /// Put another one beside it.
    AddAnother,
}

impl OnExisting {
    /// The names of the choices.
    pub const NAMES: &'static [&'static str] = &["fail", "upsert", "add_another"];

    /// The choice of that name; None means the default. `addAnother` is `add_another`.
    pub fn parse(name: Option<&str>) -> Result<OnExisting, Invalid> {
        let Some(name) = name else {
            return Ok(OnExisting::default());
        };
        let name = match name {
            "addAnother" => "add_another",
            name => name,
        };
        check::choice("on_existing", name, OnExisting::NAMES)?;
        Ok(match name {
            "upsert" => OnExisting::Upsert,
            "add_another" => OnExisting::AddAnother,
            _ => OnExisting::Fail,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(OnExisting::parse(None), Ok(OnExisting::Fail));
        assert_eq!(OnExisting::parse(Some("fail")), Ok(OnExisting::Fail));
        assert_eq!(OnExisting::parse(Some("upsert")), Ok(OnExisting::Upsert));
        for spelling in ["add_another", "addAnother"] {
            assert_eq!(
                OnExisting::parse(Some(spelling)),
                Ok(OnExisting::AddAnother)
            );
        }
        assert_eq!(
            OnExisting::parse(Some("maybe")).unwrap_err().message,
            "invalid on_existing \"maybe\": must be fail, upsert or add_another"
        );
    }
}
