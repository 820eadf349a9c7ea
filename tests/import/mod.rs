//! `pgstrata import` as a whole: what is taken from files, what is refused, what is stored.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod bad_input;
mod desk;
mod good_input;
mod manifest;
mod stored;
