//! Facts from recorded command lines of pgbench and pg_test_fsync.

use super::side::Medium;
use crate::record::imported::{ImportedCase, ImportedRow};

/// Value of an option: `-R100`, `-nR 100`, `--rate 100`, `--rate=100`.
pub(super) fn option(command: &str, letter: char, long: &str) -> Option<String> {
    // pgbench options without a value; all options of pg_test_fsync take one.
    const BARE: &str = "CdilnNqrSvV";
    let words = shlex::split(command).unwrap_or_default();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if let Some(name) = word.strip_prefix("--") {
            let (name, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
            if name == long {
                return value.or_else(|| words.next()).map(str::to_owned);
            }
        } else if let Some(letters) = word.strip_prefix('-') {
            let Some(at) = letters.find(|c| !BARE.contains(c)) else { continue };
            let mut rest = letters[at..].chars();
            let found = rest.next();
            let value = Some(rest.as_str()).filter(|value| !value.is_empty()).or_else(|| words.next());
            if found == Some(letter) {
                return value.map(str::to_owned);
            }
        }
    }
    None
}

/// File that pg_test_fsync wrote in a case; `None` if unknown or ambiguous.
pub(super) fn file(case: &ImportedCase) -> Option<String> {
    let outputs = case.trials.iter().flat_map(|trial| &trial.outputs).filter(|output| output.tool == "pg_test_fsync");
    let mut files: Vec<Option<String>> = outputs.map(|it| option(it.fact("command")?, 'f', "filename")).collect();
    files.dedup();
    if let [Some(only)] = files.as_slice() { Some(only.clone()) } else { None }
}

/// Row of the case's `mount` output for the filesystem that contains a file.
pub(super) fn mount<'a>(case: &'a ImportedCase, file: &str) -> Option<&'a ImportedRow> {
    let outputs = case.trials.iter().flat_map(|trial| &trial.outputs).filter(|output| output.tool == "mount");
    let holding = outputs.flat_map(|output| &output.rows).filter_map(|row| {
        let at = row.label("mount")?.trim_end_matches('/');
        let rest = file.strip_prefix(at)?;
        (rest.is_empty() || rest.starts_with('/')).then_some((at.len(), row))
    });
    holding.max_by_key(|(length, _)| *length).map(|(_, row)| row)
}

/// Storage of a file judged by its name: `/dev/shm` is memory; `/mnt/ram` may be, in which case the flag is true.
pub(super) fn medium_of(file: &str) -> (Medium, bool) {
    const OF_MEMORY: [&str; 4] = ["ram", "shm", "tmpfs", "memdisk"];
    if file.starts_with("/dev/shm/") {
        return (Medium::Memory, false);
    }
    let mut parts = file.split('/').map(str::to_lowercase);
    (Medium::Unknown, parts.any(|part| OF_MEMORY.iter().any(|name| part.starts_with(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_in_every_way_of_writing_them() {
        for command in
            ["pgbench -R100 x", "pgbench -c 8 -nR 100", "./pgbench --rate 100 -T 5", "pgbench -S --rate='100'"]
        {
            assert_eq!(option(command, 'R', "rate").as_deref(), Some("100"), "{command}");
        }
        for command in ["pgbench -c 8 -T 60 -M prepared", "pgbench -U R100 -f R100", "pgbench -R"] {
            assert_eq!(option(command, 'R', "rate"), None, "{command}");
        }
        for quoted in ["'/mnt/my disk/x'", "\"/mnt/my disk/x\"", "/mnt/my\\ disk/x"] {
            let command = format!("pg_test_fsync -f {quoted} -s 2");
            assert_eq!(option(&command, 'f', "filename").as_deref(), Some("/mnt/my disk/x"));
        }
        assert_eq!(option("pg_test_fsync -s 2 -f /mnt/ram", 'f', "filename").as_deref(), Some("/mnt/ram"));
    }

    #[test]
    fn a_name_may_suggest_memory_but_does_not_prove_it() {
        assert_eq!(medium_of("/dev/shm/x"), (Medium::Memory, false));
        assert_eq!(medium_of("/mnt/ram"), (Medium::Unknown, true));
        assert_eq!(medium_of("/srv/frame/x"), (Medium::Unknown, false));
    }
}
