//! What all requests share.

use crate::api::Limiter;
use crate::config::Config;
use crate::db::Database;
use crate::metrics::Metrics;
use std::sync::Arc;

/// Cheap to clone.
#[derive(Clone)]
pub struct State(Arc<Shared>);

pub struct Shared {
    pub config: Config,
    /// None where no database is configured: then nothing but liveness is open.
    pub database: Option<Database>,
    pub limiter: Limiter,
    pub metrics: Metrics,
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
        }))
    }
}

impl std::ops::Deref for State {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}
