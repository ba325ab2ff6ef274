mod dumps;
mod reference;
