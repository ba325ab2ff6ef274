//! recurd as a deliverer and a receiver of webhooks: a real server, real HTTP.

mod addresses;
mod answers;
mod calls;
mod crashes;
mod documents;
mod ingress;
mod sending;
mod verify;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pg_recur_tests::receiver::{Received, Receiver};
use pg_recur_tests::recurd::program;
use pg_recur_tests::{Cluster, Session, eventually};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use tempfile::TempDir;
use uuid::Uuid;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// PostgreSQL's port of the tests' servers.
const PORT: u16 = 5432;

/// A server with the roles of a deliverer, an author, and a source of webhooks.
struct Site {
    session: Session,
    cluster: Cluster,
    folder: TempDir,
}

/// A running `recurd deliver`; killed when dropped.
struct Deliverer {
    child: Child,
    log: PathBuf,
}

impl Site {
    fn start() -> Site {
        // Leases expire within a second, also where nothing else wakes the dispatcher.
        let cluster = Cluster::preloaded("recur.check_interval = '200ms'");
        let mut session = cluster.database("app");
        session.batch(
            "CREATE ROLE recurd LOGIN NOINHERIT;
             CREATE ROLE deliverer; CREATE ROLE author; CREATE ROLE hooks;
             GRANT deliverer, author, hooks TO recurd;
             SELECT recur.grant_access('deliverer', 'deliverer');
             SELECT recur.grant_access('author', 'author');
             SELECT recur.grant_access('hooks', 'author');
             GRANT author TO postgres",
        );
        Site {
            session,
            cluster,
            folder: TempDir::new().expect("a folder"),
        }
    }

    /// A file with a secret or an URL.
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("a file");
        path
    }

    /// An endpoint of the operator, as the configuration has it.
    fn endpoint(&self, name: &str, patterns: &[&str], url: &str) -> String {
        let url = self.file(&format!("{name}.url"), url);
        let secret = self.file(&format!("{name}.secret"), SECRET);
        format!(
            "[[deliver.endpoints]]\nname = {name:?}\nprivate = true\npatterns = {patterns:?}\nurl_file = {url:?}\n\
             secret_file = {secret:?}\nconcurrency = 64\ntimeout_seconds = 2\n"
        )
    }

    /// A configuration that delivers, with short pauses.
    fn config(&self, deliver: &str, endpoints: &str) -> PathBuf {
        let text = format!(
            "[auth]\nallowed_roles = [\"deliverer\"]\n[deliver]\nrole = \"deliverer\"\npoll_seconds = 0.2\n\
             lease_seconds = 3\n{deliver}\n{endpoints}"
        );
        self.file("recurd.toml", &text)
    }

    fn deliver(&self, name: &str, config: &Path, environment: &[(&str, &str)]) -> Deliverer {
        let log = self.folder.path().join(format!("{name}.log"));
        let file = fs::File::create(&log).expect("a log");
        let mut command = Command::new(program());
        command
            .arg("deliver")
            .arg("--config")
            .arg(config)
            .env("RECURD_DATABASE_URL", self.database_url())
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a log"))
            .stderr(file);
        let child = command.spawn().expect("recurd starts");
        Deliverer { child, log }
    }

    /// One that delivers everything to this receiver.
    fn deliver_to(&self, receiver: &Receiver) -> Deliverer {
        let endpoint = self.endpoint("all", &["*"], &receiver.url("/"));
        self.deliver("recurd", &self.config("", &endpoint), &[])
    }

    fn database_url(&self) -> String {
        format!(
            "host={} port={PORT} user=recurd dbname={}",
            self.cluster.sockets().display(),
            self.cluster.name_of("app")
        )
    }

    /// Enqueues a webhook of an action type as the author.
    #[track_caller]
    fn enqueue(&mut self, action_type: &str, payload: &str, attempts: i32) -> Uuid {
        self.session.batch("SET ROLE author");
        let id = self.session.value(
            "SELECT recur.enqueue_webhook(action_type => $1, payload => $2::text::jsonb, max_attempts => $3)",
            &[&action_type, &payload, &attempts],
        );
        self.session.batch("RESET ROLE");
        id
    }

    #[track_caller]
    fn status(&mut self, id: Uuid) -> String {
        self.session
            .value("SELECT status FROM recur.dispatches WHERE id = $1", &[&id])
    }

    #[track_caller]
    fn wait_for(&mut self, id: Uuid, status: &str) {
        eventually(&format!("{id} is {status}"), || self.status(id) == status);
    }

    /// A text of a dispatch's result.
    #[track_caller]
    fn result(&mut self, id: Uuid, path: &str) -> Option<String> {
        self.session.value(
            "SELECT result #>> $2::text::text[] FROM recur.dispatches WHERE id = $1",
            &[&id, &path],
        )
    }

    #[track_caller]
    fn error(&mut self, id: Uuid) -> String {
        let error: Option<String> = self
            .session
            .value("SELECT error FROM recur.dispatches WHERE id = $1", &[&id]);
        error.unwrap_or_default()
    }
}

/// Another implementation accepts the signature.
#[track_caller]
fn verify(secret: &str, received: &Received) {
    let mut headers = http::HeaderMap::new();
    for (name, value) in &received.headers {
        headers.insert(
            http::HeaderName::try_from(name).expect("a name"),
            http::HeaderValue::try_from(value).expect("a value"),
        );
    }
    verify::verify(secret, &headers, &received.body).expect("a signature");
}

impl Deliverer {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("a signal");
    }

    fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("its end")
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Deliverer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- recurd's log ---\n{}", self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
