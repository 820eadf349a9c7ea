//! Which files belong to one moment.

use super::moment::{self, Moment};
use super::names::{self, Name};
use super::{Reading, context, read as kinds};
use crate::record::imported::{ImportedLog, ImportedTimes, ImportedTrial};
use std::collections::{BTreeMap, BTreeSet};

/// One trial of files that belong to one moment. The logs of several threads become one.
#[must_use]
pub fn trial(readings: Vec<Reading>) -> ImportedTrial {
    let mut trial = ImportedTrial::default();
    for (index, reading) in readings.into_iter().enumerate() {
        trial.files.push(reading.file);
        for mut output in reading.outputs {
            output.file = index;
            trial.outputs.push(output);
        }
        trial.log = match (trial.log.take(), reading.log) {
            (Some(one), Some(other)) => Some(joined(&one, &other)),
            (one, other) => one.or(other),
        };
    }
    trial.began = moment::of(&trial.outputs, trial.log.as_ref()).beginning();
    trial
}

/// Files sorted by their moments.
pub(super) struct Groups {
    /// Each is a trial.
    pub(super) groups: Vec<Group>,
    /// Files that only tell facts, which [`Group::context`] counts.
    pub(super) told: Vec<Group>,
    /// What a user should know of it.
    pub(super) notes: Vec<String>,
}

/// Groups of files of one moment, in the order of their first files. Files are of one moment when they lie
/// in one folder and their names differ only in the tool (`pgbench-zfs.txt`, `iostat-x-zfs.txt`) or their time stamps
/// overlap; never two results of one tool, nor files whose time stamps lie apart. What only tells facts of the machine
/// is of every group that its name is of.
pub(super) fn group(readings: Vec<Reading>) -> Groups {
    let mut groups: Vec<Group> = Vec::new();
    let (told, others): (Vec<Reading>, Vec<Reading>) = readings.into_iter().partition(only_tells);
    let (watchers, loads): (Vec<Group>, Vec<Group>) =
        others.into_iter().map(Group::of).partition(|group| group.loads.is_empty());
    loads.into_iter().for_each(|load| add(&mut groups, load));
    let groups = with_watchers(with_logs(groups), watchers);
    let mut notes = Vec::new();
    let told: Vec<Group> = told.into_iter().map(Group::of).collect();
    let groups = context::with_facts(groups, &told, &mut notes);
    Groups { groups, told, notes }
}

/// Puts a group to the first that it may be of by its name, or else behind all.
fn add(groups: &mut Vec<Group>, one: Group) {
    match groups.iter_mut().find(|group| group.is_named_like(&one) && group.may_join(&one)) {
        Some(group) => group.join(one),
        None => groups.push(one),
    }
}

/// Whether a file only tells what the machine is like.
fn only_tells(reading: &Reading) -> bool {
    reading.log.is_none() && reading.outputs.iter().all(|output| kinds::is_state(&output.tool))
}

/// Whether two files hold the same output, packed or not: a copy is no repetition of a measurement. What only tells facts
/// is often the same for several loads (`run1/mount.txt`, `run2/mount.txt`): that is a copy only where the names are of
/// the same load too.
#[must_use]
pub fn is_copy(known: &Reading, new: &Reading) -> bool {
    let of = |reading: &Reading| {
        let Name { folder, rest, repetition, .. } = names::name(&reading.file.name, false);
        (folder, rest, repetition)
    };
    known.outputs == new.outputs && known.log == new.log && (!only_tells(new) || of(known) == of(new))
}

/// Files that are known to be of one moment.
#[derive(Clone)]
pub(super) struct Group {
    pub(super) name: Name,
    moment: Moment,
    loads: BTreeSet<String>,
    pub(super) readings: Vec<Reading>,
    /// Files that tell of its machine, as indexes into [`Groups::told`].
    pub(super) context: Vec<usize>,
}

impl Group {
    fn of(reading: Reading) -> Group {
        let loads: BTreeSet<String> =
            reading.outputs.iter().filter_map(|output| kinds::load(&output.tool)).map(str::to_owned).collect();
        let name = names::name(&reading.file.name, reading.log.is_some());
        let moment = moment::of(&reading.outputs, reading.log.as_ref());
        Group { name, moment, loads, readings: vec![reading], context: Vec::new() }
    }

    pub(super) fn is_named_like(&self, other: &Group) -> bool {
        self.name.folder == other.name.folder
            && self.name.rest == other.name.rest
            && self.name.repetition == other.name.repetition
            && self.name.process == other.name.process
    }

    /// Whether nothing speaks against their being of one moment.
    fn may_join(&self, other: &Group) -> bool {
        let both = |program: &str| self.loads.contains(program) && other.loads.contains(program);
        let of_one_process = self.name.process.is_some() && self.name.process == other.name.process;
        let all: BTreeSet<&str> = self.loads.iter().chain(&other.loads).map(String::as_str).collect();
        let one_load = all.len() < 2 || all.iter().all(|program| program.starts_with("pgbench"));
        let twice = both("pgbench -l") && !of_one_process
            || all.iter().any(|program| *program != "pgbench -l" && both(program));
        one_load && !twice && self.moment.overlaps(other.moment) != Some(false)
    }

    pub(super) fn join(&mut self, other: Group) {
        self.moment = self.moment.with(other.moment);
        self.loads.extend(other.loads);
        self.readings.extend(other.readings);
    }

    /// Transactions that a summary of pgbench tells.
    fn transactions(&self) -> Option<f64> {
        let outputs =
            self.readings.iter().flat_map(|reading| &reading.outputs).filter(|output| output.tool == "pgbench");
        let mut figures = outputs.flat_map(|output| &output.rows).flat_map(|row| &row.figures);
        figures.find(|figure| figure.name == "transactions").map(|figure| figure.value)
    }

    /// Transactions that its logs hold.
    fn logged(&self) -> u64 {
        self.readings.iter().filter_map(|reading| reading.log.as_ref()).map(|log| log.done).sum()
    }
}

/// Puts pgbench's logs, which are named by its process, to the summary they are of: the one that tells as many
/// transactions, or the only one there is.
fn with_logs(groups: Vec<Group>) -> Vec<Group> {
    let (logs, mut others): (Vec<Group>, Vec<Group>) =
        groups.into_iter().partition(|group| group.name.process.is_some());
    let alike = |log: &Group, other: &Group| log.name.folder == other.name.folder && log.name.rest == other.name.rest;
    let rivals: Vec<usize> = logs.iter().map(|log| logs.iter().filter(|other| alike(log, other)).count()).collect();
    for (log, rivals) in logs.into_iter().zip(rivals) {
        let fits = |group: &&mut Group| {
            let tells = group.transactions();
            let all = tells.is_some_and(|told| (told - log.logged() as f64).abs() < 0.5);
            // Of a sample (`--sampling-rate`) there are fewer.
            let sampled = rivals == 1 && tells.is_none_or(|told| log.logged() as f64 <= told);
            alike(&log, group) && group.may_join(&log) && (all || sampled)
        };
        match others.iter_mut().find(fits) {
            Some(group) => group.join(log),
            None => others.push(log),
        }
    }
    others
}

/// Puts files that only watch to the loads that they watched. All are held against the loads' own moments before any is
/// put to one: what watched for longer says nothing of when a load was.
fn with_watchers(mut loads: Vec<Group>, watchers: Vec<Group>) -> Vec<Group> {
    let found: Vec<Option<usize>> = watchers.iter().map(|watcher| watched(watcher, &loads)).collect();
    let mut alone = Vec::new();
    let decided: Vec<Option<usize>> = (0..watchers.len()).map(|at| settled(at, &watchers, &found, &loads)).collect();
    for (watcher, load) in watchers.into_iter().zip(decided) {
        match load {
            Some(at) => loads[at].join(watcher),
            None => add(&mut alone, watcher),
        }
    }
    loads.extend(alone);
    loads
}

/// The load that a file watched by its name; by its time stamps, where they overlap those of one; or where no time is told
/// and its name is no more than its tool's (`iostat.txt`), the only load of its folder.
fn watched(watcher: &Group, loads: &[Group]) -> Option<usize> {
    let the_only = |fits: &dyn Fn(&Group) -> bool| {
        let mut found = (0..loads.len()).filter(|at| fits(&loads[*at]));
        found.next().filter(|_| found.next().is_none())
    };
    let named = loads.iter().position(|load| load.is_named_like(watcher) && load.may_join(watcher));
    let at_its_time = || the_only(&|load| load.moment.overlaps(watcher.moment) == Some(true));
    let beside =
        |load: &Group| load.name.folder == watcher.name.folder && load.name.repetition == watcher.name.repetition;
    let may = |at: &usize| watcher.name.rest.is_empty() && loads[*at].moment.overlaps(watcher.moment) != Some(false);
    named.or_else(at_its_time).or_else(|| the_only(&beside).filter(may))
}

/// The load of one of the watchers, what is found of the others considered too.
fn settled(at: usize, watchers: &[Group], found: &[Option<usize>], loads: &[Group]) -> Option<usize> {
    let watcher = &watchers[at];
    let others = || watchers.iter().zip(found).filter(|(other, _)| !std::ptr::eq(*other, watcher));
    match found[at] {
        Some(load) => {
            let no_time = loads[load].moment.overlaps(watcher.moment).is_none();
            let apart = |(other, of): (&Group, &Option<usize>)| {
                *of == Some(load) && other.moment.overlaps(watcher.moment) == Some(false)
            };
            // Of two that lie apart nobody knows which watched a load that tells no time.
            Some(load).filter(|_| !(no_time && others().any(apart)))
        }
        // What tells no time was there when its namesakes were.
        None if watcher.moment == Moment::default() => {
            let mut namesakes = others().filter(|(other, _)| other.is_named_like(watcher)).filter_map(|(_, of)| *of);
            let first = namesakes.next()?;
            namesakes.all(|of| of == first).then_some(first)
        }
        None => None,
    }
}

/// What tells the case that a trial belongs to, from the names of its files: what they have in common without the tools'
/// names, or else the name of the file that tells of a load.
pub(super) fn case_name(trial: &ImportedTrial) -> String {
    let is_load = |index: usize| {
        let mut outputs = trial.outputs.iter().filter(|output| output.file == index).peekable();
        outputs.peek().is_none() || outputs.any(|output| kinds::load(&output.tool).is_some())
    };
    let mut files: Vec<(bool, &str)> =
        trial.files.iter().enumerate().map(|(index, file)| (is_load(index), file.name.as_str())).collect();
    files.sort_by_key(|(is_load, _)| !is_load);
    let names: Vec<Name> = files.iter().map(|(_, file)| names::name(file, trial.log.is_some())).collect();
    let rest = names.iter().map(|name| &name.rest).find(|rest| !rest.is_empty());
    rest.or(names.first().map(|name| &name.stem)).cloned().unwrap_or_default()
}

/// A name of letters, digits, points and dashes.
pub(super) fn plain(text: &str) -> String {
    let plain: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' }).collect();
    plain.trim_matches(['-', '.']).chars().take(100).collect()
}

/// Two logs of one moment as one.
fn joined(one: &ImportedLog, other: &ImportedLog) -> ImportedLog {
    let first = |log: &ImportedLog| log.span_us.map_or(0, |(first, _)| first / 1_000_000);
    let (from_one, from_other) = (first(one), first(other));
    let base = match (one.span_us, other.span_us) {
        (Some(_), Some(_)) => from_one.min(from_other),
        _ => from_one.max(from_other),
    };
    let mut seconds: BTreeMap<u64, u64> = BTreeMap::new();
    for (log, from) in [(one, from_one), (other, from_other)] {
        for (second, done) in &log.seconds {
            *seconds.entry((second + from).saturating_sub(base)).or_default() += done;
        }
    }
    let span = |pick: fn(u64, u64) -> u64, end: fn((u64, u64)) -> u64| {
        [one.span_us, other.span_us].into_iter().flatten().map(end).reduce(pick)
    };
    ImportedLog {
        done: one.done + other.done,
        skipped: one.skipped + other.skipped,
        failed: one.failed + other.failed,
        failures: summed(&one.failures, &other.failures),
        scripts: summed(&one.scripts, &other.scripts),
        retried: both(one.retried, other.retried, |one, other| (one.0 + other.0, one.1 + other.1)),
        span_us: span(u64::min, |it| it.0).zip(span(u64::max, |it| it.1)),
        seconds: seconds.into_iter().collect(),
        latency: joined_times(&one.latency, &other.latency),
        lag: both(one.lag.as_ref(), other.lag.as_ref(), joined_times),
        column_untold: one.column_untold || other.column_untold,
        lines_unread: one.lines_unread + other.lines_unread,
    }
}

/// What both logs have, together.
fn both<T, U>(one: Option<T>, other: Option<T>, join: impl FnOnce(T, T) -> U) -> Option<U> {
    Some(join(one?, other?))
}

/// Counts by key, added up in the order of the keys.
fn summed<K: Ord + Clone>(one: &[(K, u64)], other: &[(K, u64)]) -> Vec<(K, u64)> {
    let mut sums: BTreeMap<K, u64> = BTreeMap::new();
    for (key, count) in one.iter().chain(other) {
        *sums.entry(key.clone()).or_default() += count;
    }
    sums.into_iter().collect()
}

fn joined_times(one: &ImportedTimes, other: &ImportedTimes) -> ImportedTimes {
    ImportedTimes {
        count: one.count + other.count,
        sum_us: one.sum_us.saturating_add(other.sum_us),
        most_us: one.most_us.max(other.most_us),
        steps: summed(&one.steps, &other.steps),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{Sorted, cases, read};

    fn reading(name: &str, text: &str) -> Reading {
        read(name, &mut text.as_bytes()).unwrap()
    }

    fn summary(transactions: u32) -> String {
        format!(
            "number of transactions actually processed: {transactions}/{transactions}\ntps = 100.0 (without initial connection time)\n"
        )
    }

    fn log(first_second: u64, lines: u64) -> String {
        (0..lines).map(|n| format!("0 {n} {} 0 {} 5\n", 1000 + n, first_second + n)).collect()
    }

    fn iostat(minute: u32) -> String {
        iostat_over(minute, minute)
    }

    fn iostat_over(first: u32, last: u32) -> String {
        format!(
            "2014-06-26T23:{first}:00+0000\nDevice r/s w/s rkB/s wkB/s rrqm/s wrqm/s %rrqm %wrqm r_await w_await aqu-sz rareq-sz wareq-sz svctm %util\nsda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n\n2014-06-26T23:{last}:30+0000\nDevice r/s w/s rkB/s wkB/s rrqm/s wrqm/s %rrqm %wrqm r_await w_await aqu-sz rareq-sz wareq-sz svctm %util\nsda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n"
        )
    }

    fn grouped(readings: Vec<Reading>) -> Vec<Vec<String>> {
        let Groups { groups, told, .. } = group(readings);
        let of = |group: &Group| group.readings.iter().map(|it| it.file.name.clone()).collect::<Vec<_>>();
        let all = |group: &Group| [of(group), group.context.iter().flat_map(|at| of(&told[*at])).collect()].concat();
        groups.iter().map(all).collect()
    }

    #[test]
    fn files_whose_names_differ_in_the_tool_are_of_one_moment() {
        let df = "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/sda1 100 50 50 50% /\n";
        let found = grouped(vec![
            reading("a/pgbench-8k.txt", &summary(7)),
            reading("a/pgbench-16k.txt", &summary(7)),
            reading("a/df-8k.txt", df),
            reading("b/df-8k.txt", df),
            reading("a/pgbench-8k.out", &summary(8)),
        ]);
        // Files that tell of no load come last, and those that measure nothing go to each that they are named like.
        let wanted: [&[&str]; 4] = [
            &["a/pgbench-8k.txt", "a/df-8k.txt"],
            &["a/pgbench-16k.txt"],
            &["a/pgbench-8k.out", "a/df-8k.txt"],
            &["b/df-8k.txt"],
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn logs_of_one_process_are_joined_and_belong_to_the_summary_with_as_many_transactions() {
        let found = group(vec![
            reading("pgbench.txt", &summary(30)),
            reading("pgbench_log.11", &log(1_403_826_720, 20)),
            reading("pgbench_log.11.1", &log(1_403_826_715, 10)),
            reading("pgbench_log.12", &log(1_403_836_720, 9)),
        ]);
        let found: Vec<ImportedTrial> = found.groups.into_iter().map(|group| trial(group.readings)).collect();
        assert_eq!(found.len(), 2);
        let log = found[0].log.as_ref().unwrap();
        assert_eq!((found[0].files.len(), log.done), (3, 30));
        assert_eq!(log.span_us, Some((1_403_826_715_000_005, 1_403_826_739_000_005)));
        assert_eq!((log.seconds[0], log.seconds[5], log.seconds.len()), ((0, 1), (5, 2), 25));
        assert_eq!((log.latency.count, log.scripts.as_slice()), (30, &[(0, 30)][..]));
        assert_eq!(found[0].outputs.iter().map(|output| output.file).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(found[1].log.as_ref().unwrap().done, 9);
    }

    #[test]
    fn what_watched_belongs_to_the_load_of_its_time_and_not_to_another() {
        let load = |name: &str, minute: u64| reading(name, &log(1_403_823_600 + minute * 60, 50));
        let found = grouped(vec![load("x.log", 10), load("y.log", 20), reading("disk.txt", &iostat(20))]);
        assert_eq!(found, [vec!["x.log"], vec!["y.log", "disk.txt"]]);
        let found = grouped(vec![load("zfs.log", 10), reading("iostat-zfs.txt", &iostat(20))]);
        assert_eq!(found.len(), 2, "names are alike and times are not");
        let stampless = iostat(20).lines().filter(|line| !line.starts_with("2014")).collect::<Vec<_>>().join("\n");
        let found = grouped(vec![reading("in/pgbench-zfs.txt", &summary(7)), reading("in/iostat.txt", &stampless)]);
        assert_eq!(found.len(), 1, "a name that is only the tool's is of the only load of its folder");
        for name in ["in/iostat-idle.txt", "iostat.txt"] {
            let found = grouped(vec![reading("in/pgbench-zfs.txt", &summary(7)), reading(name, &stampless)]);
            assert_eq!(found.len(), 2, "{name} is of something else");
        }
        let found = grouped(vec![load("x.log", 10), load("y.log", 10), reading("disk.txt", &iostat(10))]);
        assert_eq!(found.len(), 3, "which of two loads it watched cannot be known");
    }

    #[test]
    fn what_watched_for_longer_does_not_bring_others_to_its_load_in_any_order() {
        let load = || reading("zfs.log", &log(1_403_823_600 + 20 * 60, 50));
        for names in [["long.txt", "short.txt"], ["vmstat-zfs.txt", "iostat-zfs.txt"]] {
            let watched = || [reading(names[0], &iostat_over(10, 50)), reading(names[1], &iostat(40))];
            let [long, short] = watched();
            let wanted = [vec!["zfs.log", names[0]], vec![names[1]]];
            assert_eq!(grouped(vec![load(), long, short]), wanted);
            let [long, short] = watched();
            assert_eq!(grouped(vec![short, long, load()]), wanted);
        }
        let of = |first: &str, second: &str| {
            let summary = reading("in/pgbench-zfs.txt", &summary(7));
            grouped(vec![reading("in/iostat.txt", first), reading("in/vmstat.txt", second), summary]).len()
        };
        assert_eq!((of(&iostat(20), &iostat(20)), of(&iostat(20), &iostat(40))), (1, 3));
    }

    #[test]
    fn a_trial_knows_when_it_began_where_its_output_tells() {
        let began = |text: &str| trial(vec![reading("x.txt", text)]).began;
        assert_eq!(began(&log(1_403_823_600, 50)).as_deref(), Some("2014-06-26T23:00:00Z"));
        assert_eq!(began(&summary(7)), None);
    }

    #[test]
    fn repetitions_are_trials_of_a_case_and_like_names_elsewhere_are_other_cases() {
        let facts = BTreeMap::from([("stack.filesystem".to_owned(), "zfs".to_owned())]);
        let of = |names: &[&str]| {
            let readings = names.iter().map(|name| reading(name, &summary(7))).collect();
            let Sorted { cases, notes } = cases(readings, &facts);
            assert!(notes.is_empty(), "{notes:?}");
            assert!(cases.iter().all(|case| case.facts == facts));
            cases.into_iter().map(|case| (case.name, case.trials.len())).collect::<Vec<_>>()
        };
        assert_eq!(of(&["pgbench-zfs-run1.txt", "pgbench-zfs-run2.txt"]), [("zfs".to_owned(), 2)]);
        assert_eq!(of(&["run1/zfs.txt", "run2/zfs.txt"]), [("zfs".to_owned(), 2)]);
        assert_eq!(of(&["a/zfs.txt", "b/zfs.txt"]), [("a-zfs".to_owned(), 1), ("b-zfs".to_owned(), 1)]);
        assert_eq!(of(&["clients-1.txt", "clients-8.txt"]), [("clients-1".to_owned(), 1), ("clients-8".to_owned(), 1)]);
        assert_eq!(of(&["-"]), [("stdin".to_owned(), 1)]);
        assert_eq!(of(&["pgbench.txt"]), [("pgbench".to_owned(), 1)]);
    }
}
