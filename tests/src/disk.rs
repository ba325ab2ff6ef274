//! Small disks for a server, which a test can fill.

use crate::programs::{server_ids, succeed};
use nix::unistd::Uid;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a server's tables are, and where its WAL is.
pub struct Disks {
    pub data: Disk,
    pub wal: Disk,
}

const DATA_MEGABYTES: u32 = 512;
const WAL_MEGABYTES: u32 = 384;
const BALLAST: &str = "ballast";

impl Disks {
    /// The reason why this process can't have any.
    pub fn unavailable() -> Option<&'static str> {
        (!Uid::effective().is_root()).then_some("only root may mount a file system")
    }

    /// Mounts both in a server's folder, before anything is there.
    pub(crate) fn mount(folder: &Path) -> Option<Disks> {
        Disks::unavailable().is_none().then(|| Disks {
            data: Disk::mount(folder.join("data"), DATA_MEGABYTES),
            wal: Disk::mount(folder.join("wal"), WAL_MEGABYTES),
        })
    }
}

/// A file system in memory; unmounted when dropped.
pub struct Disk {
    folder: PathBuf,
}

impl Disk {
    fn mount(folder: PathBuf, megabytes: u32) -> Disk {
        fs::create_dir(&folder).expect("a folder");
        let (uid, gid) = server_ids();
        let options = format!("size={megabytes}m,mode=0700,uid={uid},gid={gid}");
        succeed(
            Command::new("mount")
                .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
                .arg(&folder),
        );
        Disk { folder }
    }

    /// Leaves not a byte.
    pub fn fill(&self) {
        let mut ballast = File::create(self.folder.join(BALLAST)).expect("ballast");
        for block in [1 << 20, 1 << 12] {
            let block = vec![0; block];
            while ballast.write_all(&block).is_ok() {}
        }
    }

    /// There is room again.
    pub fn free(&self) {
        fs::remove_file(self.folder.join(BALLAST)).expect("the ballast");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: the last process of the server may still be leaving.
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(&self.folder)
            .status();
    }
}
