//! Options of an array: arguments of mdadm, settings of the running array, and the comparison with the kernel's values.

use crate::error::{Error, Result};
use crate::host::Host;
use crate::provision::sysfs::DeviceNumber;
use crate::provision::{Details, knobs, must_show, size};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::units::Bytes;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level {
    pub number: i64,
    /// Kernel's name for it in `md/level`.
    pub name: &'static str,
    /// Kernel module that provides it.
    pub module: &'static str,
    /// Minimum number of members.
    pub least: usize,
}

const fn level(number: i64, name: &'static str, module: &'static str, least: usize) -> Level {
    Level { number, name, module, least }
}

const LEVELS: [Level; 5] = [
    level(0, "raid0", "raid0", 2),
    level(1, "raid1", "raid1", 2),
    level(5, "raid5", "raid456", 3),
    level(6, "raid6", "raid456", 4),
    level(10, "raid10", "raid10", 2),
];

impl Level {
    pub fn of(options: &Options) -> Option<Level> {
        let asked = options.integer("level")?;
        LEVELS.into_iter().find(|level| level.number == asked)
    }

    fn has_parity(self) -> bool {
        self.module == "raid456"
    }
}

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::required("level", OptionKind::Integer { min: 0 }).doc("RAID level: 0, 1, 5, 6 or 10."),
    OptionSpec::with_default("chunk", OptionKind::Size, "512KiB")
        .doc("Chunk size, a power of two from 4 KiB; not for level 1."),
    OptionSpec::with_default("bitmap", OptionKind::OneOf(&["none", "internal"]), "none")
        .doc("Write-intent bitmap on the members: a short resync after a crash, for extra writes."),
    OptionSpec::with_default("ppl", OptionKind::Boolean, "false")
        .doc("Partial parity log on the members (level 5): closes the write hole without a journal device."),
    OptionSpec::with_default("journal_mode", OptionKind::OneOf(&["write-through", "write-back"]), "write-through").doc(
        "When a write to an array with a journal is done: with its stripe on the members, or once in the journal.",
    ),
    OptionSpec::with_default("stripe_cache", OptionKind::Integer { min: 17 }, "the kernel's, 256")
        .doc("Stripes that the cache of levels 5 and 6 holds, each a page for each member."),
    OptionSpec::with_default("assume_clean", OptionKind::Boolean, "false")
        .doc("Skip the first resync, which otherwise is waited for: a member that fails then takes data with it."),
    knobs::QUEUE,
];

pub(super) fn check(options: &Options) -> Result<(), OptionProblem> {
    let Some(level) = Level::of(options) else {
        return Err(OptionProblem::at("level", "the RAID level must be 0, 1, 5, 6 or 10"));
    };
    if level.number == 1 {
        size::check(options, "chunk", |_| false, "level 1 has no chunks")?;
    }
    size::check(options, "chunk", size::is_power, "a chunk must be a power of two, at least 4 KiB")?;
    for (key, fits) in [
        ("bitmap", level.number != 0),
        ("ppl", level.number == 5),
        ("journal_mode", level.has_parity()),
        ("stripe_cache", level.has_parity()),
        ("assume_clean", level.number != 0),
    ] {
        if is_asked(options, key) && !fits {
            return Err(OptionProblem::at(key, format!("level {} has no `{key}`", level.number)));
        }
    }
    if is_asked(options, "bitmap") && is_asked(options, "ppl") {
        return Err(OptionProblem::at("ppl", "an array has either a bitmap or a partial parity log"));
    }
    Ok(())
}

fn is_asked(options: &Options, key: &str) -> bool {
    options.get(key).is_some_and(|value| !["none", "false"].contains(&&*value.plain()))
}

/// Checks the options against the devices below.
///
/// # Errors
/// With the option that does not fit.
pub(super) fn check_members(level: Level, options: &Options, members: usize, journal: bool) -> Result<()> {
    let Level { number, least, .. } = level;
    Err(Error::user(if members < least {
        format!("RAID level {number} needs at least {least} members, but has {members}")
    } else if journal && !level.has_parity() {
        format!("RAID level {number} takes no write journal")
    } else if journal && (is_asked(options, "bitmap") || is_asked(options, "ppl")) {
        "an array has a write journal, a bitmap or a partial parity log, not two of them".to_owned()
    } else if !journal && options.text("journal_mode").is_some() {
        "`journal_mode` is for an array with a `journal`".to_owned()
    } else {
        return Ok(());
    }))
}

/// Arguments of `mdadm --create`, without the devices.
pub(super) fn arguments(level: Level, options: &Options, members: usize) -> Vec<String> {
    let mut arguments = vec![format!("--level={}", level.number), format!("--raid-devices={members}")];
    if let Some(Bytes(chunk)) = options.size("chunk") {
        arguments.push(format!("--chunk={}K", chunk / 1024));
    }
    if options.boolean("ppl") == Some(true) {
        arguments.push("--consistency-policy=ppl".to_owned());
    } else if level.number != 0 {
        arguments.push(format!("--bitmap={}", options.text("bitmap").unwrap_or("none")));
    }
    arguments.extend((options.boolean("assume_clean") == Some(true)).then(|| "--assume-clean".to_owned()));
    arguments
}

/// Settings of a running array, which are lost with it: files of sysfs with their values.
pub(super) fn settings(options: &Options) -> impl Iterator<Item = (&'static str, String)> {
    let stripes = options.integer("stripe_cache").map(|stripes| ("md/stripe_cache_size", stripes.to_string()));
    stripes.into_iter().chain(options.text("journal_mode").map(|mode| ("md/journal_mode", mode.to_owned())))
}

/// Applies the settings of a running array.
pub(super) fn set(host: &Host, array: DeviceNumber, options: &Options) -> Result<()> {
    settings(options).try_for_each(|(file, value)| host.write(array.path_of(file), &value))
}

/// Compares the options with the kernel's values.
///
/// # Errors
/// With the first that differs.
pub(super) fn verify(level: Level, options: &Options, members: usize, journal: bool, facts: &Details) -> Result<()> {
    let policy = match options.text("bitmap") {
        _ if level.number == 0 => None,
        _ if journal => Some("journal"),
        _ if options.boolean("ppl") == Some(true) => Some("ppl"),
        Some("internal") => Some("bitmap"),
        _ => Some("resync"),
    };
    let wanted = [
        ("level", Some(level.name.to_owned())),
        ("members", Some(members.to_string())),
        ("metadata version", Some("1.2".to_owned())),
        ("chunk size", options.size("chunk").map(|Bytes(bytes)| bytes.to_string())),
        ("consistency policy", policy.map(str::to_owned)),
        ("journal mode", options.text("journal_mode").map(str::to_owned)),
        ("stripe cache", options.integer("stripe_cache").map(|stripes| stripes.to_string())),
    ];
    for (name, wanted) in wanted.into_iter().filter_map(|(name, wanted)| Some((name, wanted?))) {
        let shown = facts.get(name).map_or("nothing", String::as_str);
        must_show(&format!("{name} of the array"), &wanted, shown)?;
    }
    Ok(())
}
