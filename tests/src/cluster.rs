//! A private PostgreSQL cluster.

use crate::clock;
use crate::session::Session;
use crate::wait::eventually_some;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Pid, Uid, User};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, OnceLock, Weak, mpsc};
use tempfile::TempDir;

const PORT: u16 = 5432;

/// Every cluster has these; a test adds its own.
const SETTINGS: &str = "
listen_addresses = ''
fsync = off
max_connections = 40
max_worker_processes = 20
log_line_prefix = '%m [%p] %b '
recur.check_interval = '1h'
";

/// A server with pg_recur preloaded, unless the test says otherwise. Stopped and removed when dropped.
pub struct Cluster {
    folder: TempDir,
    server: Option<Child>,
}

#[derive(Clone, Copy, Debug)]
pub enum Shutdown {
    /// Ends sessions, writes everything, exits.
    Fast,
    /// `pg_ctl stop -m immediate`: as in a crash, but every process ends at once.
    Immediate,
    /// kill -9 of the postmaster.
    Kill,
}

impl Cluster {
    /// The safety net of these clusters is an hour wide: whatever happens in a test happens because a worker was
    /// woken or slept until the exact instant.
    pub fn start() -> Cluster {
        Cluster::with("shared_preload_libraries = 'pg_recur'")
    }

    /// A server without workers, shared by the tests of a file that run at the same time: each has a database of its
    /// own, and a clock of its own with `recur.tick`.
    pub fn quiet() -> Arc<Cluster> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(cluster) = shared.upgrade() {
            return cluster;
        }
        let cluster = Arc::new(Cluster::with(
            "shared_preload_libraries = 'pg_recur'\nrecur.enabled = off\nmax_connections = 100",
        ));
        *shared = Arc::downgrade(&cluster);
        cluster
    }

    /// A server with these lines in its configuration and nothing preloaded but what they say.
    pub fn with(settings: &str) -> Cluster {
        let mut cluster = Cluster::unstarted(settings);
        cluster.launch();
        cluster
    }

    pub(crate) fn unstarted(settings: &str) -> Cluster {
        let cluster = Cluster::prepare();
        copy_tree(template(), &cluster.data());
        cluster.configure(&format!("{SETTINGS}{settings}"));
        cluster
    }

    /// A streaming standby of this server, started.
    pub fn standby(&self) -> Cluster {
        let mut standby = Cluster::prepare();
        let output = as_server(&bin("pg_basebackup"))
            .args([
                "--checkpoint=fast",
                "--write-recovery-conf",
                "--username=postgres",
            ])
            .arg("--host")
            .arg(self.folder.path())
            .arg("--pgdata")
            .arg(standby.data())
            .output()
            .expect("pg_basebackup");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        standby.configure("");
        standby.launch();
        standby
    }

    fn prepare() -> Cluster {
        let folder = tempfile::Builder::new()
            .prefix("pgr-")
            .tempdir_in("/tmp")
            .expect("a folder");
        give_to_server(folder.path());
        Cluster {
            folder,
            server: None,
        }
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The folder of its socket, which is what clients call its host.
    pub fn sockets(&self) -> PathBuf {
        self.folder.path().to_path_buf()
    }

    /// Adds lines to the configuration; the last one of a name counts.
    pub fn configure(&self, settings: &str) {
        let mut file = OpenOptions::new()
            .append(true)
            .open(self.data().join("postgresql.conf"))
            .expect("postgresql.conf");
        let sockets = self.folder.path().display();
        writeln!(file, "unix_socket_directories = '{sockets}'\n{settings}").expect("settings");
    }

    /// SIGHUP to the postmaster.
    pub fn reload(&self) {
        kill(self.postmaster(), Signal::SIGHUP).expect("SIGHUP");
    }

    pub fn launch(&mut self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join("log"))
            .expect("a log");
        let mut command = as_server(&bin("postgres"));
        command
            .arg("-D")
            .arg(self.data())
            .envs(clock::environment(self.folder.path()))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log);
        self.server = Some(spawn_tied_to_this_process(command));
        eventually_some("the server accepts connections", || {
            self.try_connect("postgres")
        });
    }

    /// Ends the server in this way and waits for its end.
    pub fn stop(&mut self, shutdown: Shutdown) {
        let Some(mut server) = self.server.take() else {
            return;
        };
        let signal = match shutdown {
            Shutdown::Fast => Signal::SIGINT,
            Shutdown::Immediate => Signal::SIGQUIT,
            Shutdown::Kill => Signal::SIGKILL,
        };
        kill(Pid::from_raw(server.id() as i32), signal).expect("a signal");
        server.wait().expect("the end of the server");
        if let Shutdown::Kill = shutdown {
            // Its children notice that it is gone and leave; until then a new server would not start.
            eventually_some("the orphans have left", || {
                self.nobody_attached().then_some(())
            });
        }
    }

    pub fn restart(&mut self, shutdown: Shutdown) {
        self.stop(shutdown);
        self.launch();
    }

    /// Lets a standby become a primary.
    pub fn promote(&self) {
        self.session("postgres").execute("SELECT pg_promote()", &[]);
    }

    pub fn session(&self, database: &str) -> Session {
        self.try_connect(database)
            .unwrap_or_else(|| panic!("no connection to {database}"))
    }

    /// A session of another role than the superuser.
    pub fn session_as(&self, user: &str, database: &str) -> Session {
        Session::connect(self.folder.path(), PORT, database, user)
            .unwrap_or_else(|error| panic!("{user} can not connect to {database}: {error}"))
    }

    /// One of PostgreSQL's programs, told where this server is; the caller adds what it shall do.
    pub fn program(&self, name: &str, user: &str) -> Command {
        let mut command = as_server(&bin(name));
        command
            .env("PGHOST", self.folder.path())
            .env("PGPORT", PORT.to_string())
            .env("PGUSER", user)
            .env("PGOPTIONS", "-c client_min_messages=warning");
        command
    }

    /// A folder of this cluster, for files that the server's user may write.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A new database with the extension, and a session in it.
    pub fn database(&self, name: &str) -> Session {
        self.session("postgres")
            .execute(&format!("CREATE DATABASE {name}"), &[]);
        let mut session = self.session(name);
        session.execute("CREATE EXTENSION pg_recur", &[]);
        session
    }

    /// Runs a script in psql, which stops at the first error.
    pub fn psql(&self, database: &str, script: &str) -> Output {
        let mut psql = as_server(&bin("psql"))
            .args([
                "--no-psqlrc",
                "--set=ON_ERROR_STOP=1",
                "--username=postgres",
                "--file=-",
            ])
            .arg("--host")
            .arg(self.folder.path())
            .arg("--dbname")
            .arg(database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("psql");
        let mut input = psql.stdin.take().expect("a pipe");
        input.write_all(script.as_bytes()).expect("psql reads");
        drop(input);
        psql.wait_with_output().expect("psql ends")
    }

    /// What pg_dump says of a database.
    pub fn dump(&self, database: &str) -> String {
        let output = as_server(&bin("pg_dump"))
            .args(["--username=postgres", "--host"])
            .arg(self.folder.path())
            .arg(database)
            .output()
            .expect("pg_dump");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// None while the server does not take connections.
    pub fn try_connect(&self, database: &str) -> Option<Session> {
        Session::connect(self.folder.path(), PORT, database, "postgres").ok()
    }

    fn postmaster(&self) -> Pid {
        Pid::from_raw(self.server.as_ref().expect("a running server").id() as i32)
    }

    /// Is nothing left that works in this data folder?
    fn nobody_attached(&self) -> bool {
        let data = self.data();
        fs::read_dir("/proc")
            .expect("/proc")
            .flatten()
            .all(|process| {
                fs::read_link(process.path().join("cwd")).map_or(true, |cwd| cwd != data)
            })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the server's log ---\n{}", self.log());
        }
        self.stop(Shutdown::Immediate);
    }
}

/// The folder with the server's programs; `make test` says where it is.
fn bin(program: &str) -> PathBuf {
    let folder = std::env::var_os("PG_RECUR_BIN")
        .expect("PG_RECUR_BIN is not set: run these tests with `make test`");
    PathBuf::from(folder).join(program)
}

/// The user who runs the server. PostgreSQL refuses to run as root.
fn server_user() -> (Uid, Gid) {
    if !Uid::effective().is_root() {
        return (Uid::effective(), Gid::effective());
    }
    let name = std::env::var("PG_RECUR_SERVER_USER").unwrap_or_else(|_| "postgres".to_owned());
    let user = User::from_name(&name).ok().flatten();
    let user = user.unwrap_or_else(|| panic!("there is no user {name} to run the server"));
    (user.uid, user.gid)
}

pub(crate) fn give_to_server(path: &Path) {
    let (uid, gid) = server_user();
    std::os::unix::fs::chown(path, Some(uid.as_raw()), Some(gid.as_raw())).expect("chown");
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).expect("chmod");
}

pub(crate) fn as_server(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/");
    if Uid::effective().is_root() {
        let (uid, gid) = server_user();
        command.uid(uid.as_raw()).gid(gid.as_raw());
    }
    command
}

/// An initialized data folder to copy: initdb takes longer than all the rest of a cluster's start. Made once for each
/// version of PostgreSQL, and kept with what `make clean` removes.
fn template() -> &'static Path {
    static TEMPLATE: OnceLock<PathBuf> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let state = std::env::var_os("PG_RECUR_STATE")
            .expect("PG_RECUR_STATE is not set: run these tests with `make test`");
        let version = Command::new(bin("postgres"))
            .arg("--version")
            .output()
            .expect("postgres --version")
            .stdout;
        let version: String = String::from_utf8_lossy(&version)
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '.')
            .collect();
        let template = PathBuf::from(&state).join(format!("template-{version}"));
        if !template.exists() {
            let folder = tempfile::Builder::new()
                .prefix("template-")
                .tempdir_in(&state)
                .expect("a folder");
            give_to_server(folder.path());
            let output = as_server(&bin("initdb"))
                .args([
                    "--username=postgres",
                    "--auth=trust",
                    "--encoding=UTF8",
                    "--locale=C",
                ])
                .arg("--pgdata")
                .arg(folder.path())
                .output()
                .expect("initdb");
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            // Should another test process have been faster, its template is as good.
            let _ = fs::rename(folder.path(), &template);
        }
        template
    })
}

fn copy_tree(from: &Path, to: &Path) {
    let status: ExitStatus = as_server(Path::new("cp"))
        .arg("--recursive")
        .arg("--preserve=mode")
        .arg(from)
        .arg(to)
        .status()
        .expect("cp");
    assert!(status.success(), "could not copy the template");
}

/// Starts a server that ends when this process does, however it ends.
///
/// The kernel sends the signal when the *thread* that started the child ends, and test threads come and go: a thread
/// that lives as long as the process starts them all.
pub(crate) fn spawn_tied_to_this_process(command: Command) -> Child {
    type Order = (Command, mpsc::Sender<std::io::Result<Child>>);
    static STARTER: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (orders, inbox) = mpsc::channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, reply) in inbox {
                // SAFETY: prctl is async-signal-safe.
                unsafe {
                    command.pre_exec(|| {
                        nix::libc::prctl(nix::libc::PR_SET_PDEATHSIG, nix::libc::SIGQUIT);
                        Ok(())
                    });
                }
                let _ = reply.send(command.spawn());
            }
        });
        orders
    });
    let (reply, answer) = mpsc::channel();
    starter.send((command, reply)).expect("the starter lives");
    answer
        .recv()
        .expect("an answer")
        .expect("the server starts")
}
