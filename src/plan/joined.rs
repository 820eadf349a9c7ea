//! Joins two stored runs into one plan, whose blocks have the cases of both: `pgstrata check --rerun-baseline`.
//!
//! Built from the resolved cases, not from the text of the plans: names of stacks and seeds may clash, paths relative
//! to a plan file may mean something else by now, and a resumed run does not read its plan again either. The order is
//! drawn as for any plan, so it balances which case precedes which across both.

use super::{Plan, extended_order, names};
use crate::error::{Error, Result};
use crate::host::files;
use crate::record::case::CaseSpec;
use crate::record::run::RunRecord;
use std::collections::{BTreeMap, BTreeSet};

/// The axis that distinguishes the two runs.
pub const AXIS: &str = "side";
/// Its values, which are also the prefixes of case ids.
pub const BASELINE: &str = "baseline";
pub const RUN: &str = "run";
/// Fewest blocks of such a plan, for its ratios to have an interval.
const LEAST_BLOCKS: u32 = 3;
/// Suffix of such a plan's name.
const SUFFIX: &str = "-rerun";

/// Cases of two runs, matched for a rerun.
#[derive(Debug, Default, PartialEq)]
pub struct Matched<'a> {
    /// Cases of the baseline and of the run that have the same workload and differ otherwise.
    pub pairs: Vec<(&'a CaseSpec, &'a CaseSpec)>,
    /// Cases of the baseline and of the run that do not differ.
    pub equal: Vec<(&'a CaseSpec, &'a CaseSpec)>,
    /// Ids of cases whose workload the other run lacks.
    pub alone: Vec<&'a str>,
}

/// Matches cases by the workload's name, and by every workload axis of either run.
pub fn matched<'a>(baseline: &[&'a CaseSpec], run: &[&'a CaseSpec]) -> Matched<'a> {
    let mut axes: BTreeSet<&str> = BTreeSet::new();
    for case in baseline.iter().chain(run) {
        let of_workload = case.axes.keys().filter(|axis| *axis != "workload" && case.is_workload_axis(axis));
        axes.extend(of_workload.map(String::as_str));
    }
    let mut found = Matched::default();
    let mut partners: BTreeSet<&str> = BTreeSet::new();
    for case in baseline {
        let same_load = run.iter().find(|other| {
            let (one, two) = (&case.workload, &other.workload);
            one.name == two.name && axes.iter().all(|axis| one.options.get(axis) == two.options.get(axis))
        });
        match same_load {
            Some(other) => {
                partners.insert(&other.id);
                let list = if same(case, other) { &mut found.equal } else { &mut found.pairs };
                list.push((case, other));
            }
            None => found.alone.push(&case.id),
        }
    }
    found.alone.extend(run.iter().map(|case| case.id.as_str()).filter(|id| !partners.contains(id)));
    found
}

/// True if two cases are equal except for their names.
fn same(case: &CaseSpec, other: &CaseSpec) -> bool {
    let named = CaseSpec { id: case.id.clone(), axes: case.axes.clone(), ..other.clone() };
    named == *case
}

/// Id of a case in the joined plan.
pub fn id(side: &str, case: &str) -> String {
    format!("{side}.{case}")
}

/// One of two runs.
#[derive(Debug, Clone, Copy)]
pub struct JoinedHalf<'a> {
    /// Its name in messages: `results/x`.
    pub label: &'a str,
    pub record: &'a RunRecord,
    /// Text of the plan in its folder.
    pub plan: &'a str,
}

impl JoinedHalf<'_> {
    fn refuse(&self) -> Result<()> {
        let (label, record) = (self.label, self.record);
        if record.cases.iter().any(|case| case.axes.contains_key(AXIS)) {
            return Err(Error::user(format!("{label} is itself what --rerun-baseline has measured"))
                .hint("name the two runs that it measured again"));
        }
        let why = if !record.merged.is_empty() {
            "was merged from several runs, and one machine would measure their blocks"
        } else if record.share.is_some() {
            "is a share of a plan's blocks, and other machines may have the rest"
        } else if record.at_least.is_some() {
            "has adaptive blocks, so how many a second measurement needs is open"
        } else {
            return Ok(());
        };
        Err(Error::user(format!("{label} {why}")).hint("leave out --rerun-baseline for an unpaired check"))
    }

    fn case(&self, side: &str, case: &CaseSpec) -> Result<CaseSpec> {
        if let Some(guest) = &case.guest {
            let message = format!("case {} of {} ran in the guest {guest}", case.id, self.label);
            return Err(Error::user(message).hint(
                "two cases of one plan are paired in guests too: put both variants into one plan, and check RUN:NEW --against \
                 RUN:OLD",
            ));
        }
        let mut axes = case.axes.clone();
        axes.insert(AXIS.to_owned(), side.to_owned());
        Ok(CaseSpec { id: id(side, &case.id), axes, ..case.clone() })
    }

    /// Origin of this half for readers of the run folder, as comments.
    fn text(&self, side: &str) -> String {
        let RunRecord { id, started, tool_version, .. } = self.record;
        let lines = self.plan.lines().map(|line| format!("#   {line}\n")).collect::<String>();
        format!("#\n# {side}: run {id}, begun {started} with pgstrata {tool_version}. Its plan:\n#\n{lines}")
    }
}

/// Joins both plans, with the larger number of blocks, but no fewer than an interval needs.
///
/// # Errors
/// If a rerun is impossible, with the reason and the remedy.
pub fn join(baseline: JoinedHalf<'_>, run: JoinedHalf<'_>, pairs: &[(&CaseSpec, &CaseSpec)]) -> Result<Plan> {
    baseline.refuse()?;
    run.refuse()?;
    if pairs.is_empty() {
        let both = format!("{} and {}", run.label, baseline.label);
        let message = format!("every case that {both} share is identical: there is nothing to interleave");
        return Err(Error::user(message).hint(
            "what changed is the machine (kernel, firmware, packages), pgstrata, or only the time: leave out --rerun-baseline \
             for an unpaired check",
        ));
    }
    if baseline.record.quick.is_some() != run.record.quick.is_some() {
        return Err(Error::user("one of the two is a quick run, whose windows are shorter")
            .hint("run both plans with --quick, or both without"));
    }
    let mut cases = Vec::new();
    for (old, new) in pairs {
        cases.push(baseline.case(BASELINE, old)?);
        cases.push(run.case(RUN, new)?);
    }
    let blocks = baseline.record.blocks.max(run.record.blocks).max(LEAST_BLOCKS);
    let seed = run.record.seed;
    let ids: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    let text = format!(
        "# Cases of two runs in one, made by `pgstrata check --rerun-baseline`; run.json has them as they ran.\n# {blocks} \
         blocks, seed {seed}: {}\n{}{}",
        ids.join(", "),
        baseline.text(BASELINE),
        run.text(RUN)
    );
    Ok(Plan {
        name: name(&run.record.name),
        seed,
        blocks,
        at_least: None,
        precision_percent: run.record.precision_percent,
        baseline: BTreeMap::from([(AXIS.to_owned(), BASELINE.to_owned())]),
        durability: run.record.durability.or(baseline.record.durability),
        order: extended_order(&cases, blocks, seed)?,
        cases,
        in_quick: None,
        quick: run.record.quick.clone(),
        share: None,
        sha256: files::sha256(text.as_bytes()),
        text,
    })
}

/// Name of the rerun of a run.
fn name(run: &str) -> String {
    let room = names::MAX_LENGTH - SUFFIX.len();
    format!("{}{SUFFIX}", run.chars().take(room).collect::<String>().trim_end_matches(['-', '_']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{parse, tests::catalogue};
    use crate::record::run::{FORMAT, QuickOf, Share};

    const PLAN: &str =
        "name = \"x\"\nblocks = 3\n[stack.d]\ndirectory = \"/srv\"\n[workload.w]\npgbench = { clients = 4 }\n";

    /// A run of this plan, with these extra lines in its workload.
    fn run(id: &str, text: &str) -> RunRecord {
        let plan = parse(text, "plan.toml", &catalogue()).unwrap();
        RunRecord {
            format: FORMAT,
            tool_version: "0.1.0".to_owned(),
            id: id.to_owned(),
            name: plan.name,
            plan_sha256: plan.sha256,
            seed: plan.seed,
            blocks: plan.blocks,
            at_least: plan.at_least,
            precision_percent: plan.precision_percent,
            extended: Vec::new(),
            share: None,
            turns: Vec::new(),
            merged: Vec::new(),
            baseline: plan.baseline,
            quick: None,
            durability: None,
            started: "2026-03-02T09:14:33Z".to_owned(),
            cases: plan.cases,
            order: plan.order,
        }
    }

    fn joined(old: &RunRecord, new: &RunRecord) -> Result<Plan> {
        let (olds, news): (Vec<_>, Vec<_>) = (old.cases.iter().collect(), new.cases.iter().collect());
        let pairs = matched(&olds, &news).pairs;
        let half = |label, record| JoinedHalf { label, record, plan: "blocks = 3\nname = \"x\"" };
        join(half("old", old), half("new", new), &pairs)
    }

    fn refused(old: &RunRecord, new: &RunRecord) -> String {
        joined(old, new).unwrap_err().to_string()
    }

    #[test]
    fn each_block_has_the_cases_of_every_joined_run() {
        let (old, new) =
            (run("aaaaaaaa", PLAN), run("bbbbbbbb", &PLAN.replace("blocks = 3", "blocks = 4").replace("/srv", "/mnt")));
        let plan = joined(&old, &new).unwrap();
        let ids: Vec<&str> = plan.cases.iter().map(|case| case.id.as_str()).collect();
        assert_eq!(ids, ["baseline.d.w", "run.d.w"]);
        assert_eq!((plan.blocks, plan.order.len()), (4, 8), "as many blocks as the run with more");
        for block in plan.order.chunks(2) {
            assert_eq!(block[0].trial, block[1].trial);
            assert_ne!(block[0].case, block[1].case);
        }
        assert_eq!(plan.cases[1].axes[AXIS], RUN);
        assert_eq!(
            CaseSpec { axes: new.cases[0].axes.clone(), id: new.cases[0].id.clone(), ..plan.cases[1].clone() },
            new.cases[0]
        );
        assert!(
            plan.text.lines().all(|line| line.starts_with('#')) && plan.text.contains("#   blocks = 3"),
            "{}",
            plan.text
        );
        assert_eq!(plan.sha256, joined(&old, &new).unwrap().sha256, "the same two are known again");
        assert_ne!(plan.sha256, joined(&old, &run("cccccccc", &PLAN.replace("/srv", "/mnt"))).unwrap().sha256);
    }

    #[test]
    fn cases_match_by_workload_axes_and_duplicates_are_dropped() {
        let swept = PLAN.replace("clients = 4", "clients = [4, 8, 16]");
        let old = run("aaaaaaaa", &swept.replace("16", "2"));
        let mut new = run("bbbbbbbb", &swept);
        new.cases[1].workload.options.set("scale", crate::record::options::OptionValue::Integer(3));
        let (olds, news): (Vec<_>, Vec<_>) = (old.cases.iter().collect(), new.cases.iter().collect());
        let found = matched(&olds, &news);
        let ids = |pairs: &[(&CaseSpec, &CaseSpec)]| {
            pairs.iter().map(|(old, new)| format!("{} {}", old.id, new.id)).collect::<Vec<_>>()
        };
        assert_eq!(ids(&found.pairs), ["d.w.clients-8 d.w.clients-8"]);
        assert_eq!(ids(&found.equal), ["d.w.clients-4 d.w.clients-4"]);
        assert_eq!(found.alone, ["d.w.clients-2", "d.w.clients-16"]);
    }

    #[test]
    fn what_cannot_be_interleaved_is_refused_with_the_reason() {
        let old = run("aaaaaaaa", PLAN);
        let changed = || run("bbbbbbbb", &PLAN.replace("/srv", "/mnt"));
        assert!(refused(&old, &run("bbbbbbbb", PLAN)).contains("nothing to interleave"));
        let share = RunRecord { share: Some(Share { part: 1, of: 3 }), ..changed() };
        assert!(refused(&old, &share).contains("is a share of a plan's blocks"));
        let adaptive = RunRecord { at_least: Some(3), ..changed() };
        assert!(refused(&old, &adaptive).contains("new has adaptive blocks"));
        let quick = RunRecord { quick: Some(QuickOf::default()), ..changed() };
        assert!(refused(&old, &quick).contains("is a quick run"));
        let mut guests = changed();
        guests.cases[0].guest = Some("trixie".to_owned());
        assert!(refused(&old, &guests).contains("ran in the guest trixie"));
        let again = RunRecord { cases: joined(&old, &changed()).unwrap().cases, ..changed() };
        assert!(refused(&again, &changed()).contains("is itself what --rerun-baseline has measured"));
    }

    #[test]
    fn the_name_of_the_joined_plan_is_a_name() {
        assert_eq!(name("fs"), "fs-rerun");
        assert!(names::is_name(&name(&format!("{}-z", "a".repeat(33)))));
    }
}
