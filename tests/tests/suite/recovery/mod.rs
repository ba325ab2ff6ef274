mod leases;
mod recover;
