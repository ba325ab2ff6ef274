//! Time zones: names, and the conversion between instants and wall-clock readings.

mod table;

use std::fmt;
use std::str::FromStr;

use chrono_tz::Tz;

use crate::error::ZoneError;
pub(crate) use table::{Reading, Transition, ZoneTable};

/// An IANA time zone.
///
/// # Examples
/// ```
/// use recurrence::Zone;
///
/// assert_eq!(Zone::parse("america/new_york")?.name(), "America/New_York");
/// assert_eq!(Zone::parse("UTC")?, Zone::UTC);
/// assert!(Zone::parse("GMT+25").is_err());
/// # Ok::<(), recurrence::ZoneError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Zone {
    tz: Tz,
    table: &'static ZoneTable,
}

impl Zone {
    /// Coordinated Universal Time.
    pub const UTC: Zone = Zone {
        tz: Tz::UTC,
        table: &ZoneTable::UTC,
    };

    /// Finds a zone or link of the IANA database by its name, ignoring case.
    ///
    /// The first use of a zone costs about a millisecond.
    ///
    /// # Errors
    /// When the database has no such name.
    pub fn parse(name: &str) -> Result<Zone, ZoneError> {
        let tz = Tz::from_str_insensitive(name).map_err(|_| ZoneError {
            name: name.to_owned(),
        })?;
        Ok(Zone {
            tz,
            table: ZoneTable::of(tz),
        })
    }

    /// The name as the IANA database spells it.
    pub fn name(self) -> &'static str {
        self.tz.name()
    }

    pub(crate) fn table(self) -> &'static ZoneTable {
        self.table
    }
}

/// The release of the IANA database that is compiled in, such as `2025b`.
///
/// # Examples
/// ```
/// assert!(recurrence::tzdata_version().starts_with("20"));
/// ```
pub fn tzdata_version() -> &'static str {
    chrono_tz::IANA_TZDB_VERSION
}

impl FromStr for Zone {
    type Err = ZoneError;

    fn from_str(name: &str) -> Result<Zone, ZoneError> {
        Zone::parse(name)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name())
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Zone) -> bool {
        self.tz == other.tz
    }
}

impl Eq for Zone {}

impl std::hash::Hash for Zone {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.tz.hash(state);
    }
}
