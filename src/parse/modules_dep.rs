//! `modules.dep` and `modules.builtin` of depmod(8): the kernel modules, and the modules that each needs.

/// The modules of one kernel.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    /// Path of each module below the kernel's folder, and the modules that it needs, in the file's order: nearest
    /// first.
    loadable: Vec<(String, Vec<String>)>,
    built_in: Vec<String>,
}

impl Modules {
    pub(crate) fn parse(dep: &str, builtin: &str) -> Modules {
        let loadable = dep.lines().filter_map(|line| {
            let (path, needs) = line.split_once(':')?;
            Some((path.trim().to_owned(), needs.split_whitespace().map(str::to_owned).collect()))
        });
        let built_in = builtin.lines().map(|path| name(path).to_owned()).collect();
        Modules { loadable: loadable.collect(), built_in }
    }

    /// Paths of a module and of all modules that it needs, in loading order. Empty if it is built in; `None` if it does
    /// not exist.
    pub(crate) fn closure(&self, module: &str) -> Option<Vec<String>> {
        let wanted = module.replace('-', "_");
        if let Some((path, needs)) = self.loadable.iter().find(|(path, _)| name(path).replace('-', "_") == wanted) {
            return Some(needs.iter().rev().chain([path]).cloned().collect());
        }
        self.built_in.iter().any(|built_in| built_in.replace('-', "_") == wanted).then(Vec::new)
    }
}

/// `ext4` from `kernel/fs/ext4/ext4.ko.xz`.
pub(crate) fn name(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split(".ko").next().unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEP: &str = "kernel/fs/ext4/ext4.ko.xz: kernel/fs/jbd2/jbd2.ko.xz kernel/lib/crc16.ko.xz\n\
                       kernel/lib/crc16.ko.xz:\nkernel/drivers/md/dm-mod.ko: kernel/drivers/dax/dax.ko\n";

    #[test]
    fn what_a_module_needs_comes_before_it() {
        let modules = Modules::parse(DEP, "kernel/drivers/virtio/virtio_pci.ko\n");
        let paths = ["kernel/lib/crc16.ko.xz", "kernel/fs/jbd2/jbd2.ko.xz", "kernel/fs/ext4/ext4.ko.xz"];
        assert_eq!(modules.closure("ext4").unwrap(), paths);
        assert_eq!(modules.closure("dm_mod").unwrap(), ["kernel/drivers/dax/dax.ko", "kernel/drivers/md/dm-mod.ko"]);
        assert_eq!(modules.closure("virtio-pci"), Some(Vec::new()));
        assert_eq!(modules.closure("zfs"), None);
    }
}
