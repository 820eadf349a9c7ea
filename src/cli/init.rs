//! `pgstrata init`: writes a first plan, for a disk or folder of this machine and one question.

mod text;

use super::out;
use crate::error::{Context, Error, Result};
use crate::host::{Host, machine};
use crate::plan::shipped::{self, Shipped};
use crate::plan::{self, Problems};
use crate::provision::disk::{self, FoundDisk};
use crate::run::forecast::expected_without_images;
use crate::units::{Bytes, Micros};
use clap::builder::PossibleValuesParser;
use std::fs::File;
use std::io::{BufRead, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
pub(super) use text::StackPlace;
use text::{FirstPlanSize, QUESTIONS, Question};

/// Write a first plan; asks which disk or folder to test and which question to answer
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pgstrata init                                   ask, then write plan.toml
  pgstrata init --on loop --question filesystem   ext4 or xfs, on image files
  pgstrata init --on /srv/pg --question clients   in a folder: no root, nothing formatted
  pgstrata init --on loop --question filesystem --data 20GiB --time 2h
  pgstrata init --on /dev/disk/by-id/nvme-X --question filesystem --out fs.toml

Questions: filesystem, mount-options, wal-sync-method, wal-compression, clients, and the plans that `pgstrata plans` lists.

Next: pgstrata plan plan.toml, then pgstrata run plan.toml.

Exit code: 0 written, 2 invalid flag or file exists, 3 disk in use or file not writable.")]
pub struct Args {
    /// Where to build the stacks: a disk (/dev/...; ALL DATA ON IT IS LOST in the run), a folder, or `loop` for image files
    #[arg(long, value_name = "DISK|FOLDER|loop")]
    on: Option<String>,
    /// Question the plan answers, or the name of a shipped plan
    #[arg(long, value_name = "QUESTION", value_parser = PossibleValuesParser::new(names()), hide_possible_values = true)]
    question: Option<String>,
    /// Size of the database [default: 300MB, which is read from memory alone]
    #[arg(long, value_name = "SIZE", value_parser = Bytes::parse)]
    data: Option<Bytes>,
    /// Time for the run, such as 30min: as many blocks as it has room for, at least 3 [default: at most 5 blocks]
    #[arg(long, value_name = "TIME", value_parser = Micros::parse)]
    time: Option<Micros>,
    /// File to write; an existing file is never overwritten
    #[arg(long, value_name = "FILE", default_value = "plan.toml")]
    out: PathBuf,
}

/// What a first plan answers.
#[derive(Debug, Clone, Copy)]
enum FirstQuestion {
    Own(&'static Question),
    Shipped(Shipped),
}

/// All questions; a shipped plan that has the name of one is left to `pgstrata plans`.
fn questions() -> impl Iterator<Item = FirstQuestion> {
    let shipped = shipped::all().filter(|plan| !QUESTIONS.iter().any(|question| question.name == plan.name));
    QUESTIONS.iter().map(FirstQuestion::Own).chain(shipped.map(FirstQuestion::Shipped))
}

fn names() -> impl Iterator<Item = &'static str> {
    questions().map(FirstQuestion::name)
}

impl FirstQuestion {
    fn name(self) -> &'static str {
        match self {
            FirstQuestion::Own(question) => question.name,
            FirstQuestion::Shipped(plan) => plan.name,
        }
    }

    fn doc(self) -> String {
        match self {
            FirstQuestion::Own(question) => question.doc.to_owned(),
            FirstQuestion::Shipped(plan) => format!("{} (a plan that ships)", plan.question()),
        }
    }
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
        Some(name) => questions().find(|question| question.name() == name),
        None => Some(ask_question(&place)?),
    };
    let question = question.ok_or_else(|| Error::bug("a question accepted by clap is unknown"))?;
    let (text, on) = match question {
        FirstQuestion::Own(question) => (own(args, &host, question, &place)?, String::new()),
        FirstQuestion::Shipped(_) if args.data.is_some() || args.time.is_some() => {
            return Err(Error::user("a shipped plan has its own size and blocks").hint("leave out --data and --time"));
        }
        FirstQuestion::Shipped(plan) => (plan.text.to_owned(), text::on(&place)),
    };
    match File::create_new(&args.out).and_then(|mut file| file.write_all(text.as_bytes())) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => return Err(there()),
        written => written.or_host(|| format!("write {shown}"))?,
    }
    out::line(&format!("wrote {shown}: {}", question.doc()))?;
    out::line(&format!("next:  pgstrata plan {shown}{on}   checks it and estimates the duration"))?;
    out::line(&format!("       pgstrata run {shown}{on}    runs it"))?;
    Ok(0)
}

/// The text of a plan for one of the own questions, with as many blocks as the time allows.
fn own(args: &Args, host: &Host, question: &Question, place: &StackPlace) -> Result<String> {
    if question.formats && matches!(place, StackPlace::Folder(_)) {
        let message = format!("the question {} needs a disk or `loop`: a folder is never formatted", question.name);
        return Err(Error::user(message).hint("use --on loop, or another --question"));
    }
    let asks = args.on.is_none() || args.question.is_none();
    let data = match args.data {
        None if asks => Some(ask(
            &[],
            "the size of the database, such as 20GiB (300MB is read from memory alone)",
            parse(Bytes::parse),
        )?),
        data => data,
    };
    let time = match args.time {
        None if asks => Some(ask(&[], "the time that the run may take, such as 30min", parse(Micros::parse))?),
        time => time,
    };
    let memory = Bytes(machine::facts(host).memory_bytes);
    let mut size = FirstPlanSize { data: data.unwrap_or(text::SMALL), memory, blocks: text::USUAL_BLOCKS };
    let text = text::plan(question, place, &size);
    let plan = plan::check(&text, Path::new("/"), &super::catalogue())
        .map_err(|problems: Problems| Error::bug(problems.render(&text, "the plan", plan::Paint::Plain)))?;
    let Some(Micros(time_us)) = time else { return Ok(text) };
    let block_us = expected_without_images(&plan, memory)? / u64::from(size.blocks);
    let blocks = time_us / block_us.max(1);
    if blocks < u64::from(text::FEWEST_BLOCKS) {
        let least = Micros(block_us * u64::from(text::FEWEST_BLOCKS));
        out::remark(&format!("the plan takes {least}, for {} blocks; --quick makes it shorter", text::FEWEST_BLOCKS));
    }
    size.blocks = blocks.clamp(u64::from(text::FEWEST_BLOCKS), text::MOST_BLOCKS) as u32;
    Ok(text::plan(question, place, &size))
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
    let real = std::fs::canonicalize(&path).map_err(|e| {
        Error::user(format!("{}: {e}", out::harmless(on)))
            .hint("`pgstrata doctor` lists the disks; make a folder before you name it")
    })?;
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
    match (&disk.identity.serial, &disk.identity.wwn) {
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
        let size = disk.identity.size_bytes.map_or_else(String::new, |bytes| format!(", {}", Bytes(bytes)));
        let model = disk.identity.model.clone().unwrap_or_else(|| "no model".to_owned());
        let path = disk.by_id.as_ref().unwrap_or(&disk.path).display();
        places.push((place, format!("{path}, {model}{size}; ALL DATA ON IT IS LOST in the run")));
    }
    out::remark("Where should the stacks be built? Disks in use are not listed.");
    let lines: Vec<String> = places.iter().map(|(_, line)| line.clone()).collect();
    ask(&lines, "a number, or a folder path", |answer| match chosen(answer, places.len())? {
        Some(at) => Ok(places[at].0.clone()),
        None => place(answer, disks),
    })
}

fn ask_question(place: &StackPlace) -> Result<FirstQuestion> {
    must_be_asked("--question")?;
    let in_folder = matches!(place, StackPlace::Folder(_));
    let questions: Vec<FirstQuestion> =
        questions().filter(|one| !(in_folder && matches!(one, FirstQuestion::Own(own) if own.formats))).collect();
    let lines: Vec<String> = questions.iter().map(|one| format!("{:<18} {}", one.name(), one.doc())).collect();
    out::remark("Which question?");
    ask(&lines, "a number", |answer| {
        let at = chosen(answer, questions.len())?.or_else(|| questions.iter().position(|one| one.name() == answer));
        at.map(|at| questions[at])
            .ok_or_else(|| Error::user(format!("`{}` is not one of the choices", out::harmless(answer))))
    })
}

fn must_be_asked(flag: &str) -> Result<()> {
    if std::io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Error::user(format!("standard input is not a terminal and {flag} is missing"))
        .hint("for example: pgstrata init --on loop --question filesystem --out plan.toml"))
}

fn ask<T>(lines: &[String], wanted: &str, accepted: impl Fn(&str) -> Result<T>) -> Result<T> {
    for (line, n) in lines.iter().zip(1..) {
        out::remark(&format!("  {n:>2}  {}", out::harmless(line)));
    }
    out::remark(&format!("Type {wanted}:"));
    accept(&mut std::io::stdin().lock(), wanted, accepted)
}

/// The first answer that is accepted; each other one is said to be wrong, and asked again.
fn accept<T>(from: &mut dyn BufRead, wanted: &str, accepted: impl Fn(&str) -> Result<T>) -> Result<T> {
    loop {
        match accepted(&answer(from, wanted)?) {
            Ok(found) => return Ok(found),
            Err(e) => out::remark(&format!("{}. Type {wanted}:", out::harmless_lines(&e.chain()))),
        }
    }
}

/// A parser of the command line as one of answers.
fn parse<T>(read: fn(&str) -> Result<T, String>) -> impl Fn(&str) -> Result<T> {
    move |answer| read(answer).map_err(Error::user)
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

/// Index for a number in a list that is counted from 1; `None` for an answer that is no number.
fn chosen(answer: &str, length: usize) -> Result<Option<usize>> {
    match answer.parse::<usize>() {
        Ok(n) if (1..=length).contains(&n) => Ok(Some(n - 1)),
        Ok(n) => Err(Error::user(format!("there is no choice {n}, only 1 to {length}"))),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(in_use: &[&str], serial: Option<&str>) -> FoundDisk {
        let mut disk = FoundDisk {
            path: PathBuf::from("/dev/null"),
            by_id: Some(PathBuf::from("/dev/disk/by-id/nvme-X_\"1\"")),
            in_use: in_use.iter().map(|used| (*used).to_owned()).collect(),
            ..FoundDisk::default()
        };
        (disk.identity.serial, disk.identity.size_bytes) = (serial.map(str::to_owned), Some(1 << 30));
        disk
    }

    #[test]
    fn every_question_makes_a_readable_plan_on_every_place() {
        let places =
            [StackPlace::Loop, of_disk(&disk(&[], Some("S\"\\1"))).unwrap(), StackPlace::Folder("/srv/p\"g".into())];
        for question in &QUESTIONS {
            for place in places.iter().filter(|place| !(question.formats && matches!(place, StackPlace::Folder(_)))) {
                let size = FirstPlanSize { data: Bytes(20 << 30), memory: Bytes(4 << 30), blocks: 4 };
                let text = text::plan(question, place, &size);
                assert!(text.contains("scale = 1369,") && text.contains("at_most = 4"), "{text}");
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
        let choice = |answer| chosen(answer, 2).ok();
        assert_eq!((choice("1"), choice("2"), choice("x")), (Some(Some(0)), Some(Some(1)), Some(None)));
        assert_eq!((choice("0"), choice("3")), (None, None));
    }

    #[test]
    fn a_wrong_answer_is_asked_again() {
        let size = accept(&mut &b"large\n20\n20GiB\n"[..], "a size", parse(Bytes::parse)).unwrap();
        assert_eq!(size, Bytes(20 << 30));
        assert!(accept(&mut &b"9\n"[..], "a number", |answer| chosen(answer, 2)).is_err(), "the input ended");
        assert!(names().any(|name| name == "encryption") && names().any(|name| name == "clients"));
    }
}
