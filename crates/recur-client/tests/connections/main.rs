//! How the client connects, and how it stops, against servers of the tests' own.

mod logging;
mod server;
mod stopping;
mod tls;
