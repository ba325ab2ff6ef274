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

/// Lays the clock of one cluster's folder, if there is one, into another, with the same shift.
pub(crate) fn copy(from: &Path, to: &Path) {
    if from.join(LIBRARY).exists() {
        for file in [LIBRARY, SHIFT] {
            fs::copy(from.join(file), to.join(file)).expect("a copy");
        }
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
        let cluster = Cluster::unstarted(&format!("{PRELOADED}\n{settings}"));
        Cluster::launch_with_clock(cluster)
    }

    /// The same, on disks that can be filled where this process may mount them.
    pub fn with_clock_and_disks(settings: &str) -> (Cluster, Clock) {
        let cluster = Cluster::unstarted_on_disks(&format!("{PRELOADED}\n{settings}"));
        Cluster::launch_with_clock(cluster)
    }

    /// The clock of a standby whose primary has one.
    pub fn clock(&self) -> Clock {
        Clock {
            shift: self.sockets().join(SHIFT),
        }
    }

    fn launch_with_clock(mut cluster: Cluster) -> (Cluster, Clock) {
        let clock = install(&cluster.sockets());
        cluster.launch();
        let maps: String = cluster
            .session("postgres")
            .value("SELECT pg_read_file('/proc/self/maps')", &[]);
        assert!(maps.contains(LIBRARY), "the server goes by its own clock");
        (cluster, clock)
    }
}
