//! Preparation of drives.

use crate::analyse::case::drives::finding;
use crate::analyse::case::sums::CaseSums;
use crate::analyse::findings::DriveFinding;
use crate::analyse::findings::groups::distinct;

/// One finding per preparation of a drive.
pub fn findings(cases: &[CaseSums]) -> Vec<DriveFinding> {
    let mut all = distinct(cases.iter().flat_map(|case| &case.drives.prepared));
    all.sort_by_key(|drive| drive.began_us);
    all.into_iter().map(finding).collect()
}
