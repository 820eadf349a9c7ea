//! Figures of a profile, computed anew whenever they are shown. One that the profile cannot tell is absent.

use crate::record::profile::Profile;
use std::collections::BTreeMap;

/// Figures by name, which ends with what they are of. *A commit* is one that wrote: a transaction that got an id, as
/// sub-transactions do; *any commit* is each of them.
pub type Figures = BTreeMap<&'static str, f64>;

/// Name, what is counted, and by what it is divided.
const RATIOS: [(&str, &str, &str); 27] = [
    ("seconds", "seconds", ""),
    ("databases_bytes", "sizes.databases_bytes", ""),
    ("any_commits_per_second", "any commits", "seconds"),
    ("rollbacks_per_second", "databases.xact_rollback", "seconds"),
    ("commits_per_second", "moment.transaction_ids", "seconds"),
    ("wal_bytes_per_second", "WAL bytes", "seconds"),
    ("wal_bytes_per_day", "WAL bytes", "days"),
    ("wal_bytes_per_commit", "WAL bytes", "moment.transaction_ids"),
    ("full_pages_per_commit", "wal.wal_fpi", "moment.transaction_ids"),
    ("full_page_bytes_share", "full-page bytes", "bytes of that WAL"),
    ("checkpoint_distance_bytes", "checkpoints.distance_bytes", "checkpoints.completed"),
    ("pages_dirtied_per_commit", "statements.shared_blks_dirtied", "moment.transaction_ids"),
    ("pages_written_per_commit", "pages written", "moment.transaction_ids"),
    ("read_misses_per_any_commit", "databases.blks_read", "any commits"),
    ("hit_share", "databases.blks_hit", "blocks"),
    ("rows_inserted_per_commit", "databases.tup_inserted", "moment.transaction_ids"),
    ("rows_updated_per_commit", "databases.tup_updated", "moment.transaction_ids"),
    ("rows_deleted_per_commit", "databases.tup_deleted", "moment.transaction_ids"),
    ("temp_bytes_per_second", "databases.temp_bytes", "seconds"),
    ("sessions_mean", "sessions", "samples"),
    ("clients_active_mean", "active", "samples"),
    ("commit_bytes_p50", "/commit_bytes/p50", ""),
    ("commit_bytes_p90", "/commit_bytes/p90", ""),
    ("commit_bytes_p99", "/commit_bytes/p99", ""),
    ("commit_gap_us_p50", "/gap_microseconds/p50", ""),
    ("subtransactions_share", "/with_subtransactions", "/commits"),
    ("prepared_share", "/prepared", "/commits"),
];

/// All figures.
pub fn of(profile: &Profile) -> Figures {
    let ratios = RATIOS.iter().filter_map(|(name, counted, by)| {
        let by = if by.is_empty() { 1.0 } else { quantity(profile, by).filter(|by| *by > 0.0)? };
        Some((*name, quantity(profile, counted)? / by))
    });
    ratios.collect()
}

/// A counter by the name of its view and its own, a field of `wal` by its path, or something that versions of
/// PostgreSQL count in different places.
fn quantity(profile: &Profile, name: &str) -> Option<f64> {
    let count = |name: &str| quantity(profile, name);
    match name {
        "seconds" => Some(count("moment.microseconds")? / 1e6),
        "days" => Some(count("seconds")? / 86_400.0),
        // The script's own, two a sample, are none of the server's load.
        "any commits" => Some((count("databases.xact_commit")? - 2.0 * profile.samples as f64).max(0.0)),
        "WAL bytes" => count("wal.wal_bytes").or_else(|| count("moment.wal_position_bytes")),
        // Without the WAL itself, as if each image had a whole page.
        "full-page bytes" => count("/full_page_bytes")
            .or_else(|| Some((count("wal.wal_fpi")? * block_bytes(profile)).min(count("WAL bytes")?))),
        "bytes of that WAL" => count("/bytes").or_else(|| count("WAL bytes")),
        "pages written" => count("io.write_bytes").map(|bytes| bytes / block_bytes(profile)).or_else(|| {
            let parts = ["bgwriter.buffers_checkpoint", "bgwriter.buffers_clean", "bgwriter.buffers_backend"];
            parts.into_iter().map(count).sum()
        }),
        "blocks" => Some(count("databases.blks_hit")? + count("databases.blks_read")?),
        "samples" => Some(profile.samples as f64),
        "sessions" | "active" if profile.unseen.contains_key("sessions") => None,
        "sessions" => Some(profile.sessions.values().map(|sessions| *sessions as f64).sum()),
        "active" => Some(active(profile).fold(0.0, |all, (_, sessions)| all + sessions)),
        _ if name.starts_with('/') => serde_json::to_value(profile.wal.as_ref()?).ok()?.pointer(name)?.as_f64(),
        _ => {
            let (view, name) = name.split_once('.')?;
            let view = profile.counts.get(view).or_else(|| profile.state.get(view))?;
            Some(*view.get(name)? as f64)
        }
    }
}

/// Bytes of a page.
fn block_bytes(profile: &Profile) -> f64 {
    profile.settings.get("block_size").and_then(|size| size.parse().ok()).unwrap_or(8192.0)
}

/// Active sessions by what they wait for.
fn active(profile: &Profile) -> impl Iterator<Item = (&str, f64)> {
    profile.sessions.iter().filter_map(|(what, sessions)| Some((what.strip_prefix("active")?, *sessions as f64)))
}

/// Shares of the active time by what it waits for, the largest first; `running` where no wait was reported.
pub fn waits(profile: &Profile) -> Vec<(&str, f64)> {
    if profile.unseen.contains_key("sessions") {
        return Vec::new();
    }
    let all: f64 = active(profile).map(|(_, sessions)| sessions).sum();
    let named =
        active(profile).map(|(wait, sessions)| (if wait.is_empty() { "running" } else { wait.trim() }, sessions));
    let mut waits: Vec<(&str, f64)> = named.map(|(wait, sessions)| (wait, sessions / all)).collect();
    waits.sort_by(|a, b| b.1.total_cmp(&a.1));
    waits
}

/// Whether there is a figure of this name.
#[cfg(test)]
pub fn is_known(name: &str) -> bool {
    RATIOS.iter().any(|(known, ..)| *known == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::profile::Numbers;

    #[test]
    fn versions_that_count_elsewhere_give_the_same_figures() {
        let numbers =
            |pairs: &[(&str, i64)]| pairs.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect::<Numbers>();
        let mut profile = Profile::default();
        let moment = [("microseconds", 10_000_000), ("transaction_ids", 10), ("wal_position_bytes", 5000)];
        profile.counts.insert("moment".to_owned(), numbers(&moment));
        let bgwriter = [("buffers_checkpoint", 6), ("buffers_clean", 3), ("buffers_backend", 1)];
        profile.counts.insert("bgwriter".to_owned(), numbers(&bgwriter));
        let figures = of(&profile);
        assert_eq!((figures["wal_bytes_per_commit"], figures["pages_written_per_commit"]), (500.0, 1.0));
        assert!(!figures.contains_key("full_page_bytes_share"));
        profile.counts.insert("io".to_owned(), numbers(&[("write_bytes", 20 * 8192)]));
        profile.counts.insert("wal".to_owned(), numbers(&[("wal_bytes", 40_960), ("wal_fpi", 1)]));
        let figures = of(&profile);
        assert_eq!((figures["wal_bytes_per_commit"], figures["pages_written_per_commit"]), (4096.0, 2.0));
        assert_eq!(figures["full_page_bytes_share"], 0.2);
    }
}
