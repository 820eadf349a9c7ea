//! `pgstrata cut --guest`: the same program in a guest, and the transfer of its results.

use super::plan::guests;
use super::{guest_run, out};
use crate::cut;
use crate::error::{Error, Result};
use crate::guest::build;
use crate::guest::cache::Cache;
use crate::guest::channel::OutputStream;
use crate::guest::disks::PlanDisks;
use crate::guest::outlet::{INSIDE, Outlet};
use crate::guest::suite::Suite;
use crate::guest::vm::Vm;
use crate::host::signals::Interrupt;
use crate::host::{Host, folders, paths};
use crate::record::case::CaseSpec;
use crate::record::verdict::VerdictRecord;
use crate::run::session::give_to_person;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Prefix of the names of evidence folders.
const EVIDENCE: &str = "cut-";

/// A line printed by the program in the guest.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutMessage {
    /// Progress.
    Progress(String),
    /// All that was found.
    Results(Vec<VerdictRecord>),
}

/// Cuts a plan's cases in a guest, with these flags for the program inside; evidence is copied to the folder of
/// results. Returns the exit code and the results, with paths of this machine: `None` if it ended before its first
/// verdict.
///
/// # Errors
/// If the guest is not built, does not boot, or dies before the program inside ends.
pub fn run(
    host: &Host,
    (path, cases): (&Path, &[CaseSpec]),
    suite: &Suite,
    flags: &[String],
    results: &Path,
    show: &dyn Fn(&str),
) -> Result<(u8, Option<Vec<VerdictRecord>>)> {
    let interrupt = Interrupt::listen()?;
    let cache = Cache::of_user()?;
    let image = build::require(&cache, suite)?;
    let given = guests::plan(path)?;
    let outlet = Outlet::make(host, results)?;
    let name = given.0.to_string_lossy().into_owned();
    let argv = ["pgstrata", "cut", &name, "--inside", "--results", INSIDE].into_iter();
    let argv = argv.chain(flags.iter().map(String::as_str)).map(str::to_owned).collect();
    let mut shape = guest_run::shape(&cache, &outlet, &PlanDisks::default(), cases)?;
    shape.files.push(given);
    show(&format!("booting the guest {suite}"));
    let mut heard = Heard::default();
    let ended = Vm::boot(host, &cache, &image, &shape, &interrupt).and_then(|mut vm| {
        let ended = vm.run(&guest_run::order(argv), None, &interrupt, &mut |stream, bytes| {
            match stream {
                OutputStream::Output => heard.take(bytes, show),
                OutputStream::Errors => heard.errors.extend_from_slice(bytes),
            }
            Ok(())
        })?;
        vm.power_off();
        Ok(ended)
    });
    show("");
    // A guest that died may have left evidence too.
    let taken = outlet.take_folders(host, EVIDENCE)?;
    for folder in &taken {
        keep_whole(folder)?;
        give_to_person(folder)?;
    }
    // Remove the folder if nothing was copied.
    folders::remove_empty(results).ok();
    let ended = ended.map_err(|e| e.while_doing(format!("cut the plan in the guest {suite}")))?;
    out::to_stderr_bytes(&heard.errors);
    let code = guest_run::exit_code(ended)?;
    let mut found = heard.results.transpose()?;
    for evidence in found.iter_mut().flatten().filter_map(|result| result.evidence.as_mut()) {
        *evidence = outside(Path::new(&*evidence), results).display().to_string();
    }
    Ok((code, found))
}

/// Keeps the evidence of each case whose files are complete; the file that describes the others is written last.
fn keep_whole(folder: &Path) -> Result<()> {
    for case in folders::list(folder)? {
        if !paths::exists(&case.join(cut::EVIDENCE_FILE)) {
            folders::remove_all(&case)?;
        }
    }
    // It stays if it contains a case.
    folders::remove_empty(folder).ok();
    Ok(())
}

/// Path on this machine of a file copied from the guest.
fn outside(path: &Path, results: &Path) -> PathBuf {
    path.strip_prefix(INSIDE).map_or_else(|_| path.to_owned(), |inside| results.join(inside))
}

/// Output of the program inside so far.
#[derive(Default)]
struct Heard {
    /// Incomplete last line.
    line: Vec<u8>,
    errors: Vec<u8>,
    results: Option<Result<Vec<VerdictRecord>>>,
}

impl Heard {
    fn take(&mut self, bytes: &[u8], show: &dyn Fn(&str)) {
        for line in guest_run::whole_lines(&mut self.line, bytes) {
            match serde_json::from_slice(&line) {
                Ok(CutMessage::Progress(text)) => show(&out::harmless(&text)),
                Ok(CutMessage::Results(results)) => self.results = Some(Ok(results)),
                Err(e) => {
                    let doing = "read what the program in the guest found";
                    self.results = Some(Err(Error::tool(e.to_string()).while_doing(doing)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cut::Verdict;

    fn result() -> VerdictRecord {
        VerdictRecord {
            cases: vec!["ext4".to_owned()],
            verdict: Verdict::Loses { commits: 3, us: 20 },
            commits: 10,
            evidence: Some(format!("{INSIDE}/cut-1/ext4")),
            ..VerdictRecord::default()
        }
    }

    #[test]
    fn evidence_that_was_cut_off_is_not_kept() {
        let results = tempfile::tempdir().unwrap();
        let folder = results.path().join("cut-1");
        for case in ["done", "under-way"] {
            std::fs::create_dir_all(folder.join(case)).unwrap();
            std::fs::write(folder.join(case).join("log"), "x").unwrap();
        }
        std::fs::write(folder.join("done").join(cut::EVIDENCE_FILE), "{}").unwrap();
        keep_whole(&folder).unwrap();
        assert_eq!(folders::list(&folder).unwrap(), [folder.join("done")]);
        std::fs::remove_file(folder.join("done").join(cut::EVIDENCE_FILE)).unwrap();
        keep_whole(&folder).unwrap();
        assert!(!folder.exists());
    }

    #[test]
    fn guest_results_are_read_unchanged_in_pieces_of_any_size() {
        let lines = [CutMessage::Progress("recording".to_owned()), CutMessage::Results(vec![result()])];
        let (mut heard, messages) = (Heard::default(), std::cell::RefCell::new(Vec::new()));
        for line in lines {
            for byte in format!("{}\n", out::json_line(&line).unwrap()).as_bytes() {
                heard.take(&[*byte], &|text| messages.borrow_mut().push(text.to_owned()));
            }
        }
        assert_eq!(*messages.borrow(), ["recording"]);
        let found = &heard.results.take().unwrap().unwrap()[0];
        assert_eq!(*found, result());
        let evidence = Path::new(found.evidence.as_deref().unwrap());
        assert_eq!(outside(evidence, Path::new("/r")), Path::new("/r/cut-1/ext4"));
        heard.take(b"no JSON\n", &|_| ());
        assert!(heard.results.unwrap().is_err());
    }
}
