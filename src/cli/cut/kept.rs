//! What a cut leaves: the verdicts of a run in its folder and page; of a plan `cut.json` and a page, beside the evidence.

use super::{Args, disks};
use crate::analyse::run::power_cuts;
use crate::cli::commands::with_scripts;
use crate::cli::page::page;
use crate::cli::{out, run};
use crate::error::Result;
use crate::host::command::quoted;
use crate::host::time::{rfc3339, wall_us};
use crate::host::{Host, files, folders, machine};
use crate::plan::Plan;
use crate::record::case::{CaseSpec, by_stack_and_server};
use crate::record::cut::{self, CutRecord};
use crate::record::verdict::VerdictRecord;
use crate::run::session::give_to_person;
use crate::store::folder::RunFolder;
use crate::{report, store};
use std::collections::BTreeSet;
use std::path::Path;

/// Prints the results of a plan and stores them in a folder `cut-ID` of the results; prints the page's path unless JSON is printed.
///
/// # Errors
/// If the folder cannot be written.
pub fn of_plan(host: &Host, args: &Args, plan: &Plan, found: Vec<VerdictRecord>) -> Result<()> {
    let verdicts = shown(args, &plan.cases, found)?;
    let evidence: Vec<&Path> = verdicts.iter().filter_map(|it| Some(Path::new(it.evidence.as_ref()?))).collect();
    let folder = match evidence.first().and_then(|case| case.parent()) {
        Some(folder) => folder.to_owned(),
        None => args.places.places()?.results.join(format!("cut-{}", files::random_id()?)),
    };
    let judged: BTreeSet<&String> = verdicts.iter().flat_map(|verdict| &verdict.cases).collect();
    let left = plan.cases.iter().filter(|case| case.postgres.is_some() && !judged.contains(&case.id)).count() as u64;
    let given = std::env::args_os().skip(1).map(|word| quoted(&word)).collect::<Vec<_>>().join(" ");
    let replays = evidence.iter().map(|case| format!("cut replay {}", quoted(case.as_os_str())));
    let commands = std::iter::once(given).chain(replays).map(|command| format!("pgstrata {command}"));
    let record = CutRecord {
        format: cut::FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        made: rfc3339(wall_us()),
        name: plan.name.clone(),
        plan: plan.text.clone(),
        commands: commands.collect(),
        disks: disks(args).to_owned(),
        seconds: args.seconds,
        guest: args.guest.as_ref().map(|suite| suite.clone().unwrap_or_default().to_string()),
        host: machine::facts(host),
        verdicts,
        left,
    };
    folders::make_all(&folder, 0o755)?;
    store::cut::keep(&folder, &record)?;
    page(&folder.join("report.html"), &report::cut::page(&power_cuts::of_plan(record), None)?, args.json)?;
    give_to_person(&folder)
}

/// Prints the verdicts and stores them in the run folder, where an unknown one replaces none, and makes the run's page anew.
///
/// # Errors
/// If the folder cannot be read or written.
pub fn of_run(args: &Args, folder: &RunFolder, found: Vec<VerdictRecord>) -> Result<()> {
    let verdicts = shown(args, &folder.record().cases, found)?;
    let before = folder.verdicts()?;
    for record in &verdicts {
        if record.verdict.is_known() || before.iter().all(|kept| kept.cases != record.cases) {
            folder.keep_verdict(record)?;
        }
    }
    let report = run::written(folder.path(), &with_scripts(folder.path())?)?;
    if args.json { Ok(()) } else { out::line(&format!("\nreport      {}", report.display())) }
}

/// Prints the verdicts; returns them with all cases that they hold for: those that differ in nothing that was cut share one.
fn shown(args: &Args, cases: &[CaseSpec], mut found: Vec<VerdictRecord>) -> Result<Vec<VerdictRecord>> {
    let groups = by_stack_and_server(cases);
    for verdict in &mut found {
        let group = groups.iter().find(|group| group.iter().any(|case| verdict.cases.contains(&case.id)));
        let cut = cases.iter().find(|case| verdict.cases.contains(&case.id));
        let sharing = group.into_iter().flatten();
        let sharing = sharing.filter(|case| !args.workload || cut.is_some_and(|cut| cut.workload == case.workload));
        verdict.cases = sharing.map(|case| case.id.clone()).collect();
    }
    out::json_or(args.json, &found, || report::terminal::costs_of_power_cuts(&power_cuts::of_records(&found)))?;
    for evidence in found.iter().filter_map(|verdict| verdict.evidence.as_ref()).filter(|_| !args.json) {
        out::line(&format!("\nevidence    {}", out::harmless(evidence)))?;
    }
    Ok(found)
}
