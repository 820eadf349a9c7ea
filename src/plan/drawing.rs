//! A stack as a drawing, from the database down:
//!
//! ```text
//! data  zfs recordsize=8k
//!       └ zpool ashift=12
//!         ├ mirror-0
//!         │ ├ a: loop 4GiB
//!         │ └ b: loop 4GiB
//!         └ log
//!           └ slog: loop 1GiB
//! wal   wal: zfs recordsize=128k
//!       └ zpool (above)
//! ```
//!
//! A node that several others stand on is drawn once, below the first of them.

use crate::record::options::OptionValue;
use crate::record::stack::{BaseName, Input, NodeSpec, Role, StackSpec};
use std::fmt::Write;

/// The lines of the drawing, without a line end.
pub fn drawing(stack: &StackSpec) -> Vec<String> {
    let ends: Vec<(String, &BaseName)> = stack.ends().into_iter().map(|(end, base)| (end.to_string(), base)).collect();
    let width = ends.iter().map(|(end, _)| end.chars().count()).max().unwrap_or(0);
    let mut canvas = Canvas { stack, drawn: Vec::new(), lines: Vec::new() };
    for (end, base) in &ends {
        canvas.place(&format!("{end:<width$}  "), &" ".repeat(width + 2), base);
    }
    canvas.lines
}

struct Canvas<'a> {
    stack: &'a StackSpec,
    /// Nodes drawn so far.
    drawn: Vec<&'a str>,
    lines: Vec<String>,
}

/// Inputs of a node that belong together: a role, a group, or the plain devices.
struct Branch<'a> {
    title: Option<String>,
    inputs: Vec<&'a Input>,
}

impl<'a> Canvas<'a> {
    /// Draws a base and everything below it. `first` prefixes its own line, `rest` those below it.
    fn place(&mut self, first: &str, rest: &str, base: &BaseName) {
        let Some(node) = self.stack.node(base.node()) else { return };
        let shown = label(node, base, first.trim());
        if self.drawn.contains(&node.name.as_str()) {
            self.lines.push(format!("{first}{base} (above)"));
            return;
        }
        self.drawn.push(&node.name);
        self.lines.push(format!("{first}{shown}"));
        self.below(rest, node);
    }

    fn below(&mut self, lead: &str, node: &'a NodeSpec) {
        let branches = branches(node);
        let last = branches.len().saturating_sub(1);
        for (at, branch) in branches.iter().enumerate() {
            let (corner, bar) = if at == last { ("└ ", "  ") } else { ("├ ", "│ ") };
            match &branch.title {
                None => self.inputs(lead, &branch.inputs, at == last),
                Some(title) => {
                    self.lines.push(format!("{lead}{corner}{title}"));
                    self.inputs(&format!("{lead}{bar}"), &branch.inputs, true);
                }
            }
        }
    }

    fn inputs(&mut self, lead: &str, inputs: &[&'a Input], is_last: bool) {
        let end = inputs.len().saturating_sub(1);
        for (at, input) in inputs.iter().enumerate() {
            let (corner, bar) = if is_last && at == end { ("└ ", "  ") } else { ("├ ", "│ ") };
            self.place(&format!("{lead}{corner}"), &format!("{lead}{bar}"), &input.from);
        }
    }
}

/// Inputs of a node: plain ones first, then groups and roles in order of appearance.
fn branches(node: &NodeSpec) -> Vec<Branch<'_>> {
    let mut branches: Vec<Branch<'_>> = Vec::new();
    for input in &node.inputs {
        let title = match (input.role, &input.group) {
            (Role::Data, group) => group.clone(),
            (role, None) => Some(role.word().to_owned()),
            (role, Some(group)) => Some(format!("{}: {group}", role.word())),
        };
        match branches.iter_mut().find(|branch| branch.title == title) {
            Some(branch) => branch.inputs.push(input),
            None => branches.push(Branch { title, inputs: vec![input] }),
        }
    }
    branches
}

/// `d1: loop 4GiB`, `ext4 mount=noatime`: name, layer and options of a node. The name is left out if it is the layer's,
/// or if the line already shows it (`end`).
fn label(node: &NodeSpec, base: &BaseName, end: &str) -> String {
    let mut text = if base.0 == node.layer || base.0 == end { String::new() } else { format!("{base}: ") };
    text.push_str(&node.layer);
    let options = &node.options.0;
    if let Some(main) = options.get(&node.layer) {
        write!(text, " {}", main.plain()).unwrap_or_default();
    }
    for (key, value) in options.iter().filter(|(key, _)| **key != node.layer) {
        match value {
            OptionValue::Map(pairs) => {
                for (key, value) in pairs {
                    write!(text, " {key}={}", value.plain()).unwrap_or_default();
                }
            }
            _ => write!(text, " {key}={}", value.plain()).unwrap_or_default(),
        }
    }
    text
}
