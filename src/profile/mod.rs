//! What a running server asks of its storage, as a DBA can ask it: a psql script, its output as a profile, figures of
//! that.
//!
//! The script is the only thing that touches the server, whoever runs it, and its output is read in one way. The room
//! only reads: it has no client of its own, assigns no transaction id, and keeps no name of anything in the server. The
//! WAL of a folder is read by the `pg_waldump` of the server's version. Absent on purpose: any other way to a server
//! that is not ours.

pub mod figures;
pub mod load;
pub mod reading;
pub mod text;
mod wal;
pub mod waldump;

use crate::error::{Context, Error, Result};
use crate::host::command::{Command, last_lines};
use crate::host::{Host, files};
use crate::record::profile::{FORMAT, Profile};
use std::ffi::OsStr;
use std::path::Path;

/// Parts in the order of the script: what it sets and asks once, a reading, a sample, the end.
const SCRIPT: &str = include_str!("script.sql");

/// Far more than a profile has.
const MOST_BYTES: u64 = 1 << 24;

/// The script: two readings, and between them a sample a second for `minutes`.
pub fn script(minutes: u32) -> String {
    let mut parts = SCRIPT.split("-- @\n");
    let [head, reading, sample, end] = [(); 4].map(|()| parts.next().unwrap_or_default());
    format!("{head}{reading}{}{reading}{end}", sample.repeat(60 * minutes as usize))
}

/// Runs the script by psql with a connection string and reads what it printed. `psql` has its working folder and
/// the caller's environment for libpq; it never asks for a password.
///
/// # Errors
/// If there is no psql, or it cannot connect or loses its connection, with its last words; as [`reading::read`].
pub fn run(host: &Host, psql: Command, dsn: &OsStr, minutes: u32) -> Result<Profile> {
    let psql = psql.args(["-X", "-w", "-f", "-", "-d"]).arg(dsn).env("PGAPPNAME", "pgstrata-profile");
    let (output, code) = host.run_to_end(&psql.stdin(script(minutes)).dying_with_us())?;
    match code {
        Some(0) => reading::read(&output.stdout).map_err(|e| match last_lines(&output.stderr, 4) {
            said if said.is_empty() => e,
            said => e.while_doing(format!("read the server; psql said:\n{said}\n")),
        }),
        // Not the command itself: a connection string may have a password.
        _ => Err(Error::tool(format!("psql failed; output:\n{}", last_lines(&output.stderr, 4)))
            .hint("try the same connection with psql; passwords belong into ~/.pgpass")),
    }
}

/// The file of a profile: what it says in short as a remark, then all of it.
///
/// # Errors
/// A bug: a profile that TOML cannot represent.
pub fn to_file(profile: &Profile) -> Result<String> {
    let toml = toml::to_string(profile).map_err(|e| Error::bug(e.to_string()).while_doing("write a profile"))?;
    let summary: String = text::summary(profile).lines().map(|line| format!("# {line}\n")).collect();
    Ok(format!("# Made by pgstrata profile: sums without names; how to read them: docs/profile.md\n{summary}\n{toml}"))
}

/// Reads such a file.
///
/// # Errors
/// If it cannot be read; as [`from_file`].
pub fn open(path: &Path) -> Result<Profile> {
    let bytes = files::read_given(path, MOST_BYTES, || format!("read {}", path.display()))?;
    from_file(&String::from_utf8_lossy(&bytes)).map_err(|e| e.while_doing(format!("open {}", path.display())))
}

/// Reads the text of such a file.
///
/// # Errors
/// If it is no profile, or one of a newer pgstrata, or counts what cannot be.
pub fn from_file(text: &str) -> Result<Profile> {
    #[derive(serde::Deserialize)]
    struct Version {
        version: u32,
    }
    let Version { version } = parsed(text)?;
    if version != FORMAT {
        return Err(Error::user(format!("it has version {version}, and this pgstrata reads {FORMAT}")));
    }
    let profile: Profile = parsed(text)?;
    let below = profile.counts.values().chain([&profile.sessions]).flatten().find(|(_, value)| **value < 0);
    match below {
        Some((name, value)) => Err(Error::user(format!("`{name}` is {value}: a counter cannot be negative"))),
        None => Ok(profile),
    }
}

fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    toml::from_str(text)
        .or_user(|| "read the profile".to_owned())
        .map_err(|e| e.hint("what the script printed becomes a profile by `pgstrata profile --from FILE`"))
}
