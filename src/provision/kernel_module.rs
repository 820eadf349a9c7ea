//! Kernel drivers that may be built in, loaded, or available as a module on disk; and loading one.
//!
//! A loaded module stays loaded: it is not in the ledger, unless its parameters come from a plan
//! ([`super::scsi_debug`]).

use super::{Unmet, needs};
use crate::error::Result;
use crate::host::Host;
use crate::host::command::Command;

/// Unmet if the kernel has the driver neither built in nor as a module. `built_in` looks for signs of a built-in
/// driver.
pub(super) fn unmet(host: &Host, what: &str, module: &str, built_in: impl Fn(&Host) -> bool) -> Option<Unmet> {
    let there = is_loaded(host, module) || needs::has_module(host, module) || built_in(host);
    (!there).then(|| Unmet {
        what: format!("{what} in the kernel {} (module {module})", needs::release(host).unwrap_or_default()),
        hint: needs::LACKING_KERNEL.to_owned(),
    })
}

/// Unmet if the kernel lacks a device mapper target; `module` provides it.
pub(super) fn unmet_target(host: &Host, target: &str, module: &str) -> Option<Unmet> {
    unmet(host, &format!("the device mapper target {target}"), module, |host| {
        // Lists the loaded targets and loads nothing; fails without a device mapper or root.
        let listed = host.run(&Command::new("dmsetup").arg("targets")).map(|output| output.stdout).unwrap_or_default();
        listed.lines().any(|line| line.split_whitespace().next() == Some(target))
    })
}

/// True if the module is loaded, or built in with parameters.
pub(super) fn is_loaded(host: &Host, module: &str) -> bool {
    // The kernel spells module names with underscores, whatever their files are named.
    host.exists(format!("/sys/module/{}", module.replace('-', "_")))
}

/// Loads a module from disk unless it is loaded.
///
/// # Errors
/// With modprobe's message.
pub(super) fn load(host: &Host, module: &str, parameters: &[String]) -> Result<()> {
    if is_loaded(host, module) || !needs::has_module(host, module) {
        return Ok(());
    }
    host.run(&Command::new("modprobe").arg(module).args(parameters)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_available_when_loaded_on_disk_or_built_in() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::rooted(root.path());
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/osrelease", "6.12.1\n");
        write("lib/modules/6.12.1/modules.dep", "kernel/drivers/md/raid10.ko.xz:\nkernel/drivers/md/dm-crypt.ko.xz:\n");
        write("sys/module/dm_delay/refcnt", "0");
        let lacks = |module: &str| unmet(&host, "it", module, |_| false);
        assert_eq!((lacks("raid10"), lacks("dm-crypt"), lacks("dm-delay")), (None, None, None));
        assert_eq!(lacks("raid456").unwrap().what, "it in the kernel 6.12.1 (module raid456)");
        assert_eq!(unmet(&host, "it", "raid456", |_| true), None);
    }
}
