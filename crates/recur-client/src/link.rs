//! The connection, made again whenever it is lost.

use crate::{Error, Session};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio_postgres::{AsyncMessage, Config, NoTls};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Hands out the current connection, if there is one.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    current: watch::Receiver<Option<Arc<Session>>>,
    /// Rings when something may be there to be claimed: a notification, or a new connection.
    pub bell: Arc<Notify>,
}

impl Link {
    /// Connects, and stays connected until the returned task is aborted.
    pub fn establish(
        config: Config,
        channel: Option<String>,
    ) -> (Link, tokio::task::JoinHandle<()>) {
        let (publish, current) = watch::channel(None);
        let bell = Arc::new(Notify::new());
        let link = Link {
            current,
            bell: Arc::clone(&bell),
        };
        let keeper = tokio::spawn(async move {
            let mut pause = FIRST_PAUSE;
            loop {
                if let Err(error) = keep(&config, channel.as_deref(), &publish, &bell).await {
                    eprintln!("recur-client: no connection: {error}; next try in {pause:?}");
                } else {
                    // It was connected: the first tries come quickly.
                    pause = FIRST_PAUSE;
                }
                publish.send_replace(None);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        });
        (link, keeper)
    }

    /// The connection; waits for one.
    pub async fn session(&mut self) -> Result<Arc<Session>, Error> {
        let current = self
            .current
            .wait_for(|session| {
                session
                    .as_ref()
                    .is_some_and(|session| !session.client().is_closed())
            })
            .await;
        match current.as_deref() {
            Ok(Some(session)) => Ok(Arc::clone(session)),
            _ => Err(Error::Configuration(
                "the consumer has been stopped".to_owned(),
            )),
        }
    }
}

/// One connection, from its making to its end. An error means that there was none.
async fn keep(
    config: &Config,
    channel: Option<&str>,
    publish: &watch::Sender<Option<Arc<Session>>>,
    bell: &Notify,
) -> Result<(), Error> {
    let (client, mut connection) = config.connect(NoTls).await?;
    let session = Arc::new(Session::new(client));
    let drive = std::future::poll_fn(|context| {
        loop {
            match std::task::ready!(connection.poll_message(context)) {
                Some(Ok(AsyncMessage::Notification(_))) => bell.notify_one(),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return std::task::Poll::Ready(()),
            }
        }
    });
    let begin = async {
        if let Some(channel) = channel {
            // A channel is a name, which can't be a parameter.
            let listen = format!("LISTEN \"{}\"", channel.replace('"', "\"\""));
            session.client().batch_execute(&listen).await?;
        }
        publish.send_replace(Some(Arc::clone(&session)));
        bell.notify_one();
        std::future::pending::<Result<(), Error>>().await
    };
    tokio::select! {
        () = drive => Ok(()),
        result = begin => result,
    }
}
