//! recurd from outside: a real server, real HTTP.

mod actions;
mod consuming;
mod hostile;
mod identity;
mod levels;
mod monitoring;
mod once;
mod outages;
mod versions;
mod walk;

use pg_recur_tests::recurd::{Recurd, token};
use pg_recur_tests::{Cluster, Session};

/// Roles that recurd may become, each with the level of its name; `stranger` and `other` are an author of their own
/// and a role without any level.
const ROLES: [&str; 9] = [
    "reader", "author", "consumer", "sql", "monitor", "ticker", "admin", "other", "stranger",
];

/// A server, a database, and recurd on it.
struct Site {
    recurd: Recurd,
    session: Session,
    cluster: Cluster,
}

impl Site {
    fn start() -> Site {
        Site::with("")
    }

    /// With these lines at the end of recurd's configuration.
    fn with(more: &str) -> Site {
        let cluster = Cluster::start();
        let mut session = cluster.database("app");
        prepare(&mut session);
        let config = format!("{}\n{more}", config(&mut session));
        let recurd = Recurd::start(&cluster, "app", &config);
        Site {
            recurd,
            session,
            cluster,
        }
    }

    /// Creates an action as a role, that does not fire by itself for years; its id.
    #[track_caller]
    fn create(&self, role: &str, name: &str) -> String {
        let body = format!(
            r#"{{"name": "{name}", "schedule": "@yearly", "provider": "mailer", "action_type": "report"}}"#
        );
        let reply = self
            .recurd
            .call(role, "POST", "/v1/recurring", &body)
            .expect(201);
        reply.json()["id"].as_str().expect("an id").to_owned()
    }

    /// Enqueues a dispatch as a role; its id.
    #[track_caller]
    fn enqueue(&self, role: &str) -> String {
        let body = r#"{"provider": "mailer", "action_type": "welcome", "payload": {"to": "new"}}"#;
        let reply = self
            .recurd
            .call(role, "POST", "/v1/dispatches", body)
            .expect(201);
        reply.json()["id"].as_str().expect("an id").to_owned()
    }
}

/// The login of recurd's and the roles that it may become. The consumer and the reader share the author's dispatches.
fn prepare(session: &mut Session) {
    session.batch("CREATE ROLE recurd LOGIN NOINHERIT");
    for role in ROLES {
        session.batch(&format!("CREATE ROLE {role}; GRANT {role} TO recurd"));
        let level = match role {
            "stranger" => continue,
            "other" => "author",
            level => level,
        };
        session.batch(&format!("SELECT recur.grant_access('{role}', '{level}')"));
    }
    session.batch("GRANT author TO reader, consumer, sql");
}

/// All roles with their tokens.
fn config(session: &mut Session) -> String {
    let mut text = format!("[auth]\nallowed_roles = {ROLES:?}\n");
    for role in ROLES {
        let hash: String = session.value(
            "SELECT encode(sha256(convert_to($1, 'UTF8')), 'hex')",
            &[&token(role)],
        );
        text.push_str(&format!(
            "[[auth.tokens]]\nrole = \"{role}\"\nsha256 = \"{hash}\"\n"
        ));
    }
    text
}
