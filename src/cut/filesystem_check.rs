//! Runs each filesystem's own checker read-only, after a mount and unmount, which has replayed the journal.

use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::command::{Command, last_lines};
use crate::provision::Base;
use crate::provision::facts::Bases;
use crate::record::stack::{NodeSpec, Role, StackSpec};
use std::path::Path;

/// A read-only invocation of a checker.
struct Program {
    layers: &'static [&'static str],
    name: &'static str,
    arguments: &'static [&'static str],
    /// Bit of the exit code that reports damage; any other failure says nothing.
    damage: i32,
}

/// e2fsck(8), xfs_repair(8) and btrfs-check(8).
const PROGRAMS: [Program; 3] = [
    Program { layers: &["ext2", "ext3", "ext4"], name: "e2fsck", arguments: &["-f", "-n"], damage: 4 },
    Program { layers: &["xfs"], name: "xfs_repair", arguments: &["-n"], damage: 1 },
    Program { layers: &["btrfs"], name: "btrfs", arguments: &["check", "--readonly"], damage: 1 },
];

/// Lines shown of each stream.
const SAID: usize = 12;

/// A checker on its device.
pub struct FilesystemCheck {
    command: Command,
    damage: i32,
}

/// Checks for all filesystems of a stack on these devices; the reason, for one without a check.
pub fn all_of(host: &Host, stack: &StackSpec, devices: &Bases) -> Vec<Result<FilesystemCheck, String>> {
    let filesystems = stack.nodes.iter().filter(|node| stack.ends().iter().any(|(_, on)| on.node() == node.name));
    let checks = filesystems.map(|node| {
        let check = of_node(host, node, devices);
        check.map_err(|why| format!("check of {}: {why}", node.layer))
    });
    checks.collect()
}

fn of_node(host: &Host, node: &NodeSpec, devices: &Bases) -> Result<FilesystemCheck, String> {
    let program = PROGRAMS.iter().find(|program| program.layers.contains(&node.layer.as_str()));
    let program = program.ok_or("no read-only checker is known")?;
    if !host.has_program(program.name) {
        return Err(format!("{} is not installed", program.name));
    }
    if node.inputs.iter().any(|input| input.role != Role::Data) {
        return Err("its journal is on another device".to_owned());
    }
    let on = node.inputs.iter().map(|input| devices.get(&input.from).and_then(Base::device));
    let on = on.collect::<Option<Vec<&Path>>>().ok_or("it does not lie on recorded disks directly")?;
    let first = on.first().ok_or("it has no device")?;
    let command = Command::new(program.name).args(program.arguments).arg(first);
    Ok(FilesystemCheck { command, damage: program.damage })
}

impl FilesystemCheck {
    /// Returns the damage found.
    ///
    /// # Errors
    /// If it did not finish, or could not check.
    pub fn run(&self, host: &Host) -> Result<Option<String>> {
        let (output, code) = host.run_to_end(&self.command)?;
        // Each checker chooses which stream has its findings and which its version and summary.
        let said = [output.stderr, output.stdout].map(|text| last_lines(&text, SAID));
        let said = format!("`{}` says:\n{}", self.command.shown(), said.join("\n"));
        match code {
            Some(0) => Ok(None),
            Some(code) if code & self.damage != 0 => Ok(Some(said)),
            _ => Err(Error::host(said)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_recognised_in_both_output_streams_of_the_checker() {
        let check = |exit: &str| {
            let script = format!("echo Inode 7, i_blocks is 16, should be 18; echo e2fsck 1.47 >&2; exit {exit}");
            let command = Command::new("sh").args(["-c", script.as_str()]);
            FilesystemCheck { command, damage: 4 }.run(&Host::this())
        };
        let damage = check("4").unwrap().unwrap();
        assert!(damage.contains("should be 18") && damage.contains("e2fsck 1.47"), "{damage}");
        assert_eq!(check("0").unwrap(), None);
        assert!(check("8").unwrap_err().to_string().contains("should be 18"));
    }
}
