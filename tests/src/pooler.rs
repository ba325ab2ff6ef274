//! Debian's PgBouncer, in transaction mode.

use crate::cluster::Cluster;
use crate::programs::{as_server, give_to_server, spawn_tied_to_this_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use tempfile::TempDir;

pub const POOLER_PORT: u16 = 6432;

/// A pooler in front of a server; stopped when dropped.
pub struct Pooler {
    folder: TempDir,
    process: Child,
}

impl Pooler {
    pub fn start(cluster: &Cluster) -> Pooler {
        let folder = tempfile::Builder::new()
            .prefix("pgb-")
            .tempdir_in("/tmp")
            .expect("a folder");
        // With auth_type any the database says who its user is.
        let configuration = folder.path().join("pgbouncer.ini");
        let (server, sockets) = (cluster.sockets(), folder.path().display());
        fs::write(
            &configuration,
            format!(
                "[databases]\n* = user=postgres host={}\n[pgbouncer]\nlisten_addr =\nlisten_port = {POOLER_PORT}\n\
                 unix_socket_dir = {sockets}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n\
                 server_reset_query_always = 1\n",
                server.display()
            ),
        )
        .expect("a configuration");
        give_to_server(folder.path());
        let mut command = as_server(&program());
        command
            .arg(&configuration)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Pooler {
            process: spawn_tied_to_this_process(command),
            folder,
        }
    }

    pub fn host(&self) -> &Path {
        self.folder.path()
    }
}

/// Debian puts it where only root looks.
fn program() -> PathBuf {
    ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"]
        .map(PathBuf::from)
        .into_iter()
        .find(|path| path.exists())
        .expect("pgbouncer is not installed: make setup does it")
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
