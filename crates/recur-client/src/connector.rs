//! How connections are made: hosts, TLS and time limits.

use crate::Error;
use crate::options::{Mode, Options};
use crate::tls::client_config;
use rustls::ClientConfig;
use std::task::Poll;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, CancelToken, Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// For one host's TCP connection, where the connection string has no `connect_timeout`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long sent data may stay unacknowledged, and how long an idle connection stays unprobed, where the connection
/// string does not say. The system's own limits are 15 minutes and two hours: longer than any lease.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;

pub(crate) type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

fn parse(options: &Options) -> Result<Config, Error> {
    options.rest.parse::<Config>().map_err(|error| {
        // The driver's own message is only that the string is invalid; its source says why.
        let reason = std::error::Error::source(&error).map(ToString::to_string);
        Error::Configuration(reason.unwrap_or_else(|| error.to_string()))
    })
}

/// Does this connection string hold a password?
///
/// For programs that don't take one from a file which others may read.
pub fn has_password(connection: &str) -> Result<bool, Error> {
    let config = parse(&Options::parse(connection)?)?;
    Ok(config.get_password().is_some())
}

/// A parsed connection string, ready to connect any number of times.
///
/// For programs that need connections beside those of a [`Consumer`](crate::Consumer).
#[derive(Clone)]
pub struct Connector {
    config: Config,
    tls: MakeRustlsConnect,
    /// For all hosts together, TLS and authentication included.
    limit: Duration,
}

impl Connector {
    /// A TLS configuration of the caller's replaces the verification that the connection string asks for.
    pub fn new(connection: &str, tls: Option<ClientConfig>) -> Result<Connector, Error> {
        let options = Options::parse(connection)?;
        let mut config = parse(&options)?;
        set_hosts(&mut config)?;
        config.ssl_mode(ssl_mode(&config, options.mode)?);
        let tls = match (tls, &options.roots) {
            (Some(_), Some(_)) => {
                return Err(Error::Configuration(
                    "sslrootcert and a TLS configuration of one's own exclude each other"
                        .to_owned(),
                ));
            }
            (Some(tls), None) => tls,
            // Without TLS no certificates are needed.
            (None, _) if config.get_ssl_mode() == SslMode::Disable => {
                client_config(Mode::Disable, None)?
            }
            (None, roots) => client_config(options.mode, roots.as_ref())?,
        };
        let limit = set_timeouts(&mut config);
        Ok(Connector {
            config,
            tls: MakeRustlsConnect::new(tls),
            limit,
        })
    }

    /// Connects, and drives the connection in a task of its own, which ends with it.
    pub async fn open(&self) -> Result<(Client, JoinHandle<()>), Error> {
        self.open_listening(|| {}).await
    }

    /// The same, and calls `notified` for each notification of the channels that the session listens to.
    pub async fn open_listening(
        &self,
        notified: impl Fn() + Send + Sync + 'static,
    ) -> Result<(Client, JoinHandle<()>), Error> {
        let (client, connection) = self.connect().await?;
        let driver = tokio::spawn(async move {
            match drive(connection, notified).await {
                Error::Disconnected => {}
                error => tracing::warn!(%error, "a connection has ended"),
            }
        });
        Ok((client, driver))
    }

    /// Asks the server to give up what a connection of this connector's is doing, on a connection made for that.
    /// The server does not say whether it did.
    pub async fn cancel(&self, running: &CancelToken) -> Result<(), Error> {
        let asked = running.cancel_query(self.tls.clone());
        match tokio::time::timeout(self.limit, asked).await {
            Ok(asked) => Ok(asked?),
            Err(_) => Err(Error::Timeout),
        }
    }

    pub(crate) async fn connect(&self) -> Result<(Client, Connection<Socket, Stream>), Error> {
        match tokio::time::timeout(self.limit, self.config.connect(self.tls.clone())).await {
            Ok(connected) => Ok(connected?),
            Err(_) => Err(Error::Timeout),
        }
    }
}

/// Lets the connection work until it ends.
pub(crate) async fn drive(
    mut connection: Connection<Socket, Stream>,
    notified: impl Fn() + Sync,
) -> Error {
    std::future::poll_fn(|context| {
        loop {
            match std::task::ready!(connection.poll_message(context)) {
                Some(Ok(AsyncMessage::Notification(_))) => notified(),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(error.into()),
                None => return Poll::Ready(Error::Disconnected),
            }
        }
    })
    .await
}

/// An address without a name is its own name: tokio-postgres makes no TLS connection without one.
fn set_hosts(config: &mut Config) -> Result<(), Error> {
    if !config.get_hosts().is_empty() {
        return Ok(());
    }
    let addresses = config.get_hostaddrs().to_vec();
    if addresses.is_empty() {
        return Err(Error::Configuration(
            "the connection string has no host; for the local server add host=/var/run/postgresql"
                .to_owned(),
        ));
    }
    for address in addresses {
        config.host(address.to_string());
    }
    Ok(())
}

/// PostgreSQL has no TLS on Unix sockets, and libpq ignores `sslmode` there.
fn ssl_mode(config: &Config, mode: Mode) -> Result<SslMode, Error> {
    let on_sockets = |host: &Host| matches!(host, Host::Unix(_));
    if config.get_hosts().iter().all(on_sockets) {
        return Ok(SslMode::Disable);
    }
    match mode {
        Mode::Disable => Ok(SslMode::Disable),
        Mode::Prefer => Ok(SslMode::Prefer),
        _ if config.get_hosts().iter().any(on_sockets) => Err(Error::Configuration(
            "a list of hosts that holds Unix sockets and names needs sslmode=disable or prefer"
                .to_owned(),
        )),
        Mode::Require | Mode::VerifyCa | Mode::VerifyFull => Ok(SslMode::Require),
    }
}

/// Sets what the connection string leaves open; returns the limit for connecting.
fn set_timeouts(config: &mut Config) -> Duration {
    let per_host = *config.get_connect_timeout().unwrap_or(&CONNECT_TIMEOUT);
    config.connect_timeout(per_host);
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE_TIMEOUT);
    }
    if config.get_keepalives_idle() == Config::new().get_keepalives_idle() {
        config.keepalives_idle(SILENCE_TIMEOUT);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(PROBE_INTERVAL);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(PROBES);
    }
    // One more for the handshakes of the host that answers.
    let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(u32::MAX);
    per_host.saturating_mul(hosts.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(connection: &str) -> String {
        match Connector::new(connection, None) {
            Ok(_) => panic!("{connection} was accepted"),
            Err(error) => error.to_string(),
        }
    }

    fn mode(connection: &str) -> SslMode {
        Connector::new(connection, None)
            .unwrap()
            .config
            .get_ssl_mode()
    }

    #[test]
    fn unix_sockets_never_use_tls() {
        assert_eq!(
            mode("host=/var/run/postgresql sslmode=verify-full sslrootcert=/nowhere"),
            SslMode::Disable
        );
        assert_eq!(mode("host=/a,/b sslmode=require"), SslMode::Disable);
        assert_eq!(mode("host=/a,db"), SslMode::Prefer);
        assert_eq!(mode("host=db sslmode=require"), SslMode::Require);
        assert_eq!(mode("hostaddr=192.0.2.1"), SslMode::Prefer);
        assert_eq!(
            problem("host=/a,db sslmode=require"),
            "a list of hosts that holds Unix sockets and names needs sslmode=disable or prefer"
        );
    }

    #[test]
    fn what_is_misconfigured_is_named() {
        assert!(problem("dbname=app").contains("has no host"));
        assert_eq!(problem("host=db sslcert=/mine"), "unknown option `sslcert`");
        assert!(
            problem("host=db sslmode=verify-full sslrootcert=/nowhere")
                .starts_with("sslrootcert \"/nowhere\": ")
        );
    }

    #[test]
    fn silence_is_limited_unless_the_string_says_otherwise() {
        let config = Connector::new("host=a,b", None).unwrap();
        assert_eq!(config.limit, CONNECT_TIMEOUT * 3);
        assert_eq!(config.config.get_tcp_user_timeout(), Some(&SILENCE_TIMEOUT));
        assert_eq!(config.config.get_keepalives_idle(), SILENCE_TIMEOUT);
        let config = Connector::new("host=a connect_timeout=2 keepalives_idle=600", None).unwrap();
        assert_eq!(config.limit, Duration::from_secs(4));
        assert_eq!(
            config.config.get_keepalives_idle(),
            Duration::from_secs(600)
        );
    }
}
