//! Options of a volume group and its volumes: sizes, arguments of lvcreate, and the comparison with LVM's report.

use super::ReportRow;
use crate::error::{Error, Result};
use crate::provision::knobs;
use crate::provision::size::{self, Size};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::units::Bytes;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Volume {
    /// Its name in the group.
    pub name: String,
    /// Its name among the node's bases; empty for the only one.
    pub base: String,
    /// `None` if it cannot be parsed.
    pub size: Option<Size>,
}

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::with_default("size", OptionKind::Text, "100%")
        .doc("Size of the only volume: 20GiB, or a share of the group (80%)."),
    OptionSpec::optional("volumes", OptionKind::Properties).doc(
        "Several volumes instead, each with its size: { data = \"70%\", wal = \"30%\" }; used as NODE.data, NODE.wal.",
    ),
    OptionSpec::with_default("stripes", OptionKind::Integer { min: 1 }, "1")
        .doc("Devices that each volume is striped over; 1 = linear."),
    OptionSpec::with_default("stripe_size", OptionKind::Size, "64KiB")
        .doc("Size of a stripe on one device, a power of two."),
    OptionSpec::with_default("thin", OptionKind::Boolean, "false")
        .doc("Make thin volumes, in a pool that takes the whole group."),
    OptionSpec::with_default("chunk", OptionKind::Size, "LVM's choice by the pool's size")
        .doc("Chunk of the thin pool, a multiple of 64 KiB."),
    OptionSpec::with_default("zero", OptionKind::Boolean, "true")
        .doc("Whether the thin pool zeroes each chunk before it is first used."),
    knobs::QUEUE,
];

pub(super) const POOL: &str = "pool";
/// Name of the only volume.
const ONLY: &str = "data";
/// Default extent size, 4 MiB (vgcreate(8)).
pub(super) const EXTENT: u64 = 4 << 20;

/// The volumes, in the order of the bases.
pub(super) fn volumes(options: &Options) -> Vec<Volume> {
    let named = options.table("volumes").0;
    if named.is_empty() {
        let size = Size::above_zero(options.text("size").unwrap_or("100%"));
        return vec![Volume { name: ONLY.to_owned(), base: String::new(), size }];
    }
    let sized = named.into_iter().map(|(name, value)| (name, Size::above_zero(&value.plain())));
    sized.map(|(name, size)| Volume { base: name.clone(), name, size }).collect()
}

pub(super) fn is_thin(options: &Options) -> bool {
    options.boolean("thin").unwrap_or(false)
}

fn stripes(options: &Options) -> u64 {
    options.integer("stripes").and_then(|stripes| u64::try_from(stripes).ok()).unwrap_or(1).max(1)
}

pub(super) fn check(options: &Options) -> Result<(), OptionProblem> {
    let wrong = |key: &str, why: String| Err(OptionProblem::at(key, why));
    let several = options.get("volumes").is_some();
    if several && options.get("size").is_some() {
        return wrong("size", "give either `size` or `volumes`".to_owned());
    }
    let key = if several { "volumes" } else { "size" };
    let mut share = 0.0;
    for volume in volumes(options) {
        let is_plain = volume.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if volume.name == POOL || volume.name.len() > 64 || !is_plain {
            let why =
                format!("`{}` cannot be the name of a volume: letters, digits and `_`, and not `{POOL}`", volume.name);
            return wrong(key, why);
        }
        match volume.size {
            None => {
                return Err(OptionProblem::at(key, format!("the size of the volume {} cannot be read", volume.name))
                    .help("write it as 20GiB or 80%"));
            }
            Some(Size::Bytes(bytes)) if bytes % EXTENT != 0 => {
                return wrong(key, format!("the size of the volume {} must be a multiple of 4 MiB", volume.name));
            }
            Some(Size::Percent(of)) => share += of,
            Some(Size::Bytes(_)) => {}
        }
    }
    if several && options.table("volumes").0.is_empty() {
        return wrong("volumes", "no volume is named".to_owned());
    }
    if share > 100.0 {
        return wrong(key, format!("the volumes take {share} % of the group"));
    }
    if stripes(options) == 1 {
        size::check(options, "stripe_size", |_| false, "it needs `stripes` of 2 or more")?;
    }
    size::check(options, "stripe_size", size::is_power, "a stripe must be a power of two, at least 4 KiB")?;
    for key in ["chunk", "zero"] {
        if options.get(key).is_some() && !is_thin(options) {
            return wrong(key, "it is for thin volumes: set `thin = true`".to_owned());
        }
    }
    size::check(options, "chunk", |size| size > 0 && size % (64 << 10) == 0, "the chunk must be a multiple of 64 KiB")
}

/// Checks the options against the devices below.
///
/// # Errors
/// When they are fewer than the stripes.
pub(super) fn check_devices(options: &Options, devices: usize) -> Result<()> {
    let stripes = stripes(options);
    if stripes <= devices as u64 {
        return Ok(());
    }
    Err(Error::user(format!("{stripes} stripes need as many devices, but the group has {devices}")))
}

/// The size of a volume for [`volume_arguments`] as an expression of the shell, whose variable ROOM has the extents of
/// the group, or of the pool.
pub(super) fn size_by_hand(options: &Options, volume: &Volume) -> String {
    let extents = match volume.size.unwrap_or(Size::Percent(100.0)) {
        Size::Bytes(bytes) => (bytes / EXTENT).to_string(),
        Size::Percent(share) => format!("ROOM * {} / 100000", (share * 1000.0).round()),
    };
    let stripes = stripes(options);
    if is_thin(options) { format!("{extents} * {EXTENT}") } else { format!("{extents} / {stripes} * {stripes}") }
}

/// Rounds a number of extents to whole stripes.
pub(super) fn whole_stripes(options: &Options, extents: u64) -> u64 {
    if is_thin(options) { extents } else { extents - extents % stripes(options) }
}

fn striping(options: &Options) -> Vec<String> {
    let stripes = stripes(options);
    let size = options.size("stripe_size").unwrap_or(Bytes(64 << 10));
    match stripes {
        1 => Vec::new(),
        _ => vec![format!("--stripes={stripes}"), format!("--stripesize={}k", size.0 >> 10)],
    }
}

pub(super) fn pool_arguments(options: &Options, group: &str) -> Vec<String> {
    let mut arguments = vec![
        "--type=thin-pool".to_owned(),
        format!("--name={POOL}"),
        "--extents=100%FREE".to_owned(),
        "--poolmetadataspare=n".to_owned(),
        format!("--zero={}", if options.boolean("zero").unwrap_or(true) { "y" } else { "n" }),
    ];
    arguments.extend(options.size("chunk").map(|Bytes(chunk)| format!("--chunksize={}k", chunk >> 10)));
    arguments.extend(striping(options));
    arguments.push(group.to_owned());
    arguments
}

/// Arguments that make a full pool fail writes; lvcreate does not accept them for thin pools. By default a full pool
/// holds writes back for a minute (`no_space_timeout` of dm_thin_pool) and then fails them as if the device had failed,
/// which would be measured as a stall.
pub(super) fn when_full_arguments(group: &str) -> Vec<String> {
    vec!["--errorwhenfull=y".to_owned(), format!("{group}/{POOL}")]
}

/// Arguments of lvcreate for a volume whose size is in bytes if it is thin, else in extents.
pub(super) fn volume_arguments(options: &Options, name: &str, size: &str, group: &str) -> Vec<String> {
    let name = format!("--name={name}");
    if is_thin(options) {
        let (size, pool) = (format!("--virtualsize={size}b"), format!("--thinpool={group}/{POOL}"));
        return vec!["--type=thin".to_owned(), name, size, pool];
    }
    let mut arguments = vec![name, format!("--extents={size}"), "--zero=y".to_owned(), "--wipesignatures=y".to_owned()];
    arguments.extend(striping(options));
    arguments.push(group.to_owned());
    arguments
}

/// Compares a row of lvs with the options.
///
/// # Errors
/// With the first column that differs.
pub(super) fn verify(options: &Options, volume: &Volume, row: &ReportRow) -> Result<()> {
    let stripes = stripes(options);
    let kind = match (is_thin(options), stripes) {
        (true, _) => "thin",
        (false, 1) => "linear",
        (false, _) => "striped",
    };
    let mut wanted = vec![("segtype", kind.to_owned())];
    if !is_thin(options) {
        wanted.push(("stripes", stripes.to_string()));
        if let Some(Bytes(size)) = options.size("stripe_size") {
            wanted.push(("stripe_size", size.to_string()));
        }
    }
    if let Some(Size::Bytes(bytes)) = volume.size {
        wanted.push(("lv_size", bytes.to_string()));
    }
    same(&volume.name, &wanted, row)
}

/// As [`verify`], for the thin pool.
///
/// # Errors
/// With the first column that differs.
pub(super) fn verify_pool(options: &Options, row: &ReportRow) -> Result<()> {
    let chunk = options.size("chunk").map(|Bytes(chunk)| ("chunk_size", chunk.to_string()));
    let zero = if options.boolean("zero").unwrap_or(true) { "zero" } else { "" };
    let others = [("zero", zero.to_owned()), ("lv_when_full", "error".to_owned())];
    same(POOL, &chunk.into_iter().chain(others).collect::<Vec<_>>(), row)
}

/// Columns that show how full a pool is.
pub(super) const ROOM: &str = "lv_name,segtype,data_percent,metadata_percent,lv_health_status";

/// The kernel reserves a tenth of a pool's metadata, at most 16 MiB (`__set_metadata_reserve`), and treats a pool that
/// needs it as full.
const METADATA_FULL_PERCENT: f64 = 90.0;

/// Reason why a pool accepts no more writes, from its row of lvs; `None` if it has room.
pub(super) fn full(row: &ReportRow) -> Option<String> {
    let [health, data, metadata] =
        ["lv_health_status", "data_percent", "metadata_percent"].map(|name| row.get(name).map_or("", String::as_str));
    if health == "out_of_data" || data.parse::<f64>().is_ok_and(|percent| percent >= 100.0) {
        return Some(format!("the thin pool is full: {data} % of its data space"));
    }
    // A pool is also read-only if its metadata device fails.
    let percent: f64 = metadata.parse().ok()?;
    let is_full = percent >= 100.0 || (health == "metadata_read_only" && percent >= METADATA_FULL_PERCENT);
    is_full.then(|| format!("the thin pool is full: {metadata} % of its metadata space"))
}

fn same(volume: &str, wanted: &[(&str, String)], row: &ReportRow) -> Result<()> {
    for (column, wanted) in wanted {
        let shown = row.get(*column).map_or("nothing", String::as_str);
        if shown != wanted {
            return Err(Error::host(format!(
                "{column} of the volume {volume} was to be `{wanted}`, but LVM shows `{shown}`"
            )));
        }
    }
    Ok(())
}
