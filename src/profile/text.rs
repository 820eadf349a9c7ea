//! A profile in some ten lines: what the server asks of its storage, and where it waits.

use super::figures::{self, Figures};
use crate::record::profile::Profile;
use crate::units::{Bytes, significant};

/// Label, and parts in each of which a figure or setting is named; a part without its value is left out.
const LINES: &str = "\
server|PostgreSQL {server_version}|databases of {databases_bytes}|read for {seconds} s
commits|{any_commits_per_second} a second|{commits_per_second} transaction ids|{rollbacks_per_second} rollbacks
WAL|{wal_bytes_per_second} a second|{wal_bytes_per_day} a day|{wal_bytes_per_commit} a writing commit|{full_page_bytes_share} full pages
by commit|{commit_bytes_p50} of WAL without full pages (p50)|{commit_bytes_p90} (p90)|{commit_bytes_p99} (p99)
by commit|{commit_gap_us_p50} us to the next (p50)|{subtransactions_share} with sub-transactions|{prepared_share} prepared
checkpoints|one for {checkpoint_distance_bytes} of WAL|timeout {checkpoint_timeout}|max_wal_size {max_wal_size}
pages|{full_pages_per_commit} in the WAL of a writing commit|{pages_dirtied_per_commit} dirtied|{pages_written_per_commit} written
reads|{read_misses_per_any_commit} pages not in shared_buffers by any commit|{hit_share} are there|temporary files {temp_bytes_per_second} a second
rows|{rows_inserted_per_commit} inserted a writing commit|{rows_updated_per_commit} updated|{rows_deleted_per_commit} deleted
sessions|{sessions_mean} connected|{clients_active_mean} active, on average
settings|shared_buffers {shared_buffers}|synchronous_commit {synchronous_commit}|fsync {fsync}|wal_level {wal_level}
settings|full_page_writes {full_page_writes}|wal_compression {wal_compression}|wal_sync_method {wal_sync_method}";

/// The lines, each with its label.
pub fn summary(profile: &Profile) -> String {
    let of = figures::of(profile);
    let lines = LINES.lines().map(|line| {
        let (label, parts) = line.split_once('|').unwrap_or((line, ""));
        let parts: Vec<String> = parts.split('|').filter_map(|part| filled(part, profile, &of)).collect();
        row(label, &parts.join(", "))
    });
    let waits = figures::waits(profile).into_iter().take(5);
    let waits: Vec<String> = waits.map(|(wait, share)| format!("{wait} {:.0} %", share * 100.0)).collect();
    let unseen = profile.unseen.iter().map(|(what, why)| row("not seen", &format!("{what}: {why}")));
    lines.chain([row("active time", &waits.join(", "))]).chain(unseen).collect()
}

fn row(label: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{label:<12}{text}\n") }
}

/// A part with the value of what it names.
fn filled(part: &str, profile: &Profile, of: &Figures) -> Option<String> {
    let name = part.split(['{', '}']).nth(1)?;
    let value = match of.get(name) {
        Some(value) if name.ends_with("_share") => format!("{} %", significant(value * 100.0)),
        Some(value) if name.contains("bytes") => Bytes(*value as u64).to_string(),
        Some(value) => significant(*value),
        None => profile.settings.get(name)?.clone(),
    };
    Some(part.replace(&format!("{{{name}}}"), &value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::profile::Numbers;

    #[test]
    fn a_summary_leaves_out_what_was_not_seen() {
        let mut profile = Profile { samples: 100, ..Profile::default() };
        profile.settings.insert("fsync".to_owned(), "on".to_owned());
        profile.sessions = Numbers::from([("active".to_owned(), 30), ("active IO WALSync".to_owned(), 90)]);
        profile.counts.insert("moment".to_owned(), Numbers::from([("microseconds".to_owned(), 100_000_000)]));
        profile.unseen.insert("sizes".to_owned(), "the role may not see it".to_owned());
        let expected = "server      read for 100 s\nsessions    1.2 connected, 1.2 active, on average\n\
                        settings    fsync on\nactive time IO WALSync 75 %, running 25 %\n\
                        not seen    sizes: the role may not see it\n";
        assert_eq!(summary(&profile), expected);
    }

    #[test]
    fn every_figure_in_the_lines_is_one_or_a_setting() {
        let script = include_str!("script.sql");
        let names = LINES.split('{').skip(1).map(|rest| rest.split('}').next().unwrap());
        for name in names.filter(|name| !figures::is_known(name)) {
            assert!(script.contains(&format!("'{name}'")), "{name}");
        }
    }
}
