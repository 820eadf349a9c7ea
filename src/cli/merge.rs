//! `pgstrata merge`: merges runs of shares of one plan, from several machines, into one run folder.

use super::out;
use crate::analyse::merge::{MergeCandidate, choose, line};
use crate::analyse::{load, trial_table};
use crate::error::{Context, EXIT_INCOMPLETE, Error, Result};
use crate::host::files;
use crate::host::time::{rfc3339, wall_us};
use crate::record::case::TrialKey;
use crate::record::event::{Event, Stamped};
use crate::record::merged::{FORMAT, LeftOut, MergeRecord};
use crate::record::verdict::VerdictRecord;
use crate::run::session;
use crate::store::folder::{RunFolder, folder_name};
use crate::store::merge::{self, Merge};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Merge runs of one plan from several machines into one run folder
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata merge results/*                        the runs of one plan below results, into a new folder there
  pgstrata merge a/run b/run c/run --into all     into the folder `all`
  pgstrata merge results/* --json | jq .left_out  what was not merged, and why

Each run has other blocks of the plan (pgstrata run PLAN --share 1/3). Trials keep their machine, and cases are compared inside \
a block, so only inside a machine. Left out, with the reason, are runs of another plan, seed, number of blocks or set of cases; \
runs whose machine lacked something for a case that another machine has; runs on another class of machine (version of pgstrata or PostgreSQL, \
storage model, firmware) than most blocks; active runs and merged ones; runs with adaptive or added blocks, or without any trial with a result; blocks that another run has, too, or whose trials ran \
on several machines. The new folder's merged.json lists what was merged and what was not. Nothing is changed in the folders that \
are merged.

Exit code: 0 everything was merged, 1 something was left out or blocks of the plan are missing, 2 fewer than two of the folders \
belong together, or the folder to make exists, 5 a folder cannot be read or written.")]
pub struct Args {
    /// Run folders
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Folder to make [default: DATE-PLAN-merged below --results]
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Folder for results
    #[arg(long, value_name = "DIR", default_value = "results", conflicts_with = "into")]
    results: PathBuf,
    /// Print merged.json
    #[arg(long)]
    json: bool,
}

/// Merges.
///
/// # Errors
/// If a folder is not a run folder, fewer than two belong together, or the new one cannot be written.
pub fn run(args: &Args) -> Result<u8> {
    let (mut folders, mut sources, mut unread) = (Vec::new(), Vec::new(), Vec::new());
    for path in &args.folders {
        if !path.is_dir() {
            return Err(Error::user(format!("{} is not a folder", path.display())));
        }
        match RunFolder::open(path).and_then(|folder| Ok((MergeCandidate::load(&folder, path)?, folder))) {
            Ok((source, folder)) => {
                sources.push(source);
                folders.push(folder);
            }
            Err(e) => {
                unread.push(LeftOut { folder: path.display().to_string(), blocks: Vec::new(), reason: e.to_string() });
            }
        }
    }
    let choice = choose(&sources, unread)?;
    let id = files::random_id()?;
    let record = choice.record(&sources, id.clone())?;
    let merged = MergeRecord {
        format: FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        made: rfc3339(wall_us()),
        id,
        plan_sha256: record.plan_sha256.clone(),
        seed: record.seed,
        blocks: record.blocks,
        group: choice.class.clone(),
        merged: choice.taken_runs(&sources),
        left_out: choice.left_out.clone(),
        missing: (1..=record.blocks).filter(|block| !record.blocks_held().contains(block)).collect(),
    };
    let place = match &args.into {
        Some(into) => into.clone(),
        None => args.results.join(format!("{}-merged", folder_name(&record.started, &record.name))),
    };
    let place = std::path::absolute(&place).or_user(|| format!("find {}", place.display()))?;
    let taken = choice.taken.iter().map(|(place, blocks)| (&sources[*place], &folders[*place], blocks));
    let taken: Vec<Taken<'_>> = taken.collect();
    let plan_text = taken.first().map(|(_, folder, _)| folder.plan_text()).transpose()?.unwrap_or_default();
    let trials = trials(&taken);
    let (verdicts, disagree) = verdicts(&taken)?;
    let events = events(&taken, (&record.id, record.order.len()), disagree)?;
    let (events, verdicts, trials) = (events.as_slice(), verdicts.as_slice(), trials.as_slice());
    merge::write(&place, &Merge { record: &record, merged: &merged, plan_text: &plan_text, events, verdicts, trials })?;
    trial_table::write(&place, &load::findings(&place)?)?;
    session::give_to_person(&place)?;
    out::json_or(args.json, &merged, || printed(&merged, &place))?;
    Ok(if merged.left_out.is_empty() && merged.missing.is_empty() { 0 } else { EXIT_INCOMPLETE })
}

fn printed(merged: &MergeRecord, place: &std::path::Path) -> String {
    let mut text = format!("merged ({}):\n", merged.group);
    for run in &merged.merged {
        let blocks: Vec<String> = run.blocks.iter().map(u32::to_string).collect();
        let hosts = run.hosts.join(", ");
        text.push_str(&format!("  {}: {hosts}, blocks {}, {} trials\n", run.folder, blocks.join(", "), run.trials));
    }
    if !merged.left_out.is_empty() {
        text.push_str("left out:\n");
        merged.left_out.iter().for_each(|left_out| text.push_str(&format!("  {}\n", line(left_out))));
    }
    if !merged.missing.is_empty() {
        let blocks = merged.missing.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        text.push_str(&format!("missing: no run has blocks {blocks} of the plan; run their shares, and merge again"));
        text.push_str(" (pgstrata submit --again DIR where they were submitted)\n");
    }
    text.push_str(&format!("run folder  {0}\nreport it   pgstrata report {0}\n", place.display()));
    out::harmless_lines(&text)
}

/// A run that is merged, its folder, and the blocks that it gives.
type Taken<'a> = (&'a MergeCandidate, &'a RunFolder, &'a BTreeSet<u32>);

/// Complete trials, with their folders.
fn trials<'a>(taken: &[Taken<'a>]) -> Vec<(&'a RunFolder, TrialKey)> {
    let trials = taken.iter().flat_map(|&(source, folder, blocks)| {
        let taken = source.trials.iter().filter(move |trial| blocks.contains(&trial.trial));
        taken.map(move |trial| (folder, TrialKey { case: trial.case.id.clone(), trial: trial.trial }))
    });
    trials.collect()
}

/// One verdict per case: if machines disagree, a convicting one; with remarks.
fn verdicts(taken: &[Taken<'_>]) -> Result<(Vec<VerdictRecord>, Vec<String>)> {
    let (mut kept, mut disagree): (BTreeMap<String, VerdictRecord>, Vec<String>) = (BTreeMap::new(), Vec::new());
    for (_, folder, _) in taken {
        for verdict in folder.verdicts()? {
            let Some(case) = verdict.cases.first().cloned() else { continue };
            let convicts = verdict.verdict.convicts();
            let known = kept.get(&case).map(|known| known.verdict.convicts());
            if known == Some(!convicts) {
                disagree
                    .push(format!("machines disagree on what a power cut costs {case}: the worse verdict is shown"));
            }
            if known.is_none() || convicts && known == Some(false) {
                kept.insert(case, verdict);
            }
        }
    }
    Ok((kept.into_values().collect(), disagree))
}

/// Events of the merged trials, and warnings of their runs, in the order of time.
fn events(taken: &[Taken<'_>], (id, trials): (&str, usize), warnings: Vec<String>) -> Result<Vec<Stamped>> {
    let mut events: Vec<Stamped> = Vec::new();
    let (mut measured, mut done, mut wall) = (0, 0, 0);
    for (source, folder, blocks) in taken {
        for event in folder.events()? {
            match &event.what {
                Event::TrialDone { trial, .. } | Event::TrialNotRun { trial, .. } if blocks.contains(&trial.trial) => {
                    events.push(event);
                }
                Event::Warning { message } => {
                    let message = format!("{}: {message}", source.label);
                    events.push(Stamped { what: Event::Warning { message }, ..event });
                }
                Event::RunDone { wall_us, measured_us, .. } => {
                    wall += wall_us;
                    measured += measured_us;
                }
                _ => {}
            }
        }
        let of_blocks = source.trials.iter().filter(|trial| blocks.contains(&trial.trial));
        done += of_blocks.filter(|trial| trial.is_result()).count();
    }
    events.sort_by_key(|event| event.at_us);
    let (first, last) = (events.first().map_or(0, |e| e.at_us), events.last().map_or(0, |e| e.at_us));
    let [trials, done, not_run] =
        [trials, done, trials.saturating_sub(done)].map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let started =
        Event::RunStarted { run: id.to_owned(), trials, expected_us: 0, most_repeats: 0, cases: BTreeMap::new() };
    let ended = Event::RunDone { wall_us: wall, measured_us: measured, done, not_run };
    let warnings = warnings.into_iter().map(|message| Stamped { at_us: last, what: Event::Warning { message } });
    let mut all = vec![Stamped { at_us: first, what: started }];
    all.extend(events);
    all.extend(warnings);
    all.push(Stamped { at_us: last, what: ended });
    Ok(all)
}
