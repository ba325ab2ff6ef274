//! Leases, retries and cancellations.

mod cancel;
mod leases;
mod recover;
mod retry;
