//! `[quick]`: the part of a plan that `--quick` measures, with short windows.

use super::Catalogue;
use super::blocks;
use super::matrix::CaseCandidate;
use super::problem::{Problem, Problems, refuse_unknown};
use super::select::{AxisCondition, is_of, known_values, read_conditions};
use super::tree::{Node, Pair, Toml, get};
use super::values::read;
use crate::record::case::CaseSpec;
use crate::record::options::{OptionProblem, OptionValue};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const KEYS: [&str; 5] = ["blocks", "design", "only", "precision", "set"];

/// The quick part of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct QuickPart {
    pub blocks: u32,
    /// Adaptive blocks: number for each case before the first look.
    pub at_least: Option<u32>,
    pub precision_percent: Option<u32>,
    /// The remaining cases, with the options that are set.
    pub cases: Vec<CaseSpec>,
    /// These options, as written by a user.
    pub set: BTreeMap<String, String>,
    /// True if no case is measured in turns.
    pub trials: bool,
}

/// `[quick]` as read, before the cases have names.
pub(super) struct QuickDraft {
    /// As [`blocks::read`]; `None`: those of the plan.
    blocks: Option<(u32, Option<u32>)>,
    precision_percent: Option<u32>,
    only: Vec<AxisCondition>,
    /// Options of layers and workloads, by key.
    set: BTreeMap<String, OptionValue>,
    /// Option keys that no layer of the plan has, with the kinds of workload that take them and get the value.
    added: BTreeMap<String, BTreeSet<String>>,
    trials: bool,
}

/// Reads the table; `None` if there is none or it has mistakes.
pub(super) fn read_quick(
    root: &[Pair],
    left: &[CaseCandidate],
    baseline: &BTreeMap<String, String>,
    catalogue: &Catalogue,
    problems: &mut Problems,
) -> Option<QuickDraft> {
    let (key, node) = get(root, "quick")?;
    let before = problems.len();
    let pairs = node.table("`quick`", "write [quick]", problems)?;
    refuse_unknown(pairs.iter().map(|(key, _)| key), &KEYS, "`quick`", problems);
    let blocks = get(pairs, "blocks").map(|_| blocks::read(pairs, problems));
    let precision_percent = blocks::precision(pairs, problems);
    let design = get(pairs, "design").map(|(_, node)| (node, node.text()));
    if let Some((node, _)) = design.filter(|(_, text)| !matches!(text, Some("turns" | "trials"))) {
        problems.add(node.must_be("`design`", "\"turns\" or \"trials\""));
    }
    let only =
        get(pairs, "only").and_then(|(_, table)| read_conditions(table, &known_values(left), "`only`", problems));
    let set = get(pairs, "set").map(|(_, table)| read_set(table, left, catalogue, problems));
    if problems.len() > before {
        return None;
    }
    let (set, added) = set.unwrap_or_default();
    let trials = design.is_some_and(|(_, text)| text == Some("trials"));
    let only = only.unwrap_or_default();
    let draft = QuickDraft { blocks, precision_percent, only, set, added, trials };
    let kept: Vec<&CaseCandidate> = left.iter().filter(|candidate| draft.keeps(candidate)).collect();
    if let Some(objection) = kept.iter().find_map(|candidate| draft.objection(&candidate.case, catalogue)) {
        let problem = Problem::at(&key.span, format!("`set` is refused by a workload: {}", objection.message));
        problems.add(problem.help_if(objection.help));
        return None;
    }
    let problem = match kept.iter().any(|candidate| is_of(baseline, candidate)) {
        false if kept.is_empty() => "`only` leaves no case",
        false => "`only` leaves out the baseline",
        true => return Some(draft),
    };
    problems.add(Problem::at(&key.span, problem).help("all of its lines must match the same case"));
    None
}

/// Options to set, and by key the kinds of workload that get them.
type Set = (BTreeMap<String, OptionValue>, BTreeMap<String, BTreeSet<String>>);

/// The options to set: on the layers to which the plan gives them; if on none, on all workloads that have them.
fn read_set(table: &Node, left: &[CaseCandidate], catalogue: &Catalogue, problems: &mut Problems) -> Set {
    let (mut set, mut added) = Set::default();
    let Toml::Table(pairs) = &table.value else {
        problems.add(table.must_be("`set`", "a table of options").help("write set = { loop = \"2GiB\" }"));
        return (set, added);
    };
    for (key, node) in pairs {
        let nodes = left.iter().flat_map(|candidate| &candidate.case.stack.nodes);
        let uses = nodes.filter(|node| node.options.get(&key.text).is_some()).map(|node| node.layer.as_str()).next();
        let entry = uses.and_then(|layer| catalogue.layers.iter().find(|entry| entry.name == layer));
        let kinds: BTreeSet<&str> = left.iter().map(|candidate| candidate.case.workload.kind.as_str()).collect();
        let of_workloads = catalogue.workloads.iter().filter(|workload| kinds.contains(workload.name));
        let having: Vec<_> = of_workloads.filter_map(|entry| Some((entry.name, entry.option(&key.text)?))).collect();
        let of_layer = entry.and_then(|entry| entry.option(&key.text));
        // An option that a layer has applies to layers only: a workload's option of that name may mean something else.
        if of_layer.is_none() {
            added.insert(key.text.clone(), having.iter().map(|(kind, _)| (*kind).to_owned()).collect());
        }
        let Some(spec) = of_layer.or(having.first().map(|(_, spec)| *spec)) else {
            let problem = Problem::at(&key.span, format!("nothing in the plan is given the option `{}`", key.text));
            problems
                .add(problem.help("`set` replaces what a layer or workload is given, and adds options of workloads"));
            continue;
        };
        match read(spec.kind, node) {
            Ok(choice) => drop(set.insert(key.text.clone(), choice.value)),
            Err(refusal) => problems.add(refusal.of(&format!("`{}`", key.text))),
        }
    }
    (set, added)
}

impl QuickDraft {
    /// A condition on an axis that the case lacks does not exclude it.
    fn keeps(&self, candidate: &CaseCandidate) -> bool {
        let is_of_it = |condition: &AxisCondition| candidate.values.contains_key(&condition.axis);
        self.only.iter().all(|condition| condition.matches(candidate) || !is_of_it(condition))
    }

    /// The case with the options of `set`.
    fn changed(&self, case: &CaseSpec) -> CaseSpec {
        let mut case = case.clone();
        let of_nodes = case.stack.nodes.iter_mut().map(|node| &mut node.options);
        for options in of_nodes.chain([&mut case.workload.options]) {
            for (key, value) in self.set.iter().filter(|(key, _)| options.get(key).is_some()).collect::<Vec<_>>() {
                options.set(key, value.clone());
            }
        }
        for (key, _) in self.added.iter().filter(|(_, kinds)| kinds.contains(&case.workload.kind)) {
            self.set.get(key).into_iter().for_each(|value| case.workload.options.set(key, value.clone()));
        }
        case
    }

    /// Objection of the workload's own check to the options of `set`.
    fn objection(&self, case: &CaseSpec, catalogue: &Catalogue) -> Option<OptionProblem> {
        let workload = self.changed(case).workload;
        let entry = catalogue.workloads.iter().find(|entry| entry.name == workload.kind)?;
        (entry.check)(&workload.options).err()
    }

    /// The quick part's cases, with their ids in the whole plan.
    pub fn part(&self, left: &[CaseCandidate], ids: &[String], blocks: (u32, Option<u32>)) -> QuickPart {
        let kept = left.iter().zip(ids).filter(|(candidate, _)| self.keeps(candidate));
        let cases = kept.map(|(candidate, id)| CaseSpec { id: id.clone(), ..self.changed(&candidate.case) }).collect();
        let set = self.set.iter().map(|(key, value)| (key.clone(), value.plain())).collect();
        let (blocks, at_least) = self.blocks.unwrap_or(blocks);
        QuickPart { blocks, at_least, precision_percent: self.precision_percent, cases, set, trials: self.trials }
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::tests::{MANUAL, catalogue};
    use crate::plan::{Plan, parse};
    use crate::units::Bytes;

    fn read(quick: &str) -> Result<Plan, String> {
        parse(&format!("{MANUAL}\n[quick]\n{quick}\n"), "plan.toml", &catalogue()).map_err(|e| e.to_string())
    }

    #[test]
    fn a_quick_run_has_its_own_blocks_cases_and_options() {
        let plan =
            read("blocks = 1\nonly = { stack = \"ext4\", clients = [1, 16] }\nset = { loop = \"2GiB\" }").unwrap();
        let part = plan.in_quick.unwrap();
        assert_eq!(part.blocks, 1);
        let clients = |case: &crate::record::case::CaseSpec| case.workload.options.integer("clients");
        let kept: Vec<_> = part.cases.iter().filter(|case| case.workload.name == "tpcb").map(clients).collect();
        assert_eq!(kept, [Some(1), Some(1), Some(16), Some(16)], "each with two values of wal_sync_method");
        let without = part.cases.iter().filter(|case| case.workload.name == "sync").count();
        assert_eq!(without, 1, "a workload without clients is not asked for them");
        for case in &part.cases {
            assert!(plan.cases.iter().any(|whole| whole.id == case.id), "{}", case.id);
            assert_eq!(case.stack.node("loop").unwrap().options.size("loop"), Some(Bytes(2 << 30)));
        }
        assert_eq!(plan.cases[0].stack.node("loop").unwrap().options.size("loop"), Some(Bytes(6 << 30)));
        assert_eq!(parse(MANUAL, "plan.toml", &catalogue()).unwrap().in_quick, None);
    }

    #[test]
    fn a_quick_run_names_what_it_leaves_out() {
        let plan = read("only = { stack = \"ext4\", clients = [1, 16] }").unwrap();
        let mut part = plan.clone();
        part.keep_quick_part();
        let (left_out, kept) = (part.quick.unwrap().left_out, part.cases);
        let whole: Vec<&String> = plan.cases.iter().map(|case| &case.id).collect();
        assert!(!left_out.is_empty() && left_out.len() + kept.len() == whole.len(), "{left_out:?}");
        assert!(left_out.iter().all(|id| whole.contains(&id) && kept.iter().all(|case| case.id != *id)));
        let mut whole = parse(MANUAL, "plan.toml", &catalogue()).unwrap();
        whole.keep_quick_part();
        assert!(whole.quick.unwrap().left_out.is_empty());
    }

    #[test]
    fn a_quick_run_may_be_of_trials() {
        assert!(read("design = \"trials\"").unwrap().in_quick.unwrap().trials);
        assert!(!read("design = \"turns\"").unwrap().in_quick.unwrap().trials);
        let refused = read("design = \"rounds\"").unwrap_err();
        assert!(refused.contains("`design` must be \"turns\" or \"trials\""), "{refused}");
    }

    #[test]
    fn a_quick_run_may_stop_by_itself_at_a_coarser_precision() {
        let mut plan = read("blocks = { at_least = 4, at_most = 9 }\nprecision = 20").unwrap();
        plan.keep_quick_part();
        assert_eq!((plan.blocks, plan.at_least, plan.precision_percent), (9, Some(4), 20));
        let adaptive = MANUAL.replace("blocks = 3", "blocks = { at_least = 3, at_most = 12 }");
        let adaptive = format!("{adaptive}\n[quick]\nset = {{ scale = 3 }}\n");
        let mut plan = parse(&adaptive, "plan.toml", &catalogue()).unwrap();
        plan.keep_quick_part();
        assert_eq!((plan.blocks, plan.at_least), (12, Some(3)), "as the whole plan has them");
        let mut plain = parse(MANUAL, "plan.toml", &catalogue()).unwrap();
        assert_eq!(plain.precision_percent, 5);
        plain.keep_quick_part();
        assert_eq!(plain.precision_percent, 10);
    }

    #[test]
    fn a_quick_run_may_have_less_data() {
        let part = read("set = { scale = 3 }").unwrap().in_quick.unwrap();
        let scales: Vec<_> = part.cases.iter().filter_map(|case| case.workload.options.integer("scale")).collect();
        assert!(!scales.is_empty() && scales.iter().all(|scale| *scale == 3), "{scales:?}");
    }

    #[test]
    fn a_quick_run_may_set_defaulted_workload_options() {
        let part = read("set = { rate = 100.0 }").unwrap().in_quick.unwrap();
        let limited = |case: &&crate::record::case::CaseSpec| case.workload.options.get("rate").is_some();
        let kinds: Vec<&str> = part.cases.iter().filter(limited).map(|case| case.workload.kind.as_str()).collect();
        assert!(!kinds.is_empty() && kinds.iter().all(|kind| *kind == "pgbench"), "{kinds:?}");
    }

    #[test]
    fn a_quick_option_applies_to_every_workload_accepting_it() {
        let given = |plan: &str| {
            let part = parse(plan, "plan.toml", &catalogue()).unwrap().in_quick.unwrap();
            let pgbench = part.cases.iter().filter(|case| case.workload.kind == "pgbench");
            pgbench.map(|case| case.workload.options.text("duration").map(str::to_owned)).collect::<Vec<_>>()
        };
        let quick = "[quick]\nset = { duration = \"7s\" }\n";
        let second = "[workload.second]\npgbench = { clients = 1 }\n";
        for plan in [format!("{MANUAL}\n{second}\n{quick}"), format!("{MANUAL}\n{quick}")] {
            let given = given(&plan);
            assert!(!given.is_empty() && given.iter().all(|set| set.as_deref() == Some("7s")), "{given:?}");
        }
    }

    #[test]
    fn mistakes_of_a_quick_run_are_found_in_any_run() {
        for (quick, words) in [
            ("block = 1", "unknown key `block`"),
            ("only = { client = 1 }", "unknown axis `client` in `only`"),
            ("only = { clients = 3 }", "no case has `clients` = `3`"),
            ("only = { stack = \"xfs-disk\" }", "leaves out the baseline"),
            ("set = { size = 3 }", "`size`"),
            ("set = { sise = \"1GiB\" }", "nothing in the plan is given the option `sise`"),
            ("set = { latency_limit = \"20ms\" }", "`set` is refused by a workload: means nothing without a rate"),
            ("set = 3", "must be a table"),
        ] {
            let said = read(quick).unwrap_err();
            assert!(said.contains(words), "{quick}: {said}");
        }
    }
}
