//! `pgstrata doctor`: shows what this machine can measure, and possible disturbances.

use super::out;
use super::places::PlaceArgs;
use crate::error::{Context, EXIT_INCOMPLETE, Error, Result};
use crate::host::Host;
use crate::report::text::paragraph;
use crate::run::doctor::{self, Diagnosis, LayerDiagnosis};
use crate::run::io_uring::{IoUring, Obstacle};
use crate::units::Bytes;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Show what this machine can measure, and what would disturb it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata doctor          disks, PostgreSQL, disturbances, and which layers work here
  pgstrata doctor --all    also what each layer lacks and how to get it, and the kernel's settings
  pgstrata doctor --json   all of it as JSON
  pgstrata doctor --bug    the same for a bug report, in the file pgstrata-bug.json

Changes nothing. Exit code: 0 at least one stack and one PostgreSQL are usable, 1 otherwise.")]
pub struct Args {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Show what each layer lacks and how to get it, and the kernel's settings
    #[arg(long, conflicts_with = "json")]
    all: bool,
    /// Write it to pgstrata-bug.json for a bug report, without host name, serial numbers of disks, and the folders of runs
    #[arg(long, conflicts_with_all = ["json", "all"])]
    bug: bool,
    #[command(flatten)]
    places: PlaceArgs,
}

/// Looks and prints.
///
/// # Errors
/// If standard output cannot be written.
pub fn run(args: &Args) -> Result<u8> {
    let places = args.places.places()?;
    let diagnosis = doctor::diagnose(&Host::this(), &places.state, &places.results);
    if args.bug {
        write_for_a_bug(&diagnosis, Path::new(BUG_FILE))?;
        out::line(&format!("written: {BUG_FILE}; read it before you attach it"))?;
        return Ok(0);
    }
    out::json_or(args.json, &diagnosis, || shown(&diagnosis, args.all))?;
    let usable = diagnosis.layers.iter().any(|layer| layer.lacks.is_empty()) && !diagnosis.postgres.is_empty();
    Ok(if usable { 0 } else { EXIT_INCOMPLETE })
}

/// What `--bug` writes.
const BUG_FILE: &str = "pgstrata-bug.json";

/// Keys that name a machine, its disks or the folders of its runs. Mount points and PostgreSQL's folder stay.
const WITHHELD: [&str; 5] = ["hostname", "serial", "wwn", "by_id", "folder"];

/// The diagnosis with the version, in a new file.
fn write_for_a_bug(diagnosis: &Diagnosis, path: &Path) -> Result<()> {
    let mut document =
        serde_json::to_value(diagnosis).map_err(|e| Error::bug(format!("a diagnosis is no JSON: {e}")))?;
    withhold(&mut document);
    document["pgstrata"] = env!("PGSTRATA_VERSION").into();
    let written = File::create_new(path).and_then(|mut file| writeln!(file, "{document:#}"));
    written.or_host(|| format!("write {}", path.display()))
}

fn withhold(value: &mut Value) {
    match value {
        Value::Object(keys) => {
            keys.retain(|key, _| !WITHHELD.contains(&key.as_str()));
            keys.values_mut().for_each(withhold);
        }
        Value::Array(values) => values.iter_mut().for_each(withhold),
        _ => {}
    }
}

/// Lines, each with its label.
type Lines = Vec<(String, String)>;

const OK: &str = "  ok       ";
const PLAIN: &str = "  ";

/// Labelled lines, folded at the width.
fn shown(diagnosis: &Diagnosis, all: bool) -> String {
    let space = diagnosis.space.iter().map(|space| {
        let free = space.free_bytes.map_or_else(|| "unknown".to_owned(), |free| format!("{free} free"));
        (PLAIN.to_owned(), format!("{}: {free}, {}", space.purpose, space.folder.display()))
    });
    let settings = diagnosis.kernel_settings.iter();
    let settings = settings.map(|setting| (format!("  {:<28} ", setting.name), setting.value.clone()));
    let found = diagnosis.disturbances.iter();
    let found = found.map(|found| (PLAIN.to_owned(), format!("{}: {}; {}", found.what, found.detail, found.advice)));
    let mut sections = vec![
        ("Machine", machine(diagnosis)),
        ("Disks", or_none(disks(diagnosis), PLAIN, "none found")),
        ("PostgreSQL", servers(diagnosis)),
        ("Sources of disturbance", or_none(found.collect(), PLAIN, "nothing found")),
        ("Space", space.collect()),
        ("Layers", if all { each_layer(diagnosis) } else { layers(diagnosis) }),
    ];
    sections.extend(all.then(|| ("Kernel settings", settings.collect())));
    let sections = sections.into_iter().map(|(title, lines)| {
        let lines: String = lines.iter().map(|(mark, text)| paragraph(mark, text)).collect();
        format!("{title}\n{lines}")
    });
    sections.collect::<Vec<_>>().join("\n")
}

/// Which layers work, which need packages alone, with the one command that installs these, and all others.
fn layers(diagnosis: &Diagnosis) -> Lines {
    const INSTALL: &str = "apt-get install ";
    let (mut ok, mut installable, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let mut packages = BTreeSet::new();
    for LayerDiagnosis { layer, lacks } in &diagnosis.layers {
        let wanted: Option<Vec<&str>> = lacks.iter().map(|lack| lack.hint.strip_prefix(INSTALL)).collect();
        match wanted {
            Some(wanted) if wanted.is_empty() => ok.push(layer.as_str()),
            Some(wanted) => {
                installable.push(layer.as_str());
                packages.extend(wanted);
            }
            None => others.push(layer.as_str()),
        }
    }
    let packages: Vec<&str> = packages.into_iter().collect();
    let lines = [
        (OK, ok, String::new()),
        ("  install  ", installable, format!(": {INSTALL}{}", packages.join(" "))),
        ("  missing  ", others, "; a guest has most of them (`--guest`), `pgstrata doctor --all` says why".to_owned()),
    ];
    let lines = lines.into_iter().filter(|(_, names, _)| !names.is_empty());
    lines.map(|(mark, names, rest)| (mark.to_owned(), names.join(", ") + &rest)).collect()
}

/// Each layer, with everything that it lacks.
fn each_layer(diagnosis: &Diagnosis) -> Lines {
    let lines = diagnosis.layers.iter().flat_map(|layer| {
        let ok = layer.lacks.is_empty().then(|| (OK.to_owned(), layer.layer.clone()));
        let mark = format!("  missing  {:<10} ", layer.layer);
        let missing = layer.lacks.iter().map(move |lack| (mark.clone(), format!("{}; {}", lack.what, lack.hint)));
        ok.into_iter().chain(missing)
    });
    lines.collect()
}

fn or_none(lines: Lines, mark: &str, text: &str) -> Lines {
    if lines.is_empty() { vec![(mark.to_owned(), text.to_owned())] } else { lines }
}

/// The servers, and the verdict on `io_method = io_uring`, as for a layer.
fn servers(diagnosis: &Diagnosis) -> Lines {
    let servers = diagnosis.postgres.iter();
    let servers = servers.map(|it| (OK.to_owned(), format!("{} {}", it.version, it.bin.display()))).collect();
    let why = "no installation with postgres, initdb and pgbench found; apt-get install postgresql";
    let IoUring { refused, low_memory } = &diagnosis.io_uring;
    let obstacles = [("refused", refused), ("low     ", low_memory)].into_iter().filter_map(|(word, found)| {
        let Obstacle { why, hint } = found.as_ref()?;
        Some((format!("  {word}  io_method = io_uring: "), format!("{why}; {hint}")))
    });
    let allowed = "io_method = io_uring: the kernel allows it; the server must be built with liburing";
    [or_none(servers, "  missing  ", why), or_none(obstacles.collect(), OK, allowed)].concat()
}

/// Each disk as a plan names it, with properties that affect the speed of syncs.
fn disks(diagnosis: &Diagnosis) -> Lines {
    let lines = diagnosis.disks.iter().flat_map(|disk| {
        let size = disk.identity.size_bytes.map(|bytes| Bytes(bytes).to_string());
        let kind = disk.rotational.map(|rotates| match rotates {
            // The kernel's default for disks that do not report it.
            true if is_virtual(&disk.path) => "virtual".to_owned(),
            true => "rotating".to_owned(),
            false => "non-rotating".to_owned(),
        });
        let scheduler = disk.scheduler.as_ref().map(|name| format!("scheduler {name}"));
        let facts: Vec<String> = [size, disk.identity.model.clone(), kind, disk.write_cache.clone(), scheduler]
            .into_iter()
            .flatten()
            .collect();
        let mark = if disk.in_use.is_empty() { "  free     " } else { "  in use   " };
        let path = disk.by_id.as_ref().unwrap_or(&disk.path);
        let identity = match (&disk.identity.serial, &disk.identity.wwn) {
            (Some(serial), _) => format!("serial = \"{serial}\""),
            (None, Some(wwn)) => format!("wwn = \"{wwn}\""),
            (None, None) => "reports neither serial nor WWN, so it cannot be used in a plan".to_owned(),
        };
        let first = (mark.to_owned(), format!("{}: {}", disk.path.display(), facts.join(", ")));
        let others = [format!("disk = \"{}\", {identity}", path.display())].into_iter().chain(disk.in_use.clone());
        [first].into_iter().chain(others.map(|text| (" ".repeat(OK.len()), text)))
    });
    lines.collect()
}

/// True for a disk of virtio or Xen.
fn is_virtual(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ["vd", "xvd"].iter().any(|start| name.starts_with(start))
}

fn machine(diagnosis: &Diagnosis) -> Lines {
    let host = &diagnosis.host;
    let root = if diagnosis.root { "yes" } else { "no: only `directory` stacks can be built" };
    let user = diagnosis.server_user.as_deref().or(diagnosis.server_user_problem.as_deref());
    let lines = [
        ("  kernel       ", format!("{}, {}", host.kernel, host.distribution.as_deref().unwrap_or("unknown"))),
        ("  CPU          ", format!("{} x {}", host.cpus, host.cpu_model.as_deref().unwrap_or("unknown"))),
        ("  memory       ", Bytes(host.memory_bytes).to_string()),
        ("  root         ", root.to_owned()),
        ("  server user  ", user.unwrap_or("unknown").to_owned()),
    ];
    lines.map(|(mark, text)| (mark.to_owned(), text)).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provision::Unmet;
    use crate::provision::disk::FoundDisk;

    #[test]
    fn a_bug_report_has_the_version_and_names_no_machine() {
        let folder = tempfile::tempdir().unwrap();
        let (path, host) = (folder.path().join(BUG_FILE), Host::this());
        let diagnosis = doctor::diagnose(&host, "/nowhere".as_ref(), "/nowhere".as_ref());
        write_for_a_bug(&diagnosis, &path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        assert!(document["pgstrata"].as_str().unwrap().starts_with(env!("CARGO_PKG_VERSION")));
        assert_eq!(
            (&document["host"]["kernel"], &document["host"]["hostname"]),
            (&diagnosis.host.kernel.clone().into(), &Value::Null)
        );
        assert!(!text.contains("nowhere") && !text.contains("serial"), "{text}");
        assert!(write_for_a_bug(&diagnosis, &path).is_err(), "an older file is not overwritten");
    }

    #[test]
    fn a_virtual_disk_is_not_said_to_rotate() {
        let mut diagnosis = doctor::diagnose(&Host::this(), "/nowhere".as_ref(), "/nowhere".as_ref());
        let disk = |name: &str| FoundDisk {
            path: Path::new("/dev").join(name),
            rotational: Some(true),
            ..FoundDisk::default()
        };
        diagnosis.disks = vec![disk("vda"), disk("sda")];
        let lines: Vec<String> = disks(&diagnosis).into_iter().map(|(_, text)| text).collect();
        assert_eq!((lines[0].as_str(), lines[2].as_str()), ("/dev/vda: virtual", "/dev/sda: rotating"));
    }

    #[test]
    fn layers_that_need_packages_alone_share_one_command() {
        let mut diagnosis = doctor::diagnose(&Host::this(), "/nowhere".as_ref(), "/nowhere".as_ref());
        let lacks = |hints: &[&str]| {
            hints.iter().map(|hint| Unmet { what: "x".to_owned(), hint: (*hint).to_owned() }).collect()
        };
        let layer = |layer: &str, hints: &[&str]| LayerDiagnosis { layer: layer.to_owned(), lacks: lacks(hints) };
        diagnosis.layers = vec![
            layer("loop", &[]),
            layer("f2fs", &["apt-get install f2fs-tools"]),
            layer("lvm", &["apt-get install lvm2", "run the plan with --guest"]),
            layer("luks", &["apt-get install cryptsetup-bin", "apt-get install f2fs-tools"]),
        ];
        let lines: Vec<String> = layers(&diagnosis).into_iter().map(|(mark, text)| mark + &text).collect();
        assert_eq!(lines[..2], ["  ok       loop", "  install  f2fs, luks: apt-get install cryptsetup-bin f2fs-tools"]);
        assert!(lines[2].starts_with("  missing  lvm; ") && lines.len() == 3, "{lines:?}");
        assert!(!shown(&diagnosis, false).contains("x; ") && shown(&diagnosis, true).contains("x; run the plan with"));
    }
}
