//! Stacks that skip rewriting identical bytes, as far as their layers know before the build.

use super::stack::known;
use crate::record::stack::{BaseName, End, StackSpec};

/// Hint for such a stack: how to make it write, and what else moves pages.
pub const INSTEAD: &str = "set checksum = \"fletcher4\" and dedup = \"off\", or age by `pgbench`";

/// Reason that pages written back unchanged would be skipped; `None` if they are written. `pg_wal` is not considered.
pub fn skipped(spec: &StackSpec) -> Option<String> {
    let of_pages = spec.ends().into_iter().filter(|(end, _)| *end != End::Wal);
    of_pages.into_iter().find_map(|(_, base)| below(spec, base))
}

fn below(spec: &StackSpec, base: &BaseName) -> Option<String> {
    let node = spec.node(base.node())?;
    let own = known(node).ok()?.skips_same_bytes(&node.options);
    own.map(|why| format!("`{}` does not write bytes again that it holds already: {why}", node.name))
        .or_else(|| node.inputs.iter().find_map(|input| below(spec, &input.from)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::options::{OptionValue, Options};

    fn stack(layers: &[&str], of: &str, dedup: &str) -> StackSpec {
        let options = |layer: &str| {
            let mut options = Options::default();
            if layer == of {
                let dedup = ("dedup".to_owned(), OptionValue::Text(dedup.to_owned()));
                options.set("properties", OptionValue::Map([dedup].into()));
            }
            options
        };
        StackSpec::linear("s", layers.iter().map(|layer| (*layer, options(layer))).collect())
    }

    #[test]
    fn identical_pages_are_skipped_by_zfs_below_the_data_only() {
        let why = "holds already: dedup = \"on\"";
        let dataset = ["loop", "zpool", "zfs"];
        assert!(skipped(&stack(&dataset, "zfs", "on")).unwrap().ends_with(why));
        assert!(skipped(&stack(&["loop", "zpool", "zvol", "ext4"], "zvol", "on")).unwrap().ends_with(why));
        assert_eq!(skipped(&stack(&dataset, "zfs", "off")), None);
        let mut beside = stack(&["loop", "ext4"], "", "");
        let of_wal = stack(&dataset, "zfs", "on");
        beside.wal = Some(of_wal.data.clone());
        beside.nodes.extend(of_wal.nodes.into_iter().filter(|node| node.layer != "loop"));
        assert_eq!(skipped(&beside), None);
    }
}
