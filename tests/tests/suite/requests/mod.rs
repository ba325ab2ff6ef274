//! Keys of requests: what happens once, however often it is asked for.

mod keys;
