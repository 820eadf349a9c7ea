//! A stack as a shell script: the commands of each layer's build, for devices and folders that a person fills in.
//!
//! The commands come from the functions that the builds take theirs from, so the two cannot differ. What the person
//! fills in, or only the script finds out, is a variable in their arguments, between two control characters. Absent on
//! purpose: running anything; what only a measurement needs (images, marks, the ledger).

use super::Base;
use crate::host::command::{Command, quoted};
use crate::record::stack::{NodeSpec, StackSpec};
use std::ffi::OsStr;
use std::path::PathBuf;

const OPEN: char = '\u{1}';
const CLOSE: char = '\u{2}';

/// Functions of the script: refusals, and where a device has its files in sysfs.
const FUNCTIONS: &str = include_str!("by_hand/functions.sh");

/// A variable of the script, as a part of an argument.
pub fn variable(name: &str) -> String {
    format!("{OPEN}{name}{CLOSE}")
}

/// A word for a shell. Whatever it contains, the shell expands nothing but variables.
pub fn word(text: &str) -> String {
    if !text.contains(OPEN) {
        return quoted(OsStr::new(text));
    }
    let mut word = String::from("\"");
    for part in text.split(OPEN) {
        let is_name = |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        let plain = match part.split_once(CLOSE).filter(|(name, _)| name.starts_with(char::is_alphabetic)) {
            Some((name, rest)) if is_name(name) => {
                let ends = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
                word.push_str(&if ends { format!("${name}") } else { format!("${{{name}}}") });
                rest
            }
            _ => part,
        };
        for c in plain.chars() {
            word.extend("\\\"$`".contains(c).then_some('\\'));
            word.push(c);
        }
    }
    word + "\""
}

/// A command for a shell.
pub fn shown(command: &Command) -> String {
    command.words().map(|part| word(&part.to_string_lossy())).collect::<Vec<String>>().join(" ")
}

/// One line of comment, whatever the text contains.
fn comment(text: &str) -> String {
    let text = text.replace(OPEN, "$").replace(CLOSE, "");
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("# {text}").trim_end().to_owned()
}

/// A script in the making.
#[derive(Debug, Default)]
pub struct Script {
    /// Variables for the person, with values and meaning.
    variables: Vec<[String; 3]>,
    checks: Vec<String>,
    lines: Vec<String>,
    /// Commands that read the current section's options back.
    readings: Vec<String>,
    /// The current node, and what the plan says of it.
    node: String,
    title: String,
    /// The node that holds the data.
    data: String,
    has_several_devices: bool,
}

impl Script {
    pub fn of(spec: &StackSpec) -> Script {
        let used = |node: &NodeSpec| spec.nodes.iter().flat_map(|n| &n.inputs).any(|i| i.from.node() == node.name);
        let devices = spec.nodes.iter().filter(|node| node.inputs.is_empty() && used(node)).count();
        Script { data: spec.data.node().to_owned(), has_several_devices: devices > 1, ..Script::default() }
    }

    /// Declares a variable at the top; returns it.
    pub fn fill_in(&mut self, name: &str, value: &str, meaning: &str) -> String {
        if !self.variables.iter().any(|[known, ..]| known == name) {
            self.variables.push([name, value, meaning].map(str::to_owned));
        }
        variable(name)
    }

    /// Refuses to go on unless the shell's test holds.
    pub fn check(&mut self, line: String) {
        self.checks.push(line);
    }

    /// A device of the person's, for the current node.
    pub fn device(&mut self) -> Vec<Base> {
        let number = self.variables.iter().filter(|[name, ..]| name.starts_with("DEVICE")).count() + 1;
        let name = if self.has_several_devices { format!("DEVICE{number}") } else { "DEVICE".to_owned() };
        let meaning = format!("Block device, whose data are lost, in place of {}", self.title);
        let device = self.fill_in(&name, "", &meaning);
        self.check(format!("blank {}", word(&device)));
        vec![Base::Device(PathBuf::from(device))]
    }

    /// The folder where the current node is mounted.
    pub fn folder(&mut self) -> String {
        let number =
            self.variables.iter().filter(|[name, ..]| name.starts_with("MOUNT") && name != "MOUNT").count() + 2;
        let (name, place) = match self.node == self.data {
            true => ("MOUNT".to_owned(), "/var/lib/postgresql".to_owned()),
            false => (format!("MOUNT{number}"), format!("/var/lib/postgresql-{}", self.node)),
        };
        let folder = self.fill_in(&name, &place, &format!("Mount point of `{}`", self.node));
        self.check(format!("vacant {}", word(&folder)));
        folder
    }

    /// Name for what the current node makes.
    pub fn name(&self) -> String {
        format!("pg-{}", self.node)
    }

    /// The same in a pool.
    pub fn name_in(&self, pool: &str) -> String {
        format!("{pool}/{}", self.node)
    }

    /// A variable with what a line of shell computes.
    pub fn computed(&mut self, name: &str, shell: &str) -> String {
        let is_used = |name: &str| self.lines.iter().any(|line| line.starts_with(&format!("{name}=")));
        let mut names = std::iter::once(name.to_owned()).chain((2..).map(|number| format!("{name}{number}")));
        let name = names.find(|name| !is_used(name)).unwrap_or_default();
        self.line(format!("{name}={shell}"));
        variable(&name)
    }

    pub fn new_uuid(&mut self) -> String {
        self.computed("UUID", "$(cat /proc/sys/kernel/random/uuid)")
    }

    pub fn line(&mut self, line: String) {
        self.lines.push(line);
    }

    pub fn remark(&mut self, text: &str) {
        self.lines.push(comment(text));
    }

    pub fn run(&mut self, command: &Command) {
        self.lines.push(shown(command));
    }

    /// Adds a command that reads back what the section has made.
    pub fn read(&mut self, command: &Command) {
        self.readings.push(shown(command));
    }

    /// Writes a line to a file, or appends it; all are words for the shell.
    pub fn write(&mut self, line: &str, how: &str, file: &str) {
        self.lines.push(format!("printf '%s\\n' {line} {how} {file}"));
    }

    /// Writes a value to a file of the kernel, a word for the shell, and reads it back.
    pub fn set(&mut self, file: &str, value: &str) {
        self.write(&word(value), ">", file);
        self.readings.push(format!("cat {file}"));
    }

    /// As [`Script::set`], for a file of a device in sysfs.
    pub fn set_of_device(&mut self, device: &str, file: &str, value: &str) {
        self.set(&format!("\"$(sysfs {} {file})\"", word(device)), value);
    }

    /// Begins the section of a node.
    pub(super) fn enter(&mut self, node: &NodeSpec) -> usize {
        self.node.clone_from(&node.name);
        let options: Vec<String> =
            node.options.0.iter().map(|(key, value)| format!(" {key}={}", value.plain())).collect();
        self.begin(&format!("{} ({}{})", node.name, node.layer, options.concat()))
    }

    /// Begins a section with this title; returns its first line.
    pub fn begin(&mut self, title: &str) -> usize {
        title.clone_into(&mut self.title);
        self.lines.len()
    }

    /// Ends the section that begins with line `from`, with its readings and the values expected; drops an empty one.
    pub fn end(&mut self, from: usize, values: &[(String, String)]) {
        if self.lines.len() == from {
            return;
        }
        self.lines.insert(from, format!("\n{}", comment(&self.title)));
        if !self.readings.is_empty() {
            self.lines.push(comment(if values.is_empty() { "Read back:" } else { "Read back; the run read:" }));
        }
        self.lines.extend(values.iter().map(|(name, value)| comment(&format!("  {name}: {value}"))));
        self.lines.append(&mut self.readings);
    }

    /// The whole script, under these lines of comment.
    pub fn text(&self, head: &[String]) -> String {
        let mut lines = vec!["#!/bin/sh".to_owned()];
        lines.extend(head.iter().map(|line| comment(line)));
        lines.push("set -eu\n".to_owned());
        for [name, value, meaning] in &self.variables {
            let value = if value.is_empty() { String::new() } else { word(value) };
            lines.extend([comment(meaning), format!("{name}={value}")]);
        }
        lines.push(format!("\n{FUNCTIONS}"));
        lines.extend(self.checks.iter().chain(&self.lines).cloned());
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests;
