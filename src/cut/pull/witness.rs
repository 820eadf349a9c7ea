//! Keeps what was acknowledged while the power of the machine under test is cut: in a file on another disk, or at a
//! witness on another machine.
//!
//! One line per commit: round, client, number, microseconds since 1970. A client continues only after the witness has
//! synced it, so the witness lacks at most the last commit of each client.

use crate::error::{Context, Error, Result};
use crate::host::appended::Appended;
use crate::host::files;
use crate::host::lines::Lines;
use crate::host::time::wall_us;
use std::path::{Path, PathBuf};

/// Most commits per answer of a witness.
const AT_ONCE: usize = 1000;
/// Its answer on success.
const KEPT: &str = "kept";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WitnessPlace {
    File(PathBuf),
    Address(String),
}

/// A commit as the witness keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptCommit {
    pub round: u32,
    pub client: u16,
    /// Number of the transaction within its client.
    pub number: u64,
    /// When the witness received it, microseconds since 1970.
    pub at_us: u64,
}

impl WitnessPlace {
    /// Parses `host:port`, or the path of a file.
    ///
    /// # Errors
    /// If it is neither.
    pub fn parse(text: &str) -> Result<WitnessPlace> {
        if text.contains('/') {
            let path = std::path::absolute(text).or_user(|| format!("find the file {text}"))?;
            return Ok(WitnessPlace::File(path));
        }
        let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        port.map(|_| WitnessPlace::Address(text.to_owned())).ok_or_else(|| {
            Error::user(format!("`{text}` is not a witness"))
                .hint("host:port of `pgstrata witness`, or the path of a file")
        })
    }
}

impl std::fmt::Display for WitnessPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WitnessPlace::File(path) => write!(f, "{}", path.display()),
            WitnessPlace::Address(address) => f.write_str(address),
        }
    }
}

/// One client's channel to the witness.
pub enum Voice {
    File(Appended),
    Remote(Lines, String),
}

impl Voice {
    /// Opens the channel for the pulls with this id.
    ///
    /// # Errors
    /// If the file cannot be opened, or nobody listens.
    pub fn open(place: &WitnessPlace, id: &str) -> Result<Voice> {
        Ok(match place {
            WitnessPlace::File(path) => Voice::File(Appended::open(path)?),
            WitnessPlace::Address(address) => {
                let mut lines = Lines::connect(address)?;
                // The witness drops clients that stay silent at first, and the first commit may take long. The answer
                // does not matter.
                lines.ask("here")?;
                Voice::Remote(lines, id.to_owned())
            }
        })
    }

    /// Reports a commit; returns once the witness has synced it.
    ///
    /// # Errors
    /// If it could not be synced.
    pub fn report(&mut self, round: u32, client: u16, number: u64) -> Result<()> {
        match self {
            Voice::File(file) => keep(file, round, client, number),
            Voice::Remote(lines, id) => match lines.ask(&format!("keep {id} {round} {client} {number}"))?.as_str() {
                KEPT => Ok(()),
                other => Err(Error::host(format!("the witness says: {other}"))),
            },
        }
    }

    /// Every commit of a round that was kept.
    ///
    /// # Errors
    /// If they cannot be read, or contradict themselves.
    pub fn recall(&mut self, round: u32) -> Result<Vec<KeptCommit>> {
        let mut all = Vec::new();
        match self {
            Voice::File(file) => all.extend(kept_in(file.path())?.into_iter().filter(|kept| kept.round == round)),
            Voice::Remote(lines, id) => loop {
                let answer = lines.ask(&format!("recall {id} {round} {}", all.len()))?;
                let part: Option<Vec<KeptCommit>> = answer
                    .strip_prefix("kept")
                    .and_then(|part| part.split_whitespace().map(|one| read(one, ':')).collect());
                let part = part.ok_or_else(|| Error::host(format!("the witness answers `{answer}`")))?;
                if part.is_empty() {
                    break;
                }
                all.extend(part);
            },
        }
        Ok(all)
    }
}

/// The witness's answer to a line; `folder` has one file per id.
pub fn answer(folder: &Path, line: &str) -> String {
    answered(folder, line).unwrap_or_else(|e| format!("error: {e}"))
}

fn answered(folder: &Path, line: &str) -> Result<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let id = words.get(1).filter(|id| id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let path = id.map(|id| folder.join(format!("pull-{id}.witness")));
    let round = words.get(2).and_then(|word| word.parse::<u32>().ok());
    let numbers = words.iter().skip(3).map(|word| word.parse::<u64>().ok()).collect::<Option<Vec<u64>>>();
    match (words[0], path, round, numbers.as_deref()) {
        ("keep", Some(path), Some(round), Some([client, number])) => {
            let client = u16::try_from(*client).map_err(|_| Error::user("no such client"))?;
            keep(&mut Appended::open(&path)?, round, client, *number)?;
            Ok(KEPT.to_owned())
        }
        ("recall", Some(path), Some(round), Some([from])) => {
            let from = usize::try_from(*from).unwrap_or(usize::MAX);
            let kept = kept_in(&path)?.into_iter().filter(|kept| kept.round == round).skip(from).take(AT_ONCE);
            Ok(kept.fold("kept".to_owned(), |answer, KeptCommit { round, client, number, at_us }| {
                answer + &format!(" {round}:{client}:{number}:{at_us}")
            }))
        }
        _ => Err(Error::user("not understood")),
    }
}

fn keep(file: &mut Appended, round: u32, client: u16, number: u64) -> Result<()> {
    file.add(&format!("{round} {client} {number} {}", wall_us()))
}

/// All commits of a file. A truncated last line was never acknowledged.
fn kept_in(path: &Path) -> Result<Vec<KeptCommit>> {
    let text = files::read_text(path)?;
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let lines = whole.lines().zip(1..).map(|(line, number)| {
        read(line, ' ').ok_or_else(|| {
            Error::host(format!("{} line {number} is not what a witness writes: {line}", path.display()))
        })
    });
    lines.collect()
}

fn read(text: &str, between: char) -> Option<KeptCommit> {
    let words: Vec<&str> = text.split(between).collect();
    let [round, client, number, at_us] = words[..] else { return None };
    let (round, client) = (round.parse().ok()?, client.parse().ok()?);
    Some(KeptCommit { round, client, number: number.parse().ok()?, at_us: at_us.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_witness_keeps_its_messages_and_returns_them_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        let say = |line: &str| answer(folder.path(), line);
        for number in 1..=1001 {
            assert_eq!(say(&format!("keep 0badcafe 1 3 {number}")), KEPT);
        }
        assert_eq!(say("keep 0badcafe 2 3 1"), KEPT);
        let part = |from: usize| {
            let answer = say(&format!("recall 0badcafe 1 {from}"));
            answer.split(' ').skip(1).map(|one| read(one, ':').unwrap().number).collect::<Vec<_>>()
        };
        assert_eq!((part(0).len(), part(1000), part(1001).len()), (AT_ONCE, vec![1001], 0));
        for wrong in ["keep ../../etc 1 1 1", "keep 0badcafe 1 1", "keep 0badcafe 1 99999 1", "recall", "", "x y z"] {
            assert!(say(wrong).starts_with("error: "), "{wrong}: {}", say(wrong));
        }
    }

    #[test]
    fn a_truncated_line_is_ignored_and_malformed_ones_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "1 0 1 99\n1 0 2 1").unwrap();
        assert_eq!(kept_in(&path).unwrap(), [KeptCommit { round: 1, client: 0, number: 1, at_us: 99 }]);
        std::fs::write(&path, "1 0 1 99\n1 0 2\n").unwrap();
        assert!(kept_in(&path).unwrap_err().to_string().contains("line 2"));
    }

    #[test]
    fn a_witness_is_an_address_or_a_file() {
        assert_eq!(WitnessPlace::parse("host:7").unwrap(), WitnessPlace::Address("host:7".to_owned()));
        assert_eq!(WitnessPlace::parse("/x/y").unwrap(), WitnessPlace::File("/x/y".into()));
        assert!(WitnessPlace::parse("host").is_err() && WitnessPlace::parse("host:x").is_err());
    }
}
