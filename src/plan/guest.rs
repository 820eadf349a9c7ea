//! `guest`: the guests in which cases run, a suite or a list of suites, which is an axis.
//!
//! Absent on purpose: the suites that exist; only a mirror knows them.

use super::options::{Axis, read_choices};
use super::problem::Problems;
use super::tree::{Node, Pair, get};
use super::values::{Choice, ValueRefusal};
use crate::record::options::OptionValue;

/// The key, and the name of its axis.
pub(super) const GUEST: &str = "guest";

/// `None` if the plan runs on the host.
pub(super) fn read_guest(root: &[Pair], problems: &mut Problems) -> Option<Axis> {
    let (key, node) = get(root, GUEST)?;
    let items = node.items();
    let choices = read_choices("`guest`", node, items, problems, read_suite)?;
    Some(Axis::of(GUEST, key.span.clone(), choices))
}

fn read_suite(node: &Node) -> Result<Choice, ValueRefusal> {
    let refuse = |found: String| ValueRefusal {
        span: node.span.clone(),
        message: format!("must be the name of a Debian suite, found {found}"),
        help: Some("write guest = \"trixie\" or guest = [\"bookworm\", \"trixie\"]".to_owned()),
    };
    let text = node.text().ok_or_else(|| refuse(node.noun().to_owned()))?;
    if !text.split('-').all(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase())) {
        return Err(refuse(format!("\"{text}\"")));
    }
    Ok(Choice { value: OptionValue::Text(text.to_owned()), identity: text.to_owned(), span: node.span.clone() })
}
