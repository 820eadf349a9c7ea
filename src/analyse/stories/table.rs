//! The durability table, row by row: the same fact means the same in a run, a probe and an import.

use crate::analyse::compare::{from_import, from_probe};
use crate::analyse::findings::{Durability, DurabilityClass};
use crate::analyse::probe::sample;
use crate::analyse::stories::story::{Act, Story, disk};
use crate::record::claim::Claim;
use crate::record::durability::{DurabilityRow, Fact, Name, TABLE};
use crate::record::facts::{DeviceFacts, MountFacts};
use crate::record::imported::{ImportRecord, ImportedCase, ImportedFigure, ImportedOutput, ImportedRow, ImportedTrial};
use crate::record::probe::ProbeRecord;
use crate::record::promise;

/// Expected class of a claim. No count can improve it: each story below flushes once per commit. `None` for a claim
/// that only adds a remark.
fn expected(claim: Claim) -> Option<DurabilityClass> {
    match claim {
        Claim::Volatile | Claim::HoldsFlushesBack => Some(DurabilityClass::Volatile),
        Claim::AcknowledgesEarly => Some(DurabilityClass::Delayed),
        Claim::MayTear => Some(DurabilityClass::MayTear),
        Claim::DeclaredStable => Some(DurabilityClass::DeclaredStable),
        Claim::FlushesUncounted | Claim::HiddenBelow => Some(DurabilityClass::Unknown),
        Claim::Unjournaled => None,
    }
}

fn example(name: Name) -> String {
    match name {
        Name::Is(name) => name.to_owned(),
        Name::Begins(begin) | Name::Numbered(begin) => format!("{begin}0"),
    }
}

/// Makes a mount or a device show the fact.
fn shown(fact: Fact, mount: &mut MountFacts, device: &mut DeviceFacts) {
    match fact {
        Fact::Filesystem(name) => mount.fstype = example(name),
        Fact::MountOption(option, of) => {
            mount.super_options.push(option.to_owned());
            mount.fstype = of.first().map_or_else(|| mount.fstype.clone(), |first| (*first).to_owned());
        }
        Fact::Device(name) => device.name = example(name),
        Fact::Model(model) => device.model = Some(format!("{model}      ")),
        Fact::WriteCache(cache) => device.write_cache = Some(cache),
        Fact::Partition => device.name = "vda1".to_owned(),
        Fact::NoFlushCounter => device.counts_flushes = Some(false),
        Fact::NoQueue => device.has_queue = Some(false),
        Fact::NeverFlushes(fstype) | Fact::NeverJournaled(fstype) => mount.fstype = fstype.to_owned(),
        Fact::WithoutJournal(fstype) => (mount.fstype, mount.journal) = (fstype.to_owned(), Some(false)),
        Fact::ZfsProperty(name, value) | Fact::ZfsParameter(name, value) => {
            mount.fstype = "zfs".to_owned();
            mount.zfs.insert(name.to_owned(), value.to_owned());
        }
        Fact::Setting(..) => {}
    }
}

/// A run whose stack or server shows the fact.
fn of_run(fact: Fact) -> Durability {
    let mut act = Act::on("ext4");
    if fact == Fact::Partition {
        act.stack.devices = vec![disk(0, "vda"), disk(1, "vda1")];
        act.flushes = vec![Some(1.0), Some(0.0)];
    }
    let mut lowest = act.stack.devices.pop().unwrap();
    shown(fact, &mut act.stack.mount, &mut lowest);
    act.stack.devices.push(lowest);
    match fact {
        Fact::Filesystem(_) => {
            act.stack.devices.clear();
            act.flushes.clear();
            act.stack.promises = vec![promise::of_end("/data", &act.stack.mount.fstype)];
        }
        Fact::Setting(name, value) => act = act.setting(name, value),
        _ => {}
    }
    Story::of(2, None).with(&act).findings().cases[0].durability.clone()
}

/// A probe of a folder that shows the fact; `None` if a probe cannot show it.
fn of_probe(fact: Fact) -> Option<Durability> {
    let mut record: ProbeRecord = sample::honest();
    match fact {
        Fact::Setting(..) => return None,
        Fact::Filesystem(name) => record = sample::without_devices(record, &example(name)),
        Fact::Partition => {
            // The disk counts at the level above, where its partition is the last visible device.
            record.place.devices[0].name = "vda".to_owned();
            record.place.devices.push(sample::device("vda1", 1));
            for row in &mut record.rows {
                sample::counted(row, 1, 1.0, Some(0.0));
            }
            record.growth.iter_mut().for_each(|growth| growth.devices.push(None));
        }
        _ => shown(fact, record.place.mount.as_mut().unwrap(), &mut record.place.devices[0]),
    }
    let measures = from_probe::side(0, "here", &record).measures;
    measures.into_iter().find(|measure| measure.item == "fdatasync")?.durability
}

/// A published pgbench figure with the fact; `None` if nobody publishes it.
fn of_import(fact: Fact) -> Option<Durability> {
    let facts = match fact {
        Fact::Filesystem(name) => vec![("stack.filesystem".to_owned(), example(name))],
        Fact::NeverFlushes(fstype) => vec![("stack.filesystem".to_owned(), fstype.to_owned())],
        Fact::MountOption(option, of) => vec![
            ("mount.options".to_owned(), format!("rw, {option}")),
            ("stack.filesystem".to_owned(), of.first().unwrap_or(&"ext4").to_string()),
        ],
        Fact::Setting(name, value) => vec![(format!("postgresql.{name}"), value.to_owned())],
        Fact::ZfsProperty(name, value) => vec![(format!("zfs.{name}"), value.to_owned())],
        _ => return None,
    };
    let tps = ImportedFigure { name: "tps".to_owned(), unit: "tx/s".to_owned(), value: 500.0, ..Default::default() };
    let labels = vec![("part".to_owned(), "summary".to_owned())];
    let rows = vec![ImportedRow { labels, figures: vec![tps], ..ImportedRow::default() }];
    let output = ImportedOutput { tool: "pgbench".to_owned(), rows, ..ImportedOutput::default() };
    let trials = vec![ImportedTrial { outputs: vec![output], ..ImportedTrial::default() }];
    let facts = facts.into_iter().collect();
    let case = ImportedCase { name: "one".to_owned(), facts, trials, caveats: Vec::new() };
    let record = ImportRecord { cases: vec![case], ..ImportRecord::default() };
    from_import::sides(0, "x", &record, None)[0].measures[0].durability.clone()
}

fn assert_is(row: &DurabilityRow, found: &Durability, whose: &str) {
    let wanted = expected(row.claim).unwrap_or(DurabilityClass::Flushed);
    assert_eq!(found.class, wanted, "{whose} with {row:?}: {found:?}");
    let said = expected(row.claim).is_some() || found.reason.contains(row.why);
    assert!(said, "{whose} with {row:?} does not say why: {found:?}");
}

#[test]
fn every_row_means_the_same_in_runs_probes_and_imports() {
    let mut counts = [0; 3];
    for row in TABLE {
        let run = of_run(row.fact);
        assert_is(row, &run, "a run");
        let is_explained = row.claim == Claim::Volatile || run.reason.contains(row.why);
        assert!(is_explained, "a run with {row:?} does not say why: {run:?}");
        counts[0] += 1;
        for (place, (found, whose)) in
            [(of_probe(row.fact), "a probe"), (of_import(row.fact), "an import")].into_iter().enumerate()
        {
            if let Some(found) = found {
                assert_is(row, &found, whose);
                counts[place + 1] += 1;
            }
        }
    }
    let of = |wanted: fn(&DurabilityRow) -> bool| TABLE.iter().filter(|row| wanted(row)).count();
    let of_server = of(|row| matches!(row.fact, Fact::Setting(..)));
    let of_mounts = of(|row| {
        let fact = row.fact;
        matches!(fact, Fact::Filesystem(_) | Fact::MountOption(..) | Fact::NeverFlushes(_) | Fact::ZfsProperty(..))
    });
    assert_eq!(counts, [TABLE.len(), TABLE.len() - of_server, of_mounts + of_server]);
}

#[test]
fn without_any_of_these_facts_flushes_decide() {
    assert_eq!(of_run(Fact::Setting("fsync", "on")).class, DurabilityClass::Flushed);
    assert_eq!(of_probe(Fact::MountOption("noatime", &[])).unwrap().class, DurabilityClass::Flushed);
    assert_eq!(of_import(Fact::ZfsProperty("sync", "standard")).unwrap().class, DurabilityClass::Unknown);
}
