//! Ids of cases: short, unique, readable, and valid as folder names.
//!
//! Built from the stack, the workload and the axes that vary: `ext4.tpcb.clients-4.wal_sync_method-fdatasync`.

use crate::host::files;
use std::collections::HashMap;

/// Longest id, characters: leaves room for suffixes within the 255 bytes of a file name.
pub(super) const MAX_LENGTH: usize = 100;

/// Hex digits of the hash in a shortened or ambiguous id.
const HASH_LENGTH: usize = 12;

/// Parts of a case's id, also in full, to distinguish it from every other case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IdParts {
    pub head: [String; 2],
    /// Axes that vary: name, short value, full value.
    pub axes: Vec<(String, String, String)>,
}

impl IdParts {
    fn readable(&self) -> String {
        let axes = self.axes.iter().map(|(axis, shown, _)| format!("{}-{}", plain(axis), plain(shown)));
        self.head.iter().cloned().chain(axes).collect::<Vec<_>>().join(".")
    }

    fn hash(&self) -> String {
        let texts = self.head.iter().chain(self.axes.iter().flat_map(|(axis, _, full)| [axis, full]));
        let parts = texts.flat_map(|text| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat());
        files::sha256(&parts.collect::<Vec<u8>>())[..HASH_LENGTH].to_owned()
    }
}

/// One id per case, in order. An id depends on others only if two would be equal without a hash.
pub(super) fn ids(all: &[IdParts]) -> Vec<String> {
    let readable: Vec<String> = all.iter().map(IdParts::readable).collect();
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for id in &readable {
        *uses.entry(id).or_default() += 1;
    }
    let ids = all.iter().zip(&readable).map(|(parts, readable)| {
        if readable.len() <= MAX_LENGTH && uses[readable.as_str()] == 1 {
            return readable.clone();
        }
        // Ids are ASCII, so any byte is a character boundary.
        let room = MAX_LENGTH - HASH_LENGTH - 1;
        let stem = readable[..readable.len().min(room)].trim_end_matches(['.', '-']);
        format!("{stem}-{}", parts.hash())
    });
    ids.collect()
}

/// The text in lower-case letters, digits, `_` and single `-`.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() || c == '_' => out.push(c),
            _ if out.ends_with('-') || out.is_empty() => {}
            _ => out.push('-'),
        }
    }
    let kept = out.trim_end_matches('-');
    if kept.is_empty() { "none".to_owned() } else { kept.to_owned() }
}

/// Distinguishing parts of paths: each without the leading and trailing components that all share. A single path stays
/// whole.
pub(super) fn distinct_parts(paths: &[String]) -> Vec<String> {
    let split: Vec<Vec<&str>> = paths.iter().map(|path| path.split('/').collect()).collect();
    let Some((first, rest)) = split.split_first().filter(|(_, rest)| !rest.is_empty()) else { return paths.to_vec() };
    let shortest = split.iter().map(Vec::len).min().unwrap_or(0);
    let front = (0..shortest).take_while(|i| rest.iter().all(|parts| parts[*i] == first[*i])).count();
    let back = (0..shortest - front)
        .take_while(|i| rest.iter().all(|parts| parts[parts.len() - 1 - i] == first[first.len() - 1 - i]))
        .count();
    split.iter().map(|parts| parts[front..parts.len() - back].join("/")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    fn parts(axes: &[(&str, &str)]) -> IdParts {
        let axes = axes.iter().map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned(), (*value).to_owned()));
        IdParts { head: ["ext4".into(), "tpcb".into()], axes: axes.collect() }
    }

    #[test]
    fn ids_read_as_the_axes_do() {
        let id = |axes| ids(&[parts(axes)]).remove(0);
        assert_eq!(id(&[]), "ext4.tpcb");
        assert_eq!(
            id(&[("clients", "4"), ("wal_sync_method", "fdatasync")]),
            "ext4.tpcb.clients-4.wal_sync_method-fdatasync"
        );
        assert_eq!(id(&[("scale", "50% of RAM")]), "ext4.tpcb.scale-50-of-ram");
        assert_eq!(id(&[("synchronous_standby_names", "")]), "ext4.tpcb.synchronous_standby_names-none");
    }

    #[test]
    fn values_that_look_alike_get_a_hash() {
        let made = ids(&[parts(&[("s", "a b")]), parts(&[("s", "A-b")]), parts(&[("s", "c")])]);
        assert_ne!(made[0], made[1]);
        assert!(made[0].starts_with("ext4.tpcb.s-a-b-"), "{made:?}");
        assert_eq!(made[2], "ext4.tpcb.s-c");
    }

    #[test]
    fn folders_of_servers_are_named_by_what_differs() {
        let paths = ["/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/18/bin"].map(str::to_owned);
        assert_eq!(distinct_parts(&paths), ["15", "18"]);
        assert_eq!(distinct_parts(&["/opt/a".into(), "/opt/a/b".into()]), ["", "b"]);
        assert_eq!(distinct_parts(&["auto".into()]), ["auto"]);
    }

    proptest! {
        #[test]
        fn ids_are_unique_short_and_fit_for_a_folder(values in proptest::collection::btree_set(".{0,150}", 1..20)) {
            let all: Vec<IdParts> = values.iter().map(|value| parts(&[("setting", value)])).collect();
            let made = ids(&all);
            let unique: std::collections::BTreeSet<&String> = made.iter().collect();
            prop_assert_eq!(unique.len(), made.len());
            for id in &made {
                prop_assert!(id.len() <= MAX_LENGTH);
                let fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
                prop_assert!(id.chars().all(fit), "{id}");
            }
        }
    }
}
