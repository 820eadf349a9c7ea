//! A layer with three members and two bases. Adding a layer of any shape takes only such a file and its line in
//! `layers!`.

use super::test_volumes::{Volume, volume};
use crate::record::stack::Take;

pub static TRIO: Volume = volume("trio", &[Take { least: 3, most: 3, ..Take::ONE_DEVICE }], &[], |_| {
    vec!["left".to_owned(), "right".to_owned()]
});
