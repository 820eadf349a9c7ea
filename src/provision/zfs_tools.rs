//! Shared code for ZFS pools, datasets and volumes: properties as plans give them and as `get` shows them, and the mark
//! that identifies our own.

use super::by_hand::Script;
use super::knobs::modules;
use super::ledger::Thing;
use super::options_kept::is_among;
use super::{Details, Unmet, folder, kernel_module, mount_table, needs};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::command::Command;
use crate::parse::zfs_get::{self, Property};
use crate::parse::{kstat, zpool_list};
use crate::record::age::PoolRoom;
use crate::record::durability;
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, OptionValue, Options};
use crate::record::stack::Role;
use crate::units::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;

/// Key of the properties in a plan.
pub(super) const PROPERTIES_KEY: &str = "properties";

/// User property with the mark of things that we made; children inherit it.
pub(super) const MARK: &str = "pgstrata:mark";

/// A pool whose disks are gone may never respond.
const LIMIT: Duration = Duration::from_secs(120);

/// Properties as an option of a layer.
pub(super) const fn properties(doc: &'static str) -> OptionSpec {
    OptionSpec::optional(PROPERTIES_KEY, OptionKind::Properties).doc(doc)
}

/// A call of `zfs` or `zpool`.
pub(super) fn call(tool: &str, args: &[&str]) -> Command {
    Command::new(tool).args(args).limit(LIMIT)
}

const WITHOUT_ZFS: &str = "run the plan with --guest, or apt-get install zfs-dkms with the headers of this kernel \
    (Debian: section contrib)";

/// Requirements for ZFS that the machine does not meet.
pub(super) fn unmet(host: &Host) -> Vec<Unmet> {
    let programs =
        needs::programs(host, &[("zpool", "zfsutils-linux"), ("zfs", "zfsutils-linux"), ("wipefs", "util-linux")]);
    let kernel = needs::kernel_filesystem(host, "zfs", &["zfs"]);
    let kernel = kernel.map(|unmet| Unmet { hint: WITHOUT_ZFS.to_owned(), ..unmet });
    needs::root().into_iter().chain(programs).chain(kernel).collect()
}

/// Checks names and values of properties; `refused` lists those that a plan may not set, with the reason.
pub(super) fn check(options: &Options, refused: &[(&str, &str)]) -> Result<(), OptionProblem> {
    let problem = |what: String| Err(OptionProblem::at(PROPERTIES_KEY, what));
    for (name, value) in asked(options) {
        let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_@:.-".contains(c));
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !is_plain {
            return problem(format!("`{name}` is not the name of a property"));
        }
        if value.is_empty() || value.chars().any(|c| c.is_control() || c == '/') {
            return problem(format!("the value of `{name}` is empty or contains a slash or a control character"));
        }
        if let Some((_, why)) = refused.iter().find(|(patterns, _)| is_among(&name, patterns)) {
            return problem(format!("the property `{name}` is not allowed in plans: {why}"));
        }
    }
    Ok(())
}

/// Properties that a plan sets, in the form of `-o NAME=VALUE`: sizes in bytes, flags as words.
pub(super) fn asked(options: &Options) -> Vec<(String, String)> {
    options.table(PROPERTIES_KEY).0.into_iter().map(|(name, value)| (name, property_value(value))).collect()
}

fn property_value(value: OptionValue) -> String {
    match value {
        OptionValue::Boolean(flag) => if flag { "on" } else { "off" }.to_owned(),
        OptionValue::Text(text) => Bytes::parse(&text).map_or(text, |Bytes(bytes)| bytes.to_string()),
        other => other.plain(),
    }
}

/// Checksums that ZFS trusts to detect an unchanged block (module/zfs/zio_checksum.c, `ZCHECKSUM_FLAG_NOPWRITE`).
const NOPWRITE: [&str; 5] = ["sha256", "sha512", "skein", "edonr", "blake3"];

/// Reason that overwriting a block with the same bytes may not write it: it is a duplicate, or its checksum and
/// compression show that it is the same (module/zfs/zio.c, `zio_nop_write`). Compression counts as on unless it is off:
/// its default depends on the version.
pub(super) fn skips_same_bytes(options: &Options) -> Option<String> {
    let asked = asked(options);
    let [dedup, checksum, compression] = ["dedup", "checksum", "compression"]
        .map(|wanted| asked.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str()));
    if let Some(dedup) = dedup.filter(|dedup| *dedup != "off") {
        return Some(format!("dedup = \"{dedup}\""));
    }
    let checksum = checksum.filter(|checksum| NOPWRITE.contains(checksum))?;
    (compression != Some("off")).then(|| format!("checksum = \"{checksum}\" with compression (nopwrite)"))
}

/// `-o NAME=VALUE` for each.
pub(super) fn arguments(asked: &[(String, String)]) -> Vec<String> {
    asked.iter().flat_map(|(name, value)| ["-o".to_owned(), format!("{name}={value}")]).collect()
}

/// Adds the command that reads these properties back to a script.
pub(super) fn read_by_hand(script: &mut Script, tool: &str, name: &str, asked: &[(String, String)]) {
    let names: Vec<&str> = asked.iter().map(|(name, _)| name.as_str()).collect();
    if !names.is_empty() {
        script.read(&call(tool, &["get", "-p", &names.join(","), name]));
    }
}

/// Other names that `get` shows for a value: property (empty for any), requested, shown (include/sys/fs/zfs.h and
/// module/zcommon/zfs_prop.c, the index tables).
const ALIASES: &[(&str, &str, &str)] = &[
    ("", "none", "0"),
    ("xattr", "on", "sa"),
    ("xattr", "on", "dir"),
    ("acltype", "posixacl", "posix"),
    ("acltype", "noacl", "off"),
    ("compression", "gzip-6", "gzip"),
    ("compression", "zstd-3", "zstd"),
    ("dedup", "verify", "sha256,verify"),
];

fn is_same(name: &str, asked: &str, shown: &str) -> bool {
    // `enabled` becomes `active` when a feature is first used.
    let feature = name.starts_with("feature@") && asked == "enabled" && shown == "active";
    let mut aliases = ALIASES.iter().filter(|(of, ..)| of.is_empty() || *of == name);
    asked == shown || feature || aliases.any(|(_, one, other)| *one == asked && *other == shown)
}

/// All properties, by `zfs get` or `zpool get`.
pub(super) fn get(host: &Host, tool: &str, name: &str) -> Result<Vec<Property>> {
    zfs_get::parse(&host.run(&call(tool, &["get", "-Hp", "all", name]))?.stdout)
}

/// Checks that everything requested is in force.
pub(super) fn compare(what: &str, asked: &[(String, String)], found: &[Property]) -> Result<()> {
    for (name, value) in asked {
        let shown = found.iter().find(|property| property.name == *name);
        match shown {
            Some(shown) if is_same(name, value, &shown.value) => {}
            Some(shown) => {
                let (is, source) = (&shown.value, &shown.source);
                return Err(Error::host(format!("{name} of {what} is `{is}` ({source}), but `{value}` was requested"))
                    .hint("write the value as `zfs get -p` prints it, or remove the property"));
            }
            None => {
                return Err(Error::host(format!("this version of ZFS shows no property `{name}` of {what}"))
                    .hint("`zfs get all` and `zpool get all` list those that it has"));
            }
        }
    }
    Ok(())
}

/// Properties without a source that are fixed at creation.
const AS_MADE: [&str; 5] = ["casesensitivity", "normalization", "utf8only", "volblocksize", "encryption"];

/// Properties as facts, each with its source. Statistics and values that differ between trials are left out.
pub(super) fn facts(found: &[Property]) -> Details {
    let mut facts = Details::new();
    let mut features: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Property { name, value, source } in found {
        if let Some(feature) = name.strip_prefix("feature@") {
            let state = if value == "disabled" { "features disabled" } else { "features enabled" };
            features.entry(state).or_default().push(feature);
            continue;
        }
        let of_trial = name == "mountpoint" || name.starts_with("pgstrata:");
        if of_trial || (source == "-" && !AS_MADE.contains(&name.as_str())) {
            continue;
        }
        let source = if source.starts_with("inherited") { "inherited" } else { source };
        let text = if source == "-" { value.clone() } else { format!("{value} ({source})") };
        facts.insert(name.clone(), text);
    }
    facts.extend(features.into_iter().map(|(state, names)| (state.to_owned(), names.join(", "))));
    facts
}

/// Properties of a dataset that determine what a sync does and how blocks are written.
const OF_MOUNT: &str = "atime checksum compression copies direct logbias primarycache recordsize \
    redundant_metadata sync";

/// Facts of a mounted dataset besides its mount options: these properties, and the parameters of the module that
/// determine what a sync does. Empty if ZFS does not respond.
pub(super) fn of_mount(host: &Host, dataset: &str) -> Details {
    let found = get(host, "zfs", dataset).unwrap_or_default().into_iter();
    let of_dataset = found.filter(|property| OF_MOUNT.split(' ').any(|name| name == property.name));
    let of_dataset = of_dataset.map(|property| (property.name, property.value));
    let of_module = durability::zfs_parameter_names();
    let of_module = of_module.filter_map(|name| Some((name.to_owned(), modules::shown(host, name)?)));
    of_dataset.chain(of_module).collect()
}

/// Devices of a dataset's pool, by path, each with its role.
pub(super) fn devices_of_pool(host: &Host, dataset: &str) -> Result<Vec<(String, Role)>> {
    let pool = dataset.split('/').next().unwrap_or(dataset);
    zpool_list::parse(&host.run(&call("zpool", &["list", "-vHP", pool]))?.stdout)
}

/// Space of a pool once all writes and frees so far have reached it.
///
/// # Errors
/// With the tool's own message.
pub fn room(host: &Host, pool: &str) -> Result<PoolRoom> {
    host.run(&call("zpool", &["sync", pool]))?;
    let shown = host.run(&call("zpool", &["list", "-Hp", "-o", zpool_list::ROOM_COLUMNS, pool]))?.stdout;
    zpool_list::room(&shown)
}

/// Maximum size of the ARC (`c_max`); `None` if ZFS does not report it.
///
/// # Errors
/// If the value cannot be parsed.
pub(super) fn arc_bytes_max(host: &Host) -> Result<Option<u64>> {
    let Some(text) = host.read_optional(modules::ARCSTATS) else { return Ok(None) };
    Ok(kstat::named(modules::ARCSTATS, &text)?.remove("c_max"))
}

/// A ledger entry identified by its name and its mark.
pub(super) fn marked(owner: &str, kind: &str, name: &str, mark: &str) -> Thing {
    Thing::new(owner, kind).with("name", name).with("mark", mark)
}

/// Destroys a pool (by `zpool`), or a dataset or volume with its children (by `zfs`), if it exists and has the mark of
/// the ledger. It may stay busy for a moment.
pub(super) fn destroy(host: &Host, tool: &str, flag: &str, thing: &Thing) -> Result<()> {
    let name = thing.mark("name")?;
    if !name.starts_with(folder::PREFIX) {
        return Err(Error::host(format!("{name} is not a name that pgstrata gives")));
    }
    mount_table::until_gone(host, || {
        if !is_there(host, tool, name)? {
            return Ok(None);
        }
        let shown = host.run(&call("zfs", &["get", "-Hp", "-o", "value", MARK, name]))?.stdout;
        let mark = thing.mark("mark")?;
        if shown.trim() != mark {
            return Err(Error::host(format!("{name} is not what pgstrata created: {MARK} is `{}`", shown.trim()))
                .hint(format!("check `{tool} list {name}` and remove it manually")));
        }
        Ok(Some(call(tool, &["destroy", flag, name])))
    })
}

/// True if a pool is imported, or a dataset exists.
pub(super) fn is_there(host: &Host, tool: &str, name: &str) -> Result<bool> {
    // Without the module the kernel has nothing of ours; calling the tools would load it.
    if !kernel_module::is_loaded(host, "zfs") {
        return Ok(false);
    }
    let pool = name.split('/').next().unwrap_or(name);
    let pools = host.run(&call("zpool", &["list", "-H", "-o", "name"]))?.stdout;
    if tool == "zpool" || !pools.lines().any(|line| line == pool) {
        return Ok(pools.lines().any(|line| line == name));
    }
    Ok(host.run(&call("zfs", &["list", "-H", "-o", "name", "-r", pool]))?.stdout.lines().any(|line| line == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, OptionValue)]) -> Options {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let mut options = Options::default();
        options.set(PROPERTIES_KEY, OptionValue::Map(pairs));
        options
    }

    fn text(value: &str) -> OptionValue {
        OptionValue::Text(value.to_owned())
    }

    fn shown(name: &str, value: &str, source: &str) -> Property {
        Property { name: name.to_owned(), value: value.to_owned(), source: source.to_owned() }
    }

    #[test]
    fn values_are_passed_as_zfs_accepts_and_compared_as_shown() {
        let options = with(&[
            ("recordsize", text("8k")),
            ("atime", OptionValue::Boolean(false)),
            ("copies", OptionValue::Integer(2)),
            ("xattr", text("on")),
        ]);
        let asked = asked(&options);
        assert_eq!(arguments(&asked).join(" "), "-o atime=off -o copies=2 -o recordsize=8192 -o xattr=on");
        let mut found = vec![
            shown("recordsize", "8192", "local"),
            shown("atime", "off", "local"),
            shown("copies", "2", "local"),
            shown("xattr", "sa", "local"),
        ];
        compare("tank", &asked, &found).unwrap();
        found[0].value = "131072".to_owned();
        let error = compare("tank", &asked, &found).unwrap_err().to_string();
        assert!(error.starts_with("recordsize of tank is `131072` (local), but `8192` was requested"), "{error}");
        found.remove(0);
        assert!(compare("tank", &asked, &found).unwrap_err().to_string().contains("no property `recordsize`"));
    }

    #[test]
    fn only_cryptographic_checksums_with_compression_or_dedup_skip_identical_writes() {
        let why = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs.iter().map(|(name, value)| (*name, text(value))).collect();
            skips_same_bytes(&with(&pairs))
        };
        assert_eq!(why(&[("dedup", "on")]).as_deref(), Some("dedup = \"on\""));
        let sha = ("checksum", "sha256");
        for pairs in [&[sha][..], &[sha, ("compression", "lz4")], &[("dedup", "off"), sha]] {
            assert_eq!(why(pairs).as_deref(), Some("checksum = \"sha256\" with compression (nopwrite)"));
        }
        for pairs in [&[][..], &[("compression", "lz4")], &[sha, ("compression", "off")], &[("checksum", "fletcher4")]]
        {
            assert_eq!(why(pairs), None, "{pairs:?}");
        }
    }

    #[test]
    fn names_and_values_that_would_reach_elsewhere_are_refused() {
        const REFUSED: &[(&str, &str)] = &[("mountpoint", "we set it"), ("pgstrata:", "it is our mark")];
        for (name, value) in [
            ("mountpoint", "none"),
            ("pgstrata:mark", "x"),
            ("-o", "x"),
            ("a b", "x"),
            ("sync", ""),
            ("keylocation", "file:///etc/passwd"),
            ("comment", "a\nb"),
        ] {
            assert!(check(&with(&[(name, text(value))]), REFUSED).is_err(), "{name}={value}");
        }
        assert_eq!(
            check(&with(&[("feature@zstd_compress", text("disabled")), ("org:note", text("x"))]), REFUSED),
            Ok(())
        );
    }

    #[test]
    fn facts_have_their_source_and_no_statistics() {
        let facts = facts(&[
            shown("used", "98304", "-"),
            shown("sync", "disabled", "local"),
            shown("atime", "on", "inherited from pgstrata-1"),
            shown("utf8only", "off", "-"),
            shown("mountpoint", "/run/x", "local"),
            shown(MARK, "u", "local"),
            shown("feature@a", "active", "local"),
            shown("feature@b", "enabled", "local"),
            shown("feature@c", "disabled", "local"),
        ]);
        let facts: Vec<String> = facts.into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let wanted = [
            "atime: on (inherited)",
            "features disabled: c",
            "features enabled: a, b",
            "sync: disabled (local)",
            "utf8only: off",
        ];
        assert_eq!(facts, wanted);
    }

    #[test]
    fn the_arc_maximum_is_read_where_an_arc_exists() {
        let root = tempfile::tempdir().unwrap();
        let read = || arc_bytes_max(&Host::rooted(root.path()));
        assert_eq!(read().unwrap(), None);
        let file = root.path().join(modules::ARCSTATS.trim_start_matches('/'));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, include_str!("../../tests/fixtures/zfs/2.3.9-arcstats.txt")).unwrap();
        assert_eq!(read().unwrap(), Some(1_293_406_720));
        std::fs::write(&file, "c_max 4 many\n").unwrap();
        let error = read().unwrap_err().to_string();
        assert!(error.contains(modules::ARCSTATS), "{error}");
    }

    #[test]
    fn what_does_not_bear_our_name_is_never_destroyed() {
        let thing = marked("zpool", "pool", "tank", "x");
        assert!(destroy(&Host::this(), "zpool", "-f", &thing).unwrap_err().to_string().contains("not a name"));
    }
}
