//! Limits that a plan's design sets for its results: number of blocks, and differences between its stacks.

use crate::plan::Plan;
use crate::provision;
use crate::record::stack::{BaseKind, NodeSpec, StackSpec};
use crate::stats::margin::POWER;
use crate::stats::student::two_sided_quantile;
use crate::stats::studentized::StudentizedRange;
use crate::units::count;
use std::collections::BTreeSet;

/// Minimum number of blocks for a useful interval.
pub const FEWEST_BLOCKS: u32 = 3;
/// Standard deviation of a trial's rate on a quiet machine, relative to the rate. Only for the warning.
const SCATTER: f64 = 0.05;
/// Maximum number of cases for which the interval is computed: beyond, it hardly changes.
const MOST_CASES: usize = 100;
/// Confidence of the intervals in a ranking.
const CONFIDENCE: f64 = 0.95;

/// Warnings about the design of a plan, before it is run.
pub fn warnings(plan: &Plan) -> Vec<String> {
    few_blocks(plan).into_iter().chain(confounded(plan)).collect()
}

fn few_blocks(plan: &Plan) -> Option<String> {
    let cases = plan.cases.len();
    if plan.blocks >= FEWEST_BLOCKS || cases < 2 {
        return None;
    }
    let found = match (plan.blocks, cases) {
        (1, _) => "a single trial per case says nothing about the variation between trials".to_owned(),
        (_, 2) => "two trials of each of two cases have no interval".to_owned(),
        (blocks, _) => {
            let [here, usual] = [blocks, 5].map(|blocks| smallest_difference(cases, blocks));
            return Some(format!(
                "{blocks} blocks: if trials of a case vary by ±{:.0} %, two cases must differ by about {here} % to be told apart in \
                 four of five runs; with 5 blocks, {usual} % is enough",
                SCATTER * 100.0
            ));
        }
    };
    Some(format!("{}: {found}; set blocks to 3 or more, the default is 5", count(plan.blocks, "block")))
}

/// Percentage by which one of this many cases, at least three, must exceed another to be distinguished in [`POWER`] of
/// runs.
fn smallest_difference(cases: usize, blocks: u32) -> u64 {
    let cases = cases.min(MOST_CASES);
    let degrees = (cases - 1) as f64 * f64::from(blocks - 1);
    let range = StudentizedRange::new(cases, degrees).quantile(CONFIDENCE);
    let beyond = 2f64.sqrt() * two_sided_quantile(2.0 * POWER - 1.0, degrees);
    let ratio = ((range + beyond) * SCATTER / f64::from(blocks).sqrt()).exp();
    ((ratio - 1.0) * 100.0).round() as u64
}

/// Stacks that differ from all others in both the filesystem and the layers below it: no difference between them has a
/// single cause. Stacks in a folder or in memory have nothing below that could differ.
fn confounded(plan: &Plan) -> Option<String> {
    // Stacks that share either are in one group; a plan that can answer its question has a single group.
    let mut groups: Vec<(BTreeSet<String>, BTreeSet<String>, String)> = Vec::new();
    for stack in StackSpec::each_once(plan.cases.iter().map(|case| &case.stack)) {
        let Some((filesystem, below)) = parts(stack) else { continue };
        let own = (BTreeSet::from([filesystem]), BTreeSet::from([below]), stack.name.clone());
        let (with, without): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .partition(|(filesystems, belows, _)| !filesystems.is_disjoint(&own.0) || !belows.is_disjoint(&own.1));
        groups = without;
        groups.extend(with.into_iter().chain([own]).reduce(|mut all, one| {
            all.0.extend(one.0);
            all.1.extend(one.1);
            all
        }));
    }
    if groups.len() < 2 {
        return None;
    }
    let names: Vec<&str> = groups.iter().take(4).map(|(.., name)| name.as_str()).collect();
    Some(format!(
        "the stacks {} differ in both filesystem and device: a difference between them can come from \
         either; to compare filesystems, put them on the same device",
        names.join(" and ")
    ))
}

/// A stack's filesystems and the layers below them, as text for comparison. `None` if there are none below.
fn parts(stack: &StackSpec) -> Option<(String, String)> {
    // A pool counts as filesystem: neither exists without the other.
    let (filesystems, below): (Vec<_>, Vec<_>) = stack.nodes.iter().partition(|node| {
        let layer = provision::layer(&node.layer);
        layer.is_some_and(|layer| matches!(layer.info().offers, BaseKind::Folder | BaseKind::Pool))
    });
    (!below.is_empty()).then(|| (described(&filesystems), described(&below)))
}

fn described(nodes: &[&NodeSpec]) -> String {
    let all = nodes.iter().map(|node| {
        let options = node.options.0.iter().map(|(key, value)| format!(" {key}={}", value.plain()));
        format!("{}{}", node.layer, options.collect::<String>())
    });
    let mut all: Vec<String> = all.collect();
    all.sort();
    all.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        let text = format!("name = \"p\"\n{text}\n[workload.w]\npgbench = {{ scale = 1, clients = 1 }}\n");
        crate::plan::parse(&text, "p.toml", &super::super::super::catalogue()).unwrap()
    }

    const TWO: &str = "[stack.a]\ndevice = { loop = \"1GiB\", in = \"/x\" }\nfilesystem = \"ext4\"\n\
                       [stack.b]\ndevice = { loop = \"1GiB\", in = \"/x\" }\nfilesystem = \"xfs\"";

    #[test]
    fn few_blocks_raise_a_warning_with_the_smallest_detectable_difference() {
        assert!(few_blocks(&plan(&format!("blocks = 1\n{TWO}"))).unwrap().contains("single trial"));
        let two = few_blocks(&plan(&format!("blocks = 2\n{TWO}"))).unwrap();
        assert!(two.contains("have no interval"), "{two}");
        let third = "[stack.c]\ndevice = { loop = \"1GiB\", in = \"/x\" }\nfilesystem = \"btrfs\"";
        let three = few_blocks(&plan(&format!("blocks = 2\n{TWO}\n{third}"))).unwrap();
        assert!(three.contains("differ by about") && three.contains("% is enough"), "{three}");
        assert_eq!(few_blocks(&plan(&format!("blocks = 3\n{TWO}"))), None);
    }

    #[test]
    fn the_difference_is_that_of_the_studentized_range_table() {
        // q(4, 12) = 4.199 at 95 % (H. L. Harter, Ann. Math. Stat. 31 (1960)), t(12) = 0.873 at 80 %.
        let wanted = ((4.199 + 0.873 * 2f64.sqrt()) * 0.05 / 5f64.sqrt()).exp() - 1.0;
        assert_eq!(smallest_difference(4, 5), (wanted * 100.0).round() as u64);
    }

    #[test]
    fn stacks_that_differ_in_filesystem_and_device_are_warned_of() {
        assert_eq!(confounded(&plan(TWO)), None);
        let other = TWO
            .replace("\"1GiB\", in = \"/x\" }\nfilesystem = \"xfs\"", "\"2GiB\", in = \"/x\" }\nfilesystem = \"xfs\"");
        assert!(confounded(&plan(&other)).unwrap().contains("a and b differ"), "{:?}", confounded(&plan(&other)));
        let bridged = format!("{other}\n[stack.c]\ndevice = {{ loop = \"2GiB\", in = \"/x\" }}\nfilesystem = \"ext4\"");
        assert_eq!(confounded(&plan(&bridged)), None);
        let memory = format!("{TWO}\n[stack.m]\nfilesystem = {{ tmpfs = \"1GiB\" }}\n[stack.d]\ndirectory = \"/srv\"");
        assert_eq!(confounded(&plan(&memory)), None);
    }
}
