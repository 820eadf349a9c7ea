//! Imported cases as sides: pg_test_fsync and pgbench use the same keys as pgstrata's own figures.
//!
//! Output of iostat, vmstat and the like belongs to a workload that it does not name, and no pgstrata run has fio's
//! workloads; both are left out, which the comparison states.

use super::command;
use super::facts::{Facts, medium_of_filesystem};
use super::from_probe::{kilobytes, pieces};
use super::side::{
    ConditionKind, FigureKind, MeasureCondition, MeasureSpread, Medium, Side, SideMeasure, SideOrigin, UnsyncedForm,
};
use crate::analyse::findings::durability::{by_promise, unknown};
use crate::analyse::findings::groups::place_of;
use crate::analyse::findings::{Durability, DurabilityClass};
use crate::analyse::imported::beyond::beyond_storage;
use crate::analyse::probe::latency;
use crate::record::claim::Promise;
use crate::record::durability as table;
use crate::record::imported::{
    ImportRecord, ImportedCase, ImportedFigure, ImportedLog, ImportedOutput, ImportedRow, ImportedTrial,
};
use crate::stats::interval::{TrialMean, mean_over_trials};
use crate::stats::ratio::BlockMean;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The sides of an import, or of the case named `wanted`; empty if there is none. Two outputs of one tool in one trial
/// may come from different places, so each becomes a side: `x`, `x#2`.
pub fn sides(argument: usize, label: &str, record: &ImportRecord, wanted: Option<&str>) -> Vec<Side> {
    let single = record.cases.len() == 1 && wanted.is_none();
    let mut sides = Vec::new();
    for case in record.cases.iter().filter(|case| wanted.is_none_or(|wanted| case.name == wanted)) {
        let (label, name) = match single {
            true => (label.to_owned(), String::new()),
            false => (format!("{label}:{}", case.name), case.name.clone()),
        };
        let (origin, facts) = (SideOrigin::Imported, facts(record, case));
        let caveats = case.caveats.iter().chain(&record.caveats).cloned().chain(perhaps_memory(case)).collect();
        sides.extend(case_sides(&Side { argument, label, name, origin, facts, caveats, ..Side::default() }, case));
    }
    sides.retain(|side| wanted.is_some() || single || !side.measures.is_empty());
    sides
}

/// The sides of a case; `bare` is a side without measures.
fn case_sides(bare: &Side, case: &ImportedCase) -> Vec<Side> {
    let storage = StatedStorage::of(&bare.facts, beyond_storage(case));
    let mut left_out = BTreeSet::new();
    let mut sides: Vec<Vec<(&ImportedTrial, SideMeasure)>> = vec![Vec::new()];
    let mut read: BTreeSet<&str> = BTreeSet::new();
    let mut copies = BTreeSet::new();
    // Remarks of the tools on the outputs of each side.
    let mut notes: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for trial in &case.trials {
        // How many of the first sides have each measure of this trial, so that thousands of outputs are not searched one
        // by one.
        let mut had: HashMap<String, usize> = HashMap::new();
        for output in &trial.outputs {
            if let Some(file) = trial.files.get(output.file).filter(|file| read.contains(file.sha256.as_str())) {
                // Facts about the machine may be repeated in each trial.
                if !tells_facts(&output.tool) {
                    copies.insert(file.name.as_str());
                }
                continue;
            }
            let mut found = measures(output, trial, &bare.facts);
            if found.is_empty() && !tells_facts(&output.tool) && !is_used(output, trial) {
                left_out.insert(output.tool.clone());
            }
            found.iter_mut().for_each(|measure| storage.stamp(measure));
            let keys: Vec<String> = found.iter().map(|measure| format!("{:?}", identity(measure))).collect();
            let from = keys.iter().filter_map(|key| had.get(key)).max().copied().unwrap_or_default();
            let has_one = |side: &Vec<(&ImportedTrial, SideMeasure)>| {
                let mut own = side.iter().rev().take_while(|(of, _)| std::ptr::eq(*of, trial));
                own.any(|(_, known)| found.iter().any(|new| same(known, new)))
            };
            let place = (from..sides.len()).find(|place| !has_one(&sides[*place])).unwrap_or(sides.len());
            for key in keys {
                let had = had.entry(key).or_default();
                *had += usize::from(*had == place);
            }
            let failed = summary(output).and_then(|summary| summary.figure("failed")).filter(|it| it.value > 0.0);
            let failed = failed.map(|failed| format!("pgbench reports {} failed transactions", failed.text));
            let said = output.notes.iter().cloned().chain(failed).filter(|_| !found.is_empty());
            notes.entry(place).or_default().extend(said);
            sides.resize(sides.len().max(place + 1), Vec::new());
            sides[place].extend(found.into_iter().map(|measure| (trial, measure)));
        }
        read.extend(trial.files.iter().map(|file| file.sha256.as_str()).filter(|sum| !sum.is_empty()));
    }
    let copies = copies.into_iter().collect::<Vec<_>>().join(", ");
    let copied = (!copies.is_empty())
        .then(|| format!("{copies} is a byte-for-byte copy of another file and does not count as a trial"));
    let numbered = sides.into_iter().enumerate().map(|(place, measures)| {
        let number = if place == 0 { String::new() } else { format!("#{}", place + 1) };
        let label = format!("{}{number}", bare.label);
        Side {
            name: format!("{}{number}", bare.name),
            measures: merged(measures, &format!("{label} imported")),
            label,
            left_out: left_out.iter().filter(|_| place == 0).cloned().collect(),
            caveats: [&bare.caveats[..], copied.as_slice(), notes.get(&place).map_or(&[][..], Vec::as_slice)].concat(),
            ..bare.clone()
        }
    });
    numbered.collect()
}

/// True if a tool only describes the machine and measures nothing.
fn tells_facts(tool: &str) -> bool {
    matches!(tool, "mount" | "zfs get" | "zpool get")
}

/// True if another output covers an output's figures: a log next to its summary.
fn is_used(output: &ImportedOutput, trial: &ImportedTrial) -> bool {
    let is_log = output.tool == "pgbench -l" && trial.log.as_ref().is_some_and(|log| log.latency.count > 0);
    is_log && (has_summary(trial) || !is_first_log(output, trial))
}

fn has_summary(trial: &ImportedTrial) -> bool {
    trial.outputs.iter().any(|output| summary(output).is_some())
}

/// True if an output is the log of a trial's first thread: the trial's log combines all threads.
fn is_first_log(output: &ImportedOutput, trial: &ImportedTrial) -> bool {
    trial.outputs.iter().find(|first| first.tool == "pgbench -l").is_some_and(|first| std::ptr::eq(first, output))
}

/// Summary at the end of a pgbench output.
fn summary(output: &ImportedOutput) -> Option<&ImportedRow> {
    output.rows.iter().filter(|_| output.tool == "pgbench").find(|row| row.label("part") == Some("summary"))
}

fn measures(output: &ImportedOutput, trial: &ImportedTrial, facts: &BTreeMap<String, String>) -> Vec<SideMeasure> {
    match output.tool.as_str() {
        "pg_test_fsync" | "published figures" => pg_test_fsync(output, facts),
        "pgbench" => pgbench(output, trial.log.as_ref(), facts),
        "pgbench -l" if is_first_log(output, trial) => log_alone(trial, facts),
        _ => Vec::new(),
    }
}

/// Merges figures of the same name from several trials into one figure with its spread.
fn merged(measures: Vec<(&ImportedTrial, SideMeasure)>, run: &str) -> Vec<SideMeasure> {
    let mut found: Vec<(SideMeasure, Vec<(&ImportedTrial, f64)>)> = Vec::new();
    for (trial, measure) in measures {
        let place = place_of(&mut found, |(known, _)| same(known, &measure), || (measure.clone(), Vec::new()));
        // A trial where the test was not possible has no value; one where it was takes its place.
        if measure.absent.is_none() {
            let (known, values) = &mut found[place];
            values.push((trial, measure.value));
            if known.absent.is_some() {
                *known = measure;
            }
        }
    }
    found.into_iter().map(|(measure, values)| of_trials(measure, &values, run)).collect()
}

fn of_trials(measure: SideMeasure, found: &[(&ImportedTrial, f64)], run: &str) -> SideMeasure {
    if let FigureKind::Percentile(which) = measure.figure.clone() {
        return of_all_operations(&which, measure, found);
    }
    // Values equal to the last digit are copies or rounded, so they give no spread.
    let alike = found.iter().all(|(_, value)| *value == measure.value);
    if found.len() < 2 || alike {
        return measure;
    }
    let means: Vec<TrialMean> = found.iter().map(|(_, mean)| TrialMean { mean: *mean, within: None }).collect();
    let Some(all) = mean_over_trials(&means) else { return measure };
    let blocks = (1u32..).zip(means).map(|(block, trial)| BlockMean { block, trial }).collect();
    let spread = MeasureSpread::Trials { run: run.to_owned(), means: blocks, slices: false };
    SideMeasure { value: all.mean, ends: all.ends, spread, ..measure }
}

/// A percentile of several trials is that of all their operations together, as for a pgstrata run; a mean of
/// percentiles is not a percentile.
fn of_all_operations(which: &str, measure: SideMeasure, found: &[(&ImportedTrial, f64)]) -> SideMeasure {
    let all = found.iter().filter_map(|(trial, _)| trial.log.as_ref());
    let value = percentiles(all).into_iter().find(|(name, _)| *name == which).map(|(_, us)| us / 1e3);
    let alone = found.iter().map(|(_, value)| (*value, *value)).reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
    let spread = MeasureSpread::Together { trials: found.len(), alone };
    SideMeasure { value: value.unwrap_or(measure.value), spread, ..measure }
}

/// By this, measures of several trials are merged.
fn identity(measure: &SideMeasure) -> impl PartialEq + std::fmt::Debug {
    (measure.subject(), &measure.figure, &measure.conditions, measure.unsynced_form)
}

fn same(a: &SideMeasure, b: &SideMeasure) -> bool {
    identity(a) == identity(b)
}

/// Facts from the description, the origin and the outputs.
fn facts(record: &ImportRecord, case: &ImportedCase) -> BTreeMap<String, String> {
    let mut facts = Facts::default();
    let origin = &record.origin;
    let published = [
        ("host.description", &origin.machine),
        ("storage.description", &origin.storage),
        ("host.system", &origin.system),
        ("postgresql.version", &origin.postgresql),
        ("measured", &origin.measured),
    ];
    // The case's own facts take precedence.
    for (key, value) in published.into_iter().filter(|(key, _)| !case.facts.contains_key(*key)) {
        facts.add(key, value.as_deref().unwrap_or_default());
    }
    for (key, value) in &case.facts {
        // A name without a prefix is a server setting.
        facts.add(if key.contains('.') { key.clone() } else { format!("postgresql.{key}") }, value);
    }
    for output in case.trials.iter().flat_map(|trial| &trial.outputs) {
        // A version range may or may not differ from another one.
        if let Some(version) = output.version.as_ref().filter(|it| it.bytes().all(|b| b == b'.' || b.is_ascii_digit()))
        {
            facts.add(format!("tool.{}.version", output.tool), version);
        }
        if output.tool == "pg_test_fsync" {
            facts.add("tool.pg_test_fsync.direct_io", output.fact("direct I/O").unwrap_or_default());
        }
    }
    let mut facts = facts.texts();
    facts_of_files(case, &mut facts);
    facts
}

/// Adds facts from the files besides their outputs, and where pg_test_fsync wrote unless a better source says so.
fn facts_of_files(case: &ImportedCase, facts: &mut BTreeMap<String, String>) {
    let mut found = Facts::default();
    for output in case.trials.iter().flat_map(|trial| &trial.outputs) {
        facts_of_output(output, &mut found);
    }
    // The client's path is no better source for the server than the client's output.
    let nearer = found.clone().texts();
    let of_files = case.trials.iter().flat_map(|trial| &trial.files).flat_map(|file| &file.facts);
    of_files.filter(|(key, _)| !nearer.contains_key(key)).for_each(|(key, value)| found.add(key, value));
    if let Some(file) = command::file(case) {
        found.add("pg_test_fsync.file", &file);
        let row = command::mount(case, &file);
        for (name, key) in [("type", "stack.filesystem"), ("options", "mount.options")] {
            found.add(key, row.and_then(|row| row.label(name)).unwrap_or_default());
        }
        if row.is_none() && command::medium_of(&file).0 == Medium::Memory {
            found.add("stack.medium", "memory");
        }
    }
    for (key, value) in found.texts() {
        facts.entry(key).or_insert(value);
    }
}

/// Adds facts about server, machine and dataset from an output, under pgstrata's own keys.
fn facts_of_output(output: &ImportedOutput, found: &mut Facts) {
    const OF_OUTPUTS: [(&str, &str); 4] = [
        ("server version", "postgresql.version"),
        ("partition method", "workload.pgbench.partition_method"),
        ("kernel", "host.kernel"),
        ("cpus", "host.cpus"),
    ];
    // Dataset properties that are set rather than measured.
    const PROPERTIES: &str = "recordsize compression sync logbias atime primarycache secondarycache checksum copies dedup \
        redundant_metadata special_small_blocks volblocksize encryption direct ashift autotrim";
    const OF_SUMMARIES: [&str; 5] = ["threads", "partitions", "duration", "max_tries", "transactions_per_client"];
    for (name, value) in &output.facts {
        if let Some((_, key)) = OF_OUTPUTS.iter().find(|(known, _)| known == name) {
            found.add(*key, value);
        }
    }
    for figure in summary(output).iter().flat_map(|summary| &summary.figures) {
        if OF_SUMMARIES.contains(&figure.name.as_str()) {
            found.add(format!("workload.pgbench.{}", figure.name), &figure.text);
        }
    }
    for row in output.rows.iter().filter(|_| matches!(output.tool.as_str(), "zfs get" | "zpool get")) {
        let (Some(property), Some(value)) = (row.label("property"), row.label("value")) else { continue };
        if PROPERTIES.split_whitespace().any(|known| known == property) {
            let kind = output.tool.split(' ').next().unwrap_or_default();
            found.add(format!("{kind}.{property}"), value);
        }
    }
}

/// Caveat if the name of pg_test_fsync's file suggests memory and nothing else states where it was.
fn perhaps_memory(case: &ImportedCase) -> Option<String> {
    let is_stated = ["stack.filesystem", "filesystem", "stack.medium"].iter().any(|key| case.facts.contains_key(*key));
    let file = command::file(case).filter(|file| !is_stated && command::medium_of(file).1)?;
    let unknown = command::mount(case, &file).is_none();
    unknown.then(|| format!("pg_test_fsync wrote {file}: unknown whether this is in memory, as its name suggests"))
}

/// Storage of files, from the filesystem, else from facts about devices.
fn medium_of(filesystem: Option<&str>, facts: &BTreeMap<String, String>) -> Medium {
    const DEVICES: [&str; 4] = ["stack.devices", "stack.media", "stack.controller", "device.class"];
    let named = filesystem.map_or(Medium::Unknown, medium_of_filesystem);
    let devices: Vec<&String> = DEVICES.iter().filter_map(|key| facts.get(*key)).collect();
    match named {
        Medium::Unknown if devices.iter().any(|device| device.as_str() == "memory") => Medium::Memory,
        Medium::Unknown if !devices.is_empty() => Medium::Disk,
        named => named,
    }
}

/// Conclusions from facts about where the data were and what a sync survives.
struct StatedStorage {
    medium: Medium,
    data: Medium,
    /// What a sync survives, whoever issues it.
    of_sync: Durability,
    /// What a commit survives; the server's settings matter too.
    of_commit: Durability,
}

impl StatedStorage {
    /// From facts, and from a rate beyond any known storage.
    fn of(facts: &BTreeMap<String, String>, beyond_storage: Option<String>) -> StatedStorage {
        let filesystem = stated(facts, &["wal_stack.filesystem", "stack.filesystem", "filesystem"]);
        let medium = match stated(facts, &["stack.medium", "medium"]).as_deref() {
            Some("memory" | "ram") => Medium::Memory,
            Some("disk" | "device") => Medium::Disk,
            _ => medium_of(filesystem.as_deref(), facts),
        };
        let data = match stated(facts, &["data.fits", "data.place"]).as_deref() {
            Some("memory" | "ram" | "shared_buffers" | "yes") => Medium::Memory,
            Some("disk" | "neither" | "no") => Medium::Disk,
            _ => Medium::Unknown,
        };
        let by_place = match medium {
            Medium::Memory => {
                let name = filesystem.map_or_else(String::new, |name| format!(": {name}"));
                Some(Durability::of(DurabilityClass::Volatile, format!("stored in memory{name}")))
            }
            _ => held_back(facts, filesystem.as_deref().unwrap_or_default())
                .map(|promise| by_promise(&promise))
                .or_else(|| beyond_storage.map(|why| Durability::of(DurabilityClass::Volatile, why))),
        };
        let mut settings = table::settings();
        let by_server =
            settings.find_map(|name| table::setting(name, &stated(facts, &[&format!("postgresql.{name}")])?));
        let of_commit = by_place.clone().or_else(|| by_server.map(|promise| by_promise(&promise)));
        let [of_sync, of_commit] =
            [by_place, of_commit].map(|known| known.unwrap_or_else(|| unknown("imported files do not show flushes")));
        StatedStorage { medium, data, of_sync, of_commit }
    }

    fn stamp(&self, measure: &mut SideMeasure) {
        let is_server = measure.family == "pgbench";
        measure.medium = self.medium;
        measure.data = if is_server { self.data } else { Medium::Unknown };
        let reads = measure.conditions.iter().any(|c| c.value.as_deref() == Some("select-only"));
        let synced = measure.unsynced_form.is_none() && !reads;
        measure.durability = synced.then(|| if is_server { &self.of_commit } else { &self.of_sync }.clone());
    }
}

/// The first of these facts that is known, in lower case.
fn stated(facts: &BTreeMap<String, String>, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| facts.get(*key)).map(|value| value.trim().to_lowercase())
}

/// Promise of a property, mount option or filesystem that keeps syncs from the storage.
fn held_back(facts: &BTreeMap<String, String>, filesystem: &str) -> Option<Promise> {
    let of_zfs = stated(facts, &["zfs.sync", "stack.zfs.sync"]).and_then(|value| table::zfs_property("sync", &value));
    let options = stated(facts, &["mount.options", "stack.mount_options"]).unwrap_or_default();
    let mut options = options.split(',').map(str::trim);
    of_zfs
        .or_else(|| {
            options.find_map(|option| {
                Some(table::mount_option(option, filesystem)?.promise(format!("mount option {option}")))
            })
        })
        .or_else(|| table::never_flushes(filesystem).map(|row| row.promise(format!("filesystem {filesystem}"))))
}

fn pg_test_fsync(output: &ImportedOutput, facts: &BTreeMap<String, String>) -> Vec<SideMeasure> {
    let version = facts.get("postgresql.version").map(String::as_str);
    let form = UnsyncedForm::of(output.version.as_deref(), version);
    output.rows.iter().filter_map(|row| sync_row(row, form)).collect()
}

fn sync_row(row: &ImportedRow, form: UnsyncedForm) -> Option<SideMeasure> {
    let rate = row.figure("rate").map(|rate| rate.value).or_else(|| row.absent.is_some().then_some(0.0))?;
    let (test, method) = (row.label("test")?, row.label("method")?);
    let bytes = row.label("write_bytes").and_then(|bytes| bytes.parse::<u64>().ok());
    let writes = row.label("writes").and_then(|writes| writes.parse::<u64>().ok());
    let (conditions, item) = if test == "open_sync sizes" {
        let item = writes.zip(bytes).map(|(writes, bytes)| pieces(writes, bytes));
        (Vec::new(), item.or_else(|| bytes.map(kilobytes))?)
    } else {
        (vec![MeasureCondition::named(ConditionKind::WriteSize, bytes.map(kilobytes))], method.to_owned())
    };
    let family = format!("pg_test_fsync/{test}");
    Some(SideMeasure {
        absent: row.absent.clone(),
        unsynced_form: (test == "not synced").then_some(form),
        ..SideMeasure::new(&family, conditions, &item, FigureKind::Rate, "ops/sec", rate)
    })
}

/// Conditions of a summary; `connecting`: how a figure treats the time to connect.
fn conditions(
    output: &ImportedOutput,
    summary: &ImportedRow,
    facts: &BTreeMap<String, String>,
    connecting: &str,
) -> Vec<MeasureCondition> {
    let given =
        |name: &str| facts.get(&format!("workload.{name}")).or_else(|| facts.get(&format!("pgbench.{name}"))).cloned();
    let whole = |name: &str| summary.figure(name).map(|figure| significant_whole(figure.value));
    let asked = |letter, long| command::option(output.fact("command")?, letter, long);
    let workload = given("script").or_else(|| output.fact("transaction type").map(script));
    let clients = whole("clients").or_else(|| given("clients")).or_else(|| asked('c', "client"));
    // A summary shows by its lag that there was a target rate, but not which; the command does.
    let limited = ["lag_mean", "skipped"].iter().any(|name| summary.figure(name).is_some());
    let rate = given("rate").or_else(|| Some(significant_whole(asked('R', "rate")?.parse().ok()?)));
    let rate = rate.or_else(|| (!limited).then(|| "none".to_owned()));
    vec![
        MeasureCondition::named(ConditionKind::Workload, workload),
        MeasureCondition::named(ConditionKind::Scale, whole("scale").or_else(|| given("scale"))),
        MeasureCondition::named(ConditionKind::Clients, clients),
        MeasureCondition::usual(ConditionKind::QueryMode, output.fact("query mode").map(str::to_owned), "simple"),
        MeasureCondition::usual(ConditionKind::RateLimit, rate, "none"),
        MeasureCondition::usual(ConditionKind::Connecting, Some(connecting.to_owned()), "excluded"),
    ]
}

fn pgbench(output: &ImportedOutput, log: Option<&ImportedLog>, facts: &BTreeMap<String, String>) -> Vec<SideMeasure> {
    // First match wins: without the connection time if the summary has that figure.
    const FORMS: [(&str, &str); 4] = [
        ("tps", "excluded"),
        ("tps_excluding_connecting", "excluded"),
        ("tps_including_reconnecting", "of each transaction"),
        ("tps_including_connecting", "included"),
    ];
    let Some(summary) = summary(output) else { return Vec::new() };
    let tps = FORMS.iter().find_map(|(name, connecting)| Some((summary.figure(name)?, *connecting)));
    let tps = tps.map(|(tps, connecting)| {
        let conditions = conditions(output, summary, facts, connecting);
        SideMeasure::new("pgbench", conditions, "tps", FigureKind::Rate, "tps", tps.value)
    });
    let mean = summary.figure("latency_mean").filter(|latency| latency.unit == "ms");
    let mean = mean.map(|mean| (FigureKind::Mean, mean.value));
    let percentiles = percentiles(log.into_iter())
        .into_iter()
        .map(|(which, us)| (FigureKind::Percentile(which.to_owned()), us / 1e3));
    let latencies = mean.into_iter().chain(percentiles).map(|(figure, ms)| {
        SideMeasure::new("pgbench", conditions(output, summary, facts, "excluded"), "latency", figure, "ms", ms)
    });
    tps.into_iter().chain(latencies).collect()
}

/// A log without the summary of its run; its conditions come from the facts.
fn log_alone(trial: &ImportedTrial, facts: &BTreeMap<String, String>) -> Vec<SideMeasure> {
    let Some(log) = trial.log.as_ref().filter(|_| !has_summary(trial)) else { return Vec::new() };
    let mut output = ImportedOutput { tool: "pgbench".to_owned(), ..ImportedOutput::default() };
    let mut summary = ImportedRow { labels: vec![("part".to_owned(), "summary".to_owned())], ..ImportedRow::default() };
    // No rate: a log may be a sample (--sampling-rate), or several with pauses between them.
    if log.skipped > 0 || log.lag.is_some() || log.column_untold {
        summary.figures.push(figure("skipped", "count", log.skipped as f64));
    }
    if log.latency.count > 0 {
        let mean_us = log.latency.sum_us as f64 / log.latency.count as f64;
        summary.figures.push(figure("latency_mean", "ms", mean_us / 1000.0));
    }
    output.rows.push(summary);
    pgbench(&output, Some(log), facts)
}

fn figure(name: &str, unit: &str, value: f64) -> ImportedFigure {
    ImportedFigure { name: name.to_owned(), unit: unit.to_owned(), value, ..ImportedFigure::default() }
}

fn significant_whole(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { value.to_string() }
}

/// pgbench's current name for a script, across versions: `TPC-B (sort of)` is `tpcb-like`.
fn script(transaction_type: &str) -> String {
    let lower = transaction_type.to_lowercase();
    let known = match () {
        () if lower.contains("tpc-b") => "tpcb-like",
        () if lower.contains("simple update") || lower.contains("update only") => "simple-update",
        () if lower.contains("select only") => "select-only",
        () => return transaction_type.to_owned(),
    };
    known.to_owned()
}

/// Percentiles of the operations of these logs, by name, in microseconds.
fn percentiles<'l>(logs: impl Iterator<Item = &'l ImportedLog>) -> Vec<(&'static str, f64)> {
    let latencies = latency::sum(logs.flat_map(|log| &log.latency.steps));
    let total = latency::total(&latencies);
    let wanted = [("p50", 0.5, 1), ("p95", 0.95, 20), ("p99", 0.99, 100), ("p99.9", 0.999, 1000), ("max", 1.0, 1)];
    let found = wanted.into_iter().filter(|(_, _, least)| total >= *least);
    found.filter_map(|(name, share, _)| Some((name, latency::percentile(&latencies, share)? as f64))).collect()
}
