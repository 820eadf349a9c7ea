//! Which cases of a quick run stand at once and are measured in turns; the rest of the run is trials
//! ([ADR 46](../../docs/adr/0046-turns-on-standing-stacks.md)).

use super::case::{EMPTY_CLUSTER, memory_of, workload};
use crate::error::Result;
use crate::provision::{Space, stack};
use crate::record::case::CaseSpec;
use crate::record::operation::CacheState;
use crate::record::options::{OptionValue, Options};
use crate::record::stack::StackSpec;
use crate::record::window::Extent;
use crate::units::Bytes;
use std::collections::BTreeSet;

/// Length of a turn, seconds; the last one of a build may be shorter.
const TURN_S: u64 = 1;

/// Share of the memory that the servers of a build and their data may take.
const MEMORY_SHARE: f64 = 0.7;

/// Settings that decide when there is a checkpoint: cases that differ in them are measured over whole trials.
const OF_CHECKPOINTS: [&str; 6] = [
    "checkpoint_timeout",
    "checkpoint_completion_target",
    "checkpoint_flush_after",
    "max_wal_size",
    "min_wal_size",
    "wal_recycle",
];

/// Ids of the cases that are measured in turns; those of a guest among themselves.
///
/// # Errors
/// For a workload that this program does not have.
pub(super) fn ids(cases: &[CaseSpec], in_turns: bool, memory: Bytes) -> Result<Vec<String>> {
    let groups = groups(cases, in_turns, memory)?.into_iter().filter(|group| group.len() > 1);
    Ok(groups.flatten().map(|case| case.id.clone()).collect())
}

/// The stacks that stand at once, those of a trial on their own.
pub(super) fn stands<'c>(cases: impl Iterator<Item = &'c CaseSpec>, turns: &[String]) -> Vec<Vec<&'c StackSpec>> {
    let (turned, alone): (Vec<_>, Vec<_>) = cases.partition(|case| turns.contains(&case.id));
    let guests: BTreeSet<_> = turned.iter().map(|case| &case.guest).collect();
    let together = guests
        .into_iter()
        .map(|guest| turned.iter().filter(|case| case.guest == *guest).map(|case| &case.stack).collect::<Vec<_>>());
    together.chain(alone.iter().map(|case| vec![&case.stack])).collect()
}

/// Lengths of the turns that make up a measurement of this span, microseconds.
pub(super) fn turn_lengths_us(span_us: u64) -> Vec<u64> {
    let most_us = TURN_S * 1_000_000;
    let whole = usize::try_from(span_us / most_us).unwrap_or(usize::MAX);
    let rest_us = Some(span_us % most_us).filter(|rest_us| *rest_us > 0);
    std::iter::repeat_n(most_us, whole).chain(rest_us).collect()
}

fn groups(cases: &[CaseSpec], in_turns: bool, memory: Bytes) -> Result<Vec<Vec<&CaseSpec>>> {
    let mut can_stand = Vec::new();
    for case in cases.iter().filter(|_| in_turns) {
        if is_plain_load(case)? && is_had_twice(case) {
            can_stand.push(case);
        }
    }
    let guests: BTreeSet<_> = can_stand.iter().map(|case| &case.guest).collect();
    let mut groups = Vec::new();
    for guest in guests {
        let group: Vec<&CaseSpec> = can_stand.iter().copied().filter(|case| case.guest == *guest).collect();
        // Nothing of the machine differs between them, and no checkpoint.
        let are_alike = group.windows(2).all(|pair| of_machine(pair[0]) == of_machine(pair[1]));
        if are_alike && memory_bytes(&group, memory)? <= (memory.0 as f64 * MEMORY_SHARE) as u64 {
            groups.push(group);
        }
    }
    Ok(groups)
}

/// True for a load of transactions, for a time, on data that may be cached.
fn is_plain_load(case: &CaseSpec) -> Result<bool> {
    let (workload, options) = (workload(&case.workload.kind)?, &case.workload.options);
    let is_plain = workload.name() == "pgbench" && matches!(workload.window(options).extent, Extent::Span { .. });
    Ok(is_plain && case.age.is_empty() && workload.operation(options)?.cache != Some(CacheState::Cold))
}

/// True if there may be several of its stack.
fn is_had_twice(case: &CaseSpec) -> bool {
    let is_prepared = case.stack.nodes.iter().any(|node| node.options.get("precondition").is_some());
    stack::may_be_several(&case.stack) && !is_prepared && !case.stack.reuse
}

/// What a case sets for all that stand at once, parameters of kernel modules among it, and what decides its checkpoints.
fn of_machine(case: &CaseSpec) -> (&Options, Vec<&OptionValue>, [Option<&str>; OF_CHECKPOINTS.len()]) {
    let modules = case.stack.nodes.iter().filter_map(|node| node.options.get("module")).collect();
    let asked = |name| case.postgres.as_ref().and_then(|postgres| postgres.asked(name));
    (&case.machine, modules, OF_CHECKPOINTS.map(asked))
}

/// Memory of the servers and of the data that should stay cached, and of stacks in memory.
fn memory_bytes(group: &[&CaseSpec], memory: Bytes) -> Result<u64> {
    let mut sum = 0u64;
    for case in group {
        let sizes = memory_of(case, memory);
        let data = workload(&case.workload.kind)?.data_set(&case.workload.options, sizes);
        let in_memory = stack::spaces(&case.stack).into_iter().map(|space| match space {
            Space::Memory(bytes) => bytes.0,
            Space::Disk(..) | Space::Image(..) => 0,
        });
        let of_server = sizes.shared_buffers.0 + data.map_or(0, |set| set.expected.0) + EMPTY_CLUSTER;
        sum = in_memory.fold(sum.saturating_add(of_server), u64::saturating_add);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::case::{PostgresSpec, WorkloadSpec};

    /// A load of pgbench for 12 s on a filesystem in memory, with a setting.
    fn case(id: &str, setting: (&str, &str)) -> CaseSpec {
        let text = |value: &str| OptionValue::Text(value.to_owned());
        let options = [("scale", OptionValue::Integer(1)), ("duration", text("12s")), ("warmup", text("2s"))];
        let size = Options([("size".to_owned(), text("1GiB"))].into());
        CaseSpec {
            id: id.to_owned(),
            guest: None,
            stack: StackSpec::linear("s", vec![("tmpfs", size)]),
            postgres: Some(PostgresSpec {
                bin: "auto".into(),
                build: None,
                settings: [(setting.0.to_owned(), setting.1.to_owned())].into(),
                initdb: Vec::new(),
            }),
            machine: Options::default(),
            age: Options::default(),
            workload: WorkloadSpec {
                name: "w".into(),
                kind: "pgbench".into(),
                options: Options(options.map(|(key, value)| (key.to_owned(), value)).into()),
            },
            axes: [].into(),
        }
    }

    fn together(cases: &[CaseSpec]) -> usize {
        ids(cases, true, Bytes(64 << 30)).unwrap().len()
    }

    #[test]
    fn loads_that_share_machine_and_checkpoints_stand_together() {
        let alike = [case("a", ("full_page_writes", "on")), case("b", ("full_page_writes", "off"))];
        assert_eq!(together(&alike), 2);
        assert_eq!(together(&alike[..1]), 0, "one has nobody to take turns with");
        assert!(ids(&alike, false, Bytes(64 << 30)).unwrap().is_empty(), "a full run is trials");
        assert!(ids(&alike, true, Bytes(1 << 30)).unwrap().is_empty(), "memory holds one of them");
        assert_eq!(together(&[case("a", ("max_wal_size", "1GB")), case("b", ("max_wal_size", "2GB"))]), 0);
        let mut changed = alike.clone();
        changed[1].machine = Options([("vm.dirty_bytes".to_owned(), OptionValue::Integer(1))].into());
        assert_eq!(together(&changed), 0);
        let mut kept = alike.clone();
        kept[1].stack.reuse = true;
        assert_eq!(together(&kept), 0);
    }

    #[test]
    fn folders_and_ramfs_take_turns_but_a_disk_is_one() {
        let on = |layer: &'static str, key: &str, value: &str| {
            let options = Options([(key.to_owned(), OptionValue::Text(value.to_owned()))].into());
            let stack = StackSpec::linear(layer, vec![(layer, options)]);
            CaseSpec { id: layer.into(), stack, ..case("", ("full_page_writes", "on")) }
        };
        let ids = |cases: &[CaseSpec]| ids(cases, true, Bytes(64 << 30)).unwrap();
        let folder = on("directory", "directory", "/srv");
        assert_eq!(ids(&[folder.clone(), on("ramfs", "mode", "0700")]), ["directory", "ramfs"]);
        assert!(ids(&[folder, on("disk", "disk", "/dev/sdz")]).is_empty());
    }

    #[test]
    fn a_span_is_made_of_turns_of_one_second() {
        assert_eq!(turn_lengths_us(2_500_000), [1_000_000, 1_000_000, 500_000]);
        assert_eq!(turn_lengths_us(1_000_000), [1_000_000]);
    }
}
