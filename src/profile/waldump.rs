//! Runs `pg_waldump` over the segments of a folder.

use super::wal::DumpReader;
use crate::cluster::install;
use crate::error::{Context, Error, Result};
use crate::host::command::{Command, last_lines};
use crate::host::{Host, folders};
use crate::record::profile::{Profile, ProfiledWal};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Reads the segments of a folder in order, each by itself, by the program of the server's version: a record that goes
/// on in the next segment is passed over, about one in a hundred thousand. Also returns why segments could not be read
/// to their end; in the folder of a live server, its WAL ends in one, and others wait for their use.
///
/// # Errors
/// If that version is not installed, there are no segments, or none has a commit.
pub fn read(host: &Host, profile: &Profile, folder: &Path) -> Result<(ProfiledWal, Vec<String>)> {
    let version = profile.settings.get("server_version").map_or("", String::as_str);
    let major = version.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    let hint = format!("install the server's programs of version {major} here: pg_waldump reads no other's WAL");
    let program = install::find(host, major).map_err(|e| e.hint(hint))?.bin.join("pg_waldump");
    let (mut reader, mut stopped) = (DumpReader::new()?, Vec::new());
    for segment in folders::list(folder)?.iter().filter(|path| is_segment(path)) {
        let command = Command::new(&program).arg("-p").arg(folder).arg(segment.file_name().unwrap_or_default());
        let mut child = host.spawn_piped(&command.env("TZ", "UTC").dying_with_us())?;
        drop(child.stdin.take());
        for line in child.stdout.take().into_iter().flat_map(|stdout| BufReader::new(stdout).split(b'\n')) {
            let line = line.or_host(|| "read from pg_waldump".to_owned())?;
            reader.add(&String::from_utf8_lossy(&line));
        }
        let mut said = Vec::new();
        let read = child.stderr.take().map_or(Ok(0), |mut stderr| stderr.read_to_end(&mut said));
        if read.and_then(|_| child.wait()).or_host(|| "wait for pg_waldump".to_owned())?.code() != Some(0) {
            stopped.push(last_lines(&String::from_utf8_lossy(&said), 1).trim().to_owned());
        }
    }
    let wal = reader.finish();
    if wal.commits == 0 {
        let why = stopped.first().map_or("no WAL segment with a commit", String::as_str);
        return Err(Error::user(format!("{}: {why}", folder.display()))
            .hint(format!("it must have unpacked segments of PostgreSQL {major}: names of 24 hexadecimal digits")));
    }
    Ok((wal, stopped))
}

fn is_segment(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.len() == 24 && name.iter().all(u8::is_ascii_hexdigit)
}
