//! The extension comes, goes, moves and is upgraded; its catalog is documented.

mod catalog;
mod copies;
mod dumps;
mod extension;
mod reference;
mod settings;
mod upgrade;
