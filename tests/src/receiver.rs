//! A receiver of webhooks that answers as a test says, on this machine's loopback.

use crate::wait::eventually;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// One request, as it came.
#[derive(Clone, Debug)]
pub struct Received {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn id(&self) -> &str {
        self.header("webhook-id").expect("a webhook-id")
    }
}

/// What follows a request.
#[derive(Clone, Debug)]
pub enum Reaction {
    /// These bytes; the connection stays open.
    Answer(Vec<u8>),
    /// These bytes, and then the connection is closed.
    AnswerAndClose(Vec<u8>),
    /// The first, after a while the second.
    AnswerSlowly(Vec<u8>, Duration, Vec<u8>),
    /// Nothing, as long as the other side waits.
    Silence,
}

impl Reaction {
    /// A whole response.
    pub fn status(status: u16, headers: &str, body: &str) -> Reaction {
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n{body}");
        Reaction::Answer(head.into_bytes())
    }

    pub fn ok() -> Reaction {
        Reaction::status(200, "", "")
    }
}

type React = dyn Fn(&Received) -> Reaction + Send + Sync;

/// Runs until the process ends; connections are threads.
pub struct Receiver {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    received: Mutex<Vec<Received>>,
    connections: AtomicUsize,
    react: Box<React>,
}

impl Receiver {
    pub fn start(react: impl Fn(&Received) -> Reaction + Send + Sync + 'static) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        Receiver::on(listener, react)
    }

    pub fn on(
        listener: TcpListener,
        react: impl Fn(&Received) -> Reaction + Send + Sync + 'static,
    ) -> Receiver {
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            received: Mutex::default(),
            connections: AtomicUsize::new(0),
            react: Box::new(react),
        });
        let threads = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                threads.connections.fetch_add(1, Ordering::SeqCst);
                let shared = Arc::clone(&threads);
                thread::spawn(move || shared.serve(stream));
            }
        });
        Receiver { address, shared }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn received(&self) -> Vec<Received> {
        let received = self.shared.received.lock();
        received.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Those of one path.
    pub fn received_at(&self, path: &str) -> Vec<Received> {
        let mut received = self.received();
        received.retain(|received| received.path == path);
        received
    }

    pub fn count(&self) -> usize {
        let received = self.shared.received.lock();
        received.unwrap_or_else(PoisonError::into_inner).len()
    }

    pub fn ids(&self) -> BTreeSet<String> {
        self.received()
            .iter()
            .map(|received| received.id().to_owned())
            .collect()
    }

    /// How often anything has connected.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    #[track_caller]
    pub fn wait_for(&self, count: usize) {
        eventually("the webhooks arrive", || self.count() >= count);
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) {
        let Ok(mut writer) = stream.try_clone() else {
            return;
        };
        let mut reader = BufReader::new(stream);
        while let Some(received) = read(&mut reader) {
            let reaction = (self.react)(&received);
            let mut all = self.received.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(received);
            drop(all);
            let written = match reaction {
                Reaction::Answer(bytes) => writer.write_all(&bytes),
                Reaction::AnswerAndClose(bytes) => {
                    let _ = writer.write_all(&bytes);
                    return;
                }
                Reaction::AnswerSlowly(first, pause, second) => {
                    let _ = writer.write_all(&first);
                    thread::sleep(pause);
                    writer.write_all(&second)
                }
                Reaction::Silence => {
                    // Until the other side gives up.
                    let _ = reader.read(&mut [0]);
                    return;
                }
            };
            if written.is_err() {
                return;
            }
        }
    }
}

/// The next request; none where the other side has closed or sends no HTTP.
fn read(reader: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut line = String::new();
    reader
        .read_line(&mut line)
        .ok()
        .filter(|length| *length > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader
            .read_line(&mut line)
            .ok()
            .filter(|length| *length > 0)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(Some(0), |(_, value)| value.parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Received {
        path,
        headers,
        body,
    })
}
