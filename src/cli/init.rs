//! `pgstrata init`: writes a first plan, for a disk or folder of this machine and one question.

mod text;

use super::out;
use crate::error::{Context, Error, Result};
use crate::host::Host;
use crate::plan::{self, Problems};
use crate::provision::disk::{self, FoundDisk};
use crate::units::Bytes;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
pub(super) use text::StackPlace;
use text::{QUESTIONS, Question};

/// Write a first plan; asks which disk or folder to test and which question to answer
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pgstrata init                                   ask, then write plan.toml
  pgstrata init --on loop --question filesystem   ext4 or xfs, on image files
  pgstrata init --on /srv/pg --question clients   in a folder: no root, nothing formatted
  pgstrata init --on /dev/disk/by-id/nvme-X --question wal-sync-method --out wal.toml

Next: pgstrata plan plan.toml, then pgstrata run plan.toml.

Exit code: 0 written, 2 invalid flag or file exists, 3 disk in use or file not writable.")]
pub struct Args {
    /// Where to build the stacks: a disk (/dev/...; ALL ITS DATA ARE LOST in the run), a folder, or `loop` for image files
    #[arg(long, value_name = "DISK|FOLDER|loop")]
    on: Option<String>,
    /// Question the plan answers
    #[arg(long, value_name = "QUESTION", value_parser = QUESTIONS.map(|question| question.name))]
    question: Option<String>,
    /// File to write; an existing file is never overwritten
    #[arg(long, value_name = "FILE", default_value = "plan.toml")]
    out: PathBuf,
}

/// Asks for options that are not set, and writes the plan.
///
/// # Errors
/// See the exit codes in the help text.
pub fn run(args: &Args) -> Result<u8> {
    let shown = out::harmless(&args.out.display().to_string());
    let there = || Error::user(format!("{shown} already exists")).hint("choose another file with --out FILE");
    // Reported before any question; the file is created exclusively below.
    if args.out.exists() {
        return Err(there());
    }
    let host = Host::this();
    let place = match &args.on {
        Some(on) => place(on, &disk::found(&host))?,
        None => ask_place(&disk::found(&host))?,
    };
    let question = match &args.question {
        Some(name) => QUESTIONS.iter().find(|question| question.name == name),
        None => Some(ask_question(&place)?),
    };
    let question = question.ok_or_else(|| Error::bug("a question accepted by clap is unknown"))?;
    if question.formats && matches!(place, StackPlace::Folder(_)) {
        return Err(Error::user(format!(
            "the question {} needs a disk or `loop`: a folder is never formatted",
            question.name
        ))
        .hint("use --on loop, or another --question"));
    }
    let text = text::plan(question, &place);
    let folder = Path::new("/");
    plan::check(&text, folder, &super::catalogue())
        .map_err(|problems: Problems| Error::bug(problems.render(&text, "the plan", plan::Paint::Plain)))?;
    let mut file = match std::fs::File::options().write(true).create_new(true).open(&args.out) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => return Err(there()),
        Err(e) => return Err(Error::host(e.to_string()).while_doing(format!("write {shown}"))),
    };
    file.write_all(text.as_bytes()).or_host(|| format!("write {shown}"))?;
    out::line(&format!("wrote {shown}: {}", question.doc))?;
    out::line(&format!("next:  pgstrata plan {shown}   checks it and estimates the duration"))?;
    out::line(&format!("       pgstrata run {shown}    runs it"))?;
    Ok(0)
}

/// The place named by `--on`.
pub(super) fn place(on: &str, disks: &[FoundDisk]) -> Result<StackPlace> {
    if on == "loop" {
        return Ok(StackPlace::Loop);
    }
    if on.is_empty() {
        return Err(
            Error::user("--on names no disk and no folder").hint("write --on DISK, --on FOLDER or --on DEVICE=DISK")
        );
    }
    let path = std::path::absolute(on).or_user(|| format!("find {}", out::harmless(on)))?;
    if path.is_dir() {
        let text = path.to_str().ok_or_else(|| Error::user(format!("{} is not UTF-8", path.display())))?;
        return Ok(StackPlace::Folder(text.to_owned()));
    }
    let real = std::fs::canonicalize(&path)
        .map_err(|e| Error::user(format!("{}: {e}", out::harmless(on))).hint("`pgstrata doctor` lists the disks"))?;
    let found = disks.iter().find(|disk| disk.path == real);
    let found = found.ok_or_else(|| {
        Error::user(format!("{} is neither a whole disk nor a folder", out::harmless(on)))
            .hint("`pgstrata doctor` lists the disks; loop devices and zram are made by pgstrata itself, and a partition can be named in the plan")
    })?;
    of_disk(found)
}

fn of_disk(disk: &FoundDisk) -> Result<StackPlace> {
    let path = disk.by_id.as_ref().unwrap_or(&disk.path).display().to_string();
    if !disk.in_use.is_empty() {
        return Err(Error::host(format!("{path} is in use: {}", disk.in_use.join("; ")))
            .hint("`pgstrata doctor` lists the disks; --on loop needs none"));
    }
    match (&disk.serial, &disk.wwn) {
        (Some(serial), _) => Ok(StackPlace::Disk { path, key: "serial", value: serial.clone() }),
        (None, Some(wwn)) => Ok(StackPlace::Disk { path, key: "wwn", value: wwn.clone() }),
        (None, None) => {
            Err(Error::host(format!("{path} reports neither serial nor WWN, so it cannot be used in a plan"))
                .hint("use --on loop with image files on that disk"))
        }
    }
}

fn ask_place(disks: &[FoundDisk]) -> Result<StackPlace> {
    must_be_asked("--on")?;
    let mut places = vec![(StackPlace::Loop, "image files in /var/lib/pgstrata; nothing else is touched".to_owned())];
    for disk in disks {
        let Ok(place) = of_disk(disk) else { continue };
        let size = disk.size_bytes.map_or_else(String::new, |bytes| format!(", {}", Bytes(bytes)));
        let model = disk.model.clone().unwrap_or_else(|| "no model".to_owned());
        let path = disk.by_id.as_ref().unwrap_or(&disk.path).display();
        places.push((place, format!("{path}, {model}{size}; ALL ITS DATA ARE LOST in the run")));
    }
    out::remark("Where should the stacks be built? Disks in use are not listed.");
    let lines: Vec<String> = places.iter().map(|(_, line)| line.clone()).collect();
    let answer = ask(&lines, "a number, or a folder path")?;
    match chosen(&answer, places.len()) {
        Some(at) => Ok(places.swap_remove(at).0),
        None => place(&answer, disks),
    }
}

fn ask_question(place: &StackPlace) -> Result<&'static Question> {
    must_be_asked("--question")?;
    let in_folder = matches!(place, StackPlace::Folder(_));
    let questions: Vec<&Question> = QUESTIONS.iter().filter(|question| !(in_folder && question.formats)).collect();
    let lines: Vec<String> =
        questions.iter().map(|question| format!("{:<16} {}", question.name, question.doc)).collect();
    out::remark("Which question?");
    let answer = ask(&lines, "a number")?;
    let at = chosen(&answer, questions.len()).or_else(|| questions.iter().position(|one| one.name == answer));
    at.map(|at| questions[at])
        .ok_or_else(|| Error::user(format!("`{}` is not one of the choices", out::harmless(&answer))))
}

fn must_be_asked(flag: &str) -> Result<()> {
    if std::io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Error::user(format!("standard input is not a terminal and {flag} is missing"))
        .hint("for example: pgstrata init --on loop --question filesystem --out plan.toml"))
}

fn ask(lines: &[String], wanted: &str) -> Result<String> {
    for (line, n) in lines.iter().zip(1..) {
        out::remark(&format!("  {n}  {}", out::harmless(line)));
    }
    out::remark(&format!("Type {wanted}:"));
    answer(&mut std::io::stdin().lock(), wanted)
}

/// The first line that is not empty.
fn answer(from: &mut dyn BufRead, wanted: &str) -> Result<String> {
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).or_user(|| "read the answer".to_owned())? == 0 {
            return Err(Error::user("the input ended before an answer; no plan was written").hint(
                "run `pgstrata init` again, or answer with flags: pgstrata init --on loop --question filesystem",
            ));
        }
        match line.trim() {
            "" => out::remark(&format!("No answer. Type {wanted}, or press Ctrl-C to leave:")),
            answer => return Ok(answer.to_owned()),
        }
    }
}

/// Index for a number in a list that is counted from 1.
fn chosen(answer: &str, length: usize) -> Option<usize> {
    answer.parse::<usize>().ok().filter(|n| (1..=length).contains(n)).map(|n| n - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(in_use: &[&str], serial: Option<&str>) -> FoundDisk {
        FoundDisk {
            path: PathBuf::from("/dev/null"),
            by_id: Some(PathBuf::from("/dev/disk/by-id/nvme-X_\"1\"")),
            model: None,
            serial: serial.map(str::to_owned),
            wwn: None,
            size_bytes: Some(1 << 30),
            write_cache: None,
            scheduler: None,
            rotational: None,
            in_use: in_use.iter().map(|used| (*used).to_owned()).collect(),
        }
    }

    #[test]
    fn every_question_makes_a_readable_plan_on_every_place() {
        let places =
            [StackPlace::Loop, of_disk(&disk(&[], Some("S\"\\1"))).unwrap(), StackPlace::Folder("/srv/p\"g".into())];
        for question in &QUESTIONS {
            for place in places.iter().filter(|place| !(question.formats && matches!(place, StackPlace::Folder(_)))) {
                let text = text::plan(question, place);
                let plan = plan::check(&text, Path::new("/"), &super::super::catalogue());
                let plan = plan.unwrap_or_else(|e| panic!("{}", e.render(&text, "x", plan::Paint::Plain)));
                assert!((2..=4).contains(&plan.cases.len()) && plan.blocks >= 3, "{}", question.name);
                assert!(!plan.baseline.is_empty(), "{}", question.name);
                assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
            }
        }
    }

    #[test]
    fn a_disk_in_use_or_without_a_serial_is_refused() {
        assert!(of_disk(&disk(&["mounted on /"], Some("S"))).unwrap_err().to_string().contains("in use: mounted on /"));
        assert!(of_disk(&disk(&[], None)).unwrap_err().to_string().contains("neither serial nor WWN"));
        let found = [disk(&[], Some("S"))];
        assert!(matches!(place("/dev/null", &found).unwrap(), StackPlace::Disk { path, .. } if path.contains("by-id")));
        assert!(place("/dev/zero", &found).unwrap_err().to_string().contains("neither a whole disk nor a folder"));
        assert!(place("/nowhere", &found).unwrap_err().hint_text().unwrap().contains("doctor"));
    }

    #[test]
    fn an_empty_answer_is_repeated_and_eof_writes_no_plan() {
        assert_eq!(answer(&mut &b"\n  \n 2 \n"[..], "a number").unwrap(), "2");
        let error = answer(&mut &b"\n"[..], "a number").unwrap_err();
        assert!(error.to_string().contains("no plan was written") && error.kind().exit_code() == 2, "{error}");
    }

    #[test]
    fn answers_are_counted_from_one() {
        assert_eq!((chosen("1", 2), chosen("2", 2)), (Some(0), Some(1)));
        assert_eq!((chosen("0", 2), chosen("3", 2), chosen("x", 2)), (None, None, None));
    }
}
