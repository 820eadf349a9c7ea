//! `pgstrata import`: imports measurements by other tools into a folder of results.

mod files;
mod shown;

use self::files::Given;
use super::out;
use crate::analyse::shelf::findings::RuleRemark;
use crate::analyse::shelf::rules;
use crate::error::{Context, EXIT_INCOMPLETE, Error, Result};
use crate::foreign::{self, FileReading, manifest};
use crate::host::time::{rfc3339, wall_us};
use crate::record::imported::{self, ImportRecord, Origin};
use crate::run::session;
use crate::store::import::{ImportStaging, clear_dead, elsewhere};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Import output of other tools, measured on any machine
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata import pg_test_fsync.txt                     show what was read from which lines, and store it
  pgstrata import pgbench-zfs.txt --set stack.filesystem=zfs
  pgstrata import measured/ --name old-server           every file in a folder, or what its
                                                        publication.toml names
  ssh db1 iostat -x 1 60 | pgstrata import - --dry-run  standard input; nothing is stored
  pgstrata import pgbench_log.4711.zst --json | jq .record.cases

Formats are recognized by content: pg_test_fsync (English), pgbench with its logs (-l), iostat,
vmstat, zpool iostat, fio (JSON), zfs get and mount, also pasted from web pages and mails, in UTF-8,
UTF-16 or Latin-1, compressed with gzip, xz or zstd. Wrapped or truncated lines are listed as not
read.

Each file is a separate case, named after the file. A publication.toml in the folder says which
files belong together, what varied and which are repetitions; --manifest-example prints one.

--set KEY=VALUE adds a fact about all files. Any key is kept and shown; these decide what
`pgstrata compare` compares, and how it judges a rate:
  stack.filesystem (of the data), wal_stack.filesystem, stack.mount_options, zfs.sync, zfs.dataset
  stack.medium=memory|disk, stack.media=rotating   where the files were
  data.fits=shared_buffers|memory|neither          whether reads of pgbench reached the storage
  postgresql.version, postgresql.fsync, postgresql.synchronous_commit
  workload.script, workload.scale, workload.clients, workload.rate

Exit code: 0 all outputs found were read in full (other lines that look like figures are listed),
1 some lines, or files of a folder, could not be read, 2 a file is not the output of a known tool
or not in a form that is read, or publication.toml is wrong (nothing is stored), 5 the folder cannot
be written.")]
pub struct Args {
    /// Files, folders, or - for standard input
    #[arg(required_unless_present = "manifest_example", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print a template publication.toml and exit
    #[arg(long, exclusive = true)]
    manifest_example: bool,
    /// Results folder; the folder of the import is created in it
    #[arg(short, long, value_name = "RESULTS", default_value = "results")]
    output: PathBuf,
    /// A known fact about what was measured: stack.filesystem=zfs, origin.machine='8 cores, 64 GiB'
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// Name of the import, part of its folder name [default: from the first file's name]
    #[arg(long)]
    name: Option<String>,
    /// Show what would be imported; store nothing
    #[arg(long)]
    dry_run: bool,
    /// Show every number with its source line
    #[arg(long)]
    rows: bool,
    /// Print the record as JSON instead
    #[arg(long, conflicts_with = "rows")]
    json: bool,
}

/// A key of letters, digits, points and dashes, and the value after the first equals sign.
fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE: stack.filesystem=zfs")?;
    let is_plain = key.split('.').all(|part| {
        let mut bytes = part.bytes();
        !part.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    });
    match key.contains('.') && is_plain {
        true if value.trim().is_empty() => Err(format!("{key} has no value")),
        true => Ok((key.to_owned(), value.trim().to_owned())),
        false => Err(format!("`{key}` has no dot; keys look like stack.filesystem or origin.machine")),
    }
}

/// Output of `--json`.
#[derive(Serialize)]
struct Printed<'a> {
    /// Folder of the import.
    folder: Option<PathBuf>,
    /// Files in folders that belong to no known tool, each with the reason.
    passed_over: &'a [(String, String)],
    /// Remarks on the figures: inconsistencies and misleading values. Not stored, but computed on each request.
    remarks: &'a [RuleRemark],
    /// The imported record.
    record: &'a ImportRecord,
}

/// Reads, shows, stores.
///
/// # Errors
/// See the exit codes in the help text.
pub fn run(args: &Args) -> Result<u8> {
    if args.manifest_example {
        out::bytes(manifest::EXAMPLE.as_bytes())?;
        return Ok(0);
    }
    // Reports a wrong setting before anything is read.
    apply_settings(&args.set, &mut ImportRecord::default())?;
    super::run::refuse_folders(&args.files)?;
    let (given, manifest) = files::sorted(files::given(&args.files)?, &args.files)?;
    let started = rfc3339(wall_us());
    let results = std::path::absolute(&args.output).or_user(|| "find the folder for results".to_owned())?;
    let name = match &args.name {
        Some(name) => plain_name(name)?,
        None => args.files.first().map(|first| files::name_of(&first.to_string_lossy())).unwrap_or_default(),
    };
    if !args.dry_run {
        clear(&results);
    }
    let staging = (!args.dry_run).then(|| ImportStaging::begin(&results, &started, &name)).transpose()?;
    let (readings, passed_over) = read_all(args, &given, staging.as_ref())?;
    let complete = passed_over.is_empty() && readings.iter().all(|reading| shown::unread(reading) == 0);
    let mut record = match manifest {
        Some(manifest) => {
            let names = given.iter().map(|given| given.in_folder.clone());
            manifest.record(&names.zip(readings).collect())
        }
        None => ImportRecord { format: imported::FORMAT, cases: foreign::by_file(readings), ..ImportRecord::default() },
    };
    apply_settings(&args.set, &mut record)?;
    env!("CARGO_PKG_VERSION").clone_into(&mut record.tool_version);
    record.imported = started;
    record.unknown.extend(foreign::unknown(&record));
    let folder = staging.map(|staging| staging.commit(&record)).transpose()?;
    folder.as_deref().map_or(Ok(()), session::give_to_person)?;
    let remarks = rules::remarks(&record);
    match args.json {
        true => out::json(&Printed { folder, passed_over: &passed_over, remarks: &remarks, record: &record })?,
        false => {
            shown::cases(&record)?;
            shown::end(&record, &remarks, folder.as_deref())?;
        }
    }
    Ok(if complete { 0 } else { EXIT_INCOMPLETE })
}

/// Removes the remains of killed imports, and reports it.
fn clear(results: &Path) {
    for (path, removed) in clear_dead(results) {
        let path = out::harmless(&path.display().to_string());
        match removed {
            Ok(()) => out::remark(&format!("removed leftovers of a killed import: {path}")),
            Err(error) => out::remark(&format!("leftovers of a killed import cannot be removed: {path}: {error}")),
        }
    }
}

/// Facts that comparisons and rules use, separated by blanks.
const KEYS: &str = "data.fits data.place mount.options postgresql.fsync postgresql.synchronous_commit postgresql.version \
    stack.controller stack.dataset stack.device stack.devices stack.filesystem stack.media stack.medium \
    stack.mount stack.mount_options stack.pool wal_stack.filesystem workload.clients workload.rate \
    workload.scale workload.script zfs.dataset zfs.logbias zfs.recordsize zfs.sync zpool.pool";

/// Values of facts that have only these, separated by blanks.
const VALUES: [(&str, &str); 4] = [
    ("data.fits", "shared_buffers memory neither ram yes disk no"),
    ("data.place", "shared_buffers memory neither ram yes disk no"),
    ("stack.medium", "memory disk ram device"),
    ("zfs.sync", "standard always disabled"),
];

/// The fact that a key probably misspells. Any other key is kept and shown, but a typo in one of these would have no
/// effect and go unnoticed.
fn misspelt(key: &str) -> Option<&'static str> {
    const SLIPS: usize = 2;
    let distances = KEYS.split_whitespace().map(|known| (strsim::damerau_levenshtein(key, known), known));
    let (slips, known) = distances.min_by_key(|(slips, _)| *slips)?;
    (1..=SLIPS).contains(&slips).then_some(known)
}

/// Enters the values of `--set` into a record: facts of every case, and `origin.*`. They take precedence over a
/// manifest.
fn apply_settings(settings: &[(String, String)], record: &mut ImportRecord) -> Result<()> {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (key, value) in settings {
        if !seen.insert(key) {
            return Err(Error::user(format!("{key} is set twice")).hint("set each key once"));
        }
        match key.strip_prefix("origin.") {
            Some(part) => set_origin(&mut record.origin, part, value)?,
            None => {
                if let Some(known) = misspelt(key) {
                    return Err(Error::user(format!("unknown fact {key}: nothing uses it"))
                        .hint(format!("did you mean {known}?")));
                }
                let words = VALUES.iter().find(|(known, _)| known == key).map(|(_, words)| words);
                let value = if words.is_some() { &value.trim().to_lowercase() } else { value };
                if let Some(words) = words.filter(|words| !words.split(' ').any(|word| word == value)) {
                    return Err(Error::user(format!("{key}={value}: nothing uses that value"))
                        .hint(format!("it is one of {}", words.replace(' ', ", "))));
                }
                for case in &mut record.cases {
                    case.facts.insert(key.clone(), value.clone());
                }
            }
        }
    }
    Ok(())
}

/// Sets a field of the origin by its name in `import.json`.
fn set_origin(origin: &mut Origin, part: &str, value: &str) -> Result<()> {
    let mut parts = serde_json::to_value(&*origin).or_store(|| "write an origin".to_owned())?;
    parts[part] = value.into();
    *origin = serde_json::from_value(parts)
        .map_err(|e| Error::user(format!("there is no origin.{part}")).hint(format!("{e}")))?;
    Ok(())
}

/// A name suitable as part of a folder's name.
fn plain_name(name: &str) -> Result<String> {
    let mut bytes = name.bytes();
    let is_plain = bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    if name.is_empty() || name.len() > 100 || !is_plain {
        return Err(Error::user(format!("`{name}` cannot be part of a folder's name"))
            .hint("use up to 100 letters, digits, dots and dashes"));
    }
    Ok(name.to_owned())
}

/// Skipped files of folders, each with the reason.
type PassedOver = Vec<(String, String)>;

/// Reads every file and shows what was parsed. A named file that cannot be read is an error; one found in a folder is
/// skipped, unless there is no other.
fn read_all(args: &Args, given: &[Given], staging: Option<&ImportStaging>) -> Result<(Vec<FileReading>, PassedOver)> {
    let (mut readings, mut passed_over, mut first) = (Vec::new(), PassedOver::new(), None);
    for file in given {
        match read_one(file, staging) {
            Ok(reading) => {
                if !args.json {
                    shown::file(&reading, args.rows)?;
                }
                readings.push(reading);
            }
            Err(error) if file.found && error.kind() == crate::error::Kind::User => {
                out::remark(&format!("passed over: {}", out::harmless(&error.chain())));
                passed_over.push((file.name.clone(), error.chain()));
                first.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    match (readings.is_empty(), first) {
        (true, Some(error)) => Err(error),
        _ => Ok((readings, passed_over)),
    }
}

/// Reads one file, and keeps an unmodified copy if it can be read.
fn read_one(given: &Given, staging: Option<&ImportStaging>) -> Result<FileReading> {
    let mut reader = given.open()?;
    let Some(staging) = staging else { return foreign::read(&given.name, &mut reader) };
    let (copy, raw) = staging.raw(&given.name)?;
    let mut copying = Copying { reader, copy, failed: None };
    let reading = foreign::read(&given.name, &mut copying);
    if let Some(error) = copying.failed {
        return Err(error).or_store(|| format!("copy {}", given.name)).map_err(elsewhere);
    }
    match reading {
        Ok(mut reading) => {
            reading.file.raw = Some(raw);
            Ok(reading)
        }
        Err(error) => staging.discard(&raw).and(Err(error)),
    }
}

/// Reader that copies its input.
struct Copying {
    reader: Box<dyn Read>,
    copy: File,
    failed: Option<std::io::Error>,
}

impl Read for Copying {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = self.reader.read(into)?;
        self.copy.write_all(&into[..length]).map_err(|error| {
            // A full disk is not the fault of the input file.
            let kind = error.kind();
            self.failed = Some(error);
            std::io::Error::from(kind)
        })?;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::imported::ImportedCase;

    #[test]
    fn settings_are_keys_with_a_point_and_a_value() {
        assert_eq!(
            setting("zfs.sync = disabled").err().as_deref(),
            Some("`zfs.sync ` has no dot; keys look like stack.filesystem or origin.machine")
        );
        assert_eq!(setting("a.b=c=d"), Ok(("a.b".to_owned(), "c=d".to_owned())));
        for bad in ["a.b", "=x", "ab=x", "a..b=x", "a.=x", "a.b=", "a.b= "] {
            assert!(setting(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_origin_is_separate_from_facts_and_refuses_unknown_parts() {
        let set = |key: &str| vec![(key.to_owned(), "x".to_owned())];
        let mut record = ImportRecord { cases: vec![ImportedCase::default()], ..ImportRecord::default() };
        apply_settings(&[set("origin.machine"), set("stack.device")].concat(), &mut record).unwrap();
        assert_eq!((record.origin.machine.as_deref(), record.cases[0].facts.len()), (Some("x"), 1));
        assert!(apply_settings(&set("origin.colour"), &mut record).is_err());
        for key in ["origin.machine", "stack.device"] {
            let error = apply_settings(&[set(key), set(key)].concat(), &mut record).unwrap_err();
            assert_eq!(error.to_string(), format!("{key} is set twice"));
        }
    }

    #[test]
    fn a_fact_with_a_value_that_nothing_uses_is_refused() {
        let set = |value: &str| {
            apply_settings(&[("stack.medium".to_owned(), value.to_owned())], &mut ImportRecord::default())
        };
        let error = set("tmpfs").unwrap_err();
        assert_eq!(error.to_string(), "stack.medium=tmpfs: nothing uses that value");
        assert_eq!(error.hint_text(), Some("it is one of memory, disk, ram, device"));
        assert!(set("Memory").is_ok());
    }

    #[test]
    fn names_of_imports_are_plain() {
        assert_eq!(plain_name("old-server.2").unwrap(), "old-server.2");
        for bad in ["", "a/b", "a b", "é", &"x".repeat(101)] {
            assert!(plain_name(bad).is_err(), "{bad}");
        }
    }
}
