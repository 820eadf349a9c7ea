//! `guest`: the guests in which cases run, a suite or a list of suites, which is an axis.
//!
//! Absent on purpose: the suites that exist; only a mirror knows them.

use super::options::{Axis, read_choices};
use super::problem::{Problem, Problems};
use super::tree::{Node, Pair, get};
use super::values::Choice;

/// The key, and the name of its axis.
pub(super) const GUEST: &str = "guest";

/// `None` if the plan runs on the host.
pub(super) fn read_guest(root: &[Pair], problems: &mut Problems) -> Option<Axis> {
    let (key, node) = get(root, GUEST)?;
    let choices = read_choices("`guest`", node, node.items(), problems, read_suite)?;
    Some(Axis::of(GUEST, key.span.clone(), choices))
}

fn read_suite(node: &Node) -> Result<Choice, Problem> {
    let found = match node.text() {
        Some(text) if text.split('-').all(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase())) => {
            return Ok(Choice::text(node, text.to_owned()));
        }
        Some(text) => format!("\"{text}\""),
        None => node.noun().to_owned(),
    };
    Err(Problem::at(&node.span, format!("must be the name of a Debian suite, found {found}"))
        .help("write guest = \"trixie\" or guest = [\"bookworm\", \"trixie\"]"))
}
