//! Display names of cases, built from the axes in which they differ.
//!
//! Stacks and workloads have their own names; every other axis is shown as `axis=value`. Axes that all cases share are
//! left out.

use crate::record::columns;
use crate::record::probe::Family;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Position of a case in the matrix: value by axis.
pub type Axes = BTreeMap<String, String>;

/// Names of all cases by id; the id itself if the axes do not make the name unique.
pub fn of_cases<'a>(cases: impl Iterator<Item = (&'a str, &'a Axes)> + Clone) -> BTreeMap<String, String> {
    let differing = differing(&cases.clone().map(|(_, axes)| axes).collect::<Vec<_>>());
    let names: BTreeMap<&str, String> = cases.map(|(id, axes)| (id, of_axes(axes, &differing))).collect();
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for name in names.values() {
        *seen.entry(name).or_default() += 1;
    }
    let clear = names.iter().map(|(id, name)| (id, name, !name.is_empty() && seen.get(name.as_str()) == Some(&1)));
    clear
        .map(|(id, name, is_clear)| ((*id).to_owned(), if is_clear { name.clone() } else { (*id).to_owned() }))
        .collect()
}

/// Name of a case from these axes: `xfs clients=16`.
pub fn of_axes(axes: &Axes, named: &[String]) -> String {
    let parts = named.iter().filter_map(|axis| Some(of_axis(axis, axes.get(axis)?)));
    parts.collect::<Vec<_>>().join(" ")
}

/// Name of a latency figure, also by the longer one that files have: `p99.9` for `latency_us_p999`.
pub fn of_latency(name: &str) -> &str {
    match name.strip_prefix("latency_us_").unwrap_or(name) {
        "p999" => "p99.9",
        short => short,
    }
}

pub fn of_axis(axis: &str, value: &str) -> String {
    if matches!(axis, "stack" | "workload") { value.to_owned() } else { format!("{axis}={value}") }
}

/// Name of a variant in the findings' JSON, which is also that of tables and flags.
pub fn stored(variant: &impl Serialize) -> String {
    if let Ok(serde_json::Value::String(name)) = serde_json::to_value(variant) { name } else { String::new() }
}

/// A part of a probe's table, by the name that pg_test_fsync's own output has: `one write`.
pub fn of_family(family: Family) -> String {
    stored(&family).replace('_', " ").replace("open sync", "open_sync")
}

/// The first few names, and the number of others: `a; b; 3 more`.
pub fn first<T: ToString>(names: impl ExactSizeIterator<Item = T>, most: usize, between: &str, last: &str) -> String {
    let more = names.len().saturating_sub(most);
    let shown = names.take(most).map(|name| name.to_string()).collect::<Vec<_>>().join(between);
    if more > 0 { format!("{shown}{last}{more} more") } else { shown }
}

/// Columns of these axes, named as in the Parquet files.
pub fn axis_columns(axes: &BTreeSet<&String>) -> Vec<String> {
    let axes: Axes = axes.iter().map(|axis| ((*axis).clone(), String::new())).collect();
    columns::axes(&axes).into_iter().map(|(column, _)| column.name).collect()
}

/// Axes with more than one value (a missing axis counts as a value): stack, workload, then by name.
fn differing(cases: &[&Axes]) -> Vec<String> {
    let names: BTreeSet<&String> = cases.iter().flat_map(|axes| axes.keys()).collect();
    let mut differing: Vec<String> = names.into_iter().cloned().collect();
    differing.retain(|name| cases.iter().any(|axes| axes.get(name) != cases[0].get(name)));
    differing.sort_by_key(|name| (name != "stack", name != "workload"));
    differing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(of: &[(&str, &str)]) -> Axes {
        of.iter().map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_name_lists_only_differing_axes_with_their_values() {
        let case = |fpw, fsync| {
            axes(&[
                ("stack", "ext4"),
                ("workload", "tpcb"),
                ("full_page_writes", fpw),
                ("fsync", fsync),
                ("clients", "8"),
            ])
        };
        let cases = [("a", case("off", "on")), ("b", case("on", "on")), ("c", case("on", "off"))];
        let names = of_cases(cases.iter().map(|(id, axes)| (*id, axes)));
        let names: Vec<&str> = names.values().map(String::as_str).collect();
        let wanted = ["full_page_writes=off fsync=on", "full_page_writes=on fsync=on", "full_page_writes=on fsync=off"];
        let sorted = |name: &str| name.split(' ').map(str::to_owned).collect::<BTreeSet<_>>();
        assert!(names.iter().zip(wanted).all(|(name, wanted)| sorted(name) == sorted(wanted)), "{names:?}");
    }

    #[test]
    fn names_of_stack_and_workload_come_first() {
        let cases = [
            ("x", axes(&[("clients", "1"), ("stack", "xfs"), ("workload", "tpcb")])),
            ("y", axes(&[("stack", "ext4"), ("workload", "sync")])),
        ];
        let names = of_cases(cases.iter().map(|(id, axes)| (*id, axes)));
        assert_eq!((names["x"].as_str(), names["y"].as_str()), ("xfs tpcb clients=1", "ext4 sync"));
    }

    #[test]
    fn axis_columns_are_named_as_in_the_parquet_files() {
        let axes = ["clients", "ext4.mount", "ext4_mount"].map(str::to_owned);
        let names = axis_columns(&axes.iter().collect());
        assert_eq!(names, ["axis_clients", "axis_ext4_mount", "axis_ext4_mount_2"]);
    }

    #[test]
    fn cases_that_axes_do_not_tell_apart_keep_their_ids() {
        let same = axes(&[("stack", "xfs")]);
        let names = of_cases([("one", &same), ("two", &same)].into_iter());
        assert_eq!((names["one"].as_str(), names["two"].as_str()), ("one", "two"));
    }
}
