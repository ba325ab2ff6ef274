mod documents;
mod examples;
mod rust_client;
