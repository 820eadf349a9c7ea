//! `publication.toml`: assigns the files of a folder to cases, and adds the facts that the outputs lack. The same
//! format serves the shelf and a user's folder. Nothing is guessed from file names or time stamps.

use super::{FileReading, cases};
use crate::error::{Error, Result};
use crate::record::imported::{FORMAT, ImportRecord, ImportedCase, Origin};
use crate::record::publication::Conclusion;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;

/// File name in a folder.
pub const NAME: &str = "publication.toml";

/// A template that explains each key.
pub const EXAMPLE: &str = include_str!("publication.toml");

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Keys {
    /// What varied between the cases.
    varied: String,
    procedure: String,
    /// Caveats that apply to everything.
    caveats: Vec<String>,
    /// Facts needed to judge it that are missing.
    unknown: Vec<String>,
    /// Shelf only: a file of typical devices, each of which becomes a case.
    pub(super) devices: Option<String>,
    origin: Origin,
    /// Facts of every case, by dotted key.
    facts: BTreeMap<String, String>,
    /// The cases in their order.
    case: Vec<CaseKeys>,
    /// Shelf only: the published conclusions.
    pub(super) conclusion: Vec<Conclusion>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseKeys {
    /// Unique within the file.
    name: Spanned<String>,
    /// Facts of this case only; they override those of every case.
    #[serde(default)]
    facts: BTreeMap<String, String>,
    /// Repetitions, each the files of one run; none if only the design was published.
    #[serde(default)]
    trials: Vec<Vec<Spanned<String>>>,
    #[serde(default)]
    caveats: Vec<String>,
}

/// A manifest whose patterns were matched with the files beside it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manifest {
    pub(super) keys: Keys,
    /// Files of each trial of each case.
    trials: Vec<Vec<Vec<String>>>,
}

impl Manifest {
    /// Parses `text`, which messages call `path`; `there` are the names of the files below its folder.
    ///
    /// # Errors
    /// [`crate::error::Kind::User`] with path, line and key: it is not TOML, has an unknown key, two cases with the
    /// same name, a missing file, or a pattern that matches no file.
    pub fn parse(path: &str, text: &str, there: &[String]) -> Result<Manifest> {
        let wrong = |at: usize, what: String| Error::user(format!("{path}, line {}: {what}", line_of(text, at)));
        let keys: Keys = toml::from_str(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start);
            wrong(at, e.message().trim().replace('\n', " ")).hint("`pgstrata import --manifest-example` prints one")
        })?;
        let mut names = BTreeSet::new();
        let mut trials = Vec::new();
        for case in &keys.case {
            let name = case.name.get_ref();
            let at = case.name.span().start;
            if name.trim().is_empty() {
                return Err(wrong(at, "`name` of the case is empty".to_owned()).hint("name it: name = \"ext4\""));
            }
            if !names.insert(name) {
                let hint = "repetitions of one case are further lists in its `trials`";
                return Err(wrong(at, format!("`name`: a case before it is called {name}")).hint(hint));
            }
            let mut of_case = Vec::new();
            for files in &case.trials {
                let mut of_trial: Vec<String> = Vec::new();
                for pattern in files {
                    let found: Vec<&String> = there.iter().filter(|file| matches(pattern.get_ref(), file)).collect();
                    if found.is_empty() {
                        let what = format!("`trials`: no file {}", pattern.get_ref());
                        return Err(wrong(pattern.span().start, what).hint(instead(pattern.get_ref(), there)));
                    }
                    let new = found.into_iter().filter(|file| !of_trial.contains(file)).cloned().collect::<Vec<_>>();
                    of_trial.extend(new);
                }
                of_case.push(of_trial);
            }
            trials.push(of_case);
        }
        Ok(Manifest { keys, trials })
    }

    /// Checks a manifest of a user's folder: refuses keys for the shelf only, and a manifest without a file.
    ///
    /// # Errors
    /// [`crate::error::Kind::User`].
    pub fn of_a_user(self, path: &str) -> Result<Manifest> {
        let only = [("conclusion", !self.keys.conclusion.is_empty()), ("devices", self.keys.devices.is_some())];
        if let Some((key, _)) = only.iter().find(|(_, there)| *there) {
            let what = format!("{path}: `{key}` is only for the publications built into pgstrata");
            return Err(Error::user(what).hint(format!("leave out `{key}`")));
        }
        if self.files().is_empty() {
            let what = format!("{path} names no file");
            return Err(Error::user(what).hint("`pgstrata import --manifest-example` prints one that does"));
        }
        Ok(self)
    }

    /// Every file it names, once.
    pub fn files(&self) -> BTreeSet<&str> {
        self.trials.iter().flatten().flatten().map(String::as_str).collect()
    }

    /// Its cases with the readings of their files; a file without a reading is left out. Tool version and time are not
    /// set.
    pub fn record(&self, read: &BTreeMap<String, FileReading>) -> ImportRecord {
        let cases = self.keys.case.iter().zip(&self.trials).map(|(case, trials)| {
            let mut facts = self.keys.facts.clone();
            facts.extend(case.facts.clone());
            let trials = trials
                .iter()
                .map(|files| cases::trial(files.iter().filter_map(|file| read.get(file)).cloned().collect()));
            let (name, caveats) = (case.name.get_ref().clone(), case.caveats.clone());
            ImportedCase { name, facts, trials: trials.collect(), caveats }
        });
        ImportRecord {
            format: FORMAT,
            varied: self.keys.varied.clone(),
            procedure: self.keys.procedure.trim().to_owned(),
            origin: self.keys.origin.clone(),
            cases: cases.collect(),
            caveats: self.keys.caveats.clone(),
            unknown: self.keys.unknown.clone(),
            ..ImportRecord::default()
        }
    }
}

/// Line number, from 1, of a byte.
pub(super) fn line_of(text: &str, byte: usize) -> u32 {
    let before = text.as_bytes().iter().take(byte).filter(|byte| **byte == b'\n').count();
    u32::try_from(before + 1).unwrap_or(u32::MAX)
}

/// True if a name matches a pattern; `*` matches any characters except a slash.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((before, behind)) = pattern.split_once('*') else { return pattern == name };
    let Some(rest) = name.strip_prefix(before) else { return false };
    let folder = rest.find('/').unwrap_or(rest.len());
    (0..=folder).filter(|at| rest.is_char_boundary(*at)).any(|at| matches(behind, &rest[at..]))
}

/// Hint for a missing name.
fn instead(name: &str, there: &[String]) -> String {
    match super::nearest(name, there.iter().map(String::as_str)) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("names are relative to the folder of {NAME}, without ./ and .."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, there: &[&str]) -> Result<Manifest> {
        let there: Vec<String> = there.iter().map(|&file| file.to_owned()).collect();
        Manifest::parse("x/publication.toml", text, &there)
    }

    const FILES: [&str; 7] = [
        "run1/pgbench.txt",
        "run1/pgbench_log.17",
        "run1/pgbench_log.17.1",
        "run2/pgbench.txt",
        "run2/pgbench_log.18",
        "mount.txt",
        "disabled.txt",
    ];

    #[test]
    fn the_example_names_cases_files_and_repetitions() {
        let manifest = parsed(EXAMPLE, &FILES).unwrap().of_a_user("x").unwrap();
        assert_eq!(manifest.files().len(), FILES.len());
        let read = FILES.iter().map(|&file| {
            let mut reading = FileReading::default();
            reading.file.name = file.to_owned();
            (file.to_owned(), reading)
        });
        let record = manifest.record(&read.collect());
        let files = |case: usize, trial: usize| -> Vec<&str> {
            record.cases[case].trials[trial].files.iter().map(|file| file.name.as_str()).collect()
        };
        assert_eq!(files(0, 0), ["run1/pgbench.txt", "run1/pgbench_log.17", "run1/pgbench_log.17.1", "mount.txt"]);
        assert_eq!(files(0, 1), ["run2/pgbench.txt", "run2/pgbench_log.18", "mount.txt"]);
        assert_eq!(record.cases[1].facts["zfs.sync"], "disabled");
        assert_eq!(record.cases[1].facts["stack.filesystem"], "zfs");
        assert_eq!((record.varied.as_str(), record.cases.len()), ("ZFS property sync", 2));
        assert_eq!(record.origin.machine.as_deref(), Some("8 cores, 64 GiB"));
    }

    #[test]
    fn an_error_is_reported_with_its_line_and_a_remedy() {
        let case = "[[case]]\nname = 'a'\n";
        for (text, says, hint) in [
            ("[[case]]\nnam = 'a'\n", "line 2: unknown field `nam`", "--manifest-example"),
            ("varied = \n", "line 1: ", "--manifest-example"),
            ("[[case]]\ntrials = [['a.txt']]\n", "line 1: missing field `name`", "--manifest-example"),
            (&format!("{case}trials = [['disable.txt']]\n"), "line 3: `trials`: no file disable.txt", "disabled.txt?"),
            (&format!("{case}trials = [['x/*']]\n"), "line 3: `trials`: no file x/*", "relative to the folder"),
            (&format!("{case}\n{case}"), "line 5: `name`: a case before it is called a", "further lists"),
            ("[[case]]\nname = ' '\n", "line 2: `name` of the case is empty", "name = "),
        ] {
            let error = parsed(text, &FILES).unwrap_err();
            assert!(error.to_string().contains(&format!("x/publication.toml, {says}")), "{text}: {error}");
            assert!(error.hint_text().unwrap().contains(hint), "{text}: {:?}", error.hint_text());
        }
        assert!(parsed("[[conclusion]]\nsays = 'x'\n", &[]).unwrap().of_a_user("x").is_err());
        assert!(parsed("[[case]]\nname = 'a'\n", &[]).unwrap().of_a_user("x").is_err());
    }

    #[test]
    fn a_star_stands_for_anything_but_a_slash() {
        for (pattern, name, is_one) in [
            ("a*", "abc", true),
            ("a*", "a", true),
            ("*/x", "b/x", true),
            ("*", "a/b", false),
            ("a*c*e", "abcde", true),
            ("a*c", "abcd", false),
            ("é*", "éa", true),
        ] {
            assert_eq!(matches(pattern, name), is_one, "{pattern} {name}");
        }
    }
}
