//! Files that measure nothing and tell what the machine is like: to which loads of their folder they belong.

use super::group::Group;
use crate::record::imported::{ImportedOutput, ImportedRow};
use std::collections::{BTreeMap, BTreeSet};

/// Puts files that only tell facts to the groups that they are of: those of their folder and of folders in it whose names
/// begin as theirs do, so that `mount.txt` is of all and `df-zfs.txt` of `pgbench-zfs-run1.txt` and
/// `pgbench-zfs-8k.txt`. What is nearer to a load goes before what is further away, and what its own output tells goes
/// before both. Files that contradict each other are put nowhere, which `notes` tells.
pub(super) fn with_facts(mut groups: Vec<Group>, told: &[Group], notes: &mut Vec<String>) -> Vec<Group> {
    let mut used = vec![false; told.len()];
    let contradicted = contradictions(told, notes);
    for load in &mut groups {
        let mut near: Vec<usize> =
            (0..told.len()).filter(|at| !contradicted.contains(at) && is_of(&told[*at], load)).collect();
        near.sort_by_key(|at| std::cmp::Reverse(nearness(&told[*at])));
        let own = tools(load);
        // How near what tells of a tool is: of two that are equally near, both tell.
        let mut known: BTreeMap<String, (usize, bool, usize)> = BTreeMap::new();
        for at in near {
            let (new, distance) = (tools(&told[at]), nearness(&told[at]));
            let is_nearest = |tool: &String| known.get(tool).is_none_or(|of| *of == distance);
            if own.is_disjoint(&new) && new.iter().all(is_nearest) {
                known.extend(new.into_iter().map(|tool| (tool, distance)));
                load.context.push(at);
                used[at] = true;
            }
        }
    }
    let mut alone: Vec<Group> = Vec::new();
    for (at, state) in told.iter().enumerate().filter(|(at, _)| !used[*at]) {
        match alone.iter_mut().find(|group| !contradicted.contains(&at) && group.is_named_like(state)) {
            Some(group) => group.join(state.clone()),
            None => alone.push(state.clone()),
        }
    }
    groups.extend(alone);
    groups
}

/// Whether the names say that a file tells of a load.
fn is_of(state: &Group, load: &Group) -> bool {
    let (of, at) = (&state.name, &load.name);
    let parted = |rest: &str| rest.is_empty() || rest.starts_with(|c: char| !c.is_alphanumeric());
    let below = match of.folder.as_str() {
        "" => !at.folder.starts_with(['/', '.']),
        folder => at.folder.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
    };
    let named = of.rest.is_empty() || at.rest.strip_prefix(of.rest.as_str()).is_some_and(parted);
    let same_time = of.repetition.is_none() || of.repetition == at.repetition;
    below && named && same_time
}

/// How much of a load's name a file's name has.
fn nearness(state: &Group) -> (usize, bool, usize) {
    (state.name.folder.len(), state.name.repetition.is_some(), state.name.rest.len())
}

fn outputs(group: &Group) -> impl Iterator<Item = &ImportedOutput> {
    group.readings.iter().flat_map(|reading| &reading.outputs)
}

fn tools(group: &Group) -> BTreeSet<String> {
    outputs(group).map(|output| output.tool.clone()).collect()
}

/// Files of one name that say different things of one thing: nobody knows which holds for what was measured.
fn contradictions(told: &[Group], notes: &mut Vec<String>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for (at, one) in told.iter().enumerate() {
        for (behind, other) in told.iter().enumerate().skip(at + 1) {
            if !one.is_named_like(other) {
                continue;
            }
            let Some(words) = contradiction(one, other) else { continue };
            notes.push(words);
            found.extend([at, behind]);
        }
    }
    found
}

fn contradiction(one: &Group, other: &Group) -> Option<String> {
    let mut known: BTreeMap<Thing<'_>, Vec<&ImportedRow>> = BTreeMap::new();
    for (tool, row) in rows(other) {
        known.entry(thing(tool, row)).or_default().push(row);
    }
    let apart = |(tool, row): (&str, &ImportedRow)| {
        let of_other = known.get(&thing(tool, row)).filter(|_| !changes(row))?;
        // A place can be mounted twice.
        let alike = of_other.iter().any(|known| said(row).all(|it| known.labels.contains(it)));
        (!alike).then(|| (tool.to_owned(), row.line, of_other[0].line))
    };
    let (tool, line, of_other) = rows(one).find_map(apart)?;
    let name = |group: &Group| group.readings.first().map(|it| it.file.name.clone()).unwrap_or_default();
    let (one, other) = (name(one), name(other));
    Some(format!(
        "{one} (line {line}) and {other} (line {of_other}) differ in what {tool} says: neither is put to a load"
    ))
}

/// What a row is about: its tool and the labels that say so.
type Thing<'a> = (&'a str, Vec<&'a (String, String)>);

fn thing<'a>(tool: &'a str, row: &'a ImportedRow) -> Thing<'a> {
    (tool, row.labels.iter().filter(|(name, _)| is_thing(name)).collect())
}

fn is_thing(label: &str) -> bool {
    matches!(label, "mount" | "name" | "pool" | "device" | "property")
}

/// The labels of a row that say something of its thing, and not from where that is.
fn said(row: &ImportedRow) -> impl Iterator<Item = &(String, String)> {
    row.labels.iter().filter(|(name, _)| !is_thing(name) && name != "source")
}

/// Whether a property changes by itself: how full something is.
fn changes(row: &ImportedRow) -> bool {
    const BY_ITSELF: [&str; 12] = [
        "used",
        "available",
        "referenced",
        "logical",
        "written",
        "compressratio",
        "refcompressratio",
        "capacity",
        "free",
        "allocated",
        "fragmentation",
        "snapshot",
    ];
    let property = row.labels.iter().find(|(name, _)| name == "property");
    property.is_some_and(|(_, name)| BY_ITSELF.iter().any(|known| name.starts_with(known)))
}

fn rows(group: &Group) -> impl Iterator<Item = (&str, &ImportedRow)> {
    outputs(group).flat_map(|output| output.rows.iter().map(|row| (output.tool.as_str(), row)))
}

#[cfg(test)]
mod tests {
    use crate::foreign::{Sorted, cases, read};
    use crate::record::imported::ImportedTrial;
    use std::collections::BTreeMap;

    const MOUNT: &str = "/dev/sda1 on / type ext4 (rw,relatime)\n";
    const FSYNC: &str = "5 seconds per test\nO_DIRECT supported on this platform for open_datasync and open_sync.\n\nCompare file sync methods using one 8kB write:\n(in wal_sync_method preference order, except fdatasync is Linux's default)\n        open_datasync                       458.939 ops/sec    2179 usecs/op\n";

    fn sorted(files: &[(&str, &str)]) -> Sorted {
        let readings = files.iter().map(|(name, text)| read(name, &mut text.as_bytes()).unwrap()).collect();
        cases(readings, &BTreeMap::new())
    }

    /// Each case with the files of its trials and those that tell of its machine.
    fn files(sorted: &Sorted) -> Vec<(&str, Vec<&str>, Vec<&str>)> {
        fn names<'a>(trials: impl IntoIterator<Item = &'a ImportedTrial>) -> Vec<&'a str> {
            trials.into_iter().flat_map(|trial| &trial.files).map(|file| file.name.as_str()).collect()
        }
        sorted.cases.iter().map(|case| (case.name.as_str(), names(&case.trials), names(&case.context))).collect()
    }

    #[test]
    fn what_only_tells_facts_goes_to_the_cases_whose_names_it_is_of() {
        let df = "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/sda1 100 50 50 50% /\n";
        let found = sorted(&[
            ("in/df-zfs.txt", df),
            ("in/mount.txt", MOUNT),
            ("in/pg_test_fsync-ext4.txt", FSYNC),
            ("in/pg_test_fsync-zfs-8k.txt", FSYNC),
            ("in/deep/pg_test_fsync-zfs-run1.txt", FSYNC),
            ("other/pg_test_fsync-zfs.txt", FSYNC),
        ]);
        let wanted = [
            ("ext4", vec!["in/pg_test_fsync-ext4.txt"], vec!["in/mount.txt"]),
            ("zfs-8k", vec!["in/pg_test_fsync-zfs-8k.txt"], vec!["in/df-zfs.txt", "in/mount.txt"]),
            ("in-deep-zfs", vec!["in/deep/pg_test_fsync-zfs-run1.txt"], vec!["in/df-zfs.txt", "in/mount.txt"]),
            ("other-zfs", vec!["other/pg_test_fsync-zfs.txt"], vec![]),
        ];
        assert_eq!(files(&found), wanted);
    }

    #[test]
    fn what_several_trials_of_a_case_have_in_common_is_kept_once() {
        let rate = |rate: &str| FSYNC.replace("458.939", rate);
        let found = sorted(&[
            ("in/mount.txt", MOUNT),
            ("in/run1/pg_test_fsync-zfs.txt", &rate("401.2")),
            ("in/run2/pg_test_fsync-zfs.txt", &rate("402.3")),
            ("in/run2/df.txt", "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/sda1 100 50 50 50% /\n"),
        ]);
        let trials = vec!["in/run1/pg_test_fsync-zfs.txt", "in/run2/pg_test_fsync-zfs.txt"];
        assert_eq!(files(&found), [("zfs", trials, vec!["in/mount.txt", "in/run2/df.txt"])]);
        let context = found.cases[0].context.as_ref().unwrap();
        assert_eq!(context.outputs.iter().map(|output| output.file).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn what_is_nearer_goes_before_what_is_further_and_a_load_knows_its_own_best() {
        let other = MOUNT.replace("relatime", "noatime");
        let own = format!("{other}\n{FSYNC}");
        let found = sorted(&[
            ("mount.txt", MOUNT),
            ("mount-zfs.txt", &other),
            ("pg_test_fsync-zfs.txt", FSYNC),
            ("pg_test_fsync-xfs.txt", &own),
        ]);
        let wanted = [
            ("zfs", vec!["pg_test_fsync-zfs.txt"], vec!["mount-zfs.txt"]),
            ("xfs", vec!["pg_test_fsync-xfs.txt"], vec![]),
            ("mount", vec!["mount.txt"], vec![]),
        ];
        assert_eq!(files(&found), wanted);
    }

    #[test]
    fn files_that_contradict_each_other_are_put_nowhere_and_that_is_said() {
        let other = MOUNT.replace("relatime", "noatime");
        let load = ("pg_test_fsync-zfs.txt", FSYNC);
        let found = sorted(&[("mount.txt", MOUNT), ("mount.out", &other), load]);
        assert_eq!(files(&found)[0], ("zfs", vec!["pg_test_fsync-zfs.txt"], vec![]));
        let said = "mount.txt (line 1) and mount.out (line 1) differ in what mount says: neither is put to a load";
        assert_eq!(found.notes, [said]);
        let more = format!("{MOUNT}/dev/sdb1 on /home type xfs (rw)\n");
        let found = sorted(&[("mount.txt", MOUNT), ("mount.out", &more), load]);
        assert_eq!(files(&found), [("zfs", vec!["pg_test_fsync-zfs.txt"], vec!["mount.txt", "mount.out"])]);
        let zfs = |value: &str, used: &str| {
            format!("NAME  PROPERTY  VALUE  SOURCE\ntank  recordsize  {value}  local\ntank  used  {used}  -\n")
        };
        let of = |value: &str| {
            let (one, other) = (zfs("128K", "3G"), zfs(value, "7G"));
            sorted(&[("zfs-get.txt", &one), ("zfs-get-all.txt", &other), load]).notes.len()
        };
        assert_eq!((of("128K"), of("8K")), (0, 1));
    }

    #[test]
    fn a_folder_of_facts_alone_is_a_case() {
        let found = sorted(&[("mount.txt", MOUNT)]);
        assert_eq!(files(&found), [("mount", vec!["mount.txt"], vec![])]);
    }
}
