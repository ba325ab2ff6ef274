mod kept;
mod pages;
mod purge;
