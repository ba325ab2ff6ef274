//! Notifications, on a connection of their own.

use crate::state::State;
use recur_client::Connector;
use std::time::Duration;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Calls `notified` for each notification of the channel, and whenever the connection was made anew: what came
/// meanwhile was not heard. It needs no rights but to connect, and goes on until it is dropped.
pub fn listen<F: Fn() + Clone + Send + Sync + 'static>(
    state: &State,
    channel: &str,
    notified: F,
) -> impl Future<Output = ()> + Send + use<F> {
    let url = state
        .config
        .database
        .as_ref()
        .map(|database| database.url.clone());
    // LISTEN takes a name, which can't be a parameter.
    let statement = format!("LISTEN \"{}\"", channel.replace('"', "\"\""));
    async move {
        let Some(url) = url else { return };
        let mut pause = FIRST_PAUSE;
        loop {
            let once = async {
                let connector = Connector::new(url.expose(), None)?;
                let (client, connection) = connector.open_listening(notified.clone()).await?;
                client.batch_execute(&statement).await?;
                Ok::<_, recur_client::Error>((client, connection))
            };
            match once.await {
                Ok((client, connection)) => {
                    pause = FIRST_PAUSE;
                    notified();
                    // It ends with the connection.
                    let _ = connection.await;
                    drop(client);
                }
                Err(error) => tracing::warn!(event = "listen.failed", %error),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
