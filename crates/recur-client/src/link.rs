//! The consumer's connection, replaced whenever it is lost.

use crate::connector::{Connector, drive};
use crate::{Error, Session, events};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio_util::task::AbortOnDropHandle;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Hands out the current connection.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    current: watch::Receiver<Option<Arc<Session>>>,
    wakeup: Arc<Notify>,
}

/// Connects, and stays connected until the returned handle is dropped.
pub(crate) fn establish(
    connector: Connector,
    channel: Option<String>,
) -> (Link, AbortOnDropHandle<()>) {
    let (publish, current) = watch::channel(None);
    let wakeup = Arc::new(Notify::new());
    let keeper = Keeper {
        connector,
        channel,
        publish,
        wakeup: Arc::clone(&wakeup),
    };
    let task = tokio::spawn(keeper.run());
    (Link { current, wakeup }, AbortOnDropHandle::new(task))
}

impl Link {
    /// Waits for a connection; forever, once its keeper is gone.
    pub async fn session(&mut self) -> Arc<Session> {
        let is_open = |session: &Option<Arc<Session>>| {
            session
                .as_ref()
                .is_some_and(|session| !session.client().is_closed())
        };
        if let Ok(current) = self.current.wait_for(is_open).await
            && let Some(session) = current.as_ref()
        {
            return Arc::clone(session);
        }
        std::future::pending().await
    }

    /// Returns when there may be something to claim: after a notification, and after a connection was made.
    pub async fn wakeup(&self) {
        self.wakeup.notified().await;
    }
}

struct Keeper {
    connector: Connector,
    channel: Option<String>,
    publish: watch::Sender<Option<Arc<Session>>>,
    wakeup: Arc<Notify>,
}

impl Keeper {
    async fn run(self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let end = self.keep().await;
            if self.publish.send_replace(None).is_some() {
                events::disconnected(&end);
                pause = FIRST_PAUSE;
            } else {
                events::connect_failed(&end, pause);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// One connection, from its start to its end. It is published once it listens.
    async fn keep(&self) -> Error {
        let (client, connection) = match self.connector.connect().await {
            Ok(connected) => connected,
            Err(error) => return error,
        };
        let session = Arc::new(Session::new(client));
        let start = async {
            if let Some(channel) = &self.channel {
                // LISTEN takes a name, which can't be a parameter.
                let listen = format!("LISTEN \"{}\"", channel.replace('"', "\"\""));
                session.client().batch_execute(&listen).await?;
            }
            events::connected(self.channel.as_deref());
            self.publish.send_replace(Some(Arc::clone(&session)));
            self.wakeup.notify_one();
            std::future::pending::<Result<Infallible, Error>>().await
        };
        tokio::select! {
            end = drive(connection, || self.wakeup.notify_one()) => end,
            Err(error) = start => error,
        }
    }
}
