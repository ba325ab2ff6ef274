mod clock;
mod crashes;
mod failover;
mod lifecycle;
mod logging;
