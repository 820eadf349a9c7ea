//! `durability = "quick"`: the run also determines what a power cut would cost.

use super::problem::{Problem, Problems, did_you_mean};
use super::tree::{Pair, Toml, get};
use crate::record::verdict::DurabilityCheck;

pub(super) const KEY: &str = "durability";

/// Valid values, for schema and messages.
pub(super) fn words() -> Vec<&'static str> {
    DurabilityCheck::ALL.map(DurabilityCheck::word).to_vec()
}

pub(super) fn read(root: &[Pair], problems: &mut Problems) -> Option<DurabilityCheck> {
    let (_, node) = get(root, KEY)?;
    let Toml::Text(text) = &node.value else {
        problems.add(node.must_be(format!("`{KEY}`"), "text").help(format!("write {KEY} = \"quick\"")));
        return None;
    };
    let found = DurabilityCheck::ALL.into_iter().find(|check| check.word() == text);
    if found.is_none() {
        let problem = Problem::at(&node.span, format!("`{KEY}` must be one of {}", words().join(", ")));
        problems.add(problem.help_if(did_you_mean(text, words())));
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::plan::parse;
    use crate::plan::tests::{MANUAL, catalogue};
    use crate::record::verdict::DurabilityCheck;

    #[test]
    fn power_cut_verdicts_are_off_unless_requested_by_name() {
        let read = |line: &str| {
            let plan = parse(&format!("{line}\n{MANUAL}"), "plan.toml", &catalogue());
            plan.map(|plan| plan.durability).map_err(|e| e.to_string())
        };
        assert_eq!(read("durability = \"quick\""), Ok(Some(DurabilityCheck::Quick)));
        assert_eq!(read(""), Ok(None));
        for (line, words) in [
            ("durability = \"quik\"", "must be one of quick"),
            ("durability = true", "`durability` must be text, found"),
            ("durabilty = \"quick\"", "unknown key `durabilty`"),
        ] {
            let said = read(line).unwrap_err();
            assert!(said.contains(words), "{line}: {said}");
        }
    }
}
