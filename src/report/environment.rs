//! Machine, stacks and servers, as read back.
//!
//! Trials of one stack are mostly alike, so each stack is shown once: a fact that all trials share in one line, any
//! other with each value and its trials.

use super::labelled::Labelled;
use super::table::{Cell, Table, TableColumn};
use super::words::moment;
use crate::analyse::findings::groups::{by_key, distinct};
use crate::analyse::findings::{
    DeviceFacts, Findings, HostFacts, Input, MachineFinding, Ranking, Role, ServerFacts, StackFacts, TrialFinding,
    WriteCache,
};
use crate::units::{Bytes, count};
use std::collections::{BTreeMap, BTreeSet};

/// Names and values.
type NamedFacts = Vec<(String, String)>;
/// A value and the trials that had it.
type SharedFact<'s, 'a> = (&'s str, Vec<&'a TrialFinding>);
/// Most values listed for one fact.
const VALUES_SHOWN: usize = 4;
/// Most trials listed by name for a value.
const TRIALS_NAMED: usize = 3;

/// Name and description of each machine.
pub(super) fn machine_names(machines: &[MachineFinding]) -> String {
    each_machine(machines, |host| match &host.machine {
        Some(machine) => format!("{} ({machine})", host.hostname),
        None => host.hostname.clone(),
    })
}

/// A text about every machine; equal texts appear once.
pub(super) fn each_machine(machines: &[MachineFinding], text: impl Fn(&HostFacts) -> String) -> String {
    distinct(machines.iter().map(|machine| text(&machine.host))).join("; ")
}

/// The machine, with its trials' kernel knobs; several machines are grouped by name.
pub(super) fn machines_table(machines: &[MachineFinding], trials: &[TrialFinding]) -> Table {
    let several = machines.len() > 1;
    let mut table = Table::new("machine", if several { "Machines" } else { "Machine" }, fact_columns());
    if several {
        table = table.lead(&["machine"]);
    }
    for machine in machines {
        let host = &machine.host;
        if several {
            let note = count(machine.trials.len(), "trial");
            table.open_group(Some(host.hostname.clone()), Some(note), vec![host.hostname.clone()]);
        }
        add_machine(&mut table, host, trials.iter().filter(|trial| ran_on(machine, trial)));
    }
    table
}

pub(super) fn ran_on(machine: &MachineFinding, trial: &TrialFinding) -> bool {
    machine.trials.iter().any(|key| key.case == trial.case && key.trial == trial.trial)
}

fn add_machine<'a>(table: &mut Table, host: &HostFacts, trials: impl Iterator<Item = &'a TrialFinding>) {
    let facts = [
        ("host name", Some(host.hostname.clone())),
        ("machine", host.machine.clone()),
        ("CPU", host.cpu_model.clone()),
        ("CPUs that pgstrata may use", Some(host.cpus.to_string())),
        ("memory", Some(Bytes(host.memory_bytes).to_string())),
        ("swap in use at the start", host.swap_used_bytes.map(|bytes| Bytes(bytes).to_string())),
        ("kernel", Some(host.kernel.clone())),
        ("distribution", host.distribution.clone()),
        ("clock source", host.clocksource.clone()),
        ("CPU frequency governor", host.governor.clone()),
    ];
    facts.iter().for_each(|(name, value)| table.push(fact(name, value.as_deref())));
    let mut knobs: BTreeMap<&str, BTreeSet<&String>> = BTreeMap::new();
    for (name, value) in trials.flat_map(|trial| &trial.knobs) {
        knobs.entry(name).or_default().insert(value);
    }
    for (name, values) in knobs {
        let values = values.iter().map(|value| knob_text(name, value)).collect::<Vec<_>>().join("; ");
        table.push(fact(name, Some(&values)));
    }
}

/// Value of a knob, with its unit if the name implies one.
fn knob_text(name: &str, value: &str) -> String {
    match (value.parse().ok(), name) {
        (Some(bytes), _) if name.ends_with("_bytes") => Bytes(bytes).to_string(),
        (Some(_), _) if name.ends_with("_ratio") => format!("{value} %"),
        _ => value.to_owned(),
    }
}

/// Procedure of the run.
pub(super) fn method_table(findings: &Findings) -> Table {
    let run = &findings.run;
    let table = Table::new("method", "How it was measured", fact_columns());
    let baseline = run.baseline.iter().map(|(axis, value)| format!("{axis} = {value}")).collect::<Vec<_>>().join(", ");
    let comparisons = findings.rankings.iter().flat_map(Ranking::rows).filter_map(|row| row.comparison.as_ref());
    let methods: BTreeSet<&str> = comparisons.map(|comparison| comparison.method.as_str()).collect();
    let blocks = run.blocks_held.clone().unwrap_or_else(|| run.blocks.to_string());
    let facts = [
        ("run", run.id.clone()),
        ("began", moment(&run.started)),
        ("seed of the order", run.seed.to_string()),
        ("blocks (each case once a block, in a seeded order that balances predecessors)", blocks),
        ("baseline", if baseline.is_empty() { "none".to_owned() } else { baseline }),
        ("comparisons", if methods.is_empty() { "none".to_owned() } else { Vec::from_iter(methods).join("; ") }),
        ("intervals", "95 %; of ratios in a ranking by its test, of all else by itself".to_owned()),
        ("measured by", format!("pgstrata {}", run.measured_by)),
        ("analysed by", format!("pgstrata {}", run.analysed_by)),
    ];
    table.rows(facts.iter().map(|(name, value)| fact(name, Some(value))))
}

/// Stacks of the data and of pg_wal.
pub(super) fn stacks_table(labelled: &Labelled<'_>) -> Table {
    let trials = labelled.findings.trials.iter();
    let found = trials.flat_map(|trial| trial.stack.iter().map(move |it| (it.name.clone(), stack_facts(it), trial)));
    shared_facts(Table::new("stacks", "Stacks, as read back", seen_columns()).lead(&["stack"]), found, labelled)
}

/// The servers: settings that affect commits first, then every setting that differs from the built-in default.
pub(super) fn servers_table(labelled: &Labelled<'_>) -> Table {
    let found = labelled.findings.trials.iter().filter_map(|trial| {
        let server = trial.server.as_ref()?;
        Some((format!("PostgreSQL {}", server.version), server_facts(server), trial))
    });
    shared_facts(Table::new("servers", "PostgreSQL, as it ran", seen_columns()).lead(&["server"]), found, labelled)
}

fn fact_columns() -> Vec<TableColumn> {
    ["Fact", "Value"].map(TableColumn::label).into()
}

fn seen_columns() -> Vec<TableColumn> {
    ["Fact", "Value", "Seen in"].map(TableColumn::label).into()
}

fn fact(name: &str, value: Option<&str>) -> Vec<Cell> {
    let value =
        value.map_or_else(|| Cell::text("not known").style("absent"), |value| Cell::text(value).style("reason"));
    vec![Cell::text(name).style("name"), value]
}

/// The values of each fact, with the trials that have them.
fn shared<'s, 'a>(seen: &'s [(&'a TrialFinding, NamedFacts)]) -> Vec<(&'s str, Vec<SharedFact<'s, 'a>>)> {
    let facts = seen.iter().flat_map(|(trial, facts)| facts.iter().map(move |fact| (*trial, fact)));
    let by_name = by_key(facts.map(|(trial, (name, value))| (name.as_str(), (value.as_str(), trial))));
    by_name.into_iter().map(|(name, values)| (name, by_key(values))).collect()
}

/// A group for each of what was seen, by its name, with its facts in all trials.
fn shared_facts<'a>(
    mut table: Table,
    found: impl Iterator<Item = (String, NamedFacts, &'a TrialFinding)>,
    labelled: &Labelled<'_>,
) -> Table {
    for (name, seen) in by_key(found.map(|(name, facts, trial)| (name, (trial, facts)))) {
        let all = seen.len();
        let note = format!("seen in {}", count(all, "trial"));
        table.open_group(Some(name.clone()), Some(note), vec![name]);
        for (name, values) in shared(&seen) {
            if values.len() > VALUES_SHOWN {
                let first = values.iter().take(VALUES_SHOWN).map(|(value, _)| *value).collect::<Vec<_>>().join("; ");
                let text = format!("differs between trials: {first}; …");
                table.push(fact_row(name, &text, format!("{} values", values.len())));
                continue;
            }
            for (value, trials) in values {
                let found_in = if trials.len() == all { "all".to_owned() } else { found_in(&trials, all, labelled) };
                table.push(fact_row(name, value, found_in));
            }
        }
    }
    table
}

fn fact_row(name: &str, value: &str, found_in: String) -> Vec<Cell> {
    vec![Cell::text(name).style("name"), Cell::text(value).style("code"), Cell::text(found_in).style("quiet")]
}

/// Trials that had a value: by name if they are few, else their number.
fn found_in(trials: &[&TrialFinding], all: usize, labelled: &Labelled<'_>) -> String {
    if trials.len() > TRIALS_NAMED {
        return format!("{} of {all} trials", trials.len());
    }
    let named = trials.iter().map(|trial| format!("{}: trial {}", labelled.label(&trial.case), trial.trial));
    named.collect::<Vec<_>>().join("; ")
}

fn stack_facts(stack: &StackFacts) -> NamedFacts {
    let mut facts = NamedFacts::new();
    let wal = stack.wal.iter().map(|base| ("pg_wal is on".to_owned(), base.to_string()));
    let tablespaces = stack.tablespaces.iter().map(|(name, on)| (format!("tablespace {name} is on"), on.to_string()));
    let data = stack.data.iter().map(|base| ("data is on".to_owned(), base.to_string()));
    facts.extend(data.chain(wal).chain(tablespaces));
    for node in &stack.nodes {
        let on: Vec<String> = node.inputs.iter().map(input_text).collect();
        facts.extend((!on.is_empty()).then(|| (format!("{}: on top of", node.name), on.join(", "))));
        for base in &node.bases {
            if let Some(mount) = &base.mount {
                facts.push((format!("{}: filesystem", node.name), mount.fstype.clone()));
                facts.push((format!("{}: mount options", node.name), mount.options.join(",")));
                facts.push((format!("{}: filesystem's mount options", node.name), mount.super_options.join(",")));
            }
            facts.extend(base.device.iter().map(|device| (format!("{}: device", node.name), device_text(device))));
        }
        facts.extend(node.details.iter().map(|(name, value)| (format!("{}: {name}", node.name), value.clone())));
        facts.extend(node.promises.iter().map(|promise| (format!("{}: promises", node.name), promise.to_string())));
    }
    let before = if stack.trials_before == 0 { "0 (fresh)".to_owned() } else { stack.trials_before.to_string() };
    facts.push(("earlier trials on it".to_owned(), before));
    facts
}

fn input_text(input: &Input) -> String {
    match (input.role, &input.group) {
        (Role::Data, None) => input.from.to_string(),
        (Role::Data, Some(group)) => format!("{} ({group})", input.from),
        (role, None) => format!("{} ({})", input.from, role.word()),
        (role, Some(group)) => format!("{} ({}, {group})", input.from, role.word()),
    }
}

/// Description of a device. Omits the number of a loop device, which is arbitrary.
fn device_text(device: &DeviceFacts) -> String {
    let name = device.name.trim_end_matches(|c: char| c.is_ascii_digit());
    let name = if name == "loop" { name } else { &device.name };
    let cache = device.write_cache.map(|cache| match cache {
        WriteCache::WriteBack => "write cache: write back (flushes needed)",
        WriteCache::WriteThrough => "write cache: write through (the kernel sends no flushes)",
    });
    let parts = [
        Some(name.to_owned()),
        device.model.clone(),
        device.serial.as_ref().map(|serial| format!("serial {serial}")),
        device.wwn.as_ref().map(|wwn| format!("WWN {wwn}")),
        device.size_bytes.map(|bytes| Bytes(bytes).to_string()),
        Some(cache.unwrap_or("write cache: not known").to_owned()),
        device.fua.map(|fua| if fua { "FUA" } else { "no FUA" }.to_owned()),
        device.logical_block_bytes.map(|bytes| format!("logical block {bytes} B")),
        device.physical_block_bytes.map(|bytes| format!("physical block {bytes} B")),
        device.scheduler.as_ref().map(|scheduler| format!("scheduler {scheduler}")),
        device.nr_requests.map(|requests| format!("queue of {requests}")),
        device.read_ahead_kb.map(|kb| format!("read-ahead {kb} KiB")),
        device.discard_max_bytes.map(|bytes| if bytes == 0 { "no discard" } else { "discard" }.to_owned()),
        device
            .direct_io
            .map(|direct| if direct { "direct I/O on its file" } else { "no direct I/O on its file" }.to_owned()),
        device
            .counts_flushes
            .map(|counts| if counts { "flushes counted" } else { "flushes not counted by this kernel" }.to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn server_facts(server: &ServerFacts) -> NamedFacts {
    let mut facts = vec![("programs".to_owned(), server.bin.clone())];
    facts.extend(server.key_settings.iter().map(|(name, value)| (name.clone(), value.clone())));
    let others = server.settings.iter().filter(|(name, _)| !server.key_settings.contains_key(*name));
    // Paths and sockets in the run's own folders differ by trial and are not properties of the server.
    let others = others.filter(|(_, value)| !value.contains("pgstrata-"));
    facts.extend(others.map(|(name, value)| (name.clone(), value.clone())));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_machines_form_two_groups_and_shared_facts_appear_once() {
        let host =
            |name: &str| HostFacts { hostname: name.to_owned(), kernel: "6.1.0".to_owned(), ..HostFacts::default() };
        let both = ["a", "b"].map(|name| MachineFinding { host: host(name), trials: Vec::new() });
        assert_eq!(
            (machine_names(&both), each_machine(&both, |host| host.kernel.clone())),
            ("a; b".into(), "6.1.0".into())
        );
        let csv = machines_table(&both, &[]).to_csv();
        assert!(csv.contains("machine,fact,value") && csv.contains("b,host name,b"), "{csv}");
        assert!(machines_table(&both[..1], &[]).to_csv().starts_with("fact,value"));
    }
}
