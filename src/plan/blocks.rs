//! `blocks`: a number, or `{ at_least = 3, at_most = 12 }`.

use super::problem::{Problem, Problems, refuse_unknown};
use super::tree::{Pair, Toml, get};
use super::{DEFAULT_BLOCKS, MAX_BLOCKS, read_whole};

/// Fewest blocks before the first look: durability, stalls and noise need as many trials of each case.
pub(super) const FIRST_LOOK: u32 = 3;

/// Maximum blocks if there is a look after each.
pub(super) const LOOKS_MAX: u32 = 100;

/// Maximum precision, per cent.
pub(super) const PRECISION_MAX: i64 = 50;

/// Keys of the adaptive form.
pub(super) const AT_LEAST: &str = "at_least";
pub(super) const AT_MOST: &str = "at_most";

pub(super) fn narrow(blocks: i64) -> u32 {
    u32::try_from(blocks).unwrap_or(MAX_BLOCKS)
}

/// `precision`: cases within so much of each other count as the same, per cent.
pub(super) fn precision(pairs: &[Pair], problems: &mut Problems) -> Option<u32> {
    read_whole(pairs, "precision", 1, PRECISION_MAX, problems).map(narrow)
}

/// Number of blocks, and for adaptive ones the number before the first look.
pub(super) fn read(root: &[Pair], problems: &mut Problems) -> (u32, Option<u32>) {
    let Some((_, node)) = get(root, "blocks") else { return (DEFAULT_BLOCKS, None) };
    let Toml::Table(table) = &node.value else {
        let number = read_whole(root, "blocks", 1, i64::from(MAX_BLOCKS), problems);
        return (number.map_or(DEFAULT_BLOCKS, narrow), None);
    };
    refuse_unknown(table.iter().map(|(key, _)| key), &[AT_LEAST, AT_MOST], "`blocks`", problems);
    let (least, most) = (i64::from(FIRST_LOOK), i64::from(LOOKS_MAX));
    let at_least = read_whole(table, AT_LEAST, least, most, problems).map_or(FIRST_LOOK, narrow);
    if get(table, AT_MOST).is_none() {
        let problem = Problem::at(&node.span, "`blocks` has no `at_most`");
        problems.add(problem.help("for example: blocks = { at_least = 3, at_most = 12 }"));
    }
    let at_most = read_whole(table, AT_MOST, least, most, problems).map_or(at_least, narrow);
    if at_most < at_least {
        problems.add(Problem::at(&node.span, format!("`at_most` ({at_most}) is below `at_least` ({at_least})")));
    }
    (at_most, Some(at_least))
}
