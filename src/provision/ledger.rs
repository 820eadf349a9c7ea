//! The ledger: everything that a run makes on the machine, recorded before it is made.
//!
//! One file per run, `<ledger folder>/<run id>.jsonl`, append-only; each line is synced before the action. The first
//! line is `{"ledger": FORMAT}`; every other is `{"made": N, "thing": {...}}` or `{"undone": N}`. The holder of the
//! file's lock (flock) owns the run; `clean` takes only ledgers that nobody holds. A truncated last line was never
//! followed by its action and is ignored. Absent on purpose: how a thing is undone (see [`super::undo`]).

use crate::error::{Context, Error, Result};
use crate::host::files::{self, File, sync_folder};
use crate::host::paths::{self, Kind};
use crate::host::{Host, folders, threads};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Version of the line format. 1: the first.
pub const FORMAT: u32 = 1;

/// A thing that a run makes: enough to find it again, to verify that it is ours, and to undo it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thing {
    /// Component that can undo it: a layer's name, `folder`, `server`, `processes`.
    pub owner: String,
    /// Kind of thing: `image`, `loop`, `mount`, `folder`, ...
    pub kind: String,
    /// How to find and recognize it: `path`, `device`, `target`, ...
    pub marks: BTreeMap<String, String>,
}

impl Thing {
    /// A thing without marks.
    pub fn new(owner: impl Into<String>, kind: impl Into<String>) -> Thing {
        Thing { owner: owner.into(), kind: kind.into(), marks: BTreeMap::new() }
    }

    pub fn with(mut self, mark: &str, value: impl Into<String>) -> Thing {
        self.marks.insert(mark.to_owned(), value.into());
        self
    }

    /// Adds a path as a mark.
    ///
    /// # Errors
    /// When the path is not UTF-8: the ledger could not represent it.
    pub fn with_path(self, mark: &str, path: &Path) -> Result<Thing> {
        let text = path.to_str().ok_or_else(|| Error::user(format!("the path {} is not UTF-8", path.display())))?;
        Ok(self.with(mark, text))
    }

    /// The value of a mark.
    ///
    /// # Errors
    /// When the ledger lacks it.
    pub fn mark(&self, mark: &str) -> Result<&str> {
        self.marks.get(mark).map(String::as_str).ok_or_else(|| {
            Error::host(format!("the ledger's entry of {self} has no `{mark}`"))
                .hint("clean up with the version of pgstrata that created it")
        })
    }
}

impl std::fmt::Display for Thing {
    /// Formats kind, best identifying mark and owner: `the mount /run/pgstrata-1/x of ext4`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let finds = ["path", "target", "image", "device", "data"].iter().find_map(|mark| self.marks.get(*mark));
        let which = finds.or_else(|| self.marks.values().next()).map_or("", String::as_str);
        write!(f, "the {} {which} of {}", self.kind, self.owner)
    }
}

/// The ledger of one run, open and locked for as long as the value lives. Children do not inherit the lock (the file is
/// opened close-on-exec).
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    /// A panic of another thread cannot leave it inconsistent: memory follows the file, line by line.
    book: Mutex<Book>,
}

#[derive(Debug)]
struct Book {
    file: File,
    /// Length of the file's complete lines.
    bytes: u64,
    replayed: Replayed,
    /// Files that this process keeps open until they are undone, by entry.
    held: BTreeMap<u64, Arc<File>>,
    #[cfg(test)]
    dies: Option<Death>,
}

/// Where a test makes a run die: before or after the line of an entry is written; in both cases its action is skipped.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Death {
    Before(u64),
    After(u64),
}

/// State that the lines of a ledger add up to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Replayed {
    next: u64,
    open: BTreeMap<u64, Thing>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The run that made it.
    pub run_id: String,
    /// True if a live process owns it.
    pub held: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LedgerLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    ledger: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    made: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thing: Option<Thing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undone: Option<u64>,
}

/// The folder for the state of running runs: `$PGSTRATA_STATE`; else `/var/lib/pgstrata` for root and
/// `$XDG_STATE_HOME/pgstrata` or `~/.local/state/pgstrata` for others. Ledgers are in its subfolder `ledger`.
///
/// # Errors
/// When none of these is known, or `$PGSTRATA_STATE` is a relative path.
pub fn default_state() -> Result<PathBuf> {
    state_by(|name| std::env::var_os(name).map(PathBuf::from), crate::host::users::is_root())
}

fn state_by(variable: impl Fn(&str) -> Option<PathBuf>, is_root: bool) -> Result<PathBuf> {
    let given = |name| variable(name).is_some_and(|value| !value.as_os_str().is_empty());
    let variable = |name| variable(name).filter(|value| value.is_absolute());
    let state = match variable("PGSTRATA_STATE") {
        Some(state) => Some(state),
        None if given("PGSTRATA_STATE") => return Err(Error::user("PGSTRATA_STATE is not an absolute path")),
        None if is_root => Some(PathBuf::from("/var/lib/pgstrata")),
        None => variable("XDG_STATE_HOME")
            .or_else(|| variable("HOME").map(|home| home.join(".local/state")))
            .map(|state| state.join("pgstrata")),
    };
    state.ok_or_else(|| {
        Error::host("no folder for the ledger: neither HOME nor XDG_STATE_HOME is set")
            .hint("set PGSTRATA_STATE to a folder that you own")
    })
}

impl Ledger {
    /// Makes the ledger of a new run and locks it. It appears under its name complete and locked.
    ///
    /// # Errors
    /// When it already exists, or the folder cannot be written.
    pub fn create(folder: &Path, run_id: &str) -> Result<Ledger> {
        let path = file_of(folder, run_id)?;
        make_private(folder)?;
        let part = folder.join(format!(".{run_id}.{}.part", std::process::id()));
        let made = create_at(&part, &path);
        // Left over only if the steps above failed, or the link worked and the name is no longer needed.
        drop(files::remove(&part));
        let (file, bytes) = made?;
        sync_folder(folder)?;
        Ok(Ledger::of(path, file, bytes, Replayed::default()))
    }

    /// The ledger of a resumed run: locks the existing one, or makes one. The caller must undo everything it still
    /// lists before building anything else.
    ///
    /// # Errors
    /// When a live run holds it, or it cannot be read.
    pub fn open_for_resume(folder: &Path, run_id: &str) -> Result<Ledger> {
        if paths::exists(&file_of(folder, run_id)?) {
            Ledger::take(folder, run_id)
        } else {
            Ledger::create(folder, run_id)
        }
    }

    /// Takes over the ledger of a dead run.
    ///
    /// # Errors
    /// When there is none, a live run holds it, or it holds anything but complete ledger lines.
    pub fn take(folder: &Path, run_id: &str) -> Result<Ledger> {
        let path = file_of(folder, run_id)?;
        let gone = || Error::user(format!("no ledger for the run {run_id} in {}", folder.display()));
        let mut file = files::open_to_change(&path)?.ok_or_else(gone)?;
        let ours = believable(&file, &path)?.inode;
        if files::soon(|| files::lock(&file)).is_err() {
            return Err(Error::user(format!("the run {run_id} is still active"))
                .hint("interrupt it with Ctrl-C and wait until it has cleaned up"));
        }
        // Its owner may have finished and removed it between our open and our lock.
        if paths::look_at(&path).map(|now| now.inode).ok() != Some(ours) {
            return Err(gone());
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content).or_host(|| format!("read {}", path.display()))?;
        let (replayed, bytes) = replay(&content, &path)?;
        let cut = file.set_len(bytes).and_then(|()| file.seek(SeekFrom::End(0)));
        cut.or_host(|| format!("truncate the incomplete last line of {}", path.display()))?;
        Ok(Ledger::of(path, file, bytes, replayed))
    }

    fn of(path: PathBuf, file: File, bytes: u64, replayed: Replayed) -> Ledger {
        let book = Book {
            file,
            bytes,
            replayed,
            held: BTreeMap::new(),
            #[cfg(test)]
            dies: None,
        };
        Ledger { path, book: Mutex::new(book) }
    }

    /// Makes [`Ledger::enter`] fail at an entry.
    #[cfg(test)]
    pub(super) fn die(&self, death: Death) {
        threads::locked(&self.book).dies = Some(death);
    }

    pub fn run_id(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }

    #[cfg(test)]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Durably records a thing that is about to be made. Returns the entry's number.
    ///
    /// # Errors
    /// When the line cannot be written or synced: then the thing must not be made.
    pub fn enter(&self, thing: Thing) -> Result<u64> {
        let mut book = threads::locked(&self.book);
        let number = book.replayed.next;
        #[cfg(test)]
        if book.dies == Some(Death::Before(number)) {
            return Err(Error::bug("the test ends here"));
        }
        let line = LedgerLine { made: Some(number), thing: Some(thing.clone()), ..LedgerLine::default() };
        book.append(&line, true).map_err(|e| e.while_doing(format!("write {thing} to {}", self.path.display())))?;
        book.replayed.open.insert(number, thing);
        book.replayed.next += 1;
        #[cfg(test)]
        if book.dies == Some(Death::After(number)) {
            return Err(Error::bug("the test ends here"));
        }
        Ok(number)
    }

    /// Records that a thing is undone. Not synced: a lost line makes a later walk try again, which is harmless.
    ///
    /// # Errors
    /// When the line cannot be written.
    pub fn undone(&self, number: u64) -> Result<()> {
        let mut book = threads::locked(&self.book);
        if !book.replayed.open.contains_key(&number) {
            return Ok(());
        }
        let line = LedgerLine { undone: Some(number), ..LedgerLine::default() };
        book.append(&line, false).map_err(|e| e.while_doing(format!("write to {}", self.path.display())))?;
        book.replayed.open.remove(&number);
        book.held.remove(&number);
        Ok(())
    }

    pub(super) fn hold(&self, number: u64, file: File) {
        threads::locked(&self.book).held.insert(number, Arc::new(file));
    }

    /// The open file made at a path, if this process kept it, regardless of what the path leads to by now.
    pub(super) fn held(&self, path: &Path) -> Option<Arc<File>> {
        let book = threads::locked(&self.book);
        let mut held = book.held.iter();
        let found = held.find(|(number, _)| {
            book.replayed.open[*number].marks.get("path").is_some_and(|mark| path == Path::new(mark))
        });
        found.map(|(_, file)| Arc::clone(file))
    }

    /// The number of the next entry: later entries have this number or a higher one.
    pub fn mark(&self) -> u64 {
        threads::locked(&self.book).replayed.next
    }

    /// Things made and not undone, in the order in which they were made.
    pub fn open_things(&self) -> Vec<(u64, Thing)> {
        threads::locked(&self.book).replayed.open.iter().map(|(number, thing)| (*number, thing.clone())).collect()
    }

    /// Releases the run's lock. Removes the file if everything is undone, else leaves it for `clean`.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn close(self) -> Result<()> {
        // If somebody has removed the whole state folder, there is nothing to record any more.
        if !threads::locked(&self.book).replayed.open.is_empty() || !files::remove(&self.path)? {
            return Ok(());
        }
        sync_folder(self.path.parent().unwrap_or(Path::new("/")))
    }
}

impl Drop for Ledger {
    /// Closing alone would leave the lock with a child that another thread has forked and that has not yet executed its
    /// program.
    fn drop(&mut self) {
        // A failure cannot be handled, and the file is closed next.
        files::unlock(&threads::locked(&self.book).file).unwrap_or_default();
    }
}

impl Book {
    /// Appends a line completely or not at all, so that a full disk cannot leave half a line before the next one.
    fn append(&mut self, line: &LedgerLine, sync: bool) -> Result<()> {
        let text = text_of(line)?;
        let written = self.file.write_all(&text).and_then(|()| if sync { self.file.sync_data() } else { Ok(()) });
        if let Err(e) = written {
            let cut = self.file.set_len(self.bytes).and_then(|()| self.file.seek(SeekFrom::End(0)));
            cut.or_host(|| format!("remove a partially written line ({e})"))?;
            return Err(Error::host(e.to_string()));
        }
        self.bytes += text.len() as u64;
        Ok(())
    }
}

/// The ledgers in `folder`, by run id. Empty if the folder does not exist.
///
/// # Errors
/// When the folder cannot be read.
pub fn list(folder: &Path) -> Result<Vec<Listed>> {
    if paths::look_for(folder)?.is_none() {
        return Ok(Vec::new());
    }
    let mut listed = Vec::new();
    for path in folders::list(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(run_id) = name.strip_suffix(".jsonl").filter(|id| is_run_id(id)) else { continue };
        // It may have been finished since the folder was read.
        if let Some(file) = files::open_to_change(&path)? {
            listed.push(Listed { run_id: run_id.to_owned(), held: files::soon(|| files::lock_shared(&file)).is_err() });
        }
    }
    listed.sort_by(|a, b| a.run_id.cmp(&b.run_id));
    Ok(listed)
}

/// Removes files left by processes that were killed before their ledger had its name.
///
/// # Errors
/// When the folder cannot be read or a file cannot be removed.
pub fn sweep(host: &Host, folder: &Path) -> Result<()> {
    if paths::look_for(folder)?.is_none() {
        return Ok(());
    }
    for path in folders::list(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let part = name.strip_prefix('.').and_then(|name| name.strip_suffix(".part")?.rsplit_once('.'));
        if part.is_some_and(|(id, process)| is_run_id(id) && !host.exists(format!("/proc/{process}"))) {
            files::remove(&path)?;
        }
    }
    Ok(())
}

fn is_run_id(id: &str) -> bool {
    let is_plain = id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    is_plain && !id.is_empty() && !id.starts_with('.') && id.len() <= 200
}

fn file_of(folder: &Path, run_id: &str) -> Result<PathBuf> {
    if is_run_id(run_id) {
        Ok(folder.join(format!("{run_id}.jsonl")))
    } else {
        Err(Error::user(format!("`{run_id}` is not the id of a run"))
            .hint("ids consist of letters, digits, `-`, `_` and `.`"))
    }
}

/// Rejects a ledger that others could have written: `clean` acts on it as root.
fn believable(file: &File, path: &Path) -> Result<paths::PathFacts> {
    let found = paths::look_at_open(file, path)?;
    let ours = rustix::process::geteuid().as_raw();
    if found.kind == Kind::RegularFile && found.uid == ours && found.mode & 0o022 == 0 {
        return Ok(found);
    }
    Err(Error::host(format!("the ledger {} is owned or writable by another user", path.display()))
        .hint("inspect it; if it is genuine, chown it to yourself and chmod it to 600"))
}

/// Only its owner may write there: `clean` acts on the ledgers in it as root.
fn make_private(folder: &Path) -> Result<()> {
    if paths::is_folder(folder) {
        return Ok(());
    }
    let parent = folder.parent().unwrap_or(Path::new("/"));
    folders::make_passable(parent)?;
    folders::make_all(folder, 0o700)?;
    sync_folder(parent)
}

fn create_at(part: &Path, path: &Path) -> Result<(File, u64)> {
    let making = || format!("create the ledger {}", path.display());
    files::remove(part)?;
    let mut file = files::create_new(part, 0o600).or_host(making)?;
    files::lock(&file).or_host(making)?;
    let header = text_of(&LedgerLine { ledger: Some(FORMAT), ..LedgerLine::default() })?;
    file.write_all(&header).and_then(|()| file.sync_all()).or_host(making)?;
    files::add_name(part, path).or_host(making)?;
    Ok((file, header.len() as u64))
}

fn text_of(line: &LedgerLine) -> Result<Vec<u8>> {
    let mut text =
        serde_json::to_vec(line).map_err(|e| Error::bug(format!("a ledger line cannot be serialized: {e}")))?;
    text.push(b'\n');
    Ok(text)
}

/// Adds up the complete lines of a ledger; also returns their length in bytes.
fn replay(content: &[u8], path: &Path) -> Result<(Replayed, u64)> {
    let whole = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let mut replayed = Replayed::default();
    let lines = content[..whole].split_inclusive(|byte| *byte == b'\n');
    for (index, line) in lines.enumerate() {
        let wrong = |what: String| {
            Error::host(format!("{}, line {}: {what}", path.display(), index + 1))
                .hint("the ledger is damaged; clean up what it lists manually, then remove the file")
        };
        let line: LedgerLine = serde_json::from_slice(line).map_err(|e| wrong(format!("not a ledger line: {e}")))?;
        replayed.take_in(index, line).map_err(wrong)?;
    }
    Ok((replayed, whole as u64))
}

impl Replayed {
    fn take_in(&mut self, index: usize, line: LedgerLine) -> Result<(), String> {
        match (index, line) {
            (0, LedgerLine { ledger: Some(FORMAT), made: None, thing: None, undone: None }) => Ok(()),
            (0, LedgerLine { ledger: Some(format), .. }) => {
                Err(format!("ledger format {format} is not supported; this program reads {FORMAT}"))
            }
            (1.., LedgerLine { ledger: None, made: Some(number), thing: Some(thing), undone: None })
                if number >= self.next =>
            {
                self.open.insert(number, thing);
                self.next = number + 1;
                Ok(())
            }
            (1.., LedgerLine { ledger: None, made: None, thing: None, undone: Some(number) }) => self
                .open
                .remove(&number)
                .map(drop)
                .ok_or_else(|| format!("entry {number} is marked undone, but was not open")),
            _ => Err("invalid or out-of-order entry".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
