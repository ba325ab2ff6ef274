mod dumps;
mod extension;
mod reference;
mod upgrade;
