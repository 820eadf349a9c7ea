//! Forecast of a plan before anything is built: time, space, and what this machine lacks for which case.

use super::case::{EMPTY_CLUSTER, memory_of, workload};
use super::{age_cost, check, drives, io_uring, repeats, together, verdicts, warnings, window};
use crate::ageing;
use crate::cluster::install;
use crate::error::{Error, Result};
use crate::host::{Host, files, paths};
use crate::plan::Plan;
use crate::plan::forecast::{CaseUnmet, DriveLine, Forecast, ImagesLine, SpaceLine};
use crate::provision::disk_probe::existing_folder;
use crate::provision::images::{self, Images};
use crate::provision::{self, Space, Unmet, knobs};
use crate::record::build::UNBUILT;
use crate::record::case::CaseSpec;
use crate::record::options::OptionProblem;
use crate::record::stack::StackSpec;
use crate::record::window::Extent;
use crate::units::{Bytes, Micros};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Time to build and undo a stack and to start and stop a server, microseconds. Only for the estimate; the progress
/// display corrects it by the actual trials.
const TRIAL_OVERHEAD_US: u64 = 4_000_000;
/// Time to probe the disk and to start and end the client of a turn, microseconds. Only for the estimate.
const TURN_OVERHEAD_US: u64 = 400_000;
/// Speed of copying a template, bytes per second, conservatively. Only for the estimate.
const COPY_BYTES_PER_S: u64 = 200 << 20;
/// Speed at which pgbench loads its tables, bytes per second, conservatively. Only for the estimate.
const LOAD_BYTES_PER_S: u64 = 40 << 20;
/// Share of a stack's capacity that data may take at the start: the rest is for WAL (max_wal_size is 1 GB by default),
/// growth and the filesystem's own structures.
const DATA_SHARE: f64 = 0.8;

/// Reduces the plan to a quick run, and gives every case a short window, at the cost of what a full one shows.
///
/// # Errors
/// For a workload that this program does not have.
pub fn make_quick(plan: &mut Plan) -> Result<()> {
    plan.keep_quick_part();
    for case in &mut plan.cases {
        workload(&case.workload.kind)?.make_quick(&mut case.workload.options);
    }
    Ok(())
}

/// Inspects plan and machine; changes nothing. Requirements are checked for the cases that run in this `guest`, or
/// outside of any.
///
/// # Errors
/// When a setting of the plan is reserved for pgstrata, or the machine cannot be inspected.
pub fn forecast(host: &Host, plan: &Plan, guest: Option<&str>, state: &Path) -> Result<Forecast> {
    refuse_reserved_settings(&plan.cases)?;
    refuse_stacks_kept_beyond_a_guest(&plan.cases)?;
    drives::refuse_mixed(host, &plan.cases)?;
    let memory = Bytes(crate::host::machine::facts(host).memory_bytes);
    let mut warnings = BTreeSet::new();
    let here = plan.part_in(guest);
    warnings.extend(here.cases.iter().filter_map(|case| io_uring::warning(host, case)));
    for case in &plan.cases {
        warnings.extend(workload(&case.workload.kind)?.warnings(&case.workload.options, memory_of(case, memory)));
        warnings.extend(warnings::of_case(host, case, plan.quick.is_some())?);
    }
    warnings.extend(warnings::checksums_by_version(host, &here.cases));
    warnings.extend(warnings::one_filesystem(&here.cases));
    let templates = templates(plan, memory)?;
    let state_templates = self::templates(&here, memory)?;
    let together = together::ids(&plan.cases, plan.is_in_turns(), memory)?;
    let side_by_side = space(&here, memory, &together, &state_templates, state)?;
    let fits = side_by_side.iter().all(|line| line.fits);
    let (turns, space) = match fits {
        true => (together, side_by_side),
        false => (Vec::new(), space(&here, memory, &[], &state_templates, state)?),
    };
    let images = images(&together::stands(here.cases.iter(), &turns));
    let drives = drives::lines(host, here.cases.iter().map(|case| &case.stack))?;
    let preparing = drives.iter().map(DriveLine::most_us).fold(0, u64::saturating_add);
    let writing = images.iter().filter_map(|line| line.expected_us).fold(0, u64::saturating_add);
    let once = writing.saturating_add(preparing).saturating_add(verdicts::expected_us(plan.durability, &plan.cases));
    let each_us = trials_us(plan, memory, &turns)?;
    let of_trials = expected_us(plan, plan.blocks_here(), each_us, &templates);
    let least = plan.at_least.map(|blocks| expected_us(plan, blocks, each_us, &templates));
    let windows = plan.cases.iter().map(|case| Ok(format!("{}: {}", case.workload.name, described(case, &turns)?)));
    let (mut windows, mut seen) = (windows.collect::<Result<Vec<String>>>()?, BTreeSet::new());
    windows.retain(|line| seen.insert(line.clone()));
    let alone = plan.order.iter().filter(|key| !turns.contains(&key.case)).count();
    let of_images = plan.cases.iter().filter(|case| !turns.contains(&case.id));
    let most_repeats = repeats::most(of_images, u32::try_from(alone).unwrap_or(u32::MAX));
    let longest_us = plan.cases.iter().map(|case| trial_us(case, memory, &turns)).collect::<Result<Vec<u64>>>()?;
    let repeats_us = longest_us.into_iter().max().unwrap_or(0).saturating_mul(u64::from(most_repeats));
    Ok(Forecast {
        expected_us: of_trials.saturating_add(once),
        least_us: least.map(|of_trials| of_trials.saturating_add(once)),
        most_repeats,
        repeats_us,
        turns,
        images,
        drives,
        windows,
        space,
        unmet: unmet(host, &here.cases),
        warnings: warnings.into_iter().collect(),
    })
}

/// Requirements of these cases that this machine does not meet.
pub fn unmet(host: &Host, cases: &[CaseSpec]) -> Vec<CaseUnmet> {
    // A plan of thousands of cases asks once for each stack and server. By text: comparing each stack with all known ones
    // takes seconds.
    let (mut stacks, mut servers) = (BTreeMap::new(), BTreeMap::new());
    let mut unmet = Vec::new();
    for case in cases {
        let of_stack = stacks.entry(format!("{:?}", case.stack));
        let of_stack = of_stack.or_insert_with(|| provision::stack::unmet(host, &case.stack, &Images::default()));
        // Building reports what a build lacks.
        let bin = case.postgres.as_ref().map(|postgres| postgres.bin.as_str()).filter(|bin| *bin != UNBUILT);
        let server = bin.and_then(|bin| servers.entry(bin).or_insert_with(|| postgres_unmet(host, bin)).clone());
        let missing = all_unmet(host, case, of_stack.clone(), server).into_iter();
        unmet.extend(missing.map(|Unmet { what, hint }| CaseUnmet { case: case.id.clone(), what, hint }));
    }
    unmet
}

/// The images that the plan writes in full. The speed is measured, not assumed: disks differ a hundredfold.
fn images(stands: &[Vec<&StackSpec>]) -> Vec<ImagesLine> {
    let mut folders: BTreeMap<PathBuf, (usize, u64)> = BTreeMap::new();
    for image in images::of_run(stands) {
        let (count, sum) = folders.entry(image.folder).or_default();
        (*count, *sum) = (*count + 1, sum.saturating_add(image.size.0));
    }
    let lines = folders.into_iter().map(|(folder, (images, bytes))| {
        let bytes_per_s = images::try_speed(&folder);
        let expected_us = bytes_per_s.map(|speed| (bytes as f64 / speed * 1e6) as u64);
        ImagesLine { folder: folder.display().to_string(), images, bytes: Bytes(bytes), bytes_per_s, expected_us }
    });
    lines.collect()
}

/// Expected time to write the images of these stacks in full, microseconds, if known.
pub(super) fn images_us(stands: &[Vec<&StackSpec>]) -> u64 {
    images(stands).iter().filter_map(|line| line.expected_us).fold(0, u64::saturating_add)
}

/// Rejects settings and initdb arguments that servers under test depend on.
fn refuse_reserved_settings(cases: &[CaseSpec]) -> Result<()> {
    let refused = check::reserved(cases).into_iter().map(|refusal| refusal.message);
    let twice: BTreeSet<String> = cases.iter().flat_map(set_twice).collect();
    let refused: Vec<String> = refused.chain(twice).collect();
    if refused.is_empty() { Ok(()) } else { Err(Error::user(refused.join("\n")).hint("remove it from [postgres]")) }
}

/// Rejects stacks kept for all trials if a trial kills the guest they are in.
fn refuse_stacks_kept_beyond_a_guest(cases: &[CaseSpec]) -> Result<()> {
    for case in cases.iter().filter(|case| case.guest.is_some() && case.stack.reuse) {
        if workload(&case.workload.kind)?.crashes_machine(&case.workload.options) {
            let (workload, stack) = (&case.workload.name, &case.stack.name);
            let message = format!("{workload} kills the guest, and the stack {stack} is kept for all its trials there");
            return Err(Error::user(message)
                .hint(format!("remove `reuse` from {stack}, or set crash = \"process\" in {workload}")));
        }
    }
    Ok(())
}

/// Settings that both the workload's options and the plan set.
fn set_twice(case: &CaseSpec) -> Vec<String> {
    let (Some(postgres), Ok(workload)) = (&case.postgres, workload(&case.workload.kind)) else { return Vec::new() };
    let of_workload = workload.server_settings(&case.workload.options).into_keys();
    let twice = of_workload.filter(|name| postgres.asked(name).is_some());
    twice.map(|name| format!("both [postgres] and the workload {} set `{name}`", case.workload.name)).collect()
}

/// Checks that every size fits.
///
/// # Errors
/// With everything that is too small.
pub fn must_fit(forecast: &Forecast) -> Result<()> {
    let small = forecast.space.iter().filter(|line| !line.fits).map(|line| {
        let has = line.has.map_or_else(|| "an unknown amount".to_owned(), |has| has.to_string());
        format!("{} is too small: the plan needs {}, there is {has}", line.what, line.needs)
    });
    let small: Vec<String> = small.collect();
    if small.is_empty() {
        return Ok(());
    }
    Err(Error::host(small.join("\n"))
        .hint("make it as large as it needs (`loop`), load less (`scale`, `data`), or free some space"))
}

/// # Errors
/// When no case can run on this machine, with what the first of them lacks.
pub fn must_run(plan: &Plan, unmet: &[CaseUnmet]) -> Result<()> {
    match unmet.first() {
        Some(first) if lacking(unmet) == plan.cases.len() => {
            Err(unmet_error(first, format!("nothing of this plan can run here: {}: {}", first.case, first.what)))
        }
        _ => Ok(()),
    }
}

/// Number of cases that cannot run.
pub fn lacking(unmet: &[CaseUnmet]) -> usize {
    unmet.iter().map(|unmet| unmet.case.as_str()).collect::<BTreeSet<_>>().len()
}

fn unmet_error(first: &CaseUnmet, message: String) -> Error {
    let error = Error::host(message);
    if first.hint.is_empty() { error } else { error.hint(first.hint.clone()) }
}

/// Checks that every case can run, for commands that only look: a run measures those that can.
///
/// # Errors
/// With how many cannot, and what the first of them lacks.
pub fn must_run_all(plan: &Plan, forecast: &Forecast) -> Result<()> {
    let Some(first) = forecast.unmet.first() else { return Ok(()) };
    let (lacking, all) = (lacking(&forecast.unmet), plan.cases.len());
    Err(unmet_error(first, format!("{lacking} of {all} cases cannot run here: {}", first.what)))
}

fn all_unmet(host: &Host, case: &CaseSpec, mut of_stack: Vec<Unmet>, server: Option<Unmet>) -> Vec<Unmet> {
    of_stack.extend(knobs::unmet(host, &case.machine));
    of_stack.extend(tablespaces_unmet(case));
    of_stack.extend(ageing_unmet(case));
    of_stack.extend(server);
    of_stack
}

/// Requirements of a case that this machine does not meet.
///
/// A stack that `stands` already (kept for all its trials) needs nothing more: checked again, it would find its own
/// space and disk taken. The same holds for images that are `there`.
pub fn case_unmet(host: &Host, case: &CaseSpec, there: &Images, stands: &dyn Fn(&StackSpec) -> bool) -> Vec<Unmet> {
    let of_stack = if stands(&case.stack) { Vec::new() } else { provision::stack::unmet(host, &case.stack, there) };
    let server = case.postgres.as_ref().and_then(|postgres| postgres_unmet(host, &postgres.bin));
    all_unmet(host, case, of_stack, server)
}

/// Tablespaces that the workload uses and the stack does not have.
fn tablespaces_unmet(case: &CaseSpec) -> Vec<Unmet> {
    let named = workload(&case.workload.kind).map(|workload| workload.tablespaces(&case.workload.options));
    let missing = named.unwrap_or_default().into_iter().filter(|name| !case.stack.tablespaces.contains_key(name));
    let unmet = missing.map(|name| Unmet {
        what: format!("the tablespace {name} in the stack {}", case.stack.name),
        hint: format!("add tablespace = {{ {name} = {{ ... }} }} to the stack, or exclude the case"),
    });
    unmet.collect()
}

/// Ageing by pgbench needs pgbench's tables.
fn ageing_unmet(case: &CaseSpec) -> Option<Unmet> {
    case.age.integer("pgbench").filter(|times| *times > 0)?;
    let data = workload(&case.workload.kind).ok()?.data_set(&case.workload.options, memory_of(case, Bytes(0)))?;
    let name = &case.workload.name;
    (!data.key.starts_with("pgbench-")).then(|| Unmet {
        what: format!("pgbench's tables, which the workload {name} does not have, for age = {{ pgbench }}"),
        hint: "age by `rewrite` or `churn`, or exclude the case".to_owned(),
    })
}

fn postgres_unmet(host: &Host, bin: &str) -> Option<Unmet> {
    let e = install::find(host, bin).err()?;
    Some(Unmet { what: e.to_string(), hint: e.hint_text().unwrap_or_default().to_owned() })
}

/// Checks the cases of a run folder like those of a plan: the folder may come from somebody else.
///
/// # Errors
/// When a layer or workload is unknown here, or rejects its options.
pub fn recheck(cases: &[CaseSpec]) -> Result<()> {
    refuse_reserved_settings(cases)?;
    for case in cases {
        accepted("machine", knobs::check(&case.machine))?;
        accepted("age", ageing::check(&case.age))?;
        refuse_age(case)?;
        for spec in &case.stack.nodes {
            let layer = provision::layer(&spec.layer)
                .ok_or_else(|| Error::user(format!("this pgstrata has no layer `{}`", spec.layer)))?;
            accepted(&spec.layer, layer.check(&spec.options))?;
        }
        let kind = &case.workload.kind;
        accepted(kind, workload(kind)?.check(&case.workload.options))?;
    }
    Ok(())
}

fn accepted(name: &str, checked: Result<(), OptionProblem>) -> Result<()> {
    checked.map_err(|problem| {
        Error::user(format!("run.json gives `{name}` an option that it refuses: {}", problem.message))
    })
}

/// A stack is aged only if it is made for the trial and removed with it: otherwise `fill` would fill other people's
/// space.
fn refuse_age(case: &CaseSpec) -> Result<()> {
    let stack = &case.stack;
    let is_folder = stack.node(stack.data.node()).is_none_or(|node| node.layer == "directory");
    if case.age.is_empty() || !(stack.reuse || is_folder || !stack.tablespaces.is_empty()) {
        return Ok(());
    }
    let message =
        format!("run.json ages the stack of {}, which is reused, an existing folder, or has tablespaces", case.id);
    Err(Error::user(message).hint("plans that ask for this are refused, so run.json was edited: run the plan again"))
}

/// Expected duration of one trial of a case, microseconds, without making its template.
///
/// # Errors
/// For a workload that this program does not have.
pub fn trial_us(case: &CaseSpec, memory: Bytes, turns: &[String]) -> Result<u64> {
    let workload = workload(&case.workload.kind)?;
    let (warm_up_us, measure_us) = window::expected_us(case)?;
    let data = workload.data_set(&case.workload.options, memory_of(case, memory)).map_or(0, |set| set.expected.0);
    let copy_us = age_cost::us_at(data, COPY_BYTES_PER_S);
    let cycles = matches!(workload.window(&case.workload.options).extent, Extent::Cycles { .. });
    let takes_turns = turns.contains(&case.id);
    let prefill = case.postgres.as_ref().and_then(|postgres| match takes_turns {
        true => window::prefill_of_turns(postgres, u64::MAX),
        false => window::prefill(postgres, u64::MAX).filter(|_| cycles),
    });
    let turns = if takes_turns { together::turn_lengths_us(measure_us).len() as u64 } else { 0 };
    let turns_us = turns.saturating_mul(TURN_OVERHEAD_US);
    // Each segment is made and then filled.
    let prefill_us = age_cost::us_at(prefill.unwrap_or(0).saturating_mul(2), COPY_BYTES_PER_S);
    let age_us = age_cost::us(case, data, COPY_BYTES_PER_S);
    Ok([measure_us, turns_us, TRIAL_OVERHEAD_US, copy_us, prefill_us, age_us]
        .into_iter()
        .fold(warm_up_us, u64::saturating_add))
}

/// Data sets to make once: key and expected size.
fn templates(plan: &Plan, memory: Bytes) -> Result<BTreeMap<String, u64>> {
    let mut templates = BTreeMap::new();
    for case in &plan.cases {
        let Some(postgres) = &case.postgres else { continue };
        let set = workload(&case.workload.kind)?.data_set(&case.workload.options, memory_of(case, memory));
        let (key, bytes) = set.map_or_else(|| ("empty".to_owned(), 0), |set| (set.key, set.expected.0));
        let guest = case.guest.as_deref().unwrap_or_default();
        templates.insert(
            format!("{guest} {} {} {key}", postgres.bin, postgres.initdb.join(" ")),
            bytes.saturating_add(EMPTY_CLUSTER),
        );
    }
    Ok(templates)
}

/// Expected duration of a plan's trials and of loading their data, with its most blocks, microseconds.
///
/// # Errors
/// For a workload that this program does not have.
pub fn expected_without_images(plan: &Plan, memory: Bytes) -> Result<u64> {
    let turns = together::ids(&plan.cases, plan.is_in_turns(), memory)?;
    Ok(expected_us(plan, plan.blocks_here(), trials_us(plan, memory, &turns)?, &templates(plan, memory)?))
}

fn expected_us(plan: &Plan, blocks: u32, trials_us: u64, templates: &BTreeMap<String, u64>) -> u64 {
    let loading =
        templates.values().map(|bytes| age_cost::us_at(*bytes, LOAD_BYTES_PER_S)).fold(0, u64::saturating_add);
    // A guest keeps nothing when another one is booted.
    let guests: BTreeSet<&Option<String>> = plan.cases.iter().map(|case| &case.guest).collect();
    let times = if guests.len() > 1 { u64::from(blocks) } else { 1 };
    trials_us.saturating_mul(u64::from(blocks)).saturating_add(loading.saturating_mul(times))
}

/// Expected duration of one trial of each case, microseconds.
fn trials_us(plan: &Plan, memory: Bytes, turns: &[String]) -> Result<u64> {
    let mut trials = plan.cases.iter().map(|case| trial_us(case, memory, turns));
    trials.try_fold(0u64, |sum, one| Ok(sum.saturating_add(one?)))
}

/// Describes the window of a case.
fn described(case: &CaseSpec, turns: &[String]) -> Result<String> {
    if !turns.contains(&case.id) {
        return window::described(case);
    }
    let (warm_up_us, span_us) = window::expected_us(case)?;
    let turns = together::turn_lengths_us(span_us);
    let longest = Micros(turns.first().copied().unwrap_or_default());
    let (number, warm_up) = (turns.len(), Micros(warm_up_us));
    let is_asked = |name: &&str| case.postgres.iter().any(|postgres| postgres.asked(name).is_some());
    let replaced: Vec<&str> = window::REPLACED.into_iter().filter(is_asked).collect();
    let replaced = match replaced.is_empty() {
        true => String::new(),
        false => format!(", without the plan's {}, so that no checkpoint begins", replaced.join(" and ")),
    };
    Ok(format!("{number} turns of {longest} side by side with the others, after a warm-up of {warm_up}{replaced}"))
}

/// Peak space needed by the plan, by place.
fn space(
    plan: &Plan,
    memory: Bytes,
    turns: &[String],
    templates: &BTreeMap<String, u64>,
    state: &Path,
) -> Result<Vec<SpaceLine>> {
    let mut lines = Vec::new();
    let most = most(plan, turns);
    let mut needs: Vec<(PathBuf, u64)> = most.disks.into_iter().collect();
    // One after another they need the space of one, which is compared with what its folder has.
    for case in plan.cases.iter().filter(|case| turns.contains(&case.id)) {
        let wal = case.postgres.as_ref().and_then(|postgres| window::prefill_of_turns(postgres, u64::MAX)).unwrap_or(0);
        let data = existing_folder(&case.stack).zip(data_needs(case, memory)?);
        needs.extend(data.map(|(folder, (_, bytes))| (folder.to_path_buf(), bytes.0.saturating_add(wal))));
    }
    let template_bytes = templates.values().copied().fold(age_cost::aside_bytes(plan, memory)?, u64::saturating_add);
    needs.extend((template_bytes > 0).then(|| (state.to_path_buf(), template_bytes)));
    for (folder, bytes) in by_filesystem(needs) {
        let has = files::free_bytes(&folder)?;
        let what = format!("disk space in {}", folder.display());
        lines.push(SpaceLine { what, needs: Bytes(bytes), has: Some(Bytes(has)), fits: bytes <= has });
    }
    if most.memory > 0 {
        let (what, fits) = ("memory for stacks in memory".to_owned(), most.memory <= memory.0);
        lines.push(SpaceLine { what, needs: Bytes(most.memory), has: Some(memory), fits });
    }
    for case in &plan.cases {
        lines.extend(data_space(case, memory)?);
    }
    lines.dedup();
    Ok(lines)
}

fn add(disks: &mut BTreeMap<PathBuf, u64>, folder: PathBuf, bytes: u64) {
    let sum = disks.entry(folder).or_default();
    *sum = sum.saturating_add(bytes);
}

/// Peak needs of a run.
#[derive(Default)]
struct Most {
    /// Bytes on the filesystem of each folder.
    disks: BTreeMap<PathBuf, u64>,
    memory: u64,
}

/// Peak bytes of what stands at once, plus the stacks and images kept for the whole run.
fn most(plan: &Plan, turns: &[String]) -> Most {
    let mut fresh = Most::default();
    let stands = together::stands(plan.cases.iter(), turns);
    for stand in &stands {
        let mut of_stand = Most::default();
        stand.iter().filter(|stack| !stack.reuse).for_each(|stack| of_stand.add(stack));
        fresh.memory = of_stand.memory.max(fresh.memory);
        for (folder, bytes) in of_stand.disks {
            let most = fresh.disks.entry(folder).or_default();
            *most = bytes.max(*most);
        }
    }
    let stacks = StackSpec::each_once(plan.cases.iter().map(|case| &case.stack));
    stacks.into_iter().filter(|stack| stack.reuse).for_each(|stack| fresh.add(stack));
    for image in images::of_run(&stands) {
        add(&mut fresh.disks, image.folder, image.size.0);
    }
    fresh
}

impl Most {
    fn add(&mut self, stack: &StackSpec) {
        for space in provision::stack::spaces(stack) {
            match space {
                Space::Disk(folder, bytes) => add(&mut self.disks, folder, bytes.0),
                Space::Memory(bytes) => self.memory = self.memory.saturating_add(bytes.0),
                // Counted once for the whole run.
                Space::Image(..) => {}
            }
        }
    }
}

/// Adds up folders on the same filesystem, under the one that needs most.
fn by_filesystem(all: Vec<(PathBuf, u64)>) -> Vec<(PathBuf, u64)> {
    let mut filesystems: BTreeMap<Option<u64>, Vec<(u64, PathBuf)>> = BTreeMap::new();
    for (folder, bytes) in all {
        let folder = files::nearest_existing(&folder);
        let filesystem = paths::look_at(&folder).ok().map(|facts| facts.filesystem);
        filesystems.entry(filesystem).or_default().push((bytes, folder));
    }
    let sums = filesystems.into_values().filter_map(|needs| {
        let sum = needs.iter().fold(0u64, |sum, (bytes, _)| sum.saturating_add(*bytes));
        Some((needs.into_iter().max()?.1, sum))
    });
    sums.collect()
}

/// Name of a case's data, and the space that they need.
fn data_needs(case: &CaseSpec, memory: Bytes) -> Result<Option<(String, Bytes)>> {
    let set = workload(&case.workload.kind)?.data_set(&case.workload.options, memory_of(case, memory));
    let needs = |expected: Bytes| Bytes((expected.0.saturating_add(EMPTY_CLUSTER) as f64 / DATA_SHARE) as u64);
    Ok(set.map(|set| {
        // With tables of its own, whose size is not known yet, by the workload: the key has a sum.
        let own = set.key.split_once("-setup-").map(|_| format!("{}, without what `setup` makes", case.workload.name));
        (own.unwrap_or(set.key), needs(set.expected))
    }))
}

/// The space line of a case's data on its stack.
fn data_space(case: &CaseSpec, memory: Bytes) -> Result<Option<SpaceLine>> {
    let Some((key, needs)) = data_needs(case, memory)? else { return Ok(None) };
    let Some(capacity) = provision::stack::capacity(&case.stack, &case.stack.data) else { return Ok(None) };
    let share = (DATA_SHARE * 100.0).round();
    let what = format!("stack {}, {share} % of it for {key}", case.stack.name);
    Ok(Some(SpaceLine { what, needs, has: Some(capacity), fits: needs <= capacity }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::case::{PostgresSpec, WorkloadSpec};
    use crate::record::options::{OptionValue, Options};

    fn case(clients: i64, settings: &[(&str, &str)]) -> CaseSpec {
        let options = [("scale", 100), ("clients", clients)].map(|(key, n)| (key.to_owned(), OptionValue::Integer(n)));
        CaseSpec {
            id: "s.w".into(),
            guest: None,
            stack: StackSpec::linear("s", Vec::new()),
            postgres: Some(PostgresSpec {
                bin: "auto".into(),
                build: None,
                settings: settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
                initdb: Vec::new(),
            }),
            machine: Options::default(),
            age: Options::default(),
            workload: WorkloadSpec { name: "w".into(), kind: "pgbench".into(), options: Options(options.into()) },
            axes: BTreeMap::new(),
        }
    }

    #[test]
    fn a_run_folder_with_impossible_aging_is_refused() {
        let of = |layer: &str, key: &str, value: i64| {
            let mut case = case(1, &[]);
            let mut options = Options::default();
            let (main, value_of) = if layer == "directory" { ("directory", "/srv") } else { ("loop", "1GiB") };
            options.set(main, OptionValue::Text(value_of.into()));
            let above = (layer != "directory").then(|| (layer, Options::default()));
            case.stack = StackSpec::linear("s", [(main, options)].into_iter().chain(above).collect());
            case.age.set(key, OptionValue::Integer(value));
            case
        };
        let refused = |case: CaseSpec| recheck(&[case]).map_err(|e| e.to_string());
        assert_eq!(refused(of("ext4", "fill", 70)), Ok(()));
        assert!(refused(of("ext4", "fill", 100)).unwrap_err().contains("`age`"));
        assert!(refused(of("directory", "fill", 70)).unwrap_err().contains("an existing folder"));
        let kept =
            CaseSpec { stack: StackSpec { reuse: true, ..of("ext4", "fill", 70).stack }, ..of("ext4", "fill", 70) };
        assert!(refused(kept).unwrap_err().contains("which is reused"));
    }

    #[test]
    fn kept_stacks_are_refused_only_where_guests_are_killed() {
        let refused = |guest: Option<&str>, reuse, crash: &str| {
            let mut case = CaseSpec { guest: guest.map(str::to_owned), ..case(1, &[]) };
            case.stack.reuse = reuse;
            case.workload.kind = "recovery".into();
            case.workload.options.set("crash", OptionValue::Text(crash.into()));
            refuse_stacks_kept_beyond_a_guest(&[case]).is_err()
        };
        assert!(refused(Some("trixie"), true, "machine"));
        assert!(!refused(Some("trixie"), true, "process"));
        assert!(!refused(Some("trixie"), false, "machine"));
        assert!(!refused(None, true, "machine"), "filesystems of this machine are opened again");
    }

    #[test]
    fn a_setting_that_workload_and_plan_both_set_is_refused() {
        let deferred = |settings| {
            let mut case = case(1, settings);
            case.workload.options.set("autovacuum", OptionValue::Text("deferred".into()));
            refuse_reserved_settings(&[case]).map_err(|e| e.to_string())
        };
        assert_eq!(deferred(&[]), Ok(()));
        assert_eq!(
            deferred(&[("autovacuum", "on")]),
            Err("both [postgres] and the workload w set `autovacuum`".into())
        );
        assert!(refuse_reserved_settings(&[case(1, &[("autovacuum", "on")])]).is_ok());
    }

    #[test]
    fn every_size_that_does_not_fit_is_named() {
        let line = |what: &str, fits| SpaceLine { what: what.into(), needs: Bytes(2), has: Some(Bytes(1)), fits };
        let space = vec![line("a", false), line("b", true), line("c", false)];
        let error = must_fit(&Forecast { space, ..Forecast::default() }).unwrap_err().to_string();
        assert!(error.contains("a is too small") && error.contains("c is too small"), "{error}");
        assert!(!error.contains("b is"), "{error}");
        assert!(must_fit(&Forecast { space: vec![line("b", true)], ..Forecast::default() }).is_ok());
    }
}
