//! PostgreSQL's programs, run as the user who runs the server.

use nix::unistd::{Gid, Uid, User};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{OnceLock, mpsc};

/// The folder with the server's programs; `make test` says where it is.
pub(crate) fn bin(program: &str) -> PathBuf {
    let folder = std::env::var_os("PG_RECUR_BIN")
        .expect("PG_RECUR_BIN is not set: run these tests with `make test`");
    PathBuf::from(folder).join(program)
}

/// What the tests keep from one run to the next, removed by `make clean`.
pub(crate) fn state() -> PathBuf {
    let folder = std::env::var_os("PG_RECUR_STATE")
        .expect("PG_RECUR_STATE is not set: run these tests with `make test`");
    PathBuf::from(folder)
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

/// The numbers of the user who runs the server, and of the group.
pub(crate) fn server_ids() -> (u32, u32) {
    let (uid, gid) = server_user();
    (uid.as_raw(), gid.as_raw())
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

/// Runs a program to its end, which must be a good one; its standard output.
#[track_caller]
pub fn succeed(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Starts a program that ends when this process does, however it ends.
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
        .expect("the program starts")
}
