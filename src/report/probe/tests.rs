//! What the renderers of a probe promise.

use super::{csv, pg_test_fsync, terminal};
use crate::analyse::probe::{find, sample};

#[test]
fn the_report_of_a_plain_probe_fits() {
    let text = terminal(&find(&sample::honest(), 18));
    println!("{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}
