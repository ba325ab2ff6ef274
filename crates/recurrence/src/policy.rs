//! What to do with wall-clock times that a clock change removes or repeats.

use std::fmt;
use std::str::FromStr;

/// The policy for a local time that does not exist, because the clock jumps over it.
///
/// # Examples
/// ```
/// use recurrence::OnGap;
///
/// assert_eq!("skip".parse::<OnGap>()?, OnGap::Skip);
/// assert_eq!(OnGap::default().to_string(), "roll_forward");
/// # Ok::<(), recurrence::PolicyError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnGap {
    /// Run at the first instant after the gap.
    #[default]
    RollForward,
    /// Don't run that time.
    Skip,
}

/// The policy for a local time that the clock shows twice.
///
/// # Examples
/// ```
/// use recurrence::OnFold;
///
/// assert_eq!("both".parse::<OnFold>()?, OnFold::Both);
/// assert_eq!(OnFold::default().to_string(), "first");
/// # Ok::<(), recurrence::PolicyError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFold {
    /// Run at the earlier instant.
    #[default]
    First,
    /// Run at the later instant.
    Second,
    /// Run at both instants.
    Both,
}

/// A policy name that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    policy: &'static str,
    value: String,
    allowed: &'static str,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} \"{}\" is unknown, expected {}",
            self.policy, self.value, self.allowed
        )
    }
}

impl std::error::Error for PolicyError {}

impl PolicyError {
    pub(crate) fn new(policy: &'static str, value: &str, allowed: &'static str) -> PolicyError {
        PolicyError {
            policy,
            value: value.to_owned(),
            allowed,
        }
    }
}

impl FromStr for OnGap {
    type Err = PolicyError;

    fn from_str(value: &str) -> Result<Self, PolicyError> {
        match value {
            "roll_forward" => Ok(OnGap::RollForward),
            "skip" => Ok(OnGap::Skip),
            _ => Err(PolicyError::new(
                "on_dst_gap",
                value,
                "roll_forward or skip",
            )),
        }
    }
}

impl fmt::Display for OnGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OnGap::RollForward => "roll_forward",
            OnGap::Skip => "skip",
        })
    }
}

impl FromStr for OnFold {
    type Err = PolicyError;

    fn from_str(value: &str) -> Result<Self, PolicyError> {
        match value {
            "first" => Ok(OnFold::First),
            "second" => Ok(OnFold::Second),
            "both" => Ok(OnFold::Both),
            _ => Err(PolicyError::new(
                "on_dst_fold",
                value,
                "first, second or both",
            )),
        }
    }
}

impl fmt::Display for OnFold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OnFold::First => "first",
            OnFold::Second => "second",
            OnFold::Both => "both",
        })
    }
}
