//! `pgstrata plans`: the plans that the program carries.

use super::help::folded;
use super::named::{parsed, unknown};
use super::out;
use super::plan::design::FEWEST_BLOCKS;
use crate::error::Result;
use crate::host::machine;
use crate::plan::Plan;
use crate::plan::shipped::{self, Shipped};
use crate::report::text::paragraph;
use crate::run::forecast::{expected_without_images, lacking, make_quick};
use crate::units::{Bytes, Micros, count};
use serde::Serialize;
use std::path::Path;

/// List the plans that ship with pgstrata, or print one
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  pgstrata plans                                    list them
  pgstrata plans show filesystem-matrix             the page of one, then the plan itself
  pgstrata plans filesystem-matrix > mine.toml      take one as the start of your own
  pgstrata plan filesystem-matrix --quick           what it would do here
  pgstrata run filesystem-matrix --quick            run it
  pgstrata run filesystem-matrix --on DISK          run it on a disk of yours instead of image files

`plan` and `run` take such a name where no file has it. The page of a plan has the question, the cases, how long it takes, \
what to read, and what is published."
)]
pub struct Args {
    #[command(subcommand)]
    what: Option<PlansCommand>,
    /// Print this plan
    #[arg(conflicts_with = "json")]
    name: Option<String>,
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum PlansCommand {
    /// Print the page of a plan and the plan
    Show {
        /// Name of the plan
        name: String,
    },
}

/// Lists or prints.
///
/// # Errors
/// If there is no plan of that name, or standard output cannot be written.
pub fn run(args: &Args) -> Result<u8> {
    match (&args.what, &args.name) {
        (Some(PlansCommand::Show { name }), _) => {
            let found = shipped::find(name).ok_or_else(|| unknown(name))?;
            // Indented, as a Markdown code block.
            let lines =
                found.text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") });
            let plan: String = lines.collect();
            out::fitted(|| format!("{}\n\n    # plans/{}.toml\n\n{plan}", folded(found.page), found.name))?;
        }
        (None, Some(name)) => out::bytes(shipped::find(name).ok_or_else(|| unknown(name))?.text.as_bytes())?,
        (None, None) => {
            let lines = shipped::all().map(PlanLine::of).collect::<Result<Vec<PlanLine>>>()?;
            out::json_or(args.json, &lines, || shown(&lines))?;
        }
    }
    Ok(0)
}

/// In the hint of what a guest has.
const GUEST: &str = "--guest";

/// A plan in the list.
#[derive(Serialize)]
struct PlanLine {
    name: &'static str,
    question: String,
    full: PlanExtent,
    quick: PlanExtent,
    /// How many of its cases this machine can run, and what is missing first for the others, with the remedy.
    cases_here: usize,
    missing: Option<(String, String)>,
}

/// Extent of a plan. The time is that of the trials, without writing images.
#[derive(Serialize)]
struct PlanExtent {
    cases: usize,
    blocks: u32,
    trials: usize,
    expected_us: u64,
}

impl PlanExtent {
    fn of(plan: &Plan, memory: Bytes) -> Result<PlanExtent> {
        let expected_us = expected_without_images(plan, memory)?;
        Ok(PlanExtent { cases: plan.cases.len(), blocks: plan.blocks_here(), trials: plan.order.len(), expected_us })
    }

    /// What it cannot do, and what that would cost: "; it shows and does not rank: 1 block, and 3 would take 28 min".
    fn unranked(&self) -> Option<String> {
        let enough = Micros(self.expected_us / u64::from(self.blocks.max(1)) * u64::from(FEWEST_BLOCKS));
        let blocks = count(self.blocks as usize, "block");
        (self.blocks < FEWEST_BLOCKS)
            .then(|| format!("; it shows and does not rank: {blocks}, and {FEWEST_BLOCKS} would take {enough}"))
    }
}

impl PlanLine {
    fn of(shipped: Shipped) -> Result<PlanLine> {
        let memory = Bytes(machine::facts(&crate::host::Host::this()).memory_bytes);
        let mut plan = parsed(&shipped)?;
        let full = PlanExtent::of(&plan, memory)?;
        make_quick(&mut plan)?;
        let quick = PlanExtent::of(&plan, memory)?;
        let checked = super::plan::checked(parsed(&shipped)?, Path::new(shipped.name), None);
        let (cases_here, missing) = match checked.and_then(|read| super::plan::unmet_here(&read)) {
            Ok(unmet) => {
                // What no package has says more.
                let first = unmet.iter().find(|lack| lack.hint.contains(GUEST)).or(unmet.first());
                let first = first.map(|first| (first.what.clone(), first.hint.clone()));
                (full.cases.saturating_sub(lacking(&unmet)), first)
            }
            Err(_) => (0, Some(("a mount option that it needs".to_owned(), String::new()))),
        };
        Ok(PlanLine { name: shipped.name, question: shipped.question(), full, quick, cases_here, missing })
    }

    /// "here: 12 of 16 cases; missing: the program cryptsetup".
    fn here(&self) -> String {
        let Some((what, hint)) = &self.missing else { return "here: all cases".to_owned() };
        let guest = if hint.contains(GUEST) { "; a guest may have it: --guest" } else { "" };
        let cases = match self.cases_here {
            0 => "no case".to_owned(),
            some => format!("{some} of {}", count(self.full.cases, "case")),
        };
        format!("here: {cases}; missing: {what}{guest}")
    }
}

fn shown(lines: &[PlanLine]) -> String {
    let shown = lines.iter().map(|line| {
        let PlanLine { name, question, full, quick, .. } = line;
        let question = paragraph("  ", question);
        let (cases, trials) = (count(full.cases, "case"), count(quick.trials, "trial"));
        let unranked = quick.unranked().unwrap_or_default();
        let (full, quick) = (Micros(full.expected_us), Micros(quick.expected_us));
        let extent = paragraph("  ", &format!("{cases}, {full}; with --quick: {trials}, {quick}{unranked}"));
        let here = paragraph("  ", &line.here());
        format!("{name}\n{question}{extent}{here}")
    });
    shown.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_plan_is_sound_and_its_quick_run_small() {
        let lines: Vec<PlanLine> = shipped::all().map(|plan| PlanLine::of(plan).unwrap()).collect();
        assert!(lines.len() > 1);
        for line in &lines {
            let minutes = if line.name == "kernel-versions" { 30 } else { 15 };
            assert!(line.quick.expected_us < minutes * 60_000_000, "{}: {}", line.name, Micros(line.quick.expected_us));
            let shows = ["filesystem-matrix", "pool-ageing", "snapshots"].contains(&line.name);
            assert_eq!(line.quick.unranked().is_some(), shows, "{}", line.name);
            assert!(line.full.trials >= line.quick.trials, "{}", line.name);
            assert!(shown(&lines).contains(line.name));
            assert_eq!(line.cases_here == line.full.cases, line.missing.is_none(), "{}", line.name);
        }
    }

    #[test]
    fn a_plan_is_marked_by_what_it_lacks_here() {
        let line = |cases_here, missing: Option<(&str, &str)>| PlanLine {
            name: "x",
            question: String::new(),
            full: PlanExtent { cases: 16, blocks: 5, trials: 80, expected_us: 1 },
            quick: PlanExtent { cases: 16, blocks: 1, trials: 16, expected_us: 60_000_000 },
            cases_here,
            missing: missing.map(|(what, hint)| (what.to_owned(), hint.to_owned())),
        };
        assert_eq!(line(16, None).here(), "here: all cases");
        assert_eq!(line(16, None).full.unranked(), None);
        let shows = line(16, None).quick.unranked();
        assert_eq!(shows.as_deref(), Some("; it shows and does not rank: 1 block, and 3 would take 3 min 0 s"));
        let (program, filesystem) = (("the program zpool", "apt-get install x"), ("zfs", "run the plan with --guest"));
        assert_eq!(line(12, Some(program)).here(), "here: 12 of 16 cases; missing: the program zpool");
        assert_eq!(line(0, Some(filesystem)).here(), "here: no case; missing: zfs; a guest may have it: --guest");
    }
}
