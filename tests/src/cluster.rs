//! What a test has of a server: all of it, or databases of its own on a server that many tests share.

use crate::disk::Disks;
use crate::permits::{Permit, permit};
use crate::programs::succeed;
use crate::server::{Server, Shutdown};
use crate::session::Session;
use crate::wait::eventually;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

/// The setting that nearly every server has.
pub(crate) const PRELOADED: &str = "shared_preload_libraries = 'pg_recur'";

static WITH_WORKERS: Mutex<Option<Arc<Server>>> = Mutex::new(None);
static WITHOUT_WORKERS: Mutex<Option<Arc<Server>>> = Mutex::new(None);

/// A server of a test's own is stopped and removed when this is dropped; of a shared one the test's databases are.
pub struct Cluster {
    server: Hold,
    _permit: Arc<Permit>,
}

enum Hold {
    Own(Server),
    Shared(Share),
}

/// The databases of one test on a server that others use as well.
struct Share {
    server: Arc<Server>,
    /// Part of their names: other tests have databases of the same names.
    number: usize,
    databases: Mutex<Vec<String>>,
    has_workers: bool,
}

impl Cluster {
    /// A server of its own. Its safety net is an hour wide: whatever happens in a test happens because a worker was
    /// woken or slept until the exact instant.
    pub fn start() -> Cluster {
        Cluster::with(PRELOADED)
    }

    /// A server of its own with pg_recur and these settings.
    pub fn preloaded(settings: &str) -> Cluster {
        Cluster::with(&format!("{PRELOADED}\n{settings}"))
    }

    /// A server of its own with these lines in its configuration, and nothing preloaded but what they say.
    pub fn with(settings: &str) -> Cluster {
        let mut cluster = Cluster::unstarted(settings);
        cluster.launch();
        cluster
    }

    pub(crate) fn unstarted(settings: &str) -> Cluster {
        let permit = permit();
        Cluster::of(Hold::Own(Server::new(settings)), permit)
    }

    pub(crate) fn unstarted_on_disks(settings: &str) -> Cluster {
        let permit = permit();
        Cluster::of(Hold::Own(Server::on_disks(settings)), permit)
    }

    /// Databases on a server that is like that of `start`. For tests that neither restart nor configure the server, nor
    /// look at what is not of their database: its log, its workers, its roles.
    pub fn shared() -> Cluster {
        Cluster::on(&WITH_WORKERS, true)
    }

    /// The same without workers: such a test sets its clock itself, with `recur.tick`.
    pub fn quiet() -> Cluster {
        Cluster::on(&WITHOUT_WORKERS, false)
    }

    fn on(shared: &Mutex<Option<Arc<Server>>>, has_workers: bool) -> Cluster {
        static NUMBER: AtomicUsize = AtomicUsize::new(1);
        let permit = permit();
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let settings = if has_workers {
            ""
        } else {
            "recur.enabled = off"
        };
        let server = shared.get_or_insert_with(|| {
            let mut server = Server::new(&format!(
                "{PRELOADED}\nmax_connections = 200\nmax_worker_processes = 100\n{settings}"
            ));
            server.launch();
            stop_shared_at_exit();
            Arc::new(server)
        });
        let share = Share {
            server: Arc::clone(server),
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            databases: Mutex::new(Vec::new()),
            has_workers,
        };
        Cluster::of(Hold::Shared(share), permit)
    }

    fn of(server: Hold, permit: Arc<Permit>) -> Cluster {
        Cluster {
            server,
            _permit: permit,
        }
    }

    /// A streaming standby of this server, started.
    pub fn standby(&self) -> Cluster {
        let mut standby = Server::standby_of(self.server());
        standby.launch();
        Cluster::of(Hold::Own(standby), permit())
    }

    fn server(&self) -> &Server {
        match &self.server {
            Hold::Own(server) => server,
            Hold::Shared(share) => &share.server,
        }
    }

    fn own(&self) -> &Server {
        match &self.server {
            Hold::Own(server) => server,
            Hold::Shared(_) => panic!("a test that changes the server has one of its own"),
        }
    }

    fn own_mut(&mut self) -> &mut Server {
        match &mut self.server {
            Hold::Own(server) => server,
            Hold::Shared(_) => panic!("a test that stops the server has one of its own"),
        }
    }

    /// What the server calls the database that the test calls so.
    pub fn name_of(&self, database: &str) -> String {
        match &self.server {
            Hold::Shared(share) if database != "postgres" => {
                format!("{database}_{}", share.number)
            }
            _ => database.to_owned(),
        }
    }

    pub fn data(&self) -> PathBuf {
        self.server().data()
    }

    /// The folder of its socket, which is what clients call its host.
    pub fn sockets(&self) -> PathBuf {
        self.server().folder().to_path_buf()
    }

    /// A folder for files that the server's user may write.
    pub fn folder(&self) -> &Path {
        self.server().folder()
    }

    /// Adds lines to the configuration; the last one of a name counts.
    pub fn configure(&self, settings: &str) {
        self.own().configure(settings);
    }

    /// SIGHUP to the postmaster.
    pub fn reload(&self) {
        self.own().reload();
    }

    pub fn launch(&mut self) {
        self.own_mut().launch();
    }

    /// Ends the server in this way and waits for its end.
    pub fn stop(&mut self, shutdown: Shutdown) {
        self.own_mut().stop(shutdown);
    }

    pub fn restart(&mut self, shutdown: Shutdown) {
        self.stop(shutdown);
        self.launch();
    }

    /// Returns when the server takes connections again; starts it if its postmaster has ended.
    pub fn revive(&mut self) {
        eventually("the server is back", || {
            if self.own_mut().has_ended() {
                self.stop(Shutdown::Immediate);
                self.launch();
            }
            self.try_connect("postgres").is_some()
        });
    }

    /// The disks that can be filled, if it has any.
    pub fn disks(&self) -> Option<&Disks> {
        self.server().disks()
    }

    /// Lets a standby become a primary.
    pub fn promote(&self) {
        self.session("postgres").execute("SELECT pg_promote()", &[]);
    }

    pub fn session(&self, database: &str) -> Session {
        self.session_as("postgres", database)
    }

    /// A session of another role than the superuser.
    pub fn session_as(&self, user: &str, database: &str) -> Session {
        self.server()
            .connect(user, &self.name_of(database))
            .unwrap_or_else(|error| panic!("{user} can not connect to {database}: {error}"))
    }

    /// None while the server does not take connections.
    pub fn try_connect(&self, database: &str) -> Option<Session> {
        self.server()
            .connect("postgres", &self.name_of(database))
            .ok()
    }

    /// A new database without the extension; `options` are SQL.
    pub fn empty_database(&self, database: &str, options: &str) {
        let name = self.name_of(database);
        // To copy template0 no session has to leave it: several tests can do so at the same time.
        self.session("postgres").batch(&format!(
            "CREATE DATABASE {name} TEMPLATE template0 {options}"
        ));
        if let Hold::Shared(share) = &self.server {
            let mut databases = share.databases.lock().expect("no panic meanwhile");
            databases.push(name);
        }
    }

    /// A new database with the extension, and a session in it.
    pub fn database(&self, database: &str) -> Session {
        self.empty_database(database, "");
        let mut session = self.session(database);
        session.batch("CREATE EXTENSION pg_recur");
        if matches!(&self.server, Hold::Shared(share) if !share.has_workers) {
            session.batch("SELECT recur.mark_test_database()");
        }
        session
    }

    /// A new database whose clock a test sets, on any server: nothing fires by itself in it.
    pub fn test_database(&self, database: &str) -> Session {
        let mut session = self.database(database);
        session.batch("SELECT recur.mark_test_database()");
        session
    }

    /// One of PostgreSQL's programs, which finds this server by its environment; the caller adds what it shall do.
    pub fn program(&self, name: &str, user: &str) -> Command {
        self.server().program(name, user)
    }

    /// Runs a script in psql, which stops at the first error.
    pub fn psql(&self, database: &str, script: &str) -> Output {
        let mut psql = self
            .program("psql", "postgres")
            .args(["--no-psqlrc", "--set=ON_ERROR_STOP=1", "--file=-"])
            .arg("--dbname")
            .arg(self.name_of(database))
            .env_remove("PGOPTIONS")
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

    /// Runs a script that must succeed; what psql says on its error channel, where notices and plans go.
    #[track_caller]
    pub fn run_script(&self, database: &str, script: &str) -> String {
        let output = self.psql(database, script);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said
    }

    /// The plans of this statement and of those that its functions run, as this role gets them.
    #[track_caller]
    pub fn plans(&self, database: &str, role: &str, statement: &str) -> String {
        let script = format!(
            "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;
             SET client_min_messages = log; SET ROLE {role}; {statement};"
        );
        self.run_script(database, &script)
    }

    /// What pg_dump says of a database.
    pub fn dump(&self, database: &str) -> String {
        succeed(
            self.program("pg_dump", "postgres")
                .arg(self.name_of(database)),
        )
    }

    pub fn log(&self) -> String {
        self.own().log()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the server's log ---\n{}", self.log_of_test());
        }
        if let Hold::Shared(share) = &self.server {
            share.drop_databases();
        }
    }
}

impl Cluster {
    /// The log, of a shared server the lines of the test's databases only.
    fn log_of_test(&self) -> String {
        let log = self.server().log();
        match &self.server {
            Hold::Own(_) => log,
            Hold::Shared(share) => {
                let ours = format!("_{} ", share.number);
                let lines = log.lines().filter(|line| line.contains(&ours));
                lines.collect::<Vec<_>>().join("\n")
            }
        }
    }
}

impl Share {
    /// Their workers would take the places of others.
    fn drop_databases(&self) {
        let databases = self
            .databases
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // A panic here, while the test panics, would end all tests.
        let Ok(mut session) = self.server.connect("postgres", "postgres") else {
            return;
        };
        for name in databases.iter() {
            let dropped = session
                .0
                .batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
            if let Err(error) = dropped {
                eprintln!("{name} is not dropped: {error}");
            }
        }
    }
}

/// What a static holds is never dropped: these servers are stopped and removed when the process ends.
fn stop_shared_at_exit() {
    static REGISTER: Once = Once::new();
    extern "C" fn stop() {
        for server in [&WITH_WORKERS, &WITHOUT_WORKERS] {
            server.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }
    // SAFETY: the handler is a function of this program, and touches nothing but statics.
    REGISTER.call_once(|| unsafe {
        nix::libc::atexit(stop);
    });
}
