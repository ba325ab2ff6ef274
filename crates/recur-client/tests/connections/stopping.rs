//! A consumer stops at once, whatever the server does.

use crate::server::{Seen, Server};
use recur_client::{Builder, Consumer, Failure};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Far more than a stop takes, far less than the consumer's grace and time limits.
const AT_ONCE: Duration = Duration::from_secs(5);

pub fn consumer(port: u16) -> Builder {
    Consumer::builder(format!("host=127.0.0.1 port={port} user=me"))
        .handler("noop", |_| async { Ok::<_, Failure>(()) })
        .grace(Duration::from_secs(3600))
        .polling(Duration::from_secs(3600))
}

/// A port on which connections are refused.
pub async fn refusing_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}

/// Stops the consumer after `ready`.
async fn stops_at_once(consumer: Builder, ready: impl Future<Output = ()>) {
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(consumer.run_until(async { drop(stopped.await) }));
    ready.await;
    assert!(!running.is_finished());
    drop(stop);
    timeout(AT_ONCE, running)
        .await
        .expect("it stops")
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn while_connections_are_refused() {
    let port = refusing_port().await;
    // By then the consumer pauses between two attempts.
    stops_at_once(consumer(port), tokio::time::sleep(Duration::from_secs(1))).await;
}

#[tokio::test]
async fn while_the_handshake_is_not_answered() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut held = None;
    stops_at_once(consumer(port), async {
        held = Some(listener.accept().await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn while_a_claim_is_not_answered() {
    let mut server = Server::start(None).await;
    let port = server.port;
    stops_at_once(consumer(port), async {
        assert_eq!(server.seen.recv().await, Some(Seen::PlainConnection));
        assert_eq!(server.seen.recv().await, Some(Seen::Statement));
    })
    .await;
}
