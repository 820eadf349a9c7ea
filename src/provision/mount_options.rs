//! Tries each mount option of a stack on the kernel before anything is built.

use super::{layer, mount};
use crate::host::mount_options::ask;
use crate::record::stack::StackSpec;
use std::collections::BTreeMap;

pub use crate::host::mount_options::MountFinding;

/// Options that mount(8) turns into flags, for every filesystem (mount(8), "filesystem-independent mount options").
const GENERAL: &str = "defaults rw atime noatime relatime norelatime strictatime nostrictatime diratime \
    nodiratime lazytime nolazytime sync async dirsync suid nosuid dev nodev exec noexec mand nomand silent loud \
    iversion noiversion symfollow nosymfollow";

/// Finding about one mount option of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountOption {
    /// As given in the plan.
    pub option: String,
    /// Filesystem, which is the layer.
    pub filesystem: String,
    pub finding: MountFinding,
}

/// Caches the kernel's answers, so that each option of a plan is tried once.
#[derive(Debug, Default)]
pub struct OptionAnswers(BTreeMap<(String, String), MountFinding>);

impl OptionAnswers {
    pub fn of(&mut self, stack: &StackSpec) -> Vec<MountOption> {
        let mut all = Vec::new();
        for node in &stack.nodes {
            for option in mount::asked(&node.options) {
                let key = (node.layer.clone(), option.clone());
                let is_general = GENERAL.split(' ').any(|known| known == option);
                let asked = || if is_general { MountFinding::Good } else { ask(&node.layer, &option) };
                let finding = self.0.entry(key).or_insert_with(asked).clone();
                all.push(MountOption { option, filesystem: node.layer.clone(), finding });
            }
        }
        all
    }
}

/// Mount options commonly used with a filesystem, by name.
pub fn usual(filesystem: &str) -> Vec<&'static str> {
    let own = layer(filesystem).map_or("", |layer| layer.info().usual_mount_options);
    GENERAL.split(' ').chain(own.split_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::users;
    use crate::record::options::{OptionValue, Options};

    fn findings(filesystem: &str, options: &str) -> Vec<MountFinding> {
        let mut of_mount = Options::default();
        of_mount.set("mount", OptionValue::Text(options.to_owned()));
        let stack = StackSpec::linear("s", vec![(filesystem, of_mount)]);
        OptionAnswers::default().of(&stack).into_iter().map(|option| option.finding).collect()
    }

    #[test]
    fn generic_mount_options_need_no_kernel_and_ramfs_accepts_any() {
        assert_eq!(findings("tmpfs", "noatime,lazytime,defaults"), [const { MountFinding::Good }; 3]);
        assert!(matches!(findings("ramfs", "anything").as_slice(), [MountFinding::Unchecked(_)]));
    }

    #[test]
    fn a_misspelt_mount_option_is_refused_with_the_kernel_message() {
        let found = findings("tmpfs", "noatme,huge=never");
        if users::is_root() {
            assert!(matches!(&found[0], MountFinding::Refused(words) if words.contains("noatme")), "{found:?}");
            assert_eq!(found[1], MountFinding::Good);
        } else {
            assert!(matches!(&found[0], MountFinding::Unchecked(why) if why.contains("root")), "{found:?}");
        }
    }

    #[test]
    fn every_usual_option_is_known_once() {
        for filesystem in ["ext4", "xfs", "btrfs", "tmpfs"] {
            let mut names = usual(filesystem);
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{filesystem}: {names:?}");
            assert!(names.contains(&"noatime") && names.len() > GENERAL.split_whitespace().count());
        }
    }
}
