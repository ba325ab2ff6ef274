//! A server whose wall clock a test can set.

use crate::cluster::{Cluster, PRELOADED};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY: &str = "shifted_clock.so";
const SHIFT: &str = "clock_shift";

/// Its clock.
pub struct Clock {
    shift: PathBuf,
}

impl Clock {
    /// Puts it this many seconds off the real time.
    pub fn set(&self, seconds: i64) {
        let file = fs::OpenOptions::new().write(true).open(&self.shift);
        let file = file.expect("the clock");
        file.write_all_at(&seconds.to_ne_bytes(), 0)
            .expect("the clock is set");
    }
}

/// Lays a clock into a cluster's folder, which whatever is launched there goes by.
pub(crate) fn install(folder: &Path) -> Clock {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/shifted_clock.c");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(folder.join(LIBRARY))
        .arg(source)
        .status()
        .expect("cc");
    assert!(compiled.success());
    let shift = folder.join(SHIFT);
    fs::write(&shift, 0i64.to_ne_bytes()).expect("a clock");
    Clock { shift }
}

/// What a server is to be started with.
pub(crate) fn environment(folder: &Path) -> Vec<(&'static str, PathBuf)> {
    let library = folder.join(LIBRARY);
    match library.exists() {
        true => vec![
            ("LD_PRELOAD", library),
            ("SHIFTED_CLOCK", folder.join(SHIFT)),
        ],
        false => Vec::new(),
    }
}

impl Cluster {
    /// Like `preloaded`, and its clock can be set.
    pub fn with_clock(settings: &str) -> (Cluster, Clock) {
        let mut cluster = Cluster::unstarted(&format!("{PRELOADED}\n{settings}"));
        let clock = install(&cluster.sockets());
        cluster.launch();
        let maps: String = cluster
            .session("postgres")
            .value("SELECT pg_read_file('/proc/self/maps')", &[]);
        assert!(maps.contains(LIBRARY), "the server goes by its own clock");
        (cluster, clock)
    }
}
