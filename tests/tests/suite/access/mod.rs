mod forgery;
mod hostility;
mod privileges;
