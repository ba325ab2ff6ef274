//! A server that speaks just enough of the protocol to be connected to.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

const SSL_REQUEST: u32 = 80_877_103;
const AUTHENTICATION_OK: &[u8] = &[b'R', 0, 0, 0, 8, 0, 0, 0, 0];
const TERMINATE: u8 = b'X';
const READY_FOR_QUERY: &[u8] = &[b'Z', 0, 0, 0, 5, b'I'];

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    PlainConnection,
    TlsConnection,
    Statement,
}

/// Accepts every client, and answers no statement.
pub struct Server {
    pub port: u16,
    pub seen: mpsc::UnboundedReceiver<Seen>,
    _task: AbortOnDropHandle<()>,
}

impl Server {
    pub async fn start(tls: Option<ServerConfig>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let acceptor = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
        let (report, seen) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (acceptor, report) = (acceptor.clone(), report.clone());
                // A client that hangs up, or refuses the certificate, ends only its own connection.
                tokio::spawn(async move { drop(greet(socket, acceptor, report).await) });
            }
        });
        Server {
            port,
            seen,
            _task: AbortOnDropHandle::new(task),
        }
    }
}

async fn greet(
    mut socket: TcpStream,
    acceptor: Option<TlsAcceptor>,
    report: mpsc::UnboundedSender<Seen>,
) -> io::Result<()> {
    if startup_code(&mut socket).await? != SSL_REQUEST {
        return welcome(socket, Seen::PlainConnection, &report).await;
    }
    match acceptor {
        Some(acceptor) => {
            socket.write_all(b"S").await?;
            let mut stream = acceptor.accept(socket).await?;
            startup_code(&mut stream).await?;
            welcome(stream, Seen::TlsConnection, &report).await
        }
        None => {
            socket.write_all(b"N").await?;
            startup_code(&mut socket).await?;
            welcome(socket, Seen::PlainConnection, &report).await
        }
    }
}

/// Reads one message of the start, whose first number after its length says what it is.
async fn startup_code(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<u32> {
    let length = stream.read_u32().await?;
    let code = stream.read_u32().await?;
    let mut rest = vec![0; length as usize - 8];
    stream.read_exact(&mut rest).await?;
    Ok(code)
}

async fn welcome(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: Seen,
    report: &mpsc::UnboundedSender<Seen>,
) -> io::Result<()> {
    stream.write_all(AUTHENTICATION_OK).await?;
    stream.write_all(READY_FOR_QUERY).await?;
    stream.flush().await?;
    // The test may have seen enough.
    let _ = report.send(connection);
    if stream.read_u8().await? != TERMINATE {
        let _ = report.send(Seen::Statement);
    }
    // Reads until the client hangs up.
    tokio::io::copy(&mut stream, &mut tokio::io::sink())
        .await
        .map(drop)
}

/// A certificate for this name, and the PEM of the authority that has signed it.
pub fn certificate(name: &str) -> (ServerConfig, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()])
        .unwrap()
        .signed_by(&key, &authority)
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        )
        .unwrap();
    (config, authority.pem())
}
