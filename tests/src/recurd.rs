//! recurd, run as an operator would run it, and a client that speaks HTTP to it.

use crate::cluster::Cluster;
use crate::consumers::{cargo, once, root};
use crate::programs::{spawn_tied_to_this_process, state, succeed};
use crate::server::PORT;
use crate::wait::eventually_some;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::{NamedTempFile, TempDir};

/// Where no test ends by itself, a reply that does not come fails it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running recurd; killed when dropped.
pub struct Recurd {
    child: Child,
    log: NamedTempFile,
    _folder: TempDir,
    pub address: SocketAddr,
}

/// What a server has answered.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Reply {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The reply, if it has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Reply {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }
}

/// A command of recurd's with this configuration, logging in to a database as this role.
fn command(
    cluster: &Cluster,
    database: &str,
    login: &str,
    config: &str,
    folder: &TempDir,
) -> Command {
    let path = folder.path().join("recurd.toml");
    fs::write(&path, config).expect("a configuration");
    let mut command = Command::new(program());
    command.arg("--config").arg(path).env(
        "RECURD_DATABASE_URL",
        format!(
            "host={} port={PORT} user={login} dbname={}",
            cluster.sockets().display(),
            cluster.name_of(database)
        ),
    );
    command
}

impl Recurd {
    /// Starts one on a port of the system's choice.
    pub fn start(cluster: &Cluster, database: &str, config: &str) -> Recurd {
        let config = format!("listen = \"127.0.0.1:0\"\n{config}");
        let folder = TempDir::new().expect("a folder");
        let mut command = command(cluster, database, "recurd", &config, &folder);
        command.arg("serve");
        Recurd::spawn(command, folder)
    }

    /// Starts one that is not configured at all.
    pub fn unconfigured() -> Recurd {
        let mut command = Command::new(program());
        command.arg("serve").env("RECURD_LISTEN", "127.0.0.1:0");
        Recurd::spawn(command, TempDir::new().expect("a folder"))
    }

    fn spawn(mut command: Command, folder: TempDir) -> Recurd {
        let log = NamedTempFile::new().expect("a file");
        let file = log.reopen().expect("a file");
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a file"))
            .stderr(file);
        let child = spawn_tied_to_this_process(command);
        let address = eventually_some("recurd listens", || {
            let text = fs::read_to_string(log.path()).unwrap_or_default();
            let mut lines = text
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let started = lines.find(|line| line["event"] == "server.started")?;
            started["address"].as_str()?.parse().ok()
        });
        Recurd {
            child,
            log,
            _folder: folder,
            address,
        }
    }

    /// Runs `recurd check` to its end.
    pub fn check(cluster: &Cluster, database: &str, login: &str, config: &str) -> Output {
        let folder = TempDir::new().expect("a folder");
        let mut command = command(cluster, database, login, config, &folder);
        command.arg("check").output().expect("recurd runs")
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.log.path()).unwrap_or_default()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("a signal");
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("its end")
    }

    /// One request on a connection of its own.
    #[track_caller]
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n",
            self.address
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() || method != "GET" {
            request.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        request.push_str(body);
        self.send_raw(request.as_bytes())
    }

    /// These bytes, whatever they are.
    #[track_caller]
    pub fn send_raw(&self, request: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        // A server that refuses a large body may close before it has read all of it.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        parse(&String::from_utf8_lossy(&bytes))
    }

    /// A request with a JSON body and a token; the token of a role of `tokens`.
    #[track_caller]
    pub fn call(&self, role: &str, method: &str, path: &str, body: &str) -> Reply {
        self.call_with(role, method, path, &[], body)
    }

    /// The same with more headers.
    #[track_caller]
    pub fn call_with(
        &self,
        role: &str,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let authorization = format!("Bearer {}", token(role));
        let mut headers = vec![("authorization", authorization.as_str())];
        if !body.is_empty() {
            headers.push(("content-type", "application/json"));
        }
        headers.extend(more);
        self.send(method, path, &headers, body)
    }
}

/// What the tests' configurations know a role by.
pub fn token(role: &str) -> String {
    format!("a-token-of-{role}")
}

#[track_caller]
fn parse(text: &str) -> Reply {
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("no reply: {text:?}"));
    let mut lines = head.lines();
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    Reply {
        status: status.expect("a status"),
        headers: headers.collect(),
        body: body.to_owned(),
    }
}

impl Drop for Recurd {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- recurd's log ---\n{}", self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Built once for a run of the tests, and kept under a name of its own: a build may replace cargo's.
pub fn program() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    once(&MADE, "recurd", |path| {
        succeed(cargo().args(["build", "--quiet", "-p", "recurd"]));
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| root().join("target"), PathBuf::from);
        let new = state().join("recurd.new");
        fs::copy(target.join("debug/recurd"), &new).expect("a copy");
        fs::rename(&new, path).expect("a rename");
    })
}

/// Schemathesis, from PyPI, in an environment of its own.
pub fn schemathesis() -> Command {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let folder = once(&MADE, "schemathesis", |path| {
        if path.join("complete").exists() {
            return;
        }
        succeed(Command::new("python3").args(["-m", "venv"]).arg(path));
        succeed(Command::new(path.join("bin/pip")).args([
            "install",
            "--quiet",
            "schemathesis==4.32.5",
        ]));
        fs::File::create(path.join("complete")).expect("a file");
    });
    let mut command = Command::new(folder.join("bin/schemathesis"));
    // It leaves its notes where it runs.
    command.current_dir(&folder);
    command
}

/// promtool of Debian's package, which is unpacked and not installed: its service stays away.
pub fn promtool() -> Command {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let folder = once(&MADE, "prometheus", |path| {
        if path.join("usr/bin/promtool").exists() {
            return;
        }
        let download = TempDir::new().expect("a folder");
        succeed(Command::new("apt-get").current_dir(&download).args([
            "download",
            "--quiet",
            "prometheus",
        ]));
        let mut files = fs::read_dir(&download).expect("a folder").flatten();
        let package = files.next().expect("a package").path();
        succeed(Command::new("dpkg").arg("--extract").arg(package).arg(path));
    });
    Command::new(folder.join("usr/bin/promtool"))
}
