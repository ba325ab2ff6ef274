//! The consumers of `examples/`, run as a user would run them.

use crate::cluster::Cluster;
use crate::programs::{state, succeed};
use crate::server::PORT;
use crate::wait::eventually_some;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use tempfile::NamedTempFile;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Rust,
    Python,
    Node,
}

pub const LANGUAGES: [Language; 3] = [Language::Rust, Language::Python, Language::Node];

/// A running consumer; killed when dropped.
pub struct Example {
    child: Child,
    output: NamedTempFile,
}

impl Example {
    /// Starts one on this database, with these additions to its environment.
    pub fn start(
        language: Language,
        cluster: &Cluster,
        database: &str,
        settings: &[(&str, &str)],
    ) -> Example {
        let sockets = cluster.sockets();
        Example::connect(
            language,
            &sockets.display().to_string(),
            PORT,
            &cluster.name_of(database),
            settings,
        )
    }

    pub fn connect(
        language: Language,
        host: &str,
        port: u16,
        database: &str,
        settings: &[(&str, &str)],
    ) -> Example {
        let output = NamedTempFile::new().expect("a file");
        let file = output.reopen().expect("a file");
        let plain = format!("host={host} port={port} user=postgres dbname={database}");
        let mut command = match language {
            Language::Rust => Command::new(rust()),
            Language::Python => {
                let mut command = Command::new(python());
                command.arg(examples().join("python/consumer.py"));
                command
            }
            Language::Node => {
                let mut command = Command::new("node");
                command.arg(node().join("consumer.js"));
                command
            }
        };
        match language {
            Language::Node => command.arg(format!(
                "postgresql://postgres@localhost:{port}/{database}?host={host}"
            )),
            _ => command.arg(plain),
        };
        let child = command
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a file"))
            .stderr(file)
            .spawn()
            .expect("the consumer starts");
        Example { child, output }
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("a signal");
    }

    /// Its end, within the deadline.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        eventually_some("the consumer ends", || {
            self.child.try_wait().expect("a child")
        })
    }

    pub fn output(&self) -> String {
        fs::read_to_string(self.output.path()).unwrap_or_default()
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- a consumer's output ---\n{}", self.output());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn examples() -> PathBuf {
    root().join("examples")
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace")
}

/// Only one test process at a time makes what all of them use.
pub(crate) fn once(made: &OnceLock<PathBuf>, name: &str, make: impl Fn(&Path)) -> PathBuf {
    made.get_or_init(|| {
        let path = state().join(name);
        let lock = File::create(state().join(format!("{name}.lock"))).expect("a lock");
        lock.lock().expect("the lock");
        make(&path);
        path
    })
    .clone()
}

/// cargo, without what the cargo that runs the tests has set for them: build scripts would see other values than in a
/// build by hand, and every build would undo the other.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        let of_package = [
            "CARGO_MANIFEST_",
            "CARGO_PKG_",
            "CARGO_CRATE_",
            "CARGO_BIN_",
        ];
        if of_package
            .iter()
            .any(|start| name.to_string_lossy().starts_with(start))
        {
            command.env_remove(name);
        }
    }
    command.current_dir(root());
    command
}

fn rust() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    once(&MADE, "consumer", |path| {
        succeed(cargo().args([
            "build",
            "--quiet",
            "-p",
            "pg_recur-examples",
            "--bin",
            "consumer",
        ]));
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| root().join("target"), PathBuf::from);
        // Under a new name, then renamed: the old one may be running.
        let new = path.with_extension("new");
        fs::copy(target.join("debug/consumer"), &new).expect("a copy");
        fs::rename(&new, path).expect("a rename");
    })
}

fn python() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let folder = once(&MADE, "python", |path| {
        if path.join("complete").exists() {
            return;
        }
        succeed(Command::new("python3").args(["-m", "venv"]).arg(path));
        succeed(
            Command::new(path.join("bin/pip"))
                .args(["install", "--quiet", "--requirement"])
                .arg(examples().join("python/requirements.txt")),
        );
        File::create(path.join("complete")).expect("a file");
    });
    folder.join("bin/python")
}

/// A copy of the folder: what npm installs stays out of the checkout.
fn node() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    once(&MADE, "node", |path| {
        fs::create_dir_all(path).expect("a folder");
        for file in ["package.json", "consumer.js"] {
            fs::copy(examples().join("node").join(file), path.join(file)).expect("a copy");
        }
        if !path.join("node_modules/pg").exists() {
            succeed(Command::new("npm").current_dir(path).args([
                "install",
                "--silent",
                "--no-audit",
                "--no-fund",
            ]));
        }
    })
}
