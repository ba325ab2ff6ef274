mod forgery;
mod hostility;
mod owners;
mod privileges;
mod public;
