//! A PostgreSQL server in a folder of its own.

use crate::clock;
use crate::disk::Disks;
use crate::programs::{as_server, bin, give_to_server, spawn_tied_to_this_process, state, succeed};
use crate::session::Session;
use crate::wait::eventually_some;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

pub(crate) const PORT: u16 = 5432;

/// Every server has these; a test adds its own.
const SETTINGS: &str = "
listen_addresses = ''
fsync = off
max_connections = 40
max_worker_processes = 20
log_line_prefix = '%m [%p] %b %d '
recur.check_interval = '1h'
";

#[derive(Clone, Copy, Debug)]
pub enum Shutdown {
    /// Ends sessions, writes everything, exits.
    Fast,
    /// `pg_ctl stop -m immediate`: as in a crash, but every process ends at once.
    Immediate,
    /// kill -9 of the postmaster.
    Kill,
}

/// Stopped and removed when dropped.
pub(crate) struct Server {
    /// Unmounted before the folder is removed.
    disks: Option<Disks>,
    folder: TempDir,
    process: Option<Child>,
}

impl Server {
    /// A server that is not started yet, with these lines in its configuration.
    pub(crate) fn new(settings: &str) -> Server {
        let server = Server::empty();
        copy_tree(template(), &server.data());
        server.configure(&format!("{SETTINGS}{settings}"));
        server
    }

    /// The same, on disks of its own where this process may mount them.
    pub(crate) fn on_disks(settings: &str) -> Server {
        let mut server = Server::empty();
        server.disks = Disks::mount(server.folder());
        copy_tree(template(), &server.data());
        if server.disks.is_some() {
            let wal = server.data().join("pg_wal");
            copy_tree(&wal, &server.wal());
            fs::remove_dir_all(&wal).expect("the WAL moves");
            std::os::unix::fs::symlink(server.wal(), &wal).expect("a link");
        }
        server.configure(&format!("{SETTINGS}{settings}"));
        server
    }

    fn wal(&self) -> PathBuf {
        self.folder().join("wal")
    }

    pub(crate) fn disks(&self) -> Option<&Disks> {
        self.disks.as_ref()
    }

    /// A standby of another server, not started yet: on disks if the other is, and with the same clock.
    pub(crate) fn standby_of(primary: &Server) -> Server {
        let mut standby = Server::empty();
        let mut backup = as_server(&bin("pg_basebackup"));
        backup
            .args([
                "--checkpoint=fast",
                "--write-recovery-conf",
                "--username=postgres",
            ])
            .arg("--host")
            .arg(primary.folder())
            .arg("--pgdata")
            .arg(standby.data());
        if primary.disks.is_some() {
            standby.disks = Disks::mount(standby.folder());
            backup.arg("--waldir").arg(standby.wal());
        }
        succeed(&mut backup);
        clock::copy(primary.folder(), standby.folder());
        standby.configure("");
        standby
    }

    fn empty() -> Server {
        let folder = tempfile::Builder::new()
            .prefix("pgr-")
            .tempdir_in("/tmp")
            .expect("a folder");
        give_to_server(folder.path());
        Server {
            disks: None,
            folder,
            process: None,
        }
    }

    /// Where its socket is as well, which is what clients call its host.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    /// Adds lines to the configuration; the last one of a name counts.
    pub(crate) fn configure(&self, settings: &str) {
        let mut file = OpenOptions::new()
            .append(true)
            .open(self.data().join("postgresql.conf"))
            .expect("postgresql.conf");
        let sockets = self.folder().display();
        writeln!(file, "unix_socket_directories = '{sockets}'\n{settings}").expect("settings");
    }

    /// SIGHUP to the postmaster.
    pub(crate) fn reload(&self) {
        let postmaster = self.process.as_ref().expect("a running server");
        kill(Pid::from_raw(postmaster.id() as i32), Signal::SIGHUP).expect("SIGHUP");
    }

    pub(crate) fn launch(&mut self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder().join("log"))
            .expect("a log");
        let mut command = as_server(&bin("postgres"));
        command
            .arg("-D")
            .arg(self.data())
            .envs(clock::environment(self.folder()))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log);
        self.process = Some(spawn_tied_to_this_process(command));
        eventually_some("the server accepts connections", || {
            self.connect("postgres", "postgres").ok()
        });
    }

    /// Has the server ended by itself? A crash that it can't recover from ends the postmaster, too.
    pub(crate) fn has_ended(&mut self) -> bool {
        let process = self.process.as_mut();
        process.is_none_or(|process| process.try_wait().expect("a child").is_some())
    }

    /// Ends the server in this way and waits for its end.
    pub(crate) fn stop(&mut self, shutdown: Shutdown) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        let signal = match shutdown {
            Shutdown::Fast => Signal::SIGINT,
            Shutdown::Immediate => Signal::SIGQUIT,
            Shutdown::Kill => Signal::SIGKILL,
        };
        if process.try_wait().expect("a child").is_none() {
            kill(Pid::from_raw(process.id() as i32), signal).expect("a signal");
        }
        process.wait().expect("the end of the server");
        if let Shutdown::Kill = shutdown {
            // Its children notice that it is gone and leave; until then a new server would not start.
            eventually_some("the orphans have left", || {
                self.is_abandoned().then_some(())
            });
        }
    }

    pub(crate) fn connect(&self, user: &str, database: &str) -> Result<Session, postgres::Error> {
        Session::connect(self.folder(), PORT, database, user)
    }

    /// One of PostgreSQL's programs, which finds this server by its environment.
    pub(crate) fn program(&self, name: &str, user: &str) -> Command {
        let mut command = as_server(&bin(name));
        command
            .env("PGHOST", self.folder())
            .env("PGPORT", PORT.to_string())
            .env("PGUSER", user)
            .env("PGOPTIONS", "-c client_min_messages=warning");
        command
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder().join("log")).unwrap_or_default()
    }

    /// Does no process work in its data folder any more?
    fn is_abandoned(&self) -> bool {
        let data = self.data();
        fs::read_dir("/proc")
            .expect("/proc")
            .flatten()
            .all(|process| {
                fs::read_link(process.path().join("cwd")).map_or(true, |cwd| cwd != data)
            })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop(Shutdown::Immediate);
    }
}

/// An initialized data folder to copy: initdb takes longer than all the rest of a server's start. Made once for each
/// version of PostgreSQL.
fn template() -> &'static Path {
    static TEMPLATE: OnceLock<PathBuf> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let version: String = succeed(Command::new(bin("postgres")).arg("--version"))
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '.')
            .collect();
        let template = state().join(format!("template-{version}"));
        if !template.exists() {
            let folder = tempfile::Builder::new()
                .prefix("template-")
                .tempdir_in(state())
                .expect("a folder");
            give_to_server(folder.path());
            succeed(
                as_server(&bin("initdb"))
                    .args([
                        "--username=postgres",
                        "--auth=trust",
                        "--encoding=UTF8",
                        "--locale=C",
                    ])
                    .arg("--pgdata")
                    .arg(folder.path()),
            );
            // Should another test process have been faster, its template is as good.
            let _ = fs::rename(folder.path(), &template);
        }
        template
    })
}

fn copy_tree(from: &Path, to: &Path) {
    succeed(
        as_server(Path::new("cp"))
            .args(["--recursive", "--preserve=mode"])
            .arg(from.join("."))
            .arg(to),
    );
}
