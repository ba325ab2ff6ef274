//! Time zones: names, and the conversion between instants and wall-clock readings.

mod table;

use std::fmt;
use std::str::FromStr;

use chrono_tz::{TZ_VARIANTS, Tz};

use crate::error::ZoneError;
use crate::nearest::nearest_name;
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

/// The zone whose name, or whose city, is nearest to a name that is no zone's.
pub(crate) fn nearest_zone(name: &str) -> Option<&'static str> {
    // A name with a number is an offset: another one that differs in a digit was not meant.
    if name.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let written = name.trim().replace(' ', "_").to_ascii_lowercase();
    let spelt: Vec<(String, &'static str)> = TZ_VARIANTS
        .iter()
        .map(|tz| (tz.name().to_ascii_lowercase(), tz.name()))
        .collect();
    let whole = spelt.iter().map(|(lower, name)| (lower.as_str(), *name));
    // A city stands behind its region, which is left out more often than misspelt.
    let cities = whole
        .clone()
        .filter_map(|(lower, name)| Some((lower.rsplit_once('/')?.1, name)));
    let candidates: Vec<(&str, &'static str)> = match written.contains('/') {
        true => whole.collect(),
        false => cities.chain(whole).collect(),
    };
    let nearest = nearest_name(&written, candidates.iter().map(|(lower, _)| *lower))?;
    let found = candidates.iter().find(|(lower, _)| *lower == nearest)?;
    Some(found.1)
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
