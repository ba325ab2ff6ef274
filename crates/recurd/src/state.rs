//! What all requests share.

use crate::api::Limiter;
use crate::config::Config;
use crate::db::Database;
use crate::metrics::Metrics;
use crate::webhooks::deliver::Calls;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Cheap to clone.
#[derive(Clone)]
pub struct State(Arc<Shared>);

pub struct Shared {
    pub config: Config,
    /// None where no database is configured: then nothing but liveness is open.
    pub database: Option<Database>,
    pub limiter: Limiter,
    pub metrics: Metrics,
    /// Cancelled by SIGTERM or SIGINT: nothing new is begun.
    pub stop: CancellationToken,
    /// Deliveries that calls have asked for.
    pub calls: Calls,
}

impl State {
    pub fn new(config: Config) -> State {
        let database = config.database.as_ref().map(Database::new);
        let limiter = Limiter::new(&config.limits);
        State(Arc::new(Shared {
            config,
            database,
            limiter,
            metrics: Metrics::default(),
            stop: CancellationToken::new(),
            calls: Calls::default(),
        }))
    }
}

impl std::ops::Deref for State {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}
