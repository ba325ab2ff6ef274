//! The client's readers: connection strings and states.

use crate::input::Input;
use crate::options::{Mode, Options, Roots};
use crate::target::Signature;
use recur_client::Status;
use tokio_postgres::Config;

/// What the client takes out of a connection string, and what it leaves.
pub fn options(input: &Input) -> Signature {
    let text = input.text.as_str();
    let states = ["pending", "running", "completed", "failed", "cancelled"];
    assert_eq!(text.parse::<Status>().is_ok(), states.contains(&text));
    let options = match Options::parse(text) {
        Ok(options) => options,
        Err(error) => {
            assert!(
                text.contains("ssl") || text.contains('%'),
                "refused with {error}"
            );
            return Signature::of_error(error);
        }
    };
    assert!(options.rest.len() <= text.len());
    if options.roots == Some(Roots::System) {
        assert_eq!(options.mode, Mode::VerifyFull, "less than libpq does");
    }
    if matches!(options.roots, Some(Roots::File(_))) {
        assert_ne!(
            options.mode,
            Mode::Require,
            "a root file is there to be used"
        );
    }
    let is_plain =
        !text.contains("sslmode") && !text.contains("sslrootcert") && !text.contains('%');
    if is_plain && !text.contains('\\') {
        assert_eq!(
            (options.rest.as_str(), options.mode, &options.roots),
            (text, Mode::Prefer, &None)
        );
    }
    // What tokio-postgres reads without the options, it reads the same with them taken out.
    let again = Options::parse(&options.rest).expect("what was left is readable");
    let is_read = options.rest.parse::<Config>().is_ok();
    if is_read {
        assert_eq!(
            (again.mode, again.roots),
            (Mode::Prefer, None),
            "an option was left in {:?}",
            options.rest
        );
        assert_eq!(again.rest, options.rest);
    }
    let roots = match options.roots {
        None => 0,
        Some(Roots::System) => 1,
        Some(Roots::File(_)) => 2,
    };
    Signature::of_shape(options.mode as u8 * 8 + roots * 2 + u8::from(is_read), text)
}
