//! `pgstrata import` as a whole: what is taken from files, what is refused, what is stored.

mod bad_input;
mod desk;
mod good_input;
mod manifest;
mod stored;
