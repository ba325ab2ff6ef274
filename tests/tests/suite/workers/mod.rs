mod clock;
mod crashes;
mod failover;
mod hooks;
mod lifecycle;
mod logging;
