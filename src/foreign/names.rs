//! What the name of a file tells: what was measured (`iostat-x-fdatasync-8k.txt` and `pgbench-fdatasync-8k.txt` are of
//! one case), which repetition, which process.

use super::read::KINDS;

/// A file's name, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Name {
    /// The folder, without the name of a repetition; empty for none.
    pub(super) folder: String,
    /// What is left of the name without tool, its options and form: `fdatasync-8k`. May be empty.
    pub(super) rest: String,
    /// The name without its form.
    pub(super) stem: String,
    /// Which repetition: `run2`.
    pub(super) repetition: Option<String>,
    /// Of a log: which process of pgbench wrote it.
    pub(super) process: Option<String>,
}

const PACKED: [&str; 3] = [".gz", ".xz", ".zst"];
const FORMS: [&str; 9] = [".txt", ".log", ".out", ".json", ".csv", ".dat", ".md", ".text", ".html"];
/// What stands behind a tool's name and is no part of the case.
const ARGUMENTS: [&str; 12] =
    ["get", "list", "status", "all", "log", "output", "out", "result", "results", "summary", "stdout", "json"];

/// Takes a name apart; `is_log` where the file is a pgbench log, whose name ends in the numbers of process and thread.
pub(super) fn name(full: &str, is_log: bool) -> Name {
    let (folder, file) = full.rsplit_once('/').unwrap_or(("", full));
    let (folder, of_folder) = without_repetition(folder);
    let stem = without(without(file, &PACKED), &FORMS);
    let (stem, process) = if is_log { without_process(stem) } else { (stem, None) };
    let (rest, repetition) = without_repetition(without_tool(stem));
    Name {
        folder: folder.to_owned(),
        rest: rest.to_owned(),
        stem: stem.to_owned(),
        repetition: repetition.or(of_folder),
        process,
    }
}

fn without<'a>(name: &'a str, endings: &[&str]) -> &'a str {
    let shorter = endings.iter().find_map(|ending| name.strip_suffix(ending));
    shorter.filter(|shorter| !shorter.is_empty()).unwrap_or(name)
}

/// `pgbench_log.4711` and `pgbench_log.4711.3`, the log of its fourth thread.
fn without_process(stem: &str) -> (&str, Option<String>) {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let split = |text| str::rsplit_once(text, '.').filter(|(before, number)| !before.is_empty() && is_number(number));
    let Some((before, last)) = split(stem) else { return (stem, None) };
    match split(before) {
        Some((before, process)) => (before, Some(process.to_owned())),
        None => (before, Some(last.to_owned())),
    }
}

fn is_mark(c: char) -> bool {
    !c.is_alphanumeric()
}

fn without_tool(stem: &str) -> &str {
    let parted = |rest: &str| rest.is_empty() || rest.starts_with(is_mark);
    let long = || KINDS.iter().flat_map(|kind| kind.stems).copied();
    let all = long().chain(KINDS.iter().flat_map(|kind| kind.short_stems).copied());
    let found = |tool: &'static str| stem.strip_prefix(tool).filter(|rest| parted(rest)).map(|rest| (tool, rest));
    let Some((tool, mut rest)) = all.filter_map(found).max_by_key(|(tool, _)| tool.len()) else {
        // `zfs-8k-pgbench`: the tool at the end.
        let behind = long().filter_map(|tool| stem.strip_suffix(tool).filter(|rest| rest.ends_with(is_mark)));
        return behind.min_by_key(|rest| rest.len()).map_or(stem, |rest| rest.trim_end_matches(is_mark));
    };
    loop {
        rest = rest.trim_start_matches(is_mark);
        let word = rest.split(is_mark).next().unwrap_or_default();
        // `iostat-x-zfs`; but of `pg_test_fsync-a` the letter is the case.
        let has_options = ["iostat", "vmstat", "zpool", "df"].iter().any(|known| tool.starts_with(known));
        let is_option = has_options && word.chars().count() == 1 && word.chars().all(char::is_alphabetic);
        if !(is_option || ARGUMENTS.contains(&word)) {
            return rest;
        }
        rest = &rest[word.len()..];
    }
}

/// `zfs-run2` without its repetition. A bare number is none: it may be of clients or kilobytes.
fn without_repetition(text: &str) -> (&str, Option<String>) {
    const WORDS: [&str; 6] = ["run", "trial", "rep", "try", "iteration", "repeat"];
    let (before, number) = text.split_at(text.trim_end_matches(|c: char| c.is_ascii_digit()).len());
    if number.is_empty() {
        return (text, None);
    }
    let before = before.trim_end_matches(is_mark);
    let word = WORDS.iter().find_map(|word| {
        let rest = before.strip_suffix(word)?;
        (rest.is_empty() || rest.ends_with(is_mark))
            .then(|| (rest.trim_end_matches(is_mark), format!("{word}{number}")))
    });
    word.map_or((text, None), |(rest, repetition)| (rest, Some(repetition)))
}

/// A name with a last number that stands apart, taken apart: what is before it, the mark between (`()` for a number in
/// brackets), the number. None where a digit stands before: that is a date or a version.
pub(super) fn numbered(name: &str) -> Option<(&str, &str, u32)> {
    let in_brackets = name.strip_suffix(')').and_then(|inner| inner.rsplit_once('('));
    let (base, mark, digits) = match in_brackets {
        Some((base, digits)) => (base.trim_end(), "()", digits),
        None => {
            let (before, digits) = name.split_at(name.trim_end_matches(|c: char| c.is_ascii_digit()).len());
            let base = before.trim_end_matches(is_mark);
            (base, &before[base.len()..], digits)
        }
    };
    let parted = !mark.is_empty() || base.is_empty();
    let number =
        digits.parse().ok().filter(|_| digits.len() <= 3 && digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    (parted && !base.ends_with(|c: char| c.is_ascii_digit())).then_some((base, mark, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    #[test]
    fn what_is_left_without_the_tool_names_the_case() {
        for (file, rest) in [
            ("iostat-x-fdatasync-8k.txt", "fdatasync-8k"),
            ("pgbench-fdatasync-8k.txt", "fdatasync-8k"),
            ("iostat-x-open_sync-16k.txt.gz", "open_sync-16k"),
            ("pg_test_fsync-zfs-sync-disabled.txt", "zfs-sync-disabled"),
            ("a/b/zpool-iostat-v.txt", ""),
            ("df-h.txt", ""),
            ("dfs.txt", "dfs"),
            ("zfs-get-all.txt", ""),
            ("zfs-8k-pgbench.out", "zfs-8k"),
            ("zfs-8k.out", "zfs-8k"),
            ("clients-64.txt", "clients-64"),
            ("-", "-"),
        ] {
            assert_eq!(name(file, false).rest, rest, "{file}");
        }
    }

    #[test]
    fn repetitions_and_processes_are_told_from_sizes() {
        let one = name("host/run3/pgbench-ext4.txt", false);
        assert_eq!((one.folder.as_str(), one.repetition.as_deref()), ("host", Some("run3")));
        let one = name("pgbench-ext4_trial-2.txt", false);
        assert_eq!((one.rest.as_str(), one.repetition.as_deref()), ("ext4", Some("trial2")));
        assert_eq!(name("ext4-2.txt", false).repetition, None);
        for file in ["pgbench_log.4711", "pgbench_log.4711.3", "pgbench_log.4711.3.zst"] {
            let one = name(file, true);
            assert_eq!((one.rest.as_str(), one.process.as_deref()), ("", Some("4711")), "{file}");
        }
        assert_eq!(name("ext4.4711", false).rest, "ext4.4711");
    }

    proptest! {
        #[test]
        fn no_name_makes_it_panic(text in any::<String>(), file in "[a-z0-9._/é-]{0,30}", is_log in any::<bool>()) {
            for text in [text, file] {
                prop_assert!(text.contains(&name(&text, is_log).rest));
                prop_assert!(numbered(&text).is_none_or(|(base, ..)| text.starts_with(base)));
            }
        }
    }
}
