//! Events have the names and fields that README.md promises.

use crate::stopping::{consumer, refusing_port};
use std::sync::{Arc, Mutex};
use tracing::subscriber::set_default;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

type Recorded = (&'static str, Vec<&'static str>);

/// Keeps the name and the fields of each event.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Recorded>>>);

impl<S: tracing::Subscriber> Layer<S> for Recorder {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if metadata.target() == "recur_client" {
            let fields = event.fields().map(|field| field.name()).collect();
            self.0.lock().unwrap().push((metadata.name(), fields));
        }
    }
}

#[tokio::test]
async fn a_consumer_without_a_server_says_so() {
    let recorder = Recorder::default();
    let events = Arc::clone(&recorder.0);
    // One thread runs everything here, so a subscriber of this thread sees everything.
    let _guard = set_default(tracing_subscriber::registry().with(recorder));
    let has_failed = async {
        while events.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    consumer(refusing_port().await)
        .run_until(has_failed)
        .await
        .unwrap();
    assert_eq!(
        *events.lock().unwrap(),
        [
            (
                "recur.connect_failed",
                vec!["message", "error", "retry_in_ms"]
            ),
            ("recur.stopping", vec!["message", "running"]),
            ("recur.stopped", vec!["message"]),
        ]
    );
}

#[test]
fn every_event_is_documented() {
    let (code, readme) = (
        include_str!("../../src/events.rs"),
        include_str!("../../README.md"),
    );
    let names = |text: &str, before: &str| -> Vec<String> {
        text.split(before)
            .skip(1)
            .filter_map(|rest| rest.split(['"', '`']).next())
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(
        names(code, "name: \"recur."),
        names(readme, "\n| `recur."),
        "events.rs and README.md list the same events in the same order"
    );
}
