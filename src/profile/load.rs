//! A load of a profile's shape: tables, pgbench scripts with weights, and a plan of it.
//!
//! A writing transaction updates rows of `profile_pages`, each on a random page, appends rows to `profile_log` that fill
//! as many new pages, and adds a message to the WAL (`pg_logical_emit_message`) that makes up the rest of its bytes.
//! Between two checkpoints, `touches` page touches over `pages` pages write `pages * (1 - exp(-touches / pages))`
//! full-page images: the pages are as many as give the profile's. Where there are no images (`full_page_writes` off),
//! the pages that checkpoints write stand for them. Reads that miss shared_buffers are look-ups in
//! `profile_reads`, four times as large: at least three of four miss. Clients never share a row: locks are not
//! imitated, nor plans, nor the CPU time of queries.

use super::figures;
use crate::error::{Error, Result};
use crate::record::profile::{CommitSpread, Profile};
use crate::units::{Bytes, Micros};

/// Commits a second of the slowest server whose load can be made: a plan's least rate.
const LEAST_RATE: f64 = 0.001;

/// A full-page image of a page of `profile_pages`, without the hole, bytes.
const IMAGE: f64 = 7324.0;
/// WAL without images of a commit, of one update with the pruning before it, and of a message and an inserted row
/// beside their text, bytes.
const COMMIT: f64 = 34.0;
const UPDATE: f64 = 130.0;
const MESSAGE: f64 = 51.0;
const INSERT: f64 = 59.0;
/// Longest row that is inserted, bytes of WAL, and what such rows fill of a page.
const MOST_ROW: f64 = 1000.0;
const PAGE: f64 = 8000.0;
/// Memory for each byte of shared_buffers: PostgreSQL's manual has them begin with a quarter.
const MEMORY_FOR_BUFFERS: u64 = 4;
/// Bytes of a page of the server under test.
const BLOCK: f64 = 8192.0;
/// A page of 32 rows and its part of the primary key: 20 bytes an entry, pages 90 % full.
const INDEXED: f64 = 1.09;
/// Fewest pages to be read, where shared_buffers of the server that was read is not known or next to nothing. The server that
/// makes the tables has other settings than either.
const LEAST_READS: f64 = 64.0;
/// Most images for each page that is touched: more would need pages without end.
const MOST_IMAGES: f64 = 0.95;
/// Share of look-ups that miss in a table four times as large as shared_buffers, of which others take their part.
const MISSES: f64 = 0.95;
/// PostgreSQL's default of checkpoint_completion_target.
const COMPLETION: f64 = 0.9;
/// Checkpoint cycles of a trial, with those of the warm-up, for whose appended rows there is room.
const CYCLES: f64 = 8.0;
/// Room for the tables, of their size.
const SLACK: f64 = 1.25;
/// The tables, of which the second is made where reads miss; a transaction that writes, one that reads, a look-up.
const TEXTS: &str = include_str!("load.sql");
const PLAN: &str = include_str!("plan.toml");

/// A load for pgbench.
#[derive(Debug)]
pub struct ProfileLoad {
    /// Makes the tables.
    pub setup: String,
    /// Names of the scripts, their weights out of a million, and their text.
    pub scripts: Vec<(String, u64, String)>,
    /// Commits of the server, 1/s.
    pub rate: f64,
    /// Size of the tables.
    pub tables: Bytes,
    /// Those of the server, or what fits here: a power of two, so that nearly the same memory gives the same load.
    /// `None` where not known.
    pub shared_buffers: Option<Bytes>,
    /// Bytes of appended rows for each byte of WAL.
    pub appended: f64,
}

/// What a transaction of the server that writes does to its storage.
struct Demand {
    /// Commits, and those of them that write, 1/s.
    any: f64,
    writing: f64,
    /// WAL of one, bytes: all of it, and without full-page images.
    bytes: f64,
    own: f64,
    /// Shares of them with their WAL without images, bytes.
    sizes: Vec<(f64, f64)>,
    /// Pages: dirtied; those with rows that were there before; of these the ones changed for the first time since a
    /// checkpoint.
    dirtied: f64,
    changed: f64,
    firsts: f64,
    /// WAL between checkpoints, bytes.
    distance: f64,
    /// 1 where a page that is added counts as one more that was written and missed, as before PostgreSQL 16.
    added: f64,
}

/// Reads the demand out of a profile.
///
/// # Errors
/// As [`of`].
fn demand(profile: &Profile) -> Result<Demand> {
    let of = figures::of(profile);
    let figure = |name: &str| of.get(name).copied();
    let known = |name: &str| figure(name).unwrap_or(0.0);
    let (ids, logged) = (known("commits_per_second"), known("wal_bytes_per_commit"));
    if ids < LEAST_RATE || logged == 0.0 {
        return Err(Error::user("the profile has hardly any commits that wrote").hint("read it while it is busy"));
    }
    let Some(any) = figure("any_commits_per_second") else {
        let why = profile.unseen.get("databases").map_or("", String::as_str);
        return Err(Error::user(format!("the profile does not say how many commits there were: {why}")));
    };
    let in_wal = profile.wal.as_ref().filter(|wal| wal.commits > 0);
    let (writing, bytes, images) = match in_wal {
        // Sub-transactions have ids, too.
        Some(wal) => {
            let commits = wal.commits as f64;
            let images = wal.full_page_bytes as f64 / commits / IMAGE;
            (ids * commits / (commits + wal.subtransactions as f64), wal.bytes as f64 / commits, images)
        }
        None => {
            let most = (logged - COMMIT - MESSAGE).max(0.0) / IMAGE;
            (ids, logged, known("full_pages_per_commit").min(most))
        }
    };
    let (own, of_one) = (bytes - images * IMAGE, ids / writing);
    let sizes = in_wal.map_or(vec![(1.0, own)], |wal| classes(&wal.commit_bytes, own));
    let has_images = profile.settings.get("full_page_writes").is_none_or(|value| value != "off");
    let added = if profile.counts.contains_key("io") { 0.0 } else { 1.0 };
    let all_written = known("pages_written_per_commit") * of_one;
    // Without images, as many pages are new as the WAL fills.
    let new = own / PAGE;
    let written = if has_images { (all_written + added * images) / (1.0 + added) } else { all_written - added * new };
    let dirtied = figure("pages_dirtied_per_commit").map_or(written, |pages| pages * of_one);
    let rows = figure("rows_updated_per_commit").zip(figure("rows_deleted_per_commit"));
    let changed = rows.map_or(dirtied, |(updated, deleted)| dirtied.min((updated + deleted) * of_one));
    let firsts = if has_images { images } else { (written - new).min(changed * MOST_IMAGES) };
    if firsts <= 0.0 {
        return Err(without_images(profile, has_images));
    }
    let distance = figure("checkpoint_distance_bytes").or_else(|| due(profile, known("wal_bytes_per_second")));
    let (any, distance) = (any.max(writing), distance.unwrap_or(bytes));
    Ok(Demand { any, writing, bytes, own, sizes, dirtied, changed, firsts, distance, added })
}

/// Makes the load for a machine with this much memory.
///
/// # Errors
/// If the server wrote nothing, its commits were not seen, or nothing tells which pages it changes.
pub fn of(profile: &Profile, memory: Bytes) -> Result<ProfileLoad> {
    let Demand { any, writing, bytes, own, sizes, dirtied, changed, firsts, distance, added } = demand(profile)?;
    // As many as change there, on no more pages, and as far as their records fit into the smallest commits.
    let most = changed.min((sizes[0].1 - COMMIT - MESSAGE) / UPDATE);
    let touched = most.max(firsts / MOST_IMAGES).max(0.01);
    let pages = (touched * distance / bytes / touches_of_a_page(firsts / touched)).ceil();
    // The more pages there are, the more touches miss, and write a page more than once between two checkpoints.
    let shared_buffers = size_of(profile, "shared_buffers").map(|own| own.min(most_buffers(memory)));
    let buffers = shared_buffers.map_or(0, |size| size.0) as f64 / BLOCK;
    let missed = touched * pages / (pages + buffers);
    // Other dirtied pages are new: the part of the WAL that fills them.
    let rest = COMMIT + touched * UPDATE;
    let fresh = (dirtied - firsts.max(missed)).max(0.0);
    let misses = figures::of(profile).get("read_misses_per_any_commit").copied().unwrap_or(0.0);
    let lookups = ((misses - (missed + added * fresh) * writing / any) / MISSES).max(0.0);
    let appended = (fresh * PAGE / (own - rest).max(1.0)).clamp(0.0, 1.0);
    let reads = (4.0 * buffers).max(LEAST_READS);
    let mut parts = TEXTS.split("-- @\n");
    let [pages_sql, reads_sql, write, read, look] = [(); 5].map(|()| parts.next().unwrap_or_default());
    let [reads_sql, look] = if lookups > 0.0 { [reads_sql, look.trim()] } else { ["", "1"] };
    let filled = |text: &str| {
        let text = text.replace("@LOOK@", look).replace("@LOOKUPS@", &expression(lookups));
        let text = text.replace("@TOUCHES@", &expression(touched)).replace("@PAGES@", &pages.to_string());
        text.replace("@READS@", &reads.to_string())
    };
    let mut scripts = vec![("read".to_owned(), 1.0 - writing / any, filled(read))];
    let mut grown = 0.0;
    for (number, (share, size)) in (1..).zip(sizes) {
        let room = (size - rest).max(0.0);
        grown += share * room * appended;
        let added = (room * appended / MOST_ROW).ceil();
        let row = room * appended / added.max(1.0);
        let text = filled(write).replace("@ADDED@", &added.to_string());
        let text = text.replace("@LENGTH@", &format!("{:.0}", (row - INSERT).max(0.0)));
        let text = text.replace("@MESSAGE@", &format!("{:.0}", (room - added * row - MESSAGE).max(0.0)));
        scripts.push((format!("write{number}"), share * writing / any, text));
    }
    let weighted = scripts.into_iter().map(|(name, share, sql)| (name, (share * 1e6).round() as u64, sql));
    let scripts = weighted.filter(|(_, weight, _)| *weight > 0).collect();
    let tables = Bytes((BLOCK * (INDEXED * pages + if lookups > 0.0 { reads } else { 0.0 })) as u64);
    let (setup, appended) = (filled(&(pages_sql.to_owned() + reads_sql)), grown / bytes);
    Ok(ProfileLoad { setup, scripts, rate: any, tables, shared_buffers, appended })
}

/// What to do about a profile that does not tell which pages change.
fn without_images(profile: &Profile, has_images: bool) -> Error {
    let (what, hint) = if !has_images {
        ("full_page_writes is off, and the profile has no pages written beyond new ones", "read over a checkpoint")
    } else if profile.state.get("server").is_some_and(|server| server.get("standby") == Some(&1)) {
        ("the profile does not say how many pages are written to the WAL in full", "of a standby, add --wal")
    } else {
        (
            "the profile does not say how many pages are written to the WAL in full, or there are none",
            "their number gives the load's pages: read from PostgreSQL 14 on, or add --wal",
        )
    };
    Error::user(what).hint(hint)
}

/// WAL after which a checkpoint is due at this rate of it, bytes a second, where none was seen: by time, or by size as the manual of
/// max_wal_size and checkpoint_completion_target has it.
fn due(profile: &Profile, rate: f64) -> Option<f64> {
    let setting = |name: &str| profile.settings.get(name).map(String::as_str);
    let completion = setting("checkpoint_completion_target").and_then(|share| share.parse().ok()).unwrap_or(COMPLETION);
    let by_size = size_of(profile, "max_wal_size").map(|size| size.0 as f64 / (1.0 + completion));
    let by_time = setting("checkpoint_timeout").and_then(|time| Micros::parse(time).ok());
    by_size.into_iter().chain(by_time.map(|time| time.seconds() * rate)).reduce(f64::min)
}

/// A quarter of the memory, rounded down to a power of two.
fn most_buffers(memory: Bytes) -> Bytes {
    Bytes(1 << (memory.0 / MEMORY_FOR_BUFFERS).max(1).ilog2())
}

fn size_of(profile: &Profile, setting: &str) -> Option<Bytes> {
    Bytes::parse(profile.settings.get(setting)?).ok()
}

/// Touches of each page between two checkpoints of which this share is the first: solves `(1 - exp(-x)) / x = share`.
fn touches_of_a_page(share: f64) -> f64 {
    let (mut low, mut high) = (1e-6, 1e6);
    for _ in 0..100 {
        let middle = f64::sqrt(low * high);
        if (1.0 - f64::exp(-middle)) / middle > share { low = middle } else { high = middle }
    }
    low
}

/// Shares of transactions with their WAL bytes: with these percentiles, and the mean by a smaller size below the median
/// or by one in two hundred that is larger.
fn classes(sizes: &CommitSpread, mean: f64) -> Vec<(f64, f64)> {
    let [p50, p90, p99] = [sizes.p50, sizes.p90, sizes.p99].map(|bytes| bytes as f64);
    // The second begins between a half and nine tenths, the third between nine tenths and all but a hundredth.
    let third = ((mean - 0.7 * p50 - 0.3 * p90) / (p99 - p90).max(1.0)).clamp(0.015, 0.09);
    let first = (((1.0 - third) * p90 + third * p99 - mean) / (p90 - p50).max(1.0)).clamp(0.55, 0.85);
    let second = 1.0 - first - third;
    let missing = mean - first * p50 - second * p90 - third * p99;
    let (least, last) = (p50 + missing.min(0.0) / 0.45, p99 + missing.max(0.0) / 0.005);
    vec![(0.45, least.max(COMMIT)), (first - 0.45, p50), (second, p90), (third - 0.005, p99), (0.005, last)]
}

/// An expression of pgbench with this mean.
fn expression(mean: f64) -> String {
    format!("{} + case when random(1, 1000000) <= {:.0} then 1 else 0 end", mean.floor(), mean.fract() * 1e6)
}

/// A plan of two stacks under the load: `options` are those of pgbench that give it.
pub fn plan(profile: &Profile, load: &ProfileLoad, options: &str) -> String {
    let names = "shared_buffers max_wal_size checkpoint_timeout full_page_writes wal_compression synchronous_commit";
    let own = |name| profile.settings.get(name).map(String::as_str);
    let less = load.shared_buffers.filter(|size| size_of(profile, "shared_buffers") > Some(*size));
    let less = less.map(|size| format!("{}MB", size.0 >> 20));
    let scaled = |name| less.as_deref().filter(|_| name == "shared_buffers").or_else(|| own(name));
    let settings = names.split(' ').filter_map(|name| Some((name, scaled(name)?)));
    let settings = settings.map(|(name, value)| format!("{name} = {}", toml::Value::from(value)));
    let settings = settings.collect::<Vec<_>>().join(", ");
    let scaled_by = less.as_ref().zip(own("shared_buffers")).map_or_else(String::new, |(size, own)| {
        format!(
            "# The server has shared_buffers of {own}. {size} are what fits into a quarter of this machine's\n\
             # memory; what is read is scaled along.\n"
        )
    });
    let digits = (3 - load.rate.log10().floor() as i32).clamp(2, 6) as usize;
    let rates = [1.0, 1.5, 2.0, 3.0].map(|factor| format!("{:.digits$}", load.rate * factor)).join(", ");
    // Each client has a row of its own on a page.
    let active = figures::of(profile).get("clients_active_mean").copied().unwrap_or(0.0);
    let clients = (2.0 * active).ceil().clamp(8.0, 32.0).to_string();
    let wal = size_of(profile, "max_wal_size").map_or(0.0, |size| size.0 as f64);
    // A cycle has up to max_wal_size, of which a part is appended rows; WAL may exceed its limit.
    let room = SLACK * load.tables.0 as f64 + wal * (2.0 + CYCLES * load.appended);
    let size = format!("{:.0}GiB", (room / f64::from(1 << 30)).ceil() + 1.0);
    let parts = [
        ("@SETTINGS@", settings.as_str()),
        ("@SCALED@", scaled_by.as_str()),
        ("@LOAD@", options),
        ("@CLIENTS@", &clients),
        ("@RATES@", &rates),
        ("@TABLES@", &load.tables.to_string()),
        ("@SIZE@", &size),
    ];
    parts.into_iter().fold(PLAN.to_owned(), |plan, (name, value)| plan.replace(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::profile::{Numbers, ProfiledWal};

    #[test]
    fn pages_are_as_many_as_give_the_images() {
        for touches in [0.01, 0.5, 1.0, 4.4, 100.0] {
            let share = (1.0 - f64::exp(-touches)) / touches;
            assert!((touches_of_a_page(share) / touches - 1.0).abs() < 1e-6, "{touches}");
        }
    }

    #[test]
    fn sizes_of_commits_have_the_percentiles_and_the_mean() {
        for (percentiles, mean) in [([300, 900, 4000], 700.0), ([500, 500, 500], 500.0), ([3200, 3800, 32_000], 3000.0)]
        {
            let [p50, p90, p99] = percentiles;
            let classes = classes(&CommitSpread { p50, p90, p99 }, mean);
            let all: f64 = classes.iter().map(|(share, _)| share).sum();
            let sum: f64 = classes.iter().map(|(share, bytes)| share * bytes).sum();
            assert!((all - 1.0).abs() < 1e-9 && (sum / mean - 1.0).abs() < 0.02, "{classes:?}: {sum}");
            for (share, bytes) in [0.5, 0.9, 0.99].into_iter().zip(percentiles) {
                let mut below = 0.0;
                let reached = classes.iter().find(|(weight, _)| {
                    below += weight;
                    below + 1e-9 >= share
                });
                assert_eq!(reached.unwrap().1, bytes as f64, "{classes:?}");
            }
        }
    }

    /// Four times the most shared_buffers below.
    const MEMORY: Bytes = Bytes(64 << 30);

    /// A hundred seconds with 1000 commits a second, of which a half write 2000 bytes and a fifth of an image.
    fn profile() -> Profile {
        let numbers =
            |pairs: &[(&str, i64)]| pairs.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect::<Numbers>();
        let mut profile = Profile::default();
        let moment = [("microseconds", 100_000_000), ("transaction_ids", 50_000)];
        let databases = [("xact_commit", 100_000), ("tup_updated", 100_000), ("blks_read", 300_000)];
        for (view, counts) in [
            ("moment", numbers(&moment)),
            ("databases", numbers(&databases)),
            ("wal", numbers(&[("wal_bytes", 100_000_000), ("wal_fpi", 10_000)])),
            ("statements", numbers(&[("shared_blks_dirtied", 100_000)])),
            ("checkpoints", numbers(&[("completed", 2), ("distance_bytes", 80_000_000)])),
        ] {
            profile.counts.insert(view.to_owned(), counts);
        }
        profile
    }

    #[test]
    fn a_load_mixes_what_writes_and_what_reads() {
        let load = of(&profile(), MEMORY).unwrap();
        let names: Vec<(&str, u64)> = load.scripts.iter().map(|(name, weight, _)| (name.as_str(), *weight)).collect();
        assert_eq!((names, load.rate), (vec![("read", 500_000), ("write1", 500_000)], 1000.0));
        let [read, write, setup] = [&load.scripts[0].2, &load.scripts[1].2, &load.setup];
        assert!(read.contains("\\set lookups 2 + case"), "{read}");
        assert!(write.contains("\\set touches 2 + case") && write.contains("repeat('x', 190)"), "{write}");
        assert!(
            setup.contains("CREATE TABLE profile_reads") && !setup.contains('@') && !write.contains('@'),
            "{setup}"
        );
    }

    #[test]
    fn a_transaction_that_writes_always_does() {
        let mut profile = profile();
        profile.counts.remove("statements");
        // Images as large as all of its WAL, as compressed ones may seem.
        *profile.counts.get_mut("wal").unwrap() =
            Numbers::from([("wal_bytes".to_owned(), 100_000_000), ("wal_fpi".to_owned(), 40_000)]);
        let write = &of(&profile, MEMORY).unwrap().scripts[1].2;
        assert!(write.contains("CASE WHEN 0 > 0 OR 0 = 0 AND :touches = 0 THEN pg_logical_emit_message"), "{write}");
    }

    #[test]
    fn a_server_without_full_page_images_has_pages_by_what_checkpoints_write() {
        let mut profile = profile();
        profile.counts.insert("wal".to_owned(), Numbers::from([("wal_bytes".to_owned(), 10_000_000)]));
        let refused = of(&profile, MEMORY).unwrap_err();
        assert!(refused.hint_text().unwrap().contains("or add --wal"), "{refused}");
        profile.settings.insert("full_page_writes".to_owned(), "off".to_owned());
        let refused = of(&profile, MEMORY).unwrap_err();
        assert!(refused.to_string().contains("full_page_writes is off"), "{refused}");
        profile.counts.remove("statements");
        let pages = |view: &str, count: &str, written: i64| {
            let mut profile = profile.clone();
            profile.counts.insert(view.to_owned(), Numbers::from([(count.to_owned(), written)]));
            profile
                .counts
                .get_mut(view)
                .unwrap()
                .extend(["buffers_clean", "buffers_backend"].map(|name| (name.to_owned(), 0)));
            let setup = of(&profile, MEMORY).unwrap().setup;
            setup.split("32 * ").nth(1).unwrap().split(':').next().unwrap().parse::<f64>().unwrap()
        };
        // 10 MB of WAL fill 1250 pages, which were counted twice before version 16; the other 10 000 were changed, hardly
        // any of them twice.
        let [since, before] =
            [pages("io", "write_bytes", 8192 * 11_250), pages("bgwriter", "buffers_checkpoint", 12_500)];
        assert!((since / before - 1.0).abs() < 0.01 && (100_000.0..300_000.0).contains(&since), "{since} {before}");
    }

    #[test]
    fn what_was_not_seen_is_not_taken_for_zero() {
        let mut profile = profile();
        profile.counts.remove("checkpoints");
        for (name, value) in [("max_wal_size", "152MB"), ("checkpoint_timeout", "1h")] {
            profile.settings.insert(name.to_owned(), value.to_owned());
        }
        assert_eq!(demand(&profile).unwrap().distance, f64::from(152 << 20) / 1.9);
        profile.settings.insert("checkpoint_timeout".to_owned(), "30s".to_owned());
        assert_eq!(demand(&profile).unwrap().distance, 30e6);
        profile.counts.remove("databases");
        profile.unseen.insert("databases".to_owned(), "its counters fell".to_owned());
        let refused = of(&profile, MEMORY).unwrap_err().to_string();
        assert!(refused.contains("how many commits there were: its counters fell"), "{refused}");
    }

    #[test]
    fn the_plan_says_how_large_its_tables_are() {
        let mut profile = profile();
        for (buffers, reads, room) in [("0", 64.0, "\"2GiB\""), ("16GB", 8_388_608.0, "\"82GiB\"")] {
            profile.settings.insert("shared_buffers".to_owned(), buffers.to_owned());
            let load = of(&profile, MEMORY).unwrap();
            let pages: f64 = load.setup.split("32 * ").nth(1).unwrap().split(':').next().unwrap().parse().unwrap();
            assert_eq!(load.tables, Bytes((8192.0 * (1.09 * pages + reads)) as u64));
            let plan = plan(&profile, &load, "");
            assert!(plan.contains(&format!("tables of {}", load.tables)) && plan.contains(room), "{plan}");
        }
    }

    #[test]
    fn the_wal_itself_gives_sizes_in_place_of_means() {
        let mut profile = profile();
        let commit_bytes = CommitSpread { p50: 300, p90: 900, p99: 4000 };
        let wal = ProfiledWal {
            commits: 100,
            bytes: 200_000,
            full_page_bytes: 130_000,
            commit_bytes,
            ..ProfiledWal::default()
        };
        profile.wal = Some(wal);
        let load = of(&profile, MEMORY).unwrap();
        assert_eq!(load.scripts.iter().filter(|(name, ..)| name.starts_with("write")).count(), 5, "{load:?}");
        profile.counts.clear();
        assert!(of(&profile, MEMORY).unwrap_err().to_string().contains("hardly any commits that wrote"));
    }

    #[test]
    fn a_plan_has_the_settings_and_multiples_of_the_rate() {
        let mut profile = profile();
        profile.settings.insert("max_wal_size".to_owned(), "1GB".to_owned());
        let plan = plan(&profile, &of(&profile, MEMORY).unwrap(), "profile = \"a.toml\"");
        let parsed: toml::Table = plan.parse().unwrap();
        assert_eq!(parsed["postgres"]["settings"]["max_wal_size"].as_str(), Some("1GB"));
        let load = &parsed["workload"]["mine"]["pgbench"];
        assert_eq!(load["rate"][3].as_float(), Some(3000.0));
        let slow = super::plan(&profile, &ProfileLoad { rate: 0.30456, ..of(&profile, MEMORY).unwrap() }, "");
        assert!(slow.contains("0.3046, 0.4568, 0.6091, 0.9137"), "{slow}");
        assert!(load["profile"].as_str() == Some("a.toml") && !plan.contains('@'), "{plan}");
    }

    #[test]
    fn more_shared_buffers_than_fit_here_are_scaled_and_said() {
        let mut profile = profile();
        let mut made = |own: &str| {
            profile.settings.insert("shared_buffers".to_owned(), own.to_owned());
            let load = of(&profile, MEMORY).unwrap();
            let plan = plan(&profile, &load, "profile = \"a.toml\"");
            let parsed: toml::Table = plan.parse().unwrap();
            let asked = parsed["postgres"]["settings"]["shared_buffers"].as_str().unwrap().to_owned();
            (load.tables, asked, plan.contains("The server has shared_buffers of 100GB. 16384MB are what fits"))
        };
        let (tables, _, _) = made("16GB");
        assert_eq!(made("100GB"), (tables, "16384MB".to_owned(), true));
        assert_eq!(made("16GB"), (tables, "16GB".to_owned(), false));
    }
}
