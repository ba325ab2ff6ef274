//! The extension comes, goes, moves and is upgraded; its catalog is documented.

mod catalog;
mod dumps;
mod extension;
mod reference;
mod upgrade;
