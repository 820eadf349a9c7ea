//! A load of a profile's shape: tables, pgbench scripts with weights, and a plan of it.
//!
//! A writing transaction updates rows of `profile_pages`, each on a random page, appends rows to `profile_log` that fill
//! as many new pages, and adds a message to the WAL (`pg_logical_emit_message`) that makes up the rest of its bytes.
//! Between two checkpoints, `touches` page touches over `pages` pages write `pages * (1 - exp(-touches / pages))`
//! full-page images: the pages are as many as give the profile's. Reads that miss shared_buffers are look-ups in
//! `profile_reads`, four times as large: at least three of four miss. Clients never share a row: locks are not
//! imitated, nor plans, nor the CPU time of queries.

use super::figures;
use crate::error::{Error, Result};
use crate::record::profile::{CommitSpread, Profile};
use crate::units::Bytes;

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
}

/// Makes the load for a machine with this much memory.
///
/// # Errors
/// If the server wrote nothing, or its commits were not seen.
pub fn of(profile: &Profile, memory: Bytes) -> Result<ProfileLoad> {
    let of = figures::of(profile);
    let known = |name: &str| of.get(name).copied().unwrap_or(0.0);
    let (ids, logged) = (known("commits_per_second"), known("wal_bytes_per_commit"));
    if ids < LEAST_RATE || logged == 0.0 {
        return Err(Error::user("the profile has hardly any commits that wrote").hint("read it while it is busy"));
    }
    let in_wal = profile.wal.as_ref().filter(|wal| wal.commits > 0);
    let (writing, bytes, images) = match in_wal {
        // Sub-transactions have ids, too.
        Some(wal) => {
            let commits = wal.commits as f64;
            let images = wal.full_page_bytes as f64 / commits / IMAGE;
            (ids * commits / (commits + wal.subtransactions as f64), wal.bytes as f64 / commits, images)
        }
        None => (ids, logged, known("full_pages_per_commit").min(logged / IMAGE)),
    };
    if images <= 0.0 {
        let error =
            Error::user("the profile does not say how many pages are written to the WAL in full, or there are none");
        return Err(error.hint("their number gives the load's pages: read from PostgreSQL 14 on, or add --wal"));
    }
    let own = bytes - images * IMAGE;
    let sizes = in_wal.map_or(vec![(1.0, own)], |wal| classes(&wal.commit_bytes, own));
    let rows = (known("rows_updated_per_commit") + known("rows_deleted_per_commit")) * ids / writing;
    // Before version 16, a page that is added counts as one more that was written, and as one that was missed.
    let added = if profile.counts.contains_key("io") { 0.0 } else { 1.0 };
    let written = (known("pages_written_per_commit") + added * images) / (1.0 + added);
    let dirtied = of.get("pages_dirtied_per_commit").copied().unwrap_or(written) * ids / writing;
    // As many as change there, on no more pages, and as far as their records fit into the smallest commits.
    let most = rows.min(dirtied).min((sizes[0].1 - COMMIT - MESSAGE) / UPDATE);
    let touched = most.max(images / MOST_IMAGES).max(0.01);
    let most_wal = size_of(profile, "max_wal_size").map(|size| size.0 as f64);
    let distance = of.get("checkpoint_distance_bytes").copied().or(most_wal).unwrap_or(bytes);
    let pages = (touched * distance / bytes / touches_of_a_page(images / touched)).ceil();
    // The more pages there are, the more touches miss, and write a page more than once between two checkpoints.
    let shared_buffers = size_of(profile, "shared_buffers").map(|own| own.min(most_buffers(memory)));
    let buffers = shared_buffers.map_or(0, |size| size.0) as f64 / BLOCK;
    let missed = touched * pages / (pages + buffers);
    let any = known("any_commits_per_second").max(writing);
    // Other dirtied pages are new: the part of the WAL that fills them.
    let rest = COMMIT + touched * UPDATE;
    let fresh = (dirtied - images.max(missed)).max(0.0);
    let lookups = ((known("read_misses_per_any_commit") - (missed + added * fresh) * writing / any) / MISSES).max(0.0);
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
    for (number, (share, size)) in (1..).zip(sizes) {
        let room = (size - rest).max(0.0);
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
    Ok(ProfileLoad { setup: filled(&(pages_sql.to_owned() + reads_sql)), scripts, rate: any, tables, shared_buffers })
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
    let wal = size_of(profile, "max_wal_size").map_or(0, |size| size.0);
    // Tables twice, since rows are appended; WAL may exceed its limit.
    let size = format!("{}GiB", (2 * load.tables.0 + 2 * wal).div_ceil(1 << 30) + 1);
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
    fn the_plan_says_how_large_its_tables_are() {
        let mut profile = profile();
        for (buffers, reads, room) in [("0", 64.0, "\"2GiB\""), ("16GB", 8_388_608.0, "\"130GiB\"")] {
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
