mod cancel;
mod leases;
mod recover;
mod retry;
