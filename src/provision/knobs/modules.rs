//! Parameters of the ZFS modules, by name: an option of the layer that loads them.
//!
//! There are hundreds, and they change with the version, so there is no list of them here. A parameter is a knob like
//! others: entered into the ledger, read back, restored.

use super::parameter::{MODULES, PARAMETER, folder, is_name};
use super::setting::KnobOwner;
use super::{asked, setting};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::parse::kstat;
use crate::provision::Details;
use crate::provision::by_hand::Script;
use crate::provision::ledger::Ledger;
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};

pub const KEY: &str = "module";

pub const PARAMETERS: OptionSpec = OptionSpec::optional(KEY, OptionKind::Properties).doc(
    "Parameters of the ZFS module by name, set for the trial and restored afterwards: { zfs_arc_max = \"2GiB\" }.",
);

fn path_of(host: &Host, name: &str) -> Option<String> {
    let mut paths = MODULES.iter().map(|module| format!("{}{name}", folder(module)));
    paths.find(|path| is_name(name) && host.exists(path))
}

/// The value that a parameter shows.
pub fn shown(host: &Host, name: &str) -> Option<String> {
    setting::shown(host, &path_of(host, name)?)
}

/// Checks the syntax of their names. The machine's module determines which exist.
///
/// # Errors
/// The invalid name.
pub fn check(parameters: &Options) -> Result<(), OptionProblem> {
    let Some(name) = parameters.0.keys().find(|name| !is_name(name)) else { return Ok(()) };
    Err(OptionProblem::at(KEY, format!("`{name}` is not the name of a parameter")))
}

/// Statistics of the ARC.
pub const ARCSTATS: &str = "/proc/spl/kstat/zfs/arcstats";

/// Limits of the ARC, each with the counter that shows the value in force. The parameter may differ: an out-of-range
/// limit is shown but ignored, and 0, which means the default at first, changes nothing later.
const LIMITS: [(&str, &str); 2] = [("zfs_arc_max", "c_max"), ("zfs_arc_min", "c_min")];

/// The limit in force that a parameter sets; `None` for other parameters.
fn limit(host: &Host, name: &str) -> Result<Option<u64>> {
    let Some((_, counter)) = LIMITS.iter().find(|(limit, _)| *limit == name) else { return Ok(None) };
    Ok(kstat::named(ARCSTATS, &host.read(ARCSTATS)?)?.get(*counter).copied())
}

fn check_limit(host: &Host, name: &str, asked: &str) -> Result<()> {
    let in_force = limit(host, name)?.filter(|in_force| asked != "0" && in_force.to_string() != asked);
    let Some(in_force) = in_force else { return Ok(()) };
    Err(Error::host(format!("{name} = {asked} is not in force: the limit of the ARC is {in_force}")).hint(
        "the ARC takes at least 64 MiB, more than zfs_arc_min (1/32 of the memory unless set) and less than the \
         memory of the machine",
    ))
}

/// The requested parameters, in an order that keeps each ARC limit within the other one while they are set. The
/// ledger's walk restores them in reverse, where the same holds.
fn ordered<'p>(host: &Host, parameters: &'p Options) -> Result<Vec<(&'p str, String)>> {
    let mut all: Vec<(&str, String)> = asked(parameters).collect();
    // `None` if the modules do not report it.
    let most = if host.exists(ARCSTATS) { limit(host, LIMITS[0].0)? } else { None };
    let least = all.iter().position(|(name, _)| *name == LIMITS[1].0);
    if let Some((place, most)) = least.zip(most)
        && all[place].1.parse::<u64>().is_ok_and(|least| least <= most)
    {
        all[..=place].rotate_right(1);
    }
    Ok(all)
}

/// Sets parameters, each entered into the ledger first, and returns the values they show.
///
/// # Errors
/// When the modules have no such parameter, or the kernel refuses the value or shows another one after it.
pub fn set(host: &Host, ledger: &Ledger, parameters: &Options) -> Result<Details> {
    let mut set = Details::new();
    for (name, value) in ordered(host, parameters)? {
        let path = path_of(host, name).ok_or_else(|| {
            Error::host(format!("the ZFS module has no parameter `{name}`"))
                .hint("`ls /sys/module/zfs/parameters` lists those of this version")
        })?;
        let owner = KnobOwner::parameter(host, path, limit(host, name)?.map(|limit| limit.to_string()));
        let changed = setting::set(host, ledger, &PARAMETER, &owner, &value);
        changed.map_err(|e| e.while_doing(format!("set {name}")))?;
        check_limit(host, name, &value)?;
        set.insert(name.to_owned(), value);
    }
    Ok(set)
}

/// Adds parameters to a script.
pub fn by_hand(script: &mut Script, parameters: &Options) {
    for (name, value) in asked(parameters) {
        let module = if name.starts_with("spl_") { "spl" } else { "zfs" };
        script.set(&format!("{}{name}", folder(module)), &value);
        script.remark(&format!("For the next boot, in /etc/modprobe.d: options {module} {name}={value}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provision::knobs::parameter::is_parameter;
    use crate::provision::undo::{undo_from, undo_own};
    use crate::record::options::{LEAVE, OptionValue};

    fn machine() -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("sys/module/zfs/parameters/zfs_arc_max", "0\n"),
            ("sys/module/zfs/parameters/zfs_fletcher_4_impl", "[fastest] scalar superscalar\n"),
            ("sys/module/spl/parameters/spl_taskq_thread_priority", "1\n"),
            ("proc/sys/kernel/random/boot_id", "b\n"),
            ("proc/spl/kstat/zfs/arcstats", "1 1\nname type data\nc_max 4 2147483648\n"),
        ] {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let host = Host::rooted(root.path());
        (root, host)
    }

    fn parameters(pairs: &[(&str, OptionValue)]) -> Options {
        Options(pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
    }

    #[test]
    fn a_parameter_is_set_and_put_back_by_the_ledger() {
        let (root, host) = machine();
        let ledger = Ledger::create(&root.path().join("ledger"), "r1").unwrap();
        let asked = parameters(&[
            ("zfs_arc_max", OptionValue::Text("2GiB".to_owned())),
            ("spl_taskq_thread_priority", OptionValue::Boolean(false)),
            ("zfs_fletcher_4_impl", OptionValue::Text(LEAVE.to_owned())),
        ]);
        let set = set(&host, &ledger, &asked).unwrap();
        assert_eq!(
            set.into_iter().collect::<Vec<_>>(),
            [
                ("spl_taskq_thread_priority".to_owned(), "0".to_owned()),
                ("zfs_arc_max".to_owned(), "2147483648".to_owned())
            ]
        );
        assert_eq!(shown(&host, "zfs_arc_max").as_deref(), Some("2147483648"));
        assert!(undo_from(&ledger, 0, undo_own, &host).is_empty());
        assert_eq!(shown(&host, "zfs_arc_max").as_deref(), Some("0"));
        assert_eq!(shown(&host, "spl_taskq_thread_priority").as_deref(), Some("1"));
    }

    #[test]
    fn arc_minimum_is_lowered_before_arc_maximum_and_raised_after() {
        let (_root, host) = machine();
        let order = |least: &str, most: &str| {
            let text = |value: &str| OptionValue::Text(value.to_owned());
            let asked = parameters(&[("zfs_arc_max", text(most)), ("zfs_arc_min", text(least))]);
            let names: Vec<String> =
                ordered(&host, &asked).unwrap().into_iter().map(|(name, _)| name.to_owned()).collect();
            names
        };
        // The upper limit in force is 2 GiB.
        assert_eq!(order("32MiB", "64MiB"), ["zfs_arc_min", "zfs_arc_max"]);
        assert_eq!(order("3GiB", "4GiB"), ["zfs_arc_max", "zfs_arc_min"]);
    }

    #[test]
    fn a_missing_parameter_is_reported_and_no_other_file_written() {
        let (root, host) = machine();
        let ledger = Ledger::create(&root.path().join("ledger"), "r1").unwrap();
        for name in ["zfs_no_such", "../../zfs/parameters/zfs_arc_max", ""] {
            let error = set(&host, &ledger, &parameters(&[(name, OptionValue::Integer(1))])).unwrap_err().to_string();
            assert!(error.contains("has no parameter"), "{error}");
        }
        assert!(ledger.open_things().is_empty());
        assert!(is_parameter("/sys/module/zfs/parameters/zfs_arc_max"));
        for path in ["/sys/module/zfs/parameters/../x", "/sys/module/other/parameters/x", "/etc/passwd"] {
            assert!(!is_parameter(path), "{path}");
        }
    }
}
